//! What runs where, and what a budget of time does.

use std::cell::Cell;

use super::*;
use crate::config::Value;
use crate::tune::knobs::{Knob, Knobs};

/// `-(x - 3)^2` on parts, `-(x - 3.1)^2` on the full set; each evaluation takes
/// a second on a part and four on the full set.
struct Bowl<'a> {
    seen: Vec<(Subset, f64)>,
    now: &'a Cell<u64>,
}

impl Objective for Bowl<'_> {
    fn parts(&self) -> usize {
        3
    }

    fn evaluate(&mut self, point: &Point, subset: Subset, _: &mut Report<'_>) -> Result<f64> {
        let Value::Number(x) = point["x"] else { return Ok(f64::NAN) };
        self.seen.push((subset, x));
        let (target, cost) = if subset == Subset::Full { (3.1, 4) } else { (3.0, 1) };
        self.now.set(self.now.get() + cost);
        Ok(-(x - target) * (x - target))
    }
}

fn setup() -> Setup {
    let knobs = Knobs::new(vec![Knob::real("x", -1.0, -10.0, 10.0)]).unwrap();
    Setup::new(knobs, 1, "")
}

fn on(seen: &[(Subset, f64)], subset: Subset) -> Vec<f64> {
    seen.iter().filter(|s| s.0 == subset).map(|s| s.1).collect()
}

fn tune(protocol: &Protocol) -> (Tuned, Vec<(Subset, f64)>, u64) {
    let now = Cell::new(0);
    let mut bowl = Bowl { seen: Vec::new(), now: &now };
    let mut clock = || Duration::from_secs(now.get());
    let tuned =
        protocol.run_by(setup(), None, &mut bowl, &mut || false, &mut |_| (), &mut clock).unwrap();
    (tuned, bowl.seen, now.get())
}

#[test]
fn the_protocol_tries_the_defaults_and_the_top_of_each_part_on_the_full_set() {
    let (tuned, seen, _) = tune(&Protocol::default());
    let best_three = |part| {
        let mut tried = on(&seen, Subset::Part(part));
        assert_eq!(tried.len(), 40);
        assert!((tried[0] + 1.0).abs() < 1e-12, "the default comes first");
        tried.sort_by(|a, b| (a - 3.0).abs().total_cmp(&(b - 3.0).abs()));
        tried[..3].to_vec()
    };
    let full = on(&seen, Subset::Full);
    assert_eq!(full.len(), 15);
    let want: Vec<f64> = std::iter::once(-1.0).chain((0..3).flat_map(best_three)).collect();
    assert_eq!(full[..10], want);
    assert!(tuned.finished);
    let highest = full.iter().map(|x| -(x - 3.1) * (x - 3.1)).fold(f64::MIN, f64::max);
    assert_eq!(tuned.best.unwrap().value(), Some(highest));
    assert_eq!(tuned.default.unwrap().value(), Some(-4.1 * 4.1));
}

#[test]
fn parts_are_searched_with_different_seeds() {
    let (_, seen, _) = tune(&Protocol::default());
    assert_ne!(on(&seen, Subset::Part(0))[1..], on(&seen, Subset::Part(1))[1..]);
}

#[test]
fn further_starts_follow_the_default_on_every_part() {
    let start = Point::from([("x".to_owned(), Value::Number(7.0))]);
    let protocol = Protocol { first: 1, second: 0, starts: vec![start], ..Protocol::default() };
    let (_, seen, _) = tune(&protocol);
    for part in 0..3 {
        assert_eq!(on(&seen, Subset::Part(part)), [-1.0, 7.0]);
    }
    assert_eq!(on(&seen, Subset::Full), [-1.0, 7.0], "enqueued points run beyond the counts");
}

#[test]
fn time_is_divided_by_the_numbers_of_trials() {
    // 270 s over 40 + 40 + 40 + 15: 80 s, hence trials, a part; 30 s on the full set are
    // eight trials of 4 s, but ten are enqueued.
    let time = Some(Duration::from_secs(270));
    let (tuned, seen, now) = tune(&Protocol { time, ..Protocol::default() });
    let counts = [0, 1, 2].map(|part| on(&seen, Subset::Part(part)).len());
    assert_eq!(counts, [80, 80, 80]);
    assert_eq!(on(&seen, Subset::Full).len(), 10);
    assert_eq!(now, 280);
    assert!(tuned.finished);
}

#[test]
fn no_time_still_runs_what_is_enqueued() {
    let (tuned, seen, _) = tune(&Protocol { time: Some(Duration::ZERO), ..Protocol::default() });
    assert_eq!(seen.len(), 4, "the default on each subset");
    assert_eq!(tuned.best.unwrap().point, tuned.default.unwrap().point);
}

#[test]
fn a_part_that_ran_out_of_time_is_not_reopened_on_resumption() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let go = |seconds, stop_after| {
        let now = Cell::new(0);
        let mut bowl = Bowl { seen: Vec::new(), now: &now };
        let mut clock = || Duration::from_secs(now.get());
        let mut asked = 0;
        let mut stop = || {
            asked += 1;
            asked > stop_after
        };
        let protocol = Protocol { time: Some(Duration::from_secs(seconds)), ..Protocol::default() };
        let tuned = protocol
            .run_by(setup(), Some(&log), &mut bowl, &mut stop, &mut |_| (), &mut clock)
            .unwrap();
        (tuned.finished, bowl.seen)
    };
    // 27 s: 8 a part; being asked once more ends a part.
    let (finished, seen) = go(27, 14);
    assert!(!finished);
    let counts = [0, 1, 2].map(|part| on(&seen, Subset::Part(part)).len());
    assert_eq!(counts, [8, 5, 0]);
    // What is left is divided over what is open: 95 s over 40 + 40 + 15.
    let (finished, seen) = go(95, usize::MAX);
    assert!(finished);
    let counts = [0, 1, 2].map(|part| on(&seen, Subset::Part(part)).len());
    assert_eq!(counts, [0, 40, 40]);
}

#[test]
fn progress_counts_and_shows_the_best_of_the_series() {
    let now = Cell::new(0);
    let mut bowl = Bowl { seen: Vec::new(), now: &now };
    let (mut counts, mut highest) = (Vec::new(), f64::MIN);
    let mut progress = |p: &Progress<'_>| {
        counts.push((p.done, p.planned));
        if p.trial.number == 0 {
            highest = f64::MIN;
        }
        highest = highest.max(p.trial.value().unwrap());
        assert_eq!(p.best.and_then(Trial::value), Some(highest));
    };
    let protocol = Protocol { first: 4, second: 12, ..Protocol::default() };
    protocol.run(setup(), None, &mut bowl, &mut || false, &mut progress).unwrap();
    let want: Vec<_> = (1..=24).map(|done| (done, Some(24))).collect();
    assert_eq!(counts, want);
}

#[test]
fn a_full_set_without_a_value_is_an_error() {
    struct Broken;
    impl Objective for Broken {
        fn parts(&self) -> usize {
            1
        }
        fn evaluate(&mut self, _: &Point, subset: Subset, _: &mut Report<'_>) -> Result<f64> {
            Ok(if subset == Subset::Full { f64::NAN } else { 1.0 })
        }
    }
    let protocol = Protocol { first: 4, second: 4, ..Protocol::default() };
    let ran = protocol.run(setup(), None, &mut Broken, &mut || false, &mut |_| ());
    let e = ran.unwrap_err().to_string();
    assert_eq!(e, "tuning: no trial on the full set could be completed");
}
