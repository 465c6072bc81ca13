//! As `threshold`, and a view is accepted only if it is lower by a margin on
//! the quantile scale: the share of calibration energies (upright and
//! transformed) that lie between `best` and `raw` must be at least `margin`.
//!
//! On that scale a margin means the same for every score (the paper divides
//! by the range instead, which one outlier can stretch).

use super::threshold::{QUANTILE, TAU, read_tau, tau};
use super::{Calibration, Gate, Look, Make, Overtaken, Reason, sorted};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::state::{State, damaged};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "margin",
    about: "a threshold that also asks for a clear improvement before it accepts",
    params: &[TAU, QUANTILE, MARGIN],
    make: Make { searched: false, fit, load },
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
    scale: Scale,
    note: Option<String>,
}

fn fit(settings: &Settings, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    let scale = Scale::new(settings.real("margin") as f32, calibration);
    Ok(Box::new(Margin::new(tau(settings, calibration)?, scale)))
}

/// Restores a [`Margin`], however its threshold and its margin were found.
pub(super) fn load(_: &Settings, state: &State) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Margin::new(read_tau(state)?, Scale::read(state)?)))
}

impl Margin {
    /// The gate with a threshold and a margin already found.
    pub(super) fn new(tau: f32, scale: Scale) -> Self {
        Margin { tau, scale, note: None }
    }

    /// With what is worth knowing about how they were found.
    pub(super) fn noting(self, note: Option<String>) -> Self {
        Margin { note, ..self }
    }
}

impl Gate for Margin {
    fn search(&self, raw: Look) -> bool {
        raw.energy > self.tau
    }

    fn accept(&self, raw: Look, best: Look) -> bool {
        self.scale.clear(raw.energy, best.energy)
    }

    fn tau(&self) -> f32 {
        self.tau
    }

    fn reason(&self, raw: Look, best: Option<Look>) -> Reason {
        self.scale.reason(self.search(raw), (self.tau, None), raw, best)
    }

    fn state(&self) -> State {
        self.scale.store(State::new().f32("tau", &[self.tau]))
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }
}

/// The scale on which improvements are measured, and how large one must be.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    margin: f32,
    /// Whether differences of energies count, not the calibration energies between them.
    plain: bool,
    energies: Vec<f32>,
}

impl Scale {
    /// The scale of all calibration energies.
    pub(super) fn new(margin: f32, calibration: &Calibration) -> Self {
        Scale {
            margin,
            plain: false,
            energies: sorted(calibration.upright.iter().chain(calibration.transformed)),
        }
    }

    /// Plain differences of energies, which must exceed the margin.
    pub(super) fn plain(margin: f32) -> Self {
        Scale { margin, plain: true, energies: Vec::new() }
    }

    /// The same scale with another margin.
    pub(super) fn with(&self, margin: f32) -> Self {
        Scale { margin, ..self.clone() }
    }

    /// Whether `best` is lower than `raw` by the margin.
    pub(super) fn clear(&self, raw: f32, best: f32) -> bool {
        best < raw && self.improvement(raw, best) >= self.margin - self.slack()
    }

    /// Rounding that is forgiven: shares are counts, differences are taken as they are.
    fn slack(&self) -> f32 {
        if self.plain { 0.0 } else { 1e-6 }
    }

    /// How much better `best` is than `raw`.
    fn improvement(&self, raw: f32, best: f32) -> f32 {
        if self.plain { raw - best } else { self.overtaken(raw, best) }
    }

    /// The reason of a gate that searches above `tau`, which may be a class's own, and asks
    /// for the margin.
    pub(super) fn reason(
        &self,
        searched: bool,
        (tau, class): (f32, Option<u32>),
        raw: Look,
        best: Option<Look>,
    ) -> Reason {
        let overtaken = |best: Look| Overtaken {
            found: self.improvement(raw.energy, best.energy),
            needed: self.margin,
            plain: self.plain,
        };
        Reason {
            searched,
            tau,
            class,
            accepted: best.map(|best| self.clear(raw.energy, best.energy)),
            overtaken: best.map(overtaken),
        }
    }

    /// The share of calibration energies in `best..raw`.
    fn overtaken(&self, raw: f32, best: f32) -> f32 {
        let below = |energy| self.energies.partition_point(|&e| e < energy);
        let overtaken = below(raw).saturating_sub(below(best));
        overtaken as f32 / self.energies.len().max(1) as f32
    }

    /// Adds the scale to what a gate stores.
    pub(super) fn store(&self, state: State) -> State {
        let plain = [u32::from(self.plain)];
        state.f32("margin", &[self.margin]).u32("plain", &plain).f32("scale", &self.energies)
    }

    /// The stored scale.
    pub(super) fn read(state: &State) -> Result<Self> {
        let margin = state.read_f32("margin")?.first().copied();
        let margin = margin.ok_or_else(|| damaged("tensor `margin` is empty".into()))?;
        let plain = state.read_u32("plain")?.first() == Some(&1);
        Ok(Scale { margin, plain, energies: state.read_f32("scale")? })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::gate::{Calibration, Case, Look, Overtaken, fit};

    #[test]
    fn the_margin_counts_calibration_energies_between_best_and_raw() {
        let upright: Vec<Case> = (0u8..10).map(f32::from).map(Case::unsearched).collect();
        let calibration = Calibration { upright: &upright, transformed: &[] };
        let part = Part::new("margin").number("margin", 0.3).number("quantile", 0.5);
        let gate = fit(&part, &calibration).unwrap();
        let accept = |raw, best| {
            gate.accept(Look { energy: raw, label: 0 }, Look { energy: best, label: 0 })
        };
        assert!(accept(8.5, 5.5));
        assert!(!accept(8.5, 6.5));
        assert!(!accept(5.5, 8.5));

        let look = |energy| Look { energy, label: 0 };
        for (best, found, accepted) in [(5.5, 0.3, true), (6.5, 0.2, false), (9.5, 0.0, false)] {
            let reason = gate.reason(look(8.5), Some(look(best)));
            assert_eq!((reason.searched, reason.tau, reason.class), (true, 4.5, None));
            assert_eq!(reason.accepted, Some(accepted));
            assert_eq!(reason.overtaken, Some(Overtaken { found, needed: 0.3, plain: false }));
        }
    }
}
