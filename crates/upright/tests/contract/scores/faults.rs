//! What scores do with banks and inputs that lack something.

use super::{CLASSES, Noise, SECOND, WIDTH, World, each, through};
use upright::score::{self, Bank, Lessons, TABLE};
use upright::{Head, Matrix, Outputs, Part};

#[test]
fn what_a_score_needs_is_named_when_it_is_missing() {
    for row in TABLE {
        let part = Part::new(row.name);
        let world = World::of(&part);
        let bare = Outputs::new(world.outputs.logits.clone(), vec![]).unwrap();
        let refused = |bank: &Bank, word: &str| {
            let e = score::fit(&part, bank).expect_err(row.name).to_string();
            assert!(e.contains(row.name) && e.contains(word), "{e}");
        };
        let needs = score::needs(&part).unwrap();
        if needs.lessons > 0 {
            refused(&Bank { lessons: None, ..world.bank() }, "views");
            refused(&Bank { lessons: Some(&Lessons::default()), ..world.bank() }, "views");
            let bare = Outputs::new(world.lessons.outputs.logits.clone(), vec![]).unwrap();
            let bare = Lessons { outputs: bare, ..world.lessons.clone() };
            refused(&Bank { lessons: Some(&bare), ..world.bank() }, "features");
            continue;
        }
        if needs.features {
            refused(&Bank { outputs: &bare, ..world.bank() }, "features");
        }
        if needs.head {
            refused(&Bank { head: None, ..world.bank() }, "last linear layer");
            let narrow = Head::new(Matrix::zeros(CLASSES, 3), vec![0.0; CLASSES]).unwrap();
            refused(&Bank { head: Some(&narrow), ..world.bank() }, "head");
        }
        if needs.transformed {
            refused(&Bank { transformed: None, ..world.bank() }, "transformed");
        }
        if needs.labels {
            refused(&Bank { labels: &[], ..world.bank() }, "label");
            let wrong = vec![99; world.labels.len()];
            refused(&Bank { labels: &wrong, ..world.bank() }, "label");
        }
        refused(
            &Bank { outputs: &world.outputs.select(&[]), labels: &[], ..world.bank() },
            "sample",
        );
        let without = Outputs::new(
            world.outputs.logits.clone(),
            if needs.features { world.outputs.features.clone() } else { vec![] },
        )
        .unwrap();
        let just = Bank {
            outputs: &without,
            labels: if needs.labels { &world.labels } else { &[] },
            head: needs.head.then_some(&world.head),
            transformed: needs.transformed.then_some(&world.transformed),
            transformed_labels: &world.others,
            lessons: None,
            seed: 0,
        };
        assert!(score::fit(&part, &just).is_ok(), "{} needs more than it says", row.name);
    }
}

#[test]
fn features_that_are_not_finite_are_refused_at_fit() {
    let needs = |name: &str| score::needs(&Part::new(name)).unwrap();
    for row in TABLE.iter().filter(|row| needs(row.name).features) {
        let world = World::of(&Part::new(row.name));
        let mut outputs = world.outputs.clone();
        outputs.features[0].row_mut(3)[1] = f32::NAN;
        let mut lessons = world.lessons.clone();
        lessons.outputs.features[0].row_mut(3)[1] = f32::NAN;
        let e = score::fit(
            &Part::new(row.name),
            &Bank { outputs: &outputs, lessons: Some(&lessons), ..world.bank() },
        );
        let e = e.expect_err(row.name).to_string();
        assert!(e.contains(row.name) && e.contains("finite"), "{e}");
    }
}

#[test]
fn outputs_of_another_shape_have_undefined_energies() {
    each(|part, score, world| {
        if score::needs(part).unwrap().features {
            let bare = Outputs::new(world.inputs.logits.clone(), vec![]).unwrap();
            assert!(score.energy(&bare).iter().all(|e| e.is_nan()), "{part:?}");
            score.pullback(&bare);
        }
    });
}

#[test]
fn small_banks_fit_or_say_why_not() {
    let world = World::new();
    for rows in [vec![0], vec![5; 6], vec![0, 1], vec![0, 4, 8]] {
        let outputs = world.outputs.select(&rows);
        let labels: Vec<u32> = rows.iter().map(|&i| world.labels[i]).collect();
        let seen = outputs.labels();
        for row in TABLE {
            let bank = Bank { outputs: &outputs, labels: &labels, ..world.bank() };
            match score::fit(&Part::new(row.name), &bank) {
                Ok(score) => {
                    let known = |p: u32| (0..rows.len()).any(|i| labels[i] == p && seen[i] == p);
                    for (e, p) in score.energy(&world.inputs).iter().zip(world.inputs.labels()) {
                        // The predicted class may be one the bank says nothing about.
                        let undefined = e.is_nan() && !known(p);
                        assert!(e.is_finite() || undefined, "{} {rows:?} {e}", row.name);
                    }
                }
                Err(e) => assert!(e.to_string().contains(row.name), "{e}"),
            }
        }
    }
}

/// Classes of 1, 2, 5 and no samples: with more neighbours asked for than there are, all are
/// used, so that it does not matter how many more.
#[test]
fn scores_that_count_samples_use_all_there_are_if_fewer() {
    let world = World::new();
    let rows = [0, 1, 5, 2, 6, 10, 14, 18];
    let outputs = world.outputs.select(&rows);
    let labels: Vec<u32> = rows.iter().map(|&i| world.labels[i]).collect();
    let bank = Bank { outputs: &outputs, labels: &labels, ..world.bank() };
    let mut tried = 0;
    for part in super::parts() {
        if score::needs(&part).unwrap().samples == 0 {
            continue;
        }
        tried += 1;
        let with = |k: f64| score::fit(&part.clone().number("k", k), &bank).unwrap();
        let most = if score::needs(&part).unwrap().labels { 5.0 } else { 8.0 };
        let (all, more) = (with(most), with(1000.0));
        let energies = all.energy(&world.inputs);
        assert!(energies.iter().all(|e| e.is_finite()), "{part:?} {energies:?}");
        assert_eq!(super::bits(&energies), super::bits(&more.energy(&world.inputs)), "{part:?}");
        assert_eq!(all.pullback(&world.inputs), more.pullback(&world.inputs), "{part:?}");
        assert_eq!(all.neighbours(&world.inputs), more.neighbours(&world.inputs), "{part:?}");
        // A bank of one centre per class has nothing to count.
        if !part.settings.contains_key("compress") {
            let fewer = with(1.0).energy(&world.inputs);
            assert_ne!(super::bits(&energies), super::bits(&fewer), "{part:?} does not count");
        }
        let again = score::load(&part.clone().number("k", 1000.0), &more.state()).unwrap();
        assert_eq!(super::bits(&again.energy(&world.inputs)), super::bits(&energies), "{part:?}");
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn one_class_is_enough_or_refused_by_name() {
    let mut noise = Noise(3);
    let head = Head::new(noise.matrix(1, WIDTH), vec![0.3]).unwrap();
    let outputs = through(&head, noise.matrix(30, WIDTH), noise.matrix(30, SECOND));
    let labels = vec![0; 30];
    for row in TABLE {
        let bank = Bank { head: Some(&head), ..Bank::of(&outputs, &labels) };
        match score::fit(&Part::new(row.name), &bank) {
            Ok(score) => {
                let e = score.energy(&outputs);
                assert!(e.iter().all(|e| e.is_finite()), "{} {e:?}", row.name);
            }
            Err(e) => assert!(e.to_string().contains(row.name), "{e}"),
        }
    }
}
