//! What every proposal of the sampler keeps to.

use proptest::prelude::*;
use upright::Value;
use upright::internal::tune::{Knob, Knobs, Outcome, Point, Series, Tpe, Trial};

use crate::spaces;

const SERIES: Series = Series { stage: 1, part: 0 };

fn trial(number: usize, point: Point, outcome: Outcome) -> Trial {
    Trial { series: SERIES, number, point, steps: vec![(1, number as f64)], outcome }
}

/// The first trials, each seventh failed, each fifth pruned.
fn history(knobs: &Knobs, seed: u64, count: usize) -> Vec<Trial> {
    let mut trials: Vec<Trial> = Vec::new();
    for number in 0..count {
        let Some(point) = Tpe::default().suggest(knobs, seed, &trials) else { break };
        let outcome = match number {
            n if n % 7 == 3 => Outcome::Failed("no".into()),
            n if n % 5 == 2 => Outcome::Pruned,
            _ => Outcome::Complete(spaces::value(&point)),
        };
        trials.push(trial(number, point, outcome));
    }
    trials
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn proposals_lie_in_the_space_and_are_never_repeated(
        knobs in spaces::any(), seed in any::<u64>(),
    ) {
        let trials = history(&knobs, seed, 40);
        for (at, trial) in trials.iter().enumerate() {
            prop_assert!(knobs.admits(&trial.point), "{:?}", trial.point);
            prop_assert!(trials[..at].iter().all(|t| t.point != trial.point));
        }
    }

    #[test]
    fn proposals_follow_from_seed_and_history_alone(
        knobs in spaces::any(), seed in any::<u64>(),
    ) {
        let trials = history(&knobs, seed, 25);
        prop_assert_eq!(&trials, &history(&knobs, seed, 25));
        for at in [0, 5, 17] {
            if let Some(trial) = trials.get(at) {
                let again = Tpe::default().suggest(&knobs, seed, &trials[..at]);
                prop_assert_eq!(again.as_ref(), Some(&trial.point));
            }
        }
    }
}

#[test]
fn seeds_give_different_proposals() {
    let knobs = Knobs::new(vec![Knob::real("x", 0.0, 0.0, 1.0)]).unwrap();
    let first = |seed| Tpe::default().suggest(&knobs, seed, &[]);
    assert_ne!(first(1), first(2));
}

#[test]
fn a_finite_space_is_tried_once_and_then_over() {
    let near = vec![Value::Word("near".into())];
    let knobs = Knobs::new(vec![
        Knob::words("score", &["plain", "near"]),
        Knob::whole("k", 1, 1, 12).when("score", near),
    ]);
    let trials = history(&knobs.unwrap(), 5, 40);
    assert_eq!(trials.len(), 13);
}

#[test]
fn values_that_fail_are_avoided() {
    let knobs =
        Knobs::new(vec![Knob::words("kind", &["works", "fails"]), Knob::real("x", 0.0, 0.0, 1.0)]);
    let knobs = knobs.unwrap();
    let fails = |point: &Point| point["kind"] == Value::Word("fails".into());
    let mut trials: Vec<Trial> = Vec::new();
    for number in 0..60 {
        let point = Tpe::default().suggest(&knobs, 9, &trials).unwrap();
        let outcome =
            if fails(&point) { Outcome::Failed("no".into()) } else { Outcome::Complete(1.0) };
        trials.push(trial(number, point, outcome));
    }
    let late = trials[30..].iter().filter(|t| fails(&t.point)).count();
    assert!(late < 10, "{late} of 30");
}
