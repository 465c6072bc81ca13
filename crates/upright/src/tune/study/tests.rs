//! Series, queues, the pruner and failures.

use super::*;
use crate::config::Value;
use crate::tune::knobs::Knob;

const SERIES: Series = Series { stage: 1, part: 0 };

fn at(x: f64) -> Point {
    Point::from([("x".to_owned(), Value::Number(x))])
}

fn x(point: &Point) -> f64 {
    if let Value::Number(x) = point["x"] { x } else { f64::NAN }
}

fn study() -> Study {
    let knobs = Knobs::new(vec![Knob::real("x", 0.0, -10.0, 10.0)]).unwrap();
    Study::new(Setup::new(knobs, 1, ""))
}

fn run(study: &mut Study, trials: usize, evaluate: &mut dyn FnMut(&Point) -> Result<f64>) {
    study.run(SERIES, trials, &mut |_| false, &mut |p, _| evaluate(p), &mut |_, _| ()).unwrap();
}

fn complete(number: usize, steps: &[(usize, f64)]) -> Trial {
    let steps = steps.to_vec();
    Trial { series: SERIES, number, point: at(0.0), steps, outcome: Outcome::Complete(0.0) }
}

#[test]
fn pruning_follows_the_median_worked_by_hand() {
    // At step 2 the complete trials have 1, 2, 4, 8: median 3.
    let mut earlier: Vec<Trial> = [8.0, 1.0, 4.0, 2.0]
        .iter()
        .enumerate()
        .map(|(n, v)| complete(n, &[(1, 0.0), (2, *v)]))
        .collect();
    let hopeless = Trial { outcome: Outcome::Pruned, ..complete(4, &[(2, 99.0)]) };
    earlier.push(hopeless);
    let pruner = Pruner { startup: 4, warmup: 2 };
    assert!(pruner.prunes(&earlier, &[(1, 2.0), (2, 2.9)]));
    assert!(!pruner.prunes(&earlier, &[(1, 2.0), (2, 3.0)]));
    assert!(!pruner.prunes(&earlier, &[(1, 3.5), (2, 0.0)]), "the best so far counts");
    assert!(!pruner.prunes(&earlier, &[(1, -9.0)]), "step 1 is warm-up");
    assert!(!pruner.prunes(&earlier, &[(3, -9.0)]), "nobody has a step 3");
    assert!(!pruner.prunes(&earlier, &[]));
    assert!(!Pruner { startup: 5, ..pruner }.prunes(&earlier, &[(2, -9.0)]), "four are complete");
}

#[test]
fn a_pruned_evaluation_is_told_so_and_its_value_ignored() {
    let mut study = study();
    let mut told = Vec::new();
    let mut evaluate = |p: &Point, report: &mut Report<'_>| {
        let over = (1..=3).map(|step| report(step, x(p))).find(ControlFlow::is_break);
        told.push(over.is_some());
        Ok(100.0)
    };
    for value in [1.0, 2.0, 3.0, 4.0, 5.0, 2.5, 3.5] {
        study.enqueue(SERIES, at(value)).unwrap();
    }
    study.run(SERIES, 7, &mut |_| false, &mut evaluate, &mut |_, _| ()).unwrap();
    assert_eq!(told, [false, false, false, false, false, true, false]);
    assert_eq!(study.trials(SERIES)[5].outcome, Outcome::Pruned);
    assert_eq!(study.trials(SERIES)[5].steps, [(1, 2.5)]);
    assert_eq!(study.trials(SERIES)[6].outcome, Outcome::Complete(100.0));
}

#[test]
fn enqueued_points_come_first_and_once() {
    let mut study = study();
    for value in [3.0, 1.0, 3.0] {
        study.enqueue(SERIES, at(value)).unwrap();
    }
    assert_eq!(study.queued(SERIES), 2);
    run(&mut study, 4, &mut |p| Ok(-x(p).abs()));
    let tried: Vec<f64> = study.trials(SERIES).iter().map(|t| x(&t.point)).collect();
    assert_eq!(tried[..2], [3.0, 1.0]);
    assert_eq!(study.trials(SERIES).len(), 4);
    assert!(study.enqueue(SERIES, at(11.0)).is_err(), "out of range");
    assert!(study.enqueue(SERIES, Point::new()).is_err(), "not whole");
    let e = study.enqueue(SERIES, at(5.0)).unwrap_err().to_string();
    assert!(e.contains("is not the one that was enqueued"), "{e}");
}

#[test]
fn the_best_are_complete_high_and_early() {
    let mut study = study();
    for value in [2.0, -2.0, 1.0, 4.0] {
        study.enqueue(SERIES, at(value)).unwrap();
    }
    run(&mut study, 4, &mut |p| Ok(if x(p) > 3.0 { f64::INFINITY } else { -x(p).abs() }));
    let numbers: Vec<usize> = study.best(SERIES, 3).iter().map(|t| t.number).collect();
    assert_eq!(numbers, [2, 0, 1]);
    assert_eq!(study.trials(SERIES)[3].outcome, Outcome::Failed("its value is inf".into()));
}

#[test]
fn failures_are_recorded_until_all_fail() {
    let no = || Error::Tune { why: "no".into(), hint: None };
    let mut some = study();
    let mut count = 0;
    run(&mut some, 30, &mut |_| {
        count += 1;
        if count == 10 { Ok(1.0) } else { Err(no()) }
    });
    assert_eq!(some.trials(SERIES).len(), 30);
    let mut none = study();
    let ran = none.run(SERIES, 30, &mut |_| false, &mut |_, _| Err(no()), &mut |_, _| ());
    let e = ran.unwrap_err().to_string();
    assert_eq!(e, "tuning: all of the first 10 trials failed, the first with: tuning: no");
    assert_eq!(none.trials(SERIES).len(), 10);
}

#[test]
fn steps_that_are_not_numbers_fail_the_trial() {
    let mut study = study();
    let mut evaluate = |_: &Point, report: &mut Report<'_>| {
        assert_eq!(report(4, f64::NAN), ControlFlow::Break(()));
        Ok(1.0)
    };
    study.run(SERIES, 1, &mut |_| false, &mut evaluate, &mut |_, _| ()).unwrap();
    let outcome = &study.trials(SERIES)[0].outcome;
    assert_eq!(*outcome, Outcome::Failed("its value at step 4 is NaN".into()));
}

#[test]
fn series_are_independent_and_an_ended_one_stays_so() {
    let mut study = study();
    let other = Series { stage: 1, part: 1 };
    run(&mut study, 3, &mut |_| Ok(0.0));
    study.end(SERIES).unwrap();
    run(&mut study, 5, &mut |_| Ok(0.0));
    assert_eq!(study.trials(SERIES).len(), 3);
    study.run(other, 2, &mut |_| false, &mut |_, _| Ok(0.0), &mut |_, _| ()).unwrap();
    assert_ne!(study.trials(SERIES)[0].point, study.trials(other)[0].point);
    assert_eq!(study.all().count(), 5);
}
