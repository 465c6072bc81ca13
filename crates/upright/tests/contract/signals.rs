//! Strokes and clouds as first-class signals: every search, spaces that do not
//! fit, artifacts and determinism, on the small exported networks.

use std::path::PathBuf;

use upright::internal::canonicalizer::transformed_copies;
use upright::internal::tensor::argmax;
use upright::proposer::Brief;
use upright::{
    Artifact, Batch, Canonicalizer, Config, FitData, Hint, Map, Model, ModelOptions, Part,
    Resample, Role, Samples, Signal, Silent, SpaceConfig, Verdict, search,
};

fn model(network: &str) -> Model {
    let file = format!("tests/fixtures/exports/{network}-script-dynamic.onnx");
    Model::load(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file), &ModelOptions::default())
        .unwrap()
}

/// Items of smooth random numbers; the last rows of strokes are padding.
fn items(signal: Signal, count: usize, seed: f32) -> Batch<'static> {
    let size = signal.size();
    let mut data = vec![0.0; size * count];
    for (i, v) in data.iter_mut().enumerate() {
        let (item, at) = (i / size, i % size);
        *v = (0.7 * at as f32 + seed + 1.3 * item as f32).sin() + 0.3 * (at % 3) as f32;
        if matches!(signal, Signal::Strokes { .. }) && at % 3 == 2 {
            let rows = size / 3;
            *v = if at / 3 + 2 >= rows { -1.0 } else { f32::from(u8::from(at / 3 % 4 == 0)) };
        }
    }
    Batch::new(signal, data).unwrap()
}

/// Items much like those of the bank, transformed.
fn astray(c: &Canonicalizer, count: usize) -> Batch<'static> {
    let near = items(c.model().signal(), count, 0.05);
    transformed_copies(&near, c.space(), &Resample::default(), 8).unwrap()
}

fn fitted(network: &str, search: &str) -> Canonicalizer {
    let model = model(network);
    let batch = items(model.signal(), 60, 0.0);
    let labels = model.run(&batch).unwrap().logits.iter().map(|z| argmax(z) as u32).collect();
    let data = Samples::labelled(batch, labels).unwrap();
    let config = Config { budget: 20, ..crate::searching(model.signal()) }
        .with(Role::Search, Part::new(search))
        .with(Role::Gate, Part::new("always"));
    config.fit(model, &FitData::new(&data), &mut Silent).unwrap()
}

#[test]
fn every_search_runs_on_strokes_and_clouds_within_its_budget() {
    for network in ["lstm", "pointnet"] {
        let c = fitted(network, "random");
        let batch = astray(&c, 6);
        for row in search::TABLE {
            let c = c.with_part(Role::Search, Part::new(row.name)).unwrap().with_budget(20);
            let found = c.predict(&batch).unwrap();
            let solid = network == "pointnet";
            for p in &found {
                assert!(p.evaluations <= 21 && p.energy_after <= p.energy_before, "{}", row.name);
                assert_eq!(matches!(p.map, Map::Space(_)), solid, "{network} {}", row.name);
                assert!(c.space().contains(&p.pose), "{network} {}", row.name);
            }
            let moved = found.iter().any(|p| p.verdict == Verdict::Accepted);
            assert!(moved, "{network} {}", row.name);
        }
    }
}

#[test]
fn clouds_and_strokes_survive_an_artifact_and_do_not_depend_on_batches() {
    for network in ["lstm", "pointnet"] {
        let c = fitted(network, "rivals");
        let batch = astray(&c, 9);
        let whole = c.predict(&batch).unwrap();
        let artifact = Artifact::from_bytes(network, &c.to_bytes().unwrap()).unwrap();
        let again = artifact.join(model(network)).unwrap();
        for (i, want) in whole.iter().enumerate() {
            assert_eq!(again.predict(&batch.select(&[i])).unwrap()[0], *want, "{network} {i}");
        }
    }
}

/// The chain from energy to pose through the network, the inverse map and Gram-Schmidt.
#[test]
fn gradients_refine_clouds() {
    let c = fitted("pointnet", "random");
    assert!(c.model().differentiable().is_ok());
    let batch = astray(&c, 12);
    let look = |name: &str| {
        let c = c.with_part(Role::Search, Part::new(name)).unwrap().with_budget(60);
        let all = c.predict(&batch).unwrap();
        all.iter().map(|p| f64::from(p.energy_after)).sum::<f64>() / all.len() as f64
    };
    let (random, refined) = (look("random"), look("random-refine"));
    assert!(refined < random, "{random} -> {refined}");
}

#[test]
fn a_space_of_the_wrong_dimension_is_refused_with_one_that_fits() {
    for (network, text, help) in
        [("pointnet", "affine", "so3"), ("lstm", "so3", "affine"), ("lstm", "vertical", "rotate")]
    {
        let model = model(network);
        let batch = items(model.signal(), 40, 0.0);
        let data = Samples::labelled(batch, vec![0; 40]).unwrap();
        let config = Config { space: SpaceConfig::parse(text).unwrap(), ..Config::default() };
        let e = config.fit(model, &FitData::new(&data), &mut Silent).unwrap_err();
        assert_eq!(e.code(), "config::space", "{e}");
        let Some(Hint::ChooseSpace { fits, .. }) = e.hint() else { panic!("{e:?}") };
        assert!(fits.contains(&help), "{fits:?}");
    }
}

/// Copies of a cloud keep all distances from the origin and between points, are not clamped,
/// and do not depend on the batch.
#[test]
fn transformed_copies_of_points_are_moved_exactly() {
    let cloud = items(Signal::Cloud { points: 30 }, 5, 0.2);
    let space = SpaceConfig::of_signal(cloud.signal()).build().unwrap();
    let copies = transformed_copies(&cloud, &space, &Resample::default(), 3).unwrap();
    assert!(copies.data().iter().any(|v| *v < -0.5) && copies.data().iter().any(|v| *v > 1.1));
    let norm = |p: &[f32]| p.iter().map(|v| v * v).sum::<f32>().sqrt();
    for (a, b) in cloud.data().chunks(3).zip(copies.data().chunks(3)) {
        assert!((norm(a) - norm(b)).abs() < 1e-5);
    }
    let alone = transformed_copies(&cloud.select(&[2]), &space, &Resample::default(), 3).unwrap();
    assert_eq!(alone.item(0), copies.item(2));

    let strokes = items(Signal::Strokes { length: 12 }, 3, 0.2);
    let space = SpaceConfig::of_signal(strokes.signal()).build().unwrap();
    let copies = transformed_copies(&strokes, &space, &Resample::default(), 3).unwrap();
    for (a, b) in strokes.data().chunks(3).zip(copies.data().chunks(3)) {
        assert_eq!(a[2].to_bits(), b[2].to_bits(), "pen");
        assert_eq!(a[2] < 0.0, a == b, "padding stays, ink moves");
    }
}

/// The copies of an input are those of its content, and a closed gate leaves the bare model.
#[test]
fn orbits_are_measured_for_every_signal() {
    use upright::internal::canonicalizer::Consistency;
    for network in ["lstm", "pointnet", "resnet"] {
        let c = fitted(network, "rivals");
        let batch = items(c.model().signal(), 3, 0.3);
        let orbits = c.orbits(&batch, 16, 1).unwrap();
        assert!(orbits.iter().all(|o| o.canonical.of == 16 && o.canonical.hits >= 2), "{network}");
        assert_eq!(c.orbits(&batch.select(&[1]), 16, 1).unwrap(), orbits[1..2], "{network}");
        let c = c.with_part(Role::Gate, Part::new("never")).unwrap();
        let bare = Consistency::of(&c.orbits(&batch, 16, 1).unwrap());
        assert_eq!(bare.canonical, bare.raw, "{network}");
        assert_eq!(bare.raw, Consistency::of(&orbits).raw, "{network}");
    }
}

/// Poses proposed from the principal axes are rotations of the space and survive the artifact.
#[test]
fn poses_of_clouds_are_proposed_by_their_principal_axes() {
    let c = fitted("pointnet", "rivals");
    let batch = astray(&c, 4);
    let artifact = Artifact::from_bytes("a", &c.to_bytes().unwrap()).unwrap();
    let again = artifact.join(model("pointnet")).unwrap();
    let first = |c: &Canonicalizer, i: usize, count: usize| {
        let (space, signal, item) = (c.space(), batch.signal(), batch.item(i).into());
        c.proposer().start(Brief { space, signal, item, seed: 0 }).first(count)
    };
    for i in 0..4 {
        let all = first(&c, i, 30);
        assert!(all.len() >= 4 && all.iter().all(|p| c.space().contains(&p.pose)), "{all:?}");
        assert_eq!(first(&again, i, 3), all[..3]);
    }
}
