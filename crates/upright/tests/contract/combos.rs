//! The parts together, on the embedded classifier and drawn digits: every
//! score, search and gate fits and predicts, and the promises hold.

use std::sync::OnceLock;

use upright::internal::canonicalizer::transformed_copies;
use upright::{
    Batch, Canonicalizer, Config, Dataset, FitData, Model, ModelOptions, Models, Part, Prediction,
    Reduce, Role, Samples, Silent, Tap, Verdict, View, gate, samples, score, search, warp,
};

fn model(threads: Option<usize>) -> Model {
    let options = ModelOptions {
        taps: vec![Tap { name: "auto".into(), reduce: Reduce::None }],
        threads,
        ..ModelOptions::default()
    };
    Model::from_bytes("glyphs", samples::glyph_model(), &options).unwrap()
}

/// The model with an energy network beside it where the score needs one.
fn models(score: &str) -> Models {
    let external = score::needs(&Part::new(score)).unwrap().external.then(|| {
        let options = ModelOptions { energy: true, ..ModelOptions::default() };
        let weight = |i: usize| ((i % 40) as f32 - 20.0) * 1e-2 + (i / 40 % 3) as f32 * 1e-3;
        Model::from_bytes("energy", &crate::energy::energy(40, 1, weight), &options).unwrap()
    });
    Models { first: model(None), second: None, external }
}

fn training() -> &'static Samples<'static> {
    static DATA: OnceLock<Samples<'static>> = OnceLock::new();
    DATA.get_or_init(|| samples::digits(500, 1).unwrap())
}

fn config() -> Config {
    Config { calibration: 200, budget: 24, ..crate::searching(upright::Signal::image(1, 40, 40)) }
}

fn fitted(config: &Config) -> Canonicalizer {
    config.fit(model(None), &FitData::new(training()), &mut Silent).unwrap()
}

/// Fresh digits, the second half transformed.
fn mixed(count: usize) -> (Batch<'static>, Vec<u32>) {
    let test = samples::digits(count, 77).unwrap();
    let space = config().space.build().unwrap();
    let half: Vec<usize> = (0..count / 2).collect();
    let rest: Vec<usize> = (count / 2..count).collect();
    let other = test.batch().select(&rest);
    let copies = transformed_copies(&other, &space, &config().resample, 5).unwrap();
    let data = [test.batch().select(&half).data(), copies.data()].concat();
    (Batch::new(copies.signal(), data).unwrap(), test.labels().unwrap().to_vec())
}

fn right(predictions: &[Prediction], labels: &[u32]) -> usize {
    predictions.iter().zip(labels).filter(|(p, l)| p.label == **l).count()
}

#[test]
fn the_bare_model_fails_where_the_gated_one_succeeds() {
    let data = samples::digits(1500, 1).unwrap();
    let config = Config {
        calibration: 400,
        budget: 60,
        ..crate::searching(upright::Signal::image(1, 40, 40))
    };
    let c = config.fit(model(None), &FitData::new(&data), &mut Silent).unwrap();
    let (batch, labels) = mixed(200);
    let upright: Vec<usize> = (0..100).collect();
    let transformed: Vec<usize> = (100..200).collect();
    let gated = |c: &Canonicalizer, rows: &[usize]| {
        let labels: Vec<u32> = rows.iter().map(|&r| labels[r]).collect();
        right(&c.predict(&batch.select(rows)).unwrap(), &labels)
    };
    let (up, tr) = (gated(&c, &upright), gated(&c, &transformed));
    let c = c.with_part(Role::Gate, Part::new("never")).unwrap();
    let (bare_up, bare_tr) = (gated(&c, &upright), gated(&c, &transformed));
    assert!(bare_tr < 65, "the control must fail: {bare_tr} of 100");
    assert!(tr >= bare_tr + 25, "{bare_tr} -> {tr} of 100");
    assert!(up + 2 >= bare_up, "{bare_up} -> {up} of 100");
}

#[test]
fn every_score_fits_predicts_and_survives_its_artifact() {
    let (batch, _) = mixed(16);
    for row in score::TABLE {
        let config = Config { budget: 6, ..config() }.with(Role::Score, Part::new(row.name));
        let c = config.fit(models(row.name), &FitData::new(training()), &mut Silent).unwrap();
        let before = c.predict(&batch).unwrap();
        let bytes = c.to_bytes().unwrap();
        let artifact = upright::Artifact::from_bytes(row.name, &bytes).unwrap();
        let again = artifact.join(models(row.name)).unwrap();
        assert_eq!(before, again.predict(&batch).unwrap(), "{}", row.name);
        assert_eq!(bytes, again.to_bytes().unwrap(), "{}", row.name);
        for p in &before {
            assert!(p.energy_after <= p.energy_before, "{}", row.name);
        }
    }
}

#[test]
fn an_energy_network_leads_the_search_and_is_told_from_others() {
    let options = ModelOptions { energy: true, ..ModelOptions::default() };
    // Pixels weigh the more the further right they are: ink belongs to the left.
    let energy = |sign: f32| {
        let bytes = crate::energy::energy(40, 2, |i| sign * ((i / 2 % 40) * (i % 2)) as f32);
        Model::from_bytes("energy", &bytes, &options).unwrap()
    };
    let with = |external| Models { first: model(None), second: None, external };
    let data = FitData::new(training());
    let config = config().with(Role::Gate, Part::new("always"));
    let external = config.clone().with(Role::Score, Part::new("external"));
    let (batch, _) = mixed(16);
    for search in ["random", "random-refine"] {
        let config = external.clone().with(Role::Search, Part::new(search));
        let c = config.fit(with(Some(energy(1.0))), &data, &mut Silent).unwrap();
        let left = |batch: &Batch| c.raw(batch).unwrap().1;
        let raw = left(&batch);
        let predictions = c.predict(&batch).unwrap();
        let views: Vec<View> =
            (0..batch.len()).map(|item| View { item, map: predictions[item].map }).collect();
        let seen = left(&warp(&batch, &views, &c.config().resample).unwrap());
        for ((p, raw), seen) in predictions.iter().zip(raw).zip(seen) {
            assert!(
                p.energy_before.to_bits() == raw.to_bits() && p.energy_after < raw,
                "{search} {p:?}"
            );
            assert!((p.energy_after - seen).abs() < 1e-3 * raw.abs(), "{search} {seen} {p:?}");
        }
        let bytes = c.to_bytes().unwrap();
        let join = |external| {
            upright::Artifact::from_bytes("a", &bytes).unwrap().join(with(external)).unwrap_err()
        };
        assert_eq!(join(None).code(), "score::model");
        assert_eq!(join(Some(energy(-1.0))).code(), "artifact::model");
    }
    let e = external.fit(with(None), &data, &mut Silent).unwrap_err();
    assert_eq!(e.to_string(), "score `external` needs an energy network, and none is given");
    let e = config.fit(with(Some(energy(1.0))), &data, &mut Silent).unwrap_err();
    assert!(e.to_string().contains("takes no energy network"), "{e}");
}

#[test]
fn every_search_and_gate_combine_within_the_budget() {
    let (batch, _) = mixed(12);
    for gate in gate::TABLE {
        let part = Part::new(gate.name);
        let c = fitted(&config().with(Role::Gate, part).with(Role::Score, Part::new("energy")));
        for search in search::TABLE {
            let c = c.with_part(Role::Search, Part::new(search.name)).unwrap().with_budget(9);
            let name = format!("{} {}", search.name, gate.name);
            for p in c.predict(&batch).unwrap() {
                assert!(p.evaluations <= 10, "{name}");
                assert_eq!(p.verdict == Verdict::Kept, p.evaluations == 1, "{name}");
                assert!(p.energy_after <= p.energy_before, "{name}");
                if p.verdict != Verdict::Accepted {
                    assert!(p.map.is_identity() && p.label == p.raw_label, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_closed_gate_gives_the_bare_models_logits_bit_for_bit() {
    let c = fitted(&config());
    let c = c.with_part(Role::Gate, Part::new("never")).unwrap();
    let (batch, _) = mixed(20);
    let bare = c.model().run(&batch).unwrap();
    for (p, logits) in c.predict(&batch).unwrap().iter().zip(bare.logits.iter()) {
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&p.logits), bits(logits));
        assert_eq!(p.verdict, Verdict::Kept);
    }
}

#[test]
fn answers_do_not_depend_on_batch_size_order_or_threads() {
    let c = fitted(&config());
    let bytes = c.to_bytes().unwrap();
    let (batch, _) = mixed(70);
    let whole = c.predict(&batch).unwrap();
    assert!(whole.iter().any(|p| p.verdict == Verdict::Accepted));
    assert!(whole.iter().any(|p| p.verdict == Verdict::Kept));
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let artifact = upright::Artifact::from_bytes("a", &bytes).unwrap();
        let c = artifact.join(model(Some(threads))).unwrap();
        for size in [1, 3, 64] {
            let rows: Vec<usize> = (0..batch.len()).collect();
            let parts: Vec<Prediction> = pool.install(|| {
                rows.chunks(size).flat_map(|r| c.predict(&batch.select(r)).unwrap()).collect()
            });
            assert_eq!(whole, parts, "{threads} threads, batches of {size}");
        }
    }
    let backwards: Vec<usize> = (0..batch.len()).rev().collect();
    let mut turned = c.predict(&batch.select(&backwards)).unwrap();
    turned.reverse();
    assert_eq!(whole, turned, "order");
}

#[test]
fn the_same_fit_gives_the_same_bytes() {
    assert_eq!(fitted(&config()).to_bytes().unwrap(), fitted(&config()).to_bytes().unwrap());
}

/// Nothing here is fitted to data: only the seed can make a difference.
#[test]
fn another_seed_searches_other_poses() {
    let (batch, _) = mixed(20);
    let look = |seed| {
        let config = Config { seed, ..config() }
            .with(Role::Score, Part::new("energy"))
            .with(Role::Search, Part::new("random"))
            .with(Role::Gate, Part::new("always"));
        let traces = fitted(&config).trace(&batch).unwrap();
        let poses = |t: upright::Trace| t.seen.into_iter().map(|s| s.pose).collect();
        traces.into_iter().map(poses).collect::<Vec<Vec<Vec<f32>>>>()
    };
    let (a, again, b) = (look(1), look(1), look(2));
    assert_eq!(a, again);
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(a.len(), 24);
        assert!(a.iter().all(|pose| !b.contains(pose)), "both seeds look at the same pose");
    }
}

/// With fewer samples than neighbours are asked for, all are used, and it does not matter
/// how many more are asked for; the fit says which class it is.
#[test]
fn a_class_with_fewer_samples_than_k_is_used_whole_and_named() {
    let data = samples::digits(60, 1).unwrap();
    let (batch, _) = mixed(20);
    let fit = |score: &str, k: f64| {
        let score = Part::new(score).number("k", k);
        let config = config().with(Role::Score, score).with(Role::Gate, Part::new("always"));
        let c = config.fit(model(None), &FitData::new(&data), &mut Silent).unwrap();
        let (_, energies) = c.raw(&batch).unwrap();
        assert!(energies.iter().all(|e| e.is_finite()));
        (energies, c.report().notes.clone())
    };
    let (energies, notes) = fit("pc-knn", 40.0);
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.starts_with("class `") && note.ends_with(": all are used"), "{note}");
    assert!(note.contains("fewer than the 40 `pc-knn` looks at, and so have 9 other"), "{note}");
    assert_eq!(energies, fit("pc-knn", 1000.0).0);
    let (energies, notes) = fit("knn", 49.0);
    assert_eq!(notes, ["the bank has 48 samples, fewer than the 49 `knn` looks at: all are used"]);
    assert_eq!((energies, Vec::new()), fit("knn", 48.0));
}

#[test]
fn inputs_of_another_shape_are_refused() {
    let c = fitted(&config().with(Role::Score, Part::new("energy")));
    let other = Batch::new(upright::Signal::image(3, 8, 8), vec![0.0; 192]).unwrap();
    assert_eq!(c.predict(&other).unwrap_err().code(), "input::shape");
}

#[test]
fn held_out_data_are_used_when_given() {
    let held = samples::digits(120, 9).unwrap();
    let c = {
        let data = FitData { held_out: Some(&held), ..FitData::new(training()) };
        config().fit(model(None), &data, &mut Silent).unwrap()
    };
    assert_eq!(c.report().bank, training().len());
    // Three fifths calibrate what the others prove; then these calibrate, too.
    assert_eq!(c.report().calibrated_on, 120);
    assert_eq!(c.report().upright.before.of, 48);
}

/// The energy at a pose of an item, as a search sees it.
fn energy_at(c: &Canonicalizer, batch: &Batch, item: usize, pose: &[f32]) -> f64 {
    let view = View { item, map: c.space().map(pose) };
    let view = warp(batch, &[view], &c.config().resample).unwrap();
    c.raw(&view).unwrap().1[0].into()
}

/// The whole chain, energy to outputs to pixels to map to pose, against central differences.
/// Pixels pass from cell to cell and neighbours change, so two steps must agree before a
/// direction tells anything.
#[test]
fn gradients_of_the_whole_chain_match_finite_differences() {
    let (batch, _) = mixed(12);
    for score in ["energy", "pc-knn"] {
        let config = Config { budget: 30, ..config() }
            .with(Role::Score, Part::new(score))
            .with(Role::Gate, Part::new("always"));
        let c = fitted(&config);
        let c = c.with_part(Role::Search, Part::new("random-refine")).unwrap().with_budget(30);
        let mut told = 0;
        for (item, trace) in c.trace(&batch).unwrap().iter().enumerate() {
            for seen in trace.seen.iter().filter(|s| s.gradient.is_some()).take(2) {
                let gradient = seen.gradient.as_deref().unwrap();
                let norm = gradient.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
                for (axis, &given) in gradient.iter().enumerate() {
                    let slope = |h: f32| {
                        let at = |by: f32| {
                            let mut pose = seen.pose.clone();
                            pose[axis] += by;
                            (energy_at(&c, &batch, item, &pose), f64::from(pose[axis]))
                        };
                        let ((up, a), (down, b)) = (at(h), at(-h));
                        (up - down) / (a - b)
                    };
                    let (coarse, fine) = (slope(4e-3), slope(2e-3));
                    if (coarse - fine).abs() > 0.02 * norm {
                        continue;
                    }
                    told += usize::from(f64::from(given).abs() > 0.2 * norm);
                    let error = (f64::from(given) - fine).abs() / norm;
                    assert!(error < 0.06, "{score} {item} axis {axis}: {given}, not {fine}");
                }
            }
        }
        assert!(told > 20, "{score}: only {told} slopes tell anything");
    }
}

#[test]
fn following_the_gradient_lowers_the_energy() {
    let (batch, _) = mixed(24);
    let look = |name: &str| {
        let c = fitted(&Config { budget: 60, ..config() }.with(Role::Gate, Part::new("always")));
        let c = c.with_part(Role::Search, Part::new(name)).unwrap().with_budget(60);
        assert!(c.model().differentiable().is_ok());
        let all = c.predict(&batch).unwrap();
        all.iter().map(|p| f64::from(p.energy_after)).sum::<f64>() / all.len() as f64
    };
    let (random, refined) = (look("random"), look("random-refine"));
    assert!(refined < 0.97 * random, "{random} -> {refined}");
}
