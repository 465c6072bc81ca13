//! As `threshold`, and a view is accepted only if it is lower by a margin on
//! the quantile scale: the share of calibration energies (upright and
//! transformed) that lie between `best` and `raw` must be at least `margin`.
//!
//! On that scale a margin means the same for every score (the paper divides
//! by the range instead, which one outlier can stretch).

use super::threshold::{QUANTILE, TAU, read_tau, tau};
use super::{Calibration, Gate, Make, sorted};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "margin",
    about: "a threshold that also asks for a clear improvement before it accepts",
    params: &[TAU, QUANTILE, MARGIN],
    make: Make { fit, load },
};

/// How clear an improvement must be.
pub(super) const MARGIN: Param = Param::real(
    "margin",
    0.3,
    0.0,
    1.0,
    "share of calibration energies that a view must overtake to be accepted",
);

/// A threshold with an acceptance margin.
#[derive(Debug)]
pub(super) struct Margin {
    tau: f32,
    share: f32,
    scale: Vec<f32>,
}

fn fit(settings: &Settings, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Margin::new(tau(settings, calibration)?, settings, calibration)))
}

/// Restores a [`Margin`], however its threshold was found.
pub(super) fn load(settings: &Settings, state: &State) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Margin {
        tau: read_tau(state)?,
        share: settings.real("margin") as f32,
        scale: state.read_f32("scale")?,
    }))
}

impl Margin {
    /// The gate with a threshold already found.
    pub(super) fn new(tau: f32, settings: &Settings, calibration: &Calibration) -> Self {
        let all: Vec<f32> =
            calibration.upright.iter().chain(calibration.transformed).copied().collect();
        Margin { tau, share: settings.real("margin") as f32, scale: sorted(&all) }
    }

    fn below(&self, energy: f32) -> usize {
        self.scale.partition_point(|&e| e < energy)
    }
}

impl Gate for Margin {
    fn search(&self, raw: f32) -> bool {
        raw > self.tau
    }

    fn accept(&self, raw: f32, best: f32) -> bool {
        let overtaken = self.below(raw).saturating_sub(self.below(best)) as f32;
        best < raw && overtaken >= self.share * self.scale.len() as f32 - 1e-3
    }

    fn tau(&self) -> f32 {
        self.tau
    }

    fn state(&self) -> State {
        State::new().f32("tau", &[self.tau]).f32("scale", &self.scale)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::gate::{Calibration, fit};

    #[test]
    fn the_margin_counts_calibration_energies_between_best_and_raw() {
        let upright: Vec<f32> = (0u8..10).map(f32::from).collect();
        let calibration = Calibration { upright: &upright, transformed: &[] };
        let part = Part::new("margin").number("margin", 0.3).number("quantile", 0.5);
        let gate = fit(&part, &calibration).unwrap();
        assert!(gate.accept(8.5, 5.5));
        assert!(!gate.accept(8.5, 6.5));
        assert!(!gate.accept(5.5, 8.5));
    }
}
