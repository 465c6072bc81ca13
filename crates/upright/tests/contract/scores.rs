//! The contract of scores.

mod faults;

use upright::internal::config::Domain;
use upright::internal::tensor::argmax;
use upright::proposer::Rating;
use upright::score::{self, Bank, Lesson, Lessons, Origin, Score, TABLE};
use upright::{Head, Matrix, Outputs, Part, State, Value};

const CLASSES: usize = 4;
const WIDTH: usize = 12;
const SECOND: usize = 5;

/// Uniform numbers in -1..1 from a fixed sequence.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 40) as f32) / 8_388_608.0 - 1.0
    }

    fn matrix(&mut self, rows: usize, cols: usize) -> Matrix {
        let mut m = Matrix::zeros(rows, cols);
        m.data_mut().iter_mut().for_each(|v| *v = self.next());
        m
    }
}

/// A bank of clustered, mostly positive features whose logits come from the
/// head; and generic inputs near it.
struct World {
    outputs: Outputs,
    labels: Vec<u32>,
    head: Head,
    transformed: Outputs,
    /// Other classes than the model says: it is wrong on all that is transformed.
    others: Vec<u32>,
    inputs: Outputs,
    centres: Matrix,
    second: Matrix,
    lessons: Lessons,
}

impl World {
    fn new() -> World {
        let mut noise = Noise(7);
        let mut centres = noise.matrix(CLASSES, WIDTH);
        for (c, row) in centres.data_mut().chunks_mut(WIDTH).enumerate() {
            for (j, v) in row.iter_mut().enumerate() {
                *v = 0.6 + 0.3 * *v + if j % CLASSES == c { 2.0 } else { 0.0 };
            }
        }
        let second = noise.matrix(CLASSES, SECOND);
        let mut weight = noise.matrix(CLASSES, WIDTH);
        for (c, row) in weight.data_mut().chunks_mut(WIDTH).enumerate() {
            for (j, v) in row.iter_mut().enumerate() {
                *v = 0.2 * *v + if j % CLASSES == c { 0.7 } else { -0.1 };
            }
        }
        let head = Head::new(weight, vec![0.1, -0.2, 0.05, 0.0]).unwrap();
        let labels: Vec<u32> = (0..80).map(|i| i % CLASSES as u32).collect();
        let mut make = |labels: &[u32], spread: f32| {
            let mut first = noise.matrix(labels.len(), WIDTH);
            let mut other = noise.matrix(labels.len(), SECOND);
            for (i, &l) in labels.iter().enumerate() {
                let blend = |m: &mut [f32], c: &[f32]| {
                    m.iter_mut().zip(c).for_each(|(v, c)| *v = c + spread * *v);
                };
                blend(first.row_mut(i), centres.row(l as usize));
                blend(other.row_mut(i), second.row(l as usize));
            }
            through(&head, first, other)
        };
        let outputs = make(&labels, 0.5);
        let transformed = make(&labels[..20], 2.0);
        let inputs = make(&labels[..12], 0.9);
        let lessons = lessons(&outputs, &labels, &transformed);
        let other = |label: u32| (label + 1) % CLASSES as u32;
        let others = transformed.labels().into_iter().map(other).collect();
        World { outputs, labels, head, transformed, others, inputs, centres, second, lessons }
    }

    /// The world as a score reads it: one with an energy network sees what that says alone.
    fn of(part: &Part) -> World {
        let world = World::new();
        let [outputs, transformed, inputs] = [&world.outputs, &world.transformed, &world.inputs]
            .map(|all| world.read(part, all.clone()));
        World { outputs, transformed, inputs, ..world }
    }

    /// Log-odds from the distance to the nearest class, in place of the features, for scores
    /// that read nothing else.
    fn read(&self, part: &Part, outputs: Outputs) -> Outputs {
        if !score::needs(part).unwrap().external {
            return outputs;
        }
        let away = |f: &[f32]| {
            let squared = |c: &[f32]| c.iter().zip(f).map(|(c, f)| (c - f).powi(2)).sum::<f32>();
            self.centres.iter().map(squared).fold(f32::INFINITY, f32::min)
        };
        let said = outputs.features[0].iter().flat_map(|f| [-0.5 * away(f), 0.5 * away(f)]);
        let said = Matrix::new(outputs.len(), 2, said.collect()).unwrap();
        Outputs::new(outputs.logits, vec![said]).unwrap()
    }

    fn bank(&self) -> Bank<'_> {
        Bank {
            outputs: &self.outputs,
            labels: &self.labels,
            head: Some(&self.head),
            transformed: Some(&self.transformed),
            transformed_labels: &self.others,
            lessons: Some(&self.lessons),
            seed: 11,
        }
    }
}

/// Every input as it is and under two views: of an upright one all are right, of a transformed
/// one the second view is.
fn lessons(upright: &Outputs, labels: &[u32], transformed: &Outputs) -> Lessons {
    let mut outputs = upright.select(&[]);
    let mut views = Vec::new();
    let mut add = |all: &Outputs, i: usize, input: usize, lesson: Lesson| {
        outputs.append(&all.select(&[i])).unwrap();
        views.push(Lesson { input, ..lesson });
    };
    for i in 0..labels.len() {
        for turned in [false, true] {
            for (k, raw) in [(0, true), (1, false), (2, false)] {
                let right = !turned || k == 2;
                let rating = Rating { here: f32::from(k as u8), ..Rating::default() };
                let origin =
                    Origin { raw, proposal: (!raw).then_some((0.5, right)), rating: Some(rating) };
                let lesson = Lesson { input: 0, sample: i, upright: !turned, right, origin };
                let (from, at) = if right { (upright, i) } else { (transformed, i % 20) };
                add(from, at, 2 * i + usize::from(turned), lesson);
            }
        }
    }
    Lessons { outputs, views, inputs: 2 * labels.len() }
}

/// Logits by the head, in double precision.
fn through(head: &Head, first: Matrix, other: Matrix) -> Outputs {
    let mut logits = Matrix::zeros(first.rows(), head.weight.rows());
    for (i, f) in first.iter().enumerate() {
        for (c, w) in head.weight.iter().enumerate() {
            let sum: f64 = w.iter().zip(f).map(|(&w, &f)| f64::from(w) * f64::from(f)).sum();
            logits.row_mut(i)[c] = (sum + f64::from(head.bias[c])) as f32;
        }
    }
    Outputs::new(logits, vec![first, other]).unwrap()
}

/// Every row with its defaults, with each word it knows, and with each number
/// moved away from its default.
fn parts() -> Vec<Part> {
    let mut parts = Vec::new();
    for row in TABLE {
        parts.push(Part::new(row.name));
        for param in row.params {
            match param.domain {
                Domain::Auto { .. } => {}
                Domain::Flag(default) => {
                    parts.push(Part::new(row.name).with(param.name, Value::Flag(!default)));
                }
                Domain::Word(words) => {
                    parts
                        .extend(words[1..].iter().map(|w| Part::new(row.name).word(param.name, w)));
                }
                Domain::Whole { default, low, high } => {
                    let moved = if default > 4 { 3 } else { default + 1 };
                    parts.push(
                        Part::new(row.name).number(param.name, moved.clamp(low, high) as f64),
                    );
                }
                Domain::Real { default, low, high } => {
                    let moved = if default > 0.0 { default * 0.7 } else { 0.3 };
                    parts.push(Part::new(row.name).number(param.name, moved.clamp(low, high)));
                }
            }
        }
    }
    parts
}

/// Runs a check on every part, fitted.
fn each(check: impl Fn(&Part, &dyn Score, &World)) {
    for part in parts() {
        let world = World::of(&part);
        let score = score::fit(&part, &world.bank()).unwrap_or_else(|e| panic!("{part:?}: {e}"));
        check(&part, &*score, &world);
    }
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn names_are_unique_and_kebab_case() {
    for (i, row) in TABLE.iter().enumerate() {
        assert!(!row.name.is_empty() && !row.about.is_empty());
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        assert!(TABLE[..i].iter().all(|other| other.name != row.name), "{} twice", row.name);
    }
}

#[test]
fn energies_are_finite_one_a_row() {
    each(|part, score, world| {
        for outputs in [&world.outputs, &world.inputs, &world.transformed] {
            let energy = score.energy(outputs);
            assert_eq!(energy.len(), outputs.len(), "{part:?}");
            assert!(energy.iter().all(|e| e.is_finite()), "{part:?} {energy:?}");
        }
        let none = world.inputs.select(&[]);
        assert!(score.energy(&none).is_empty(), "{part:?}");
        let d = score.pullback(&none);
        assert!(d.logits.iter().chain(d.features.iter().flatten()).all(|m| m.rows() == 0));
    });
}

#[test]
fn huge_inputs_keep_energies_and_gradients_finite() {
    each(|part, score, world| {
        let mut outputs = world.inputs.clone();
        for (i, v) in outputs.logits.data_mut().iter_mut().enumerate() {
            *v = [1e4, -1e4, 1e-30, 1e4, 0.0][i % 5];
        }
        for f in &mut outputs.features {
            for (i, v) in f.data_mut().iter_mut().enumerate() {
                *v = [1e4, -1e4, 0.0, 1e-30, 1e4, -1e4, 3.0][i % 7];
            }
        }
        assert!(score.energy(&outputs).iter().all(|e| e.is_finite()), "{part:?}");
        let d = score.pullback(&outputs);
        for m in d.logits.iter().chain(d.features.iter().flatten()) {
            assert!(m.data().iter().all(|v| v.is_finite()), "{part:?}");
        }
    });
}

#[test]
fn fitting_twice_gives_the_same_score() {
    each(|part, score, world| {
        let again = score::fit(part, &world.bank()).unwrap();
        assert_eq!(again.state(), score.state(), "{part:?}");
        assert_eq!(bits(&again.energy(&world.inputs)), bits(&score.energy(&world.inputs)));
    });
}

#[test]
fn a_row_does_not_depend_on_the_other_rows() {
    each(|part, score, world| {
        let mut many = world.inputs.clone();
        for _ in 0..3 {
            many.append(&world.outputs).unwrap();
        }
        let all = score.energy(&many);
        let d = score.pullback(&many);
        for i in [0, 5, 11, 40, 100] {
            let alone = many.select(&[i]);
            assert_eq!(bits(&score.energy(&alone)), bits(&all[i..=i]), "{part:?} {i}");
            let one = score.pullback(&alone);
            for (one, d) in one.features.iter().zip(&d.features) {
                let same = one.as_ref().map(|m| bits(m.row(0)));
                assert_eq!(same, d.as_ref().map(|m| bits(m.row(i))), "{part:?} {i}");
            }
            let same = one.logits.as_ref().map(|m| bits(m.row(0)));
            assert_eq!(same, d.logits.as_ref().map(|m| bits(m.row(i))), "{part:?} {i}");
        }
    });
}

#[test]
fn a_loaded_score_is_the_saved_one_bit_for_bit() {
    each(|part, score, world| {
        let state = score.state();
        let loaded = score::load(part, &state).unwrap();
        assert_eq!(loaded.state(), state, "{part:?}");
        assert_eq!(bits(&loaded.energy(&world.inputs)), bits(&score.energy(&world.inputs)));
        assert_eq!(loaded.pullback(&world.inputs), score.pullback(&world.inputs), "{part:?}");
    });
}

#[test]
fn a_state_with_a_tensor_missing_is_refused() {
    each(|part, score, _| {
        let state = score.state();
        for missing in state.tensors().keys() {
            let mut less = State::new();
            for (name, tensor) in state.tensors().iter().filter(|(n, _)| *n != missing) {
                less.put(name, tensor.clone());
            }
            assert!(score::load(part, &less).is_err(), "{part:?} without {missing}");
        }
    });
}

/// Settings under which the next test says nothing, with the reason.
const NOT_TELLING: &[(&str, &str, &str)] = &[(
    "vim",
    "dim",
    "a principal subspace smaller than the span of the classes leaves them in the residual",
)];

/// Scores whose unfamiliar input is long instead of short, with the reason.
const LONG: &[(&str, &str)] = &[(
    "laplace-mi",
    "the logits' variance grows with the length of the features, so short ones leave no doubt \
     about the weights",
)];

#[test]
fn what_lies_away_from_all_classes_is_less_familiar_than_a_class_mean() {
    each(|part, score, world| {
        let exempt = |(name, setting, _): &(&str, &str, &str)| {
            *name == part.name && part.settings.contains_key(*setting)
        };
        if NOT_TELLING.iter().any(exempt) {
            return;
        }
        let means = through(&world.head, world.centres.clone(), world.second.clone());
        let means = world.read(part, means);
        // The mean of all classes is no evidence for any, the less the shorter it is; the
        // second tap lies outside its clusters.
        let long = LONG.iter().any(|(name, _)| *name == part.name);
        let scale = if long { 3.0 } else { 0.1 } / CLASSES as f32;
        let first = (0..WIDTH).map(|j| world.centres.iter().map(|c| c[j]).sum::<f32>() * scale);
        let second = (0..SECOND).map(|j| if j % 2 == 0 { 1.5 } else { -1.5 });
        let away = through(
            &world.head,
            Matrix::new(1, WIDTH, first.collect()).unwrap(),
            Matrix::new(1, SECOND, second.collect()).unwrap(),
        );
        let away = world.read(part, away);
        let highest = score.energy(&means).into_iter().fold(f32::NEG_INFINITY, f32::max);
        let outlier = score.energy(&away)[0];
        assert!(outlier > highest, "{part:?}: {outlier} is not above {highest}");
    });
}

/// Central differences of row energies with respect to one column.
fn slopes(
    score: &dyn Score,
    outputs: &Outputs,
    place: Option<usize>,
    col: usize,
    h: f32,
) -> Vec<f64> {
    let moved = |by: f32| {
        let mut outputs = outputs.clone();
        let m = match place {
            None => &mut outputs.logits,
            Some(tap) => &mut outputs.features[tap],
        };
        let mut actual = Vec::new();
        for i in 0..m.rows() {
            m.row_mut(i)[col] += by;
            actual.push(f64::from(m.row(i)[col]));
        }
        (score.energy(&outputs), actual)
    };
    let ((up, a), (down, b)) = (moved(h), moved(-h));
    (0..outputs.len()).map(|i| f64::from(up[i] - down[i]) / (a[i] - b[i])).collect()
}

#[test]
fn gradients_match_finite_differences() {
    each(|part, score, world| {
        let inputs = &world.inputs;
        let d = score.pullback(inputs);
        let energies = score.energy(inputs);
        assert_eq!(d.features.len(), inputs.features.len(), "{part:?}");
        let mut told = 0;
        let places = std::iter::once((None, &inputs.logits))
            .chain(inputs.features.iter().enumerate().map(|(i, f)| (Some(i), f)));
        for (place, at) in places {
            let zeros = Matrix::zeros(at.rows(), at.cols());
            let given = match place {
                None => d.logits.as_ref(),
                Some(tap) => d.features[tap].as_ref(),
            }
            .unwrap_or(&zeros);
            assert_eq!((given.rows(), given.cols()), (at.rows(), at.cols()), "{part:?}");
            for col in 0..at.cols() {
                let coarse = slopes(score, inputs, place, col, 4e-3);
                let fine = slopes(score, inputs, place, col, 2e-3);
                for i in 0..at.rows() {
                    let norm: f64 =
                        given.row(i).iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
                    // Rounding of the energies, over the step.
                    let noise = 2e-4 * f64::from(energies[i].abs()).max(1e-3);
                    let tolerance = 1e-2 * norm + noise;
                    // Two steps that disagree straddle a kink.
                    if (coarse[i] - fine[i]).abs() > tolerance {
                        continue;
                    }
                    let given = f64::from(given.row(i)[col]);
                    told += usize::from(given.abs() > 10.0 * tolerance);
                    assert!(
                        (given - fine[i]).abs() <= tolerance,
                        "{part:?} {place:?} row {i} col {col}: {given} is not {} (norm {norm})",
                        fine[i]
                    );
                }
            }
        }
        assert!(told > 0, "{part:?}: every slope drowns in rounding");
    });
}

#[test]
fn some_gradient_reaches_the_outputs() {
    each(|part, score, world| {
        let d = score.pullback(&world.inputs);
        let largest = d
            .logits
            .iter()
            .chain(d.features.iter().flatten())
            .flat_map(upright::Matrix::data)
            .fold(0f32, |a, v| a.max(v.abs()));
        assert!(largest > 0.0, "{part:?}");
    });
}

#[test]
fn the_made_bank_is_mostly_classified_right() {
    let world = World::new();
    let right =
        world.outputs.logits.iter().zip(&world.labels).filter(|(z, l)| argmax(z) as u32 == **l);
    assert!(right.count() > 70);
}
