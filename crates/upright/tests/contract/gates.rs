//! What every gate must do.

use upright::config::Part;
use upright::gate::{self, Calibration, Case, Gate, Look, TABLE};

fn look(energy: f32) -> Look {
    Look { energy, label: 1 }
}

/// Upright inputs are right as they are; transformed ones are wrong until searched.
fn cases() -> (Vec<Case>, Vec<Case>) {
    let case = |energy: f32, label| Case {
        raw: Look { energy, label },
        best: Some(Look { energy: energy - 3.0, label: 1 }),
        truth: Some(1),
    };
    let upright = (0..200).map(|i| case((i as f32 * 0.37).sin() - 2.0, 1)).collect();
    let transformed = (0..200).map(|i| case((i as f32 * 0.61).cos() * 2.0 + 1.0, 0)).collect();
    (upright, transformed)
}

fn all() -> Vec<(&'static str, Box<dyn Gate>)> {
    let (upright, transformed) = cases();
    let calibration = Calibration { upright: &upright, transformed: &transformed };
    TABLE
        .iter()
        .map(|row| (row.name, gate::fit(&Part::new(row.name), &calibration).unwrap()))
        .collect()
}

const STEPS: [f32; 9] = [-10.0, -3.0, -2.5, -1.5, -1.0, 0.0, 1.0, 3.0, 50.0];

#[test]
fn every_gate_is_monotone() {
    for (name, gate) in all() {
        for pair in STEPS.windows(2) {
            assert!(gate.search(look(pair[1])) || !gate.search(look(pair[0])), "{name} {pair:?}");
            for raw in STEPS {
                let (low, high) =
                    (gate.accept(look(raw), look(pair[0])), gate.accept(look(raw), look(pair[1])));
                assert!(low || !high, "{name} raw {raw} {pair:?}");
            }
        }
    }
}

#[test]
fn every_gate_is_closed_for_nan() {
    for (name, gate) in all() {
        assert!(!gate.search(look(f32::NAN)), "{name}");
        assert!(
            !gate.accept(look(1.0), look(f32::NAN)) && !gate.accept(look(f32::NAN), look(1.0)),
            "{name}"
        );
    }
}

#[test]
fn no_gate_accepts_a_higher_energy() {
    for (name, gate) in all() {
        for raw in STEPS {
            assert!(
                !gate.accept(look(raw), look(raw)) && !gate.accept(look(raw), look(raw + 1.0)),
                "{name} {raw}"
            );
        }
    }
}

#[test]
fn every_gate_searches_above_its_tau_only() {
    for (name, gate) in all() {
        for raw in STEPS {
            assert_eq!(gate.search(look(raw)), raw > gate.tau(), "{name} {raw}");
        }
    }
}

#[test]
fn every_gate_loads_as_it_was_saved() {
    for (name, gate) in all() {
        let again = gate::load(&Part::new(name), &gate.state()).unwrap();
        assert_eq!(gate.state(), again.state(), "{name}");
        for raw in STEPS {
            assert_eq!(gate.search(look(raw)), again.search(look(raw)), "{name}");
            for best in STEPS {
                assert_eq!(
                    gate.accept(look(raw), look(best)),
                    again.accept(look(raw), look(best)),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn always_and_never_are_the_two_ends() {
    for (name, gate) in all() {
        let searched = STEPS.iter().filter(|&&raw| gate.search(look(raw))).count();
        match name {
            "always" => assert_eq!(searched, STEPS.len()),
            "never" => assert_eq!(searched, 0),
            _ => assert!(searched > 0 && searched < STEPS.len(), "{name}"),
        }
    }
}
