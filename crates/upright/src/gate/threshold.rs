//! Inputs above a threshold are searched: `raw > tau`; a view is accepted if
//! its energy is lower.
//!
//! `tau` is given, or is a quantile of the upright calibration energies with
//! linear interpolation between order statistics (numpy's default).

use super::{Calibration, Gate, Look, Make, sorted};
use crate::config::{Param, Settings};
use crate::error::{Error, Result};
use crate::registry::Kind;
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "threshold",
    about: "search inputs whose energy exceeds tau; accept a lower energy",
    params: PARAMS,
    make: Make { searched: false, fit, load },
};

/// The settings of a plain threshold.
pub(super) const PARAMS: &[Param] = &[TAU, QUANTILE];

/// The threshold itself.
pub(super) const TAU: Param = Param::auto(
    "tau",
    -1e30,
    1e30,
    "energy above which inputs are searched; auto takes it from `quantile`",
);

/// Where the threshold comes from when it is not given.
pub(super) const QUANTILE: Param =
    Param::real("quantile", 0.95, 0.0, 1.0, "share of upright inputs that stay below tau");

#[derive(Debug)]
struct Threshold {
    tau: f32,
}

/// The threshold that the settings and the calibration energies give.
pub(super) fn tau(settings: &Settings, calibration: &Calibration) -> Result<f32> {
    if let Some(tau) = settings.auto("tau") {
        return Ok(tau as f32);
    }
    let upright = sorted(calibration.upright);
    if upright.is_empty() {
        return Err(Error::TooFew {
            part: "gate".into(),
            why: "no upright calibration energies to take tau from".into(),
            hint: Some("give more data, or set `tau` yourself".into()),
        });
    }
    let at = settings.real("quantile") * (upright.len() - 1) as f64;
    let below = upright[at.floor() as usize];
    let above = upright[at.ceil() as usize];
    Ok(below + (above - below) * at.fract() as f32)
}

fn fit(settings: &Settings, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Threshold { tau: tau(settings, calibration)? }))
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Threshold { tau: read_tau(state)? }))
}

/// The stored threshold.
pub(super) fn read_tau(state: &State) -> Result<f32> {
    state
        .read_f32("tau")?
        .first()
        .copied()
        .ok_or_else(|| crate::state::damaged("tensor `tau` is empty".into()))
}

impl Gate for Threshold {
    fn search(&self, raw: Look) -> bool {
        raw.energy > self.tau
    }

    fn tau(&self) -> f32 {
        self.tau
    }

    fn state(&self) -> State {
        State::new().f32("tau", &[self.tau])
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::gate::{Calibration, Case, Look, fit};

    fn look(energy: f32) -> Look {
        Look { energy, label: 0 }
    }

    #[test]
    fn tau_is_the_interpolated_quantile_of_upright_energies() {
        let upright = [4.0, 1.0, 3.0, 2.0, f32::NAN].map(Case::unsearched);
        let calibration = Calibration { upright: &upright, transformed: &[] };
        let gate = |q| fit(&Part::new("threshold").number("quantile", q), &calibration).unwrap();
        assert!((gate(0.5).tau() - 2.5).abs() < 1e-6);
        assert!((gate(1.0).tau() - 4.0).abs() < 1e-6);
        assert!(!gate(1.0).search(look(4.0)) && gate(1.0).search(look(4.1)));
    }

    #[test]
    fn a_given_tau_needs_no_calibration() {
        let none = Calibration::NONE;
        assert!(fit(&Part::new("threshold"), &none).is_err());
        let gate = fit(&Part::new("threshold").number("tau", -3.0), &none).unwrap();
        assert!(gate.search(look(-2.9)) && !gate.search(look(-3.0)));
    }
}
