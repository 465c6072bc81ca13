//! What a fit chooses and promises beyond its parts: tuning that resumes,
//! switching, voting, abstaining, and the conformal share.

use upright::Models;
use upright::gate::{self, Calibration, Case, Look};
use upright::internal::canonicalizer::transformed_copies;
use upright::{
    Artifact, Batch, Canonicalizer, Config, FitData, Model, ModelOptions, Part, Role, Samples,
    Silent, Tap, TuneConfig, TuneReport, TuneWatch, Verdict, samples,
};

fn load(taps: &[Tap]) -> upright::Result<Model> {
    let options = ModelOptions { taps: taps.to_vec(), ..ModelOptions::default() };
    Model::from_bytes("glyphs", samples::glyph_model(), &options)
}

fn model() -> Model {
    load(&[Tap::auto()]).unwrap()
}

/// The same classifier with a last bias that lets it see a 7 in everything.
fn sevens() -> Model {
    let bytes = samples::glyph_model();
    let mut bias = model().head().unwrap().bias.clone();
    let in_file = |v: &[f32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let old = in_file(&bias);
    let at = bytes.windows(old.len()).position(|w| w == old).unwrap();
    bias[7] += 1e4;
    let mut other = bytes.to_vec();
    other[at..at + old.len()].copy_from_slice(&in_file(&bias));
    Model::from_bytes("sevens", &other, &ModelOptions::default()).unwrap()
}

fn config() -> Config {
    Config { calibration: 200, budget: 16, ..crate::searching(upright::Signal::image(1, 40, 40)) }
}

fn transformed(count: usize, seed: u64) -> (Batch<'static>, Vec<u32>) {
    let test = samples::digits(count, seed).unwrap();
    let space = config().space.build().unwrap();
    let copies = transformed_copies(test.batch(), &space, &config().resample, seed).unwrap();
    (copies, test.labels().unwrap().to_vec())
}

/// Tunes with at most so many trials before it is stopped.
fn tune(log: Option<&std::path::Path>, most: usize) -> TuneReport {
    let data = samples::digits(400, 1).unwrap();
    let tune = TuneConfig {
        rows: [
            (Role::Score, vec!["energy".into(), "pc-knn".into()]),
            (Role::Search, vec!["random".into(), "rivals".into()]),
        ]
        .into(),
        samples: 36,
        views: 8,
        first: 2,
        second: 7,
        others: 7,
        ..TuneConfig::default()
    };
    let mut asked = 0;
    let mut stop = || {
        asked += 1;
        asked > most
    };
    let mut watch = TuneWatch { watch: &mut Silent, trial: &mut |_| (), stop: &mut stop };
    let given = FitData::new(&data);
    Config { budget: 8, ..config() }.tune(&tune, &load, &given, log, &mut watch).unwrap()
}

#[test]
fn an_interrupted_tuning_ends_as_an_uninterrupted_one() {
    let whole = tune(None, usize::MAX);
    assert!(whole.finished && whole.trials > 10, "{whole:?}");
    assert!(whole.accuracy.1 >= whole.accuracy.0, "{whole:?}");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("m.tune.jsonl");
    let cut = tune(Some(&log), 4);
    assert!(!cut.finished && cut.trials < whole.trials);
    assert!(!tune(Some(&log), 6).finished);
    assert_eq!(tune(Some(&log), usize::MAX), whole);
}

#[test]
fn unfamiliar_inputs_go_to_the_second_model_and_no_others() {
    let data = samples::digits(400, 1).unwrap();
    let gate = Part::new("conformal").number("margin", 0.0);
    let config = config().with(Role::Gate, gate);
    let config = config.with(Role::Router, Part::new("switch"));
    let both = || Models::from((model(), sevens()));
    let c = config.fit(both(), &FitData::new(&data), &mut Silent).unwrap();
    let (batch, _) = transformed(60, 9);
    let answers = c.predict(&batch).unwrap();
    let [first, second] = [model(), sevens()].map(|m| m.run(&batch).unwrap().logits);
    for (i, p) in answers.iter().enumerate() {
        let switched = p.verdict == Verdict::Switched;
        assert_eq!(switched, c.gate().search(Look { energy: p.energy_before, label: p.raw_label }));
        assert_eq!(switched, p.evaluations == 2, "{p:?}");
        assert_eq!(p.logits, if switched { second.row(i) } else { first.row(i) }, "{p:?}");
        assert_eq!(p.label, if switched { 7 } else { p.raw_label }, "{p:?}");
        assert_eq!(p.energy_after.to_bits(), p.energy_before.to_bits(), "{p:?}");
    }
    let switched = answers.iter().filter(|p| p.verdict == Verdict::Switched);
    assert!((10..answers.len()).contains(&switched.clone().count()), "some, not all");
    assert!(switched.clone().any(|p| p.raw_label != 7), "the first model says the same");
    let bytes = c.to_bytes().unwrap();
    let join = |models: Models| Artifact::from_bytes("a", &bytes).unwrap().join(models);
    let e = join(model().into()).unwrap_err();
    assert_eq!(e.code(), "router::model", "{e}");
    let e = join((model(), model()).into()).unwrap_err();
    assert_eq!(e.code(), "artifact::model", "{e}");
    assert_eq!(join(both()).unwrap().predict(&batch).unwrap(), answers);
    let e = config.fit(model(), &FitData::new(&data), &mut Silent).unwrap_err();
    assert_eq!(e.code(), "router::model", "{e}");
    let other =
        Model::from_bytes("strokes", samples::stroke_model(), &ModelOptions::default()).unwrap();
    assert!(config.fit((model(), other), &FitData::new(&data), &mut Silent).is_err());
}

#[test]
fn a_vote_is_fitted_and_restored() {
    let data = samples::digits(400, 1).unwrap();
    let config = config().with(Role::Readout, Part::new("vote"));
    let c = config.fit(model(), &FitData::new(&data), &mut Silent).unwrap();
    let (batch, _) = transformed(40, 3);
    let again = Artifact::from_bytes("a", &c.to_bytes().unwrap()).unwrap().join(model()).unwrap();
    assert_eq!(again.predict(&batch).unwrap(), c.predict(&batch).unwrap());
}

/// Withholding a tenth of right answers must leave answers that are right more often.
#[test]
fn unanswered_inputs_are_more_often_wrong_than_answered_ones() {
    let data = samples::digits(800, 1).unwrap();
    let config = Config { calibration: 160, budget: 24, ..config() }
        .with(Role::Abstain, Part::new("doubt").number("withheld", 0.1));
    let c = config.fit(model(), &FitData::new(&data), &mut Silent).unwrap();
    let (batch, labels) = transformed(300, 11);
    let answers = c.predict(&batch).unwrap();
    let rate = |abstained: bool| {
        let group: Vec<bool> = answers
            .iter()
            .zip(&labels)
            .filter(|(p, _)| (p.verdict == Verdict::Abstained) == abstained)
            .map(|(p, l)| p.label == *l)
            .collect();
        (group.len(), group.iter().filter(|r| **r).count() as f64 / group.len() as f64)
    };
    let ((held, wrong), (answered, right)) = (rate(true), rate(false));
    assert!(held >= 15 && answered >= 100, "{held} {answered}");
    assert!(right > wrong + 0.1, "{right} {wrong}");
    let doubtful = answers.iter().filter(|p| p.verdict == Verdict::Abstained);
    assert!(doubtful.clone().all(|p| p.rival != Some(p.label)));
    let again = Artifact::from_bytes("a", &c.to_bytes().unwrap()).unwrap().join(model()).unwrap();
    assert_eq!(again.predict(&batch).unwrap(), answers);
}

/// 20 splits of the energies of fresh digits: 200 calibrate, 200 are judged. The share of
/// searched inputs averages at most 5 % plus sampling error, sqrt(0.05 * 0.95 / 4000) = 0.3 %
/// and as much again for the calibration samples; three of both together are 1.5 %.
#[test]
fn the_conformal_share_holds_over_repeated_splits_of_real_energies() {
    let data = samples::digits(400, 1).unwrap();
    let c: Canonicalizer = config().fit(model(), &FitData::new(&data), &mut Silent).unwrap();
    let (_, energies) = c.raw(samples::digits(1200, 5).unwrap().batch()).unwrap();
    let mut share = 0.0;
    for split in 0..20usize {
        let look = |energy| Look { energy, label: 0 };
        let unsearched = |energy| Case { raw: look(energy), best: None, truth: None };
        let pick = |i: usize| energies[(i * 7 + split * 131) % energies.len()];
        let upright: Vec<Case> = (0..200).map(pick).map(unsearched).collect();
        let calibration = Calibration { upright: &upright, transformed: &[] };
        let gate = gate::fit(&Part::new("conformal").number("alpha", 0.05), &calibration).unwrap();
        let searched =
            (200..400).map(pick).filter(|&energy| gate.search(Look { energy, label: 0 }));
        share += searched.count() as f64 / 200.0 / 20.0;
    }
    assert!(share <= 0.065, "{share}");
    assert!(share >= 0.02, "{share}");
}

#[test]
fn a_score_that_learns_from_transformed_samples_gets_them_from_the_fit() {
    let data = samples::digits(300, 1).unwrap();
    let score = Part::new("mahalanobis").word("combine", "from-transformed");
    let config = config().with(Role::Score, score);
    let two = load(&[Tap::auto(), Tap::auto()]).unwrap();
    let c = config.fit(two, &FitData::new(&data), &mut Silent).unwrap();
    assert!(c.report().auroc.unwrap() > 0.6, "{:?}", c.report());
}

#[test]
fn a_fit_says_what_compressing_the_bank_has_lost() {
    let data = samples::digits(300, 1).unwrap();
    let config = config().with(Role::Score, Part::new("knn").number("compress", 5.0));
    let c = config.fit(model(), &FitData::new(&data), &mut Silent).unwrap();
    let [note] = &c.report().notes[..] else { panic!("{:?}", c.report().notes) };
    assert!(note.contains("50 centres instead of"), "{note}");
}

#[test]
fn a_label_beyond_the_models_classes_is_refused() {
    let digits = samples::digits(100, 1).unwrap();
    let mut labels = digits.labels().unwrap().to_vec();
    labels[41] = 10;
    let wrong = Samples::labelled(digits.batch().clone(), labels).unwrap();
    let model = Model::from_bytes("digits", samples::glyph_model(), &ModelOptions::default());
    let e = Config::default().fit(model.unwrap(), &FitData::new(&wrong), &mut Silent).unwrap_err();
    assert_eq!(
        e.to_string(),
        "label of row 41 of the data: expected a class below 10, as many as the model tells \
         apart, got 10"
    );
}
