//! What the page is told, with the artifacts it ships.
#![allow(clippy::unwrap_used, reason = "tests")]

use upright::{Batch, Verdict};
use upright_wasm::{Chosen, Stage, Subject};

fn open(subject: Subject) -> Stage {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fitted");
    let artifact = std::fs::read(folder.join(subject.name()).with_extension("upright")).unwrap();
    Stage::open(subject, &artifact).unwrap()
}

/// A sample under some map.
fn input(stage: &Stage, subject: Subject, i: u32) -> Vec<f32> {
    let map: &[f32] = match subject {
        Subject::Digits | Subject::Strokes => &[-0.5, -0.8, 0.0, 0.9, -0.4, 0.0],
        Subject::Solids => &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
    };
    stage.views(&stage.input(&stage.take(i, i)), map).unwrap()
}

#[test]
fn the_answer_is_that_of_the_library() {
    for subject in Subject::ALL {
        let stage = open(subject);
        let chosen = Chosen { budget: stage.facts().budget, tau: None };
        let mut accepted = 0;
        for i in 0..10 {
            let item = input(&stage, subject, i);
            let looked = stage.look(&item, &chosen).unwrap();
            let batch = Batch::borrowed(stage.fitted().model().signal(), &item).unwrap();
            let own = stage.fitted().predict(&batch).unwrap().remove(0);
            assert_eq!((looked.label, looked.verdict), (own.label, own.verdict));
            assert_eq!(looked.map, own.map.entries());
            assert_eq!(looked.evaluations, own.evaluations);
            assert_eq!(looked.energy_after.to_bits(), own.energy_after.to_bits());
            assert_eq!(looked.views.len(), own.evaluations, "every view is shown");
            assert_eq!(looked.views[looked.answered].map, looked.map);
            accepted += usize::from(own.verdict == Verdict::Accepted);
        }
        assert!(accepted >= 5, "{}: {accepted} of 10 found a better view", subject.name());
    }
}

#[test]
fn gate_and_budget_are_obeyed() {
    let stage = open(Subject::Digits);
    let item = input(&stage, Subject::Digits, 4);
    let look = |budget, tau| stage.look(&item, &Chosen { budget, tau: Some(tau) }).unwrap();
    let kept = look(8, 1e3);
    assert_eq!((kept.verdict, kept.views.len(), kept.answered), (Verdict::Kept, 1, 0));
    let searched = look(2, -1e3);
    assert!(searched.verdict != Verdict::Kept && searched.views.len() <= 3);
    assert!(look(60, -1e3).views.len() >= searched.views.len());
}

#[test]
fn a_landscape_is_a_row_of_numbers_at_a_time() {
    for subject in Subject::ALL {
        let stage = open(subject);
        let item = input(&stage, subject, 3);
        let chosen = Chosen { budget: 8, tau: Some(-1e3) };
        let looked = stage.look(&item, &chosen).unwrap();
        let row = |row| stage.landscape(&item, &looked.pose, [12, 5], row).unwrap();
        assert_eq!(row(0).len(), 12);
        assert!((0..5).flat_map(row).all(f32::is_finite));
        assert_ne!(row(0), row(2), "rows differ");
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let stage = open(Subject::Digits);
    let chosen = Chosen { budget: 8, tau: None };
    for size in [0, 7, 3200] {
        assert!(stage.look(&vec![0.0; size], &chosen).is_err(), "{size} numbers");
    }
    assert!(stage.views(&[0.0; 1600], &[f32::NAN; 6]).is_err());
    assert!(Stage::open(Subject::Digits, b"no artifact").is_err());
    assert!(Subject::parse("letters").unwrap_err().to_string().contains("digits, strokes, solids"));
}
