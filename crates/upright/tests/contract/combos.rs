//! The parts together, on the embedded classifier and drawn digits: every
//! score, search and gate fits and predicts, and the promises hold.

use std::sync::OnceLock;

use upright::canonicalizer::{
    Canonicalizer, Config, FitData, Prediction, Silent, Verdict, transformed_copies,
};
use upright::config::Part;
use upright::dataset::{Dataset, Samples};
use upright::model::{Model, Options, Tap};
use upright::reduce::Reduce;
use upright::samples;
use upright::tensor::Batch;
use upright::{gate, score, search};

fn model(threads: Option<usize>) -> Model {
    let options = Options {
        taps: vec![Tap { name: "auto".into(), reduce: Reduce::None }],
        threads,
        ..Options::default()
    };
    Model::from_bytes("glyphs", samples::glyph_model(), &options).unwrap()
}

fn training() -> &'static Samples<'static> {
    static DATA: OnceLock<Samples<'static>> = OnceLock::new();
    DATA.get_or_init(|| samples::digits(500, 1).unwrap())
}

fn config() -> Config {
    Config { calibration: 200, budget: 24, ..Config::default() }
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
    let mut batch = test.batch().select(&half);
    let other = test.batch().select(&rest);
    batch.append(&transformed_copies(&other, &space, &config().resample, 5).unwrap()).unwrap();
    (batch, test.labels().unwrap().to_vec())
}

fn right(predictions: &[Prediction], labels: &[u32]) -> usize {
    predictions.iter().zip(labels).filter(|(p, l)| p.label == **l).count()
}

#[test]
fn the_bare_model_fails_where_the_gated_one_succeeds() {
    let data = samples::digits(1500, 1).unwrap();
    let config = Config { calibration: 400, budget: 60, ..Config::default() };
    let mut c = config.fit(model(None), &FitData::new(&data), &mut Silent).unwrap();
    let (batch, labels) = mixed(200);
    let upright: Vec<usize> = (0..100).collect();
    let transformed: Vec<usize> = (100..200).collect();
    let gated = |c: &Canonicalizer, rows: &[usize]| {
        let labels: Vec<u32> = rows.iter().map(|&r| labels[r]).collect();
        right(&c.predict(&batch.select(rows)).unwrap(), &labels)
    };
    let (up, tr) = (gated(&c, &upright), gated(&c, &transformed));
    c.set_gate(Part::new("never")).unwrap();
    let (bare_up, bare_tr) = (gated(&c, &upright), gated(&c, &transformed));
    assert!(bare_tr < 65, "the control must fail: {bare_tr} of 100");
    assert!(tr >= bare_tr + 25, "{bare_tr} -> {tr} of 100");
    assert!(up + 2 >= bare_up, "{bare_up} -> {up} of 100");
}

#[test]
fn every_score_fits_predicts_and_survives_its_artifact() {
    let (batch, _) = mixed(16);
    for row in score::TABLE {
        let config = Config { score: Part::new(row.name), budget: 6, ..config() };
        let c = fitted(&config);
        let before = c.predict(&batch).unwrap();
        let bytes = c.to_bytes().unwrap();
        let artifact = upright::artifact::Artifact::from_bytes(row.name, &bytes).unwrap();
        let again = artifact.join(model(None)).unwrap();
        assert_eq!(before, again.predict(&batch).unwrap(), "{}", row.name);
        assert_eq!(bytes, again.to_bytes().unwrap(), "{}", row.name);
        for p in &before {
            assert!(p.energy_after <= p.energy_before, "{}", row.name);
        }
    }
}

#[test]
fn every_search_and_gate_combine_within_the_budget() {
    let (batch, _) = mixed(12);
    for gate in gate::TABLE {
        let part = Part::new(gate.name);
        let mut c = fitted(&Config { gate: part, score: Part::new("energy"), ..config() });
        for search in search::TABLE {
            c.set_search(Part::new(search.name), 9).unwrap();
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
    let mut c = fitted(&config());
    c.set_gate(Part::new("never")).unwrap();
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
        let artifact = upright::artifact::Artifact::from_bytes("a", &bytes).unwrap();
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

#[test]
fn another_seed_searches_other_poses() {
    let (batch, _) = mixed(20);
    let look = |seed| {
        let config = Config { gate: Part::new("always"), seed, ..config() };
        fitted(&config).predict(&batch).unwrap()
    };
    let (a, b) = (look(1), look(2));
    assert!(a.iter().zip(&b).any(|(a, b)| a.pose != b.pose));
}

#[test]
fn a_class_with_fewer_samples_than_k_is_refused_by_name() {
    let data = samples::digits(40, 1).unwrap();
    let config = Config { score: Part::new("pc-knn").number("k", 20.0), ..config() };
    let e = config.fit(model(None), &FitData::new(&data), &mut Silent).unwrap_err();
    assert_eq!(e.code(), "bank::small");
    assert!(e.to_string().contains("k = 20"), "{e}");
    assert!(e.help().contains("--set k="), "{}", e.help());
}

#[test]
fn inputs_of_another_shape_are_refused() {
    let c = fitted(&Config { score: Part::new("energy"), ..config() });
    let other = Batch::zeros(upright::tensor::Signal::image(3, 8, 8), 1);
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
    assert_eq!(c.report().calibrated_on, 60);
    assert_eq!(c.report().upright.before.of, 60);
}

/// The whole chain, energy to outputs to pixels to map to pose, against finite differences:
/// the energy along the pose must fall as the gradient says, for searches that follow it.
#[test]
fn following_the_gradient_lowers_the_energy() {
    let (batch, _) = mixed(24);
    let look = |name: &str| {
        let mut c = fitted(&Config { gate: Part::new("always"), budget: 60, ..config() });
        c.set_search(Part::new(name), 60).unwrap();
        assert!(c.model().differentiable().is_ok());
        let all = c.predict(&batch).unwrap();
        all.iter().map(|p| f64::from(p.energy_after)).sum::<f64>() / all.len() as f64
    };
    let (random, refined) = (look("random"), look("random-refine"));
    assert!(refined < 0.97 * random, "{random} -> {refined}");
}
