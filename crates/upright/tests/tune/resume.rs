//! Studies that are cut off anywhere go on to the same end.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use upright::internal::tune::{
    Knob, Knobs, Objective, Outcome, Point, Protocol, Pruner, Report, Setup, Subset, Trial, Tuned,
};
use upright::{Error, Result, Value};

/// Reports three steps; fails for small `k` of the word `c`.
struct Bowl {
    evaluations: usize,
}

impl Objective for Bowl {
    fn parts(&self) -> usize {
        3
    }

    fn evaluate(&mut self, point: &Point, subset: Subset, report: &mut Report<'_>) -> Result<f64> {
        self.evaluations += 1;
        let target = match subset {
            Subset::Part(part) => 2.8 + 0.1 * part as f64,
            Subset::Full => 2.95,
        };
        let Value::Number(x) = point["x"] else { return Ok(f64::NAN) };
        let k = match point.get("c.k") {
            Some(Value::Number(k)) if *k < 3.0 => {
                return Err(Error::Tune { why: "too small".into(), hint: None });
            }
            Some(Value::Number(k)) => (k / 20.0).ln().abs(),
            _ => 1.0,
        };
        let value = -(x - target).powi(2) - k;
        for step in 1..=3 {
            if report(step, value - 1.0 / step as f64) == ControlFlow::Break(()) {
                return Ok(f64::NAN);
            }
        }
        Ok(value)
    }
}

fn setup() -> Setup {
    let knobs = Knobs::new(vec![
        Knob::words("kind", &["a", "b", "c"]),
        Knob::real("x", 0.0, -10.0, 10.0),
        Knob::whole("c.k", 50, 1, 500).log().when("kind", vec![Value::Word("c".into())]),
    ]);
    Setup::new(knobs.unwrap(), 11, "a bowl")
}

fn protocol() -> Protocol {
    Protocol { first: 18, second: 12, ..Protocol::default() }
}

fn tune(log: Option<&Path>, stop_after: usize) -> (Tuned, usize) {
    let mut objective = Bowl { evaluations: 0 };
    let mut asked = 0;
    let mut stop = || {
        asked += 1;
        asked > stop_after
    };
    let tuned = protocol().run(setup(), log, &mut objective, &mut stop, &mut |_| ()).unwrap();
    (tuned, objective.evaluations)
}

fn trials(tuned: &Tuned) -> Vec<Trial> {
    tuned.study.all().cloned().collect()
}

#[test]
fn a_study_cut_at_any_line_or_within_one_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (whole, evaluations) = tune(Some(&path), usize::MAX);
    assert!(whole.finished);
    assert_eq!(evaluations, 3 * 18 + 12);
    let kinds =
        |wanted: fn(&Outcome) -> bool| whole.study.all().filter(|t| wanted(&t.outcome)).count();
    assert!(kinds(|o| matches!(o, Outcome::Pruned)) > 5, "the pruner takes part");
    assert!(kinds(|o| matches!(o, Outcome::Failed(_))) > 0, "failures take part");
    let (want, best) = (trials(&whole), whole.best.clone());
    drop(whole);
    let bytes = fs::read(&path).unwrap();

    // Syncing takes most of the time: mostly a few trials after the cut have to do.
    let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
    for (line, end) in ends.enumerate() {
        for torn in [0, 1, 20] {
            let to_the_end = torn == 20 && line % 16 == 0;
            fs::write(&path, &bytes[..end - torn]).unwrap();
            let (resumed, _) = tune(Some(&path), if to_the_end { usize::MAX } else { 2 });
            let written = fs::read(&path).unwrap();
            assert!(bytes.starts_with(&written), "line {line}, less {torn}");
            assert!(written.len() > end || bytes.len() == end, "it goes on");
            if to_the_end {
                assert_eq!(trials(&resumed), want);
                assert_eq!(resumed.best, best);
                assert_eq!(written, bytes);
            }
        }
    }
}

#[test]
fn a_study_stopped_again_and_again_equals_one_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (want, _) = tune(None, usize::MAX);
    let (mut all, mut rounds) = (0, 0);
    loop {
        let (tuned, evaluations) = tune(Some(&path), 7);
        all += evaluations;
        rounds += 1;
        if tuned.finished {
            assert_eq!(trials(&tuned), trials(&want));
            assert_eq!(tuned.best, want.best);
            break;
        }
        assert_eq!(evaluations, 7);
    }
    assert_eq!((all, rounds), (66, 10), "nothing is evaluated twice");
    assert_eq!(tune(Some(&path), usize::MAX).1, 0, "a finished study is only read");
}

#[test]
fn another_set_up_is_refused_and_its_log_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    tune(Some(&path), 5);
    let bytes = fs::read(&path).unwrap();
    let refuses = |setup: Setup, protocol: Protocol, why: &str| {
        let mut objective = Bowl { evaluations: 0 };
        let ran = protocol.run(setup, Some(&path), &mut objective, &mut || false, &mut |_| ());
        let e = ran.unwrap_err().to_string();
        assert!(e.contains("cannot resume") && e.contains(why), "{e}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    };
    let fewer = Knobs::new(vec![Knob::real("x", 0.0, -10.0, 10.0)]).unwrap();
    refuses(Setup { knobs: fewer, ..setup() }, protocol(), "other knobs");
    refuses(Setup { seed: 12, ..setup() }, protocol(), "its seed is 11, not 12");
    refuses(Setup { label: "a hill".into(), ..setup() }, protocol(), "a hill");
    let pruner = Some(Pruner { startup: 5, warmup: 2 });
    refuses(Setup { pruner, ..setup() }, protocol(), "sampler or pruner");
    refuses(setup(), Protocol { first: 19, ..protocol() }, "19 + 12 trials");
}

#[test]
fn a_log_whose_trials_do_not_follow_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    tune(Some(&path), 5);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let missing = [&lines[..2], &lines[3..]].concat().concat();
    let outside = text.replacen("\"x\":0.0", "\"x\":11.0", 1);
    for (changed, line) in [(missing, 3), (outside, 2)] {
        assert_ne!(changed, text);
        fs::write(&path, changed).unwrap();
        let mut objective = Bowl { evaluations: 0 };
        let ran = protocol().run(setup(), Some(&path), &mut objective, &mut || false, &mut |_| ());
        let e = ran.unwrap_err().to_string();
        assert!(e.ends_with(&format!("line {line} does not follow")), "{e}");
    }
}
