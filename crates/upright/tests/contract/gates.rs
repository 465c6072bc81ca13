//! What every gate must do.

use upright::config::Part;
use upright::gate::{self, Calibration, Gate, TABLE};

fn energies() -> (Vec<f32>, Vec<f32>) {
    let upright = (0..200).map(|i| (i as f32 * 0.37).sin() - 2.0).collect();
    let transformed = (0..200).map(|i| (i as f32 * 0.61).cos() * 2.0 + 1.0).collect();
    (upright, transformed)
}

fn all() -> Vec<(&'static str, Box<dyn Gate>)> {
    let (upright, transformed) = energies();
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
            assert!(gate.search(pair[1]) || !gate.search(pair[0]), "{name} {pair:?}");
            for raw in STEPS {
                let (low, high) = (gate.accept(raw, pair[0]), gate.accept(raw, pair[1]));
                assert!(low || !high, "{name} raw {raw} {pair:?}");
            }
        }
    }
}

#[test]
fn every_gate_is_closed_for_nan() {
    for (name, gate) in all() {
        assert!(!gate.search(f32::NAN), "{name}");
        assert!(!gate.accept(1.0, f32::NAN) && !gate.accept(f32::NAN, 1.0), "{name}");
    }
}

#[test]
fn no_gate_accepts_a_higher_energy() {
    for (name, gate) in all() {
        for raw in STEPS {
            assert!(!gate.accept(raw, raw) && !gate.accept(raw, raw + 1.0), "{name} {raw}");
        }
    }
}

#[test]
fn every_gate_searches_above_its_tau_only() {
    for (name, gate) in all() {
        for raw in STEPS {
            assert_eq!(gate.search(raw), raw > gate.tau(), "{name} {raw}");
        }
    }
}

#[test]
fn every_gate_loads_as_it_was_saved() {
    for (name, gate) in all() {
        let again = gate::load(&Part::new(name), &gate.state()).unwrap();
        assert_eq!(gate.state(), again.state(), "{name}");
        for raw in STEPS {
            assert_eq!(gate.search(raw), again.search(raw), "{name}");
            for best in STEPS {
                assert_eq!(gate.accept(raw, best), again.accept(raw, best), "{name}");
            }
        }
    }
}

#[test]
fn always_and_never_are_the_two_ends() {
    for (name, gate) in all() {
        let searched = STEPS.iter().filter(|&&raw| gate.search(raw)).count();
        match name {
            "always" => assert_eq!(searched, STEPS.len()),
            "never" => assert_eq!(searched, 0),
            _ => assert!(searched > 0 && searched < STEPS.len(), "{name}"),
        }
    }
}
