//! What every gate must do, whatever its settings.

use upright::gate::{self, Calibration, Case, Gate, Look, TABLE};
use upright::internal::config::Domain;
use upright::{Param, Part, Value};

/// Predicted classes; the calibration inputs know no class 3.
const LABELS: [u32; 4] = [0, 1, 2, 3];

const STEPS: [f32; 9] = [-10.0, -3.0, -2.5, -1.5, -1.0, 0.0, 1.0, 3.0, 50.0];

fn look(energy: f32) -> Look {
    Look { energy, label: 1 }
}

/// Upright inputs of two classes, one less familiar than the other, are right as they are;
/// transformed ones are wrong until searched.
fn cases() -> (Vec<Case>, Vec<Case>) {
    let case = |energy: f32, label, truth| Case {
        raw: Look { energy, label },
        best: Some(Look { energy: energy - 3.0, label: truth }),
        truth: Some(truth),
    };
    let upright = |i: u32| {
        let class = 1 + i % 2;
        case((i as f32 * 0.37).sin() - 4.0 + class as f32, class, class)
    };
    let transformed = |i: u32| case((i as f32 * 0.61).cos() * 2.0 + 1.0, 0, 1 + i % 2);
    ((0..200).map(upright).collect(), (0..200).map(transformed).collect())
}

fn fit(part: &Part) -> upright::Result<Box<dyn Gate>> {
    let (upright, transformed) = cases();
    gate::fit(part, &Calibration { upright: &upright, transformed: &transformed })
}

/// The ends and the middle of a parameter, and its default.
fn values(param: &Param) -> Vec<Value> {
    let mut values = vec![param.domain.default()];
    match param.domain {
        Domain::Flag(v) => values.push(Value::Flag(!v)),
        Domain::Real { low, high, .. } | Domain::Auto { low, high } => {
            values.extend([low, f64::midpoint(low, high), high].map(Value::Number));
        }
        Domain::Whole { low, high, .. } => {
            values.extend([low, u64::midpoint(low, high), high].map(|v| Value::Number(v as f64)));
        }
        Domain::Word(words) => values.extend(words.iter().map(|&w| Value::Word(w.into()))),
    }
    values
}

/// Every gate at every combination of these values. A gate may say that it has too few
/// inputs for what is asked, but not with its defaults.
fn all() -> Vec<(Part, Box<dyn Gate>)> {
    let mut all = Vec::new();
    for row in TABLE {
        let mut parts = vec![Part::new(row.name)];
        for param in row.params {
            let with = |part: &Part| {
                let part = part.clone();
                values(param).into_iter().map(move |v| part.clone().with(param.name, v))
            };
            parts = parts.iter().flat_map(with).collect();
        }
        fit(&Part::new(row.name)).unwrap();
        for part in parts {
            match fit(&part) {
                Ok(gate) => all.push((part, gate)),
                Err(e) => assert_eq!(e.code(), "bank::small", "{part:?}: {e}"),
            }
        }
    }
    assert!(all.len() > 100, "{}", all.len());
    all
}

#[test]
fn every_gate_is_monotone() {
    for (part, gate) in all() {
        for label in LABELS {
            let look = |energy| Look { energy, label };
            for pair in STEPS.windows(2) {
                let (low, high) = (gate.search(look(pair[0])), gate.search(look(pair[1])));
                assert!(high || !low, "{part:?} {label} {pair:?}");
                for raw in STEPS {
                    let accept = |best| gate.accept(look(raw), look(best));
                    let (low, high) = (accept(pair[0]), accept(pair[1]));
                    assert!(low || !high, "{part:?} {label} raw {raw} {pair:?}");
                }
            }
        }
    }
}

#[test]
fn every_gate_is_closed_for_nan() {
    for (part, gate) in all() {
        let (number, nan) = (look(1.0), look(f32::NAN));
        assert!(!gate.search(nan), "{part:?}");
        assert!(!gate.accept(number, nan) && !gate.accept(nan, number), "{part:?}");
        assert!(!gate.accept(nan, nan), "{part:?}");
    }
}

#[test]
fn no_gate_accepts_a_higher_energy() {
    for (part, gate) in all() {
        for raw in STEPS {
            for best in [raw, raw + 1.0, f32::INFINITY] {
                assert!(!gate.accept(look(raw), look(best)), "{part:?} {raw} {best}");
            }
        }
    }
}

#[test]
fn every_gate_gives_the_limits_that_it_decides_by() {
    for (part, gate) in all() {
        for (raw, label) in STEPS.iter().flat_map(|&e| LABELS.map(|label| (e, label))) {
            let raw = Look { energy: raw, label };
            let reason = gate.reason(raw, None);
            assert_eq!((reason.accepted, reason.overtaken), (None, None), "{part:?}");
            assert_eq!(reason.searched, gate.search(raw), "{part:?} {raw:?}");
            assert_eq!(reason.searched, raw.energy > reason.tau, "{part:?} {raw:?}");
            match reason.class {
                Some(class) => assert_eq!(class, label, "{part:?}"),
                None => assert_eq!(reason.tau.to_bits(), gate.tau().to_bits(), "{part:?}"),
            }
            for best in STEPS {
                let best = look(best);
                let reason = gate.reason(raw, Some(best));
                let accepted = gate.accept(raw, best);
                assert_eq!(reason.accepted, Some(accepted), "{part:?} {raw:?} {best:?}");
                let clear = reason.overtaken.is_none_or(|o| o.found >= o.needed - 1e-6);
                let lower = best.energy < raw.energy;
                assert_eq!(accepted, lower && clear, "{part:?} {raw:?} {best:?}");
            }
        }
    }
    let own = all().iter().any(|(_, gate)| gate.reason(look(0.0), None).class.is_some());
    assert!(own, "no gate has a limit for a class");
}

#[test]
fn every_gate_loads_as_it_was_saved() {
    for (part, gate) in all() {
        let again = gate::load(&part, &gate.state()).unwrap();
        assert_eq!(gate.state(), again.state(), "{part:?}");
        for (raw, label) in STEPS.iter().flat_map(|&e| LABELS.map(|label| (e, label))) {
            let raw = Look { energy: raw, label };
            for best in STEPS {
                let best = Some(look(best));
                assert_eq!(gate.reason(raw, best), again.reason(raw, best), "{part:?}");
            }
        }
    }
}

#[test]
fn always_and_never_are_the_two_ends() {
    for row in TABLE {
        let gate = fit(&Part::new(row.name)).unwrap();
        let searched = STEPS.iter().filter(|&&raw| gate.search(look(raw))).count();
        match row.name {
            "always" => assert_eq!(searched, STEPS.len()),
            "never" => assert_eq!(searched, 0),
            name => assert!(searched > 0 && searched < STEPS.len(), "{name}"),
        }
    }
}
