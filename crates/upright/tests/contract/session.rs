//! Sessions: whoever else comes and goes, an input gets the answer of `predict`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use upright::internal::canonicalizer::{Session, transformed_copies};
use upright::score::{Make, Needs, Score};
use upright::{
    Batch, Canonicalizer, Config, Cotangents, FitData, Kind, Model, ModelOptions, Outputs, Part,
    Prediction, Role, Signal, Silent, State, Verdict, samples, score, search,
};

fn fitted(config: &Config) -> Canonicalizer {
    let model = Model::from_bytes("glyphs", samples::glyph_model(), &ModelOptions::default());
    let data = samples::digits(200, 1).unwrap();
    config.fit(model.unwrap(), &FitData::new(&data), &mut Silent).unwrap()
}

fn config() -> Config {
    let config = crate::searching(Signal::image(1, 40, 40));
    Config { calibration: 60, budget: 9, ..config }.with(Role::Score, Part::new("energy"))
}

/// Digits, every other one transformed.
fn inputs(c: &Canonicalizer, count: usize) -> Batch<'static> {
    let digits = samples::digits(count, 9).unwrap();
    let turned = transformed_copies(digits.batch(), c.space(), &c.config().resample, 4).unwrap();
    let item = |i: usize| if i.is_multiple_of(2) { digits.batch().item(i) } else { turned.item(i) };
    let numbers = (0..count).flat_map(item).copied().collect();
    Batch::new(turned.signal(), numbers).unwrap()
}

/// Answers of a session whose inputs come one per step; those of `leave` leave after a step.
fn through_a_session(
    c: &Canonicalizer,
    batch: &Batch,
    views: usize,
    leave: impl Fn(usize) -> bool,
) -> BTreeMap<usize, Prediction> {
    let mut session = Session::new(c);
    let mut answers = BTreeMap::new();
    let mut next = 0;
    while next < batch.len() || !session.is_empty() {
        if next < batch.len() {
            let looked = c.look_at(&batch.select(&[next])).unwrap().remove(0);
            if looked.opens() {
                session.add(batch.item(next).to_vec(), looked, next);
            } else {
                answers.insert(next, looked.bare());
            }
            next += 1;
        }
        let left = session.cost();
        for (i, outcome) in session.step(views) {
            answers.insert(i, outcome.unwrap().unwrap());
        }
        assert!(session.cost() <= left && session.cost() <= session.len() * c.config().budget);
        session.give_up(|i| leave(*i));
    }
    answers
}

#[test]
fn every_search_answers_in_a_session_as_in_a_batch() {
    let c = fitted(&config().with(Role::Gate, Part::new("conformal").number("alpha", 0.3)));
    let batch = inputs(&c, 10);
    for row in search::TABLE {
        let c = c.with_part(Role::Search, Part::new(row.name)).unwrap();
        let want = c.predict(&batch).unwrap();
        assert!(want.iter().any(|p| p.verdict == Verdict::Kept), "{}", row.name);
        assert!(want.iter().any(Prediction::searched), "{}", row.name);
        for views in [1, 1000] {
            let got = through_a_session(&c, &batch, views, |_| false);
            assert_eq!(got.into_values().collect::<Vec<_>>(), want, "{} by {views}", row.name);
        }
        let got = through_a_session(&c, &batch, 4, |i| i % 3 == 1);
        for (i, answer) in got {
            assert_eq!(answer, want[i], "{} while others leave", row.name);
        }
    }
}

#[test]
fn a_search_that_is_stopped_has_the_best_so_far() {
    let c = fitted(&config().with(Role::Gate, Part::new("always")));
    let c = c.with_part(Role::Search, Part::new("cd")).unwrap();
    let batch = inputs(&c, 2);
    let looked = c.look_at(&batch).unwrap().remove(1);
    let (bare, unsearched) = (looked.bare(), looked.unsearched());
    assert_eq!((bare.verdict, unsearched.verdict), (Verdict::Kept, Verdict::Rejected));
    assert_eq!((unsearched.label, unsearched.evaluations), (bare.label, 1));
    let mut session = Session::new(&c);
    session.add(batch.item(1).to_vec(), looked, ());
    let (mut energy, mut spent) = (unsearched.energy_after, 1);
    loop {
        let over = session.step(1);
        let best = match over.into_iter().next() {
            Some(((), outcome)) => outcome.unwrap().unwrap(),
            None => session.searches().next().unwrap().best(),
        };
        assert!(best.evaluations > spent || session.is_empty());
        assert!(best.energy_after <= energy);
        (energy, spent) = (best.energy_after, best.evaluations);
        if session.is_empty() {
            assert_eq!(best, c.predict(&batch).unwrap()[1]);
            break;
        }
    }
}

#[test]
fn unfamiliar_inputs_go_to_a_second_model_in_a_session_too() {
    let models = || {
        let load =
            || Model::from_bytes("m", samples::glyph_model(), &ModelOptions::default()).unwrap();
        (load(), load())
    };
    let config = config()
        .with(Role::Router, Part::new("switch"))
        .with(Role::Gate, Part::new("conformal").number("alpha", 0.3));
    let data = samples::digits(200, 1).unwrap();
    let c = config.fit(models(), &FitData::new(&data), &mut Silent).unwrap();
    let batch = inputs(&c, 8);
    let want = c.predict(&batch).unwrap();
    assert!(want.iter().any(|p| p.verdict == Verdict::Switched));
    let got = through_a_session(&c, &batch, 1, |_| false);
    assert_eq!(got.into_values().collect::<Vec<_>>(), want);
}

/// Logits on which the score `touchy` panics.
static TOUCHY: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

/// The energy of the logits, unless they are among those.
#[derive(Debug)]
struct Touchy;

impl Score for Touchy {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let touchy = TOUCHY.lock().unwrap().clone();
        let one = |row: &[f32]| {
            assert!(!touchy.iter().any(|t| t == row), "touched");
            -row.iter().copied().fold(f32::NEG_INFINITY, f32::max)
        };
        outputs.logits.iter().map(one).collect()
    }

    fn pullback(&self, _: &Outputs) -> Cotangents {
        Cotangents { logits: None, features: vec![] }
    }

    fn state(&self) -> State {
        State::new()
    }
}

static TOUCHY_KIND: Kind<Make> = Kind {
    name: "touchy",
    about: "a test",
    params: &[],
    make: Make {
        needs: |_| Needs::default(),
        fit: |_, _| Ok(Box::new(Touchy)),
        load: |_, _| Ok(Box::new(Touchy)),
    },
};

/// A view of one input makes the score panic: that input fails, the others are answered.
#[test]
fn a_panic_in_one_search_is_nobody_elses() {
    score::add(&TOUCHY_KIND).unwrap();
    let config = config().with(Role::Score, Part::new("touchy"));
    let c = fitted(&config.with(Role::Gate, Part::new("always")));
    let c = c.with_part(Role::Search, Part::new("random")).unwrap();
    let batch = inputs(&c, 4);
    let want = c.predict(&batch).unwrap();
    let view = c.trace(&batch.select(&[2])).unwrap()[0].logits[5].clone();
    let mut session = Session::new(&c);
    for (i, looked) in c.look_at(&batch).unwrap().into_iter().enumerate() {
        session.add(batch.item(i).to_vec(), looked, i);
    }
    TOUCHY.lock().unwrap().push(view);
    let mut outcomes = BTreeMap::new();
    while !session.is_empty() {
        outcomes.extend(session.step(1000));
    }
    TOUCHY.lock().unwrap().clear();
    assert!(outcomes.remove(&2).unwrap().is_none());
    for (i, outcome) in outcomes {
        assert_eq!(outcome.unwrap().unwrap(), want[i]);
    }
}
