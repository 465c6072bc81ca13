//! A threshold with a guarantee: at most a share `alpha` of upright inputs is
//! searched.
//!
//! With n held-out upright energies, `tau` is the `ceil((n + 1)(1 - alpha))`-th
//! smallest. For a fresh upright input exchangeable with them,
//! `P(raw > tau) <= alpha`, for every n and every distribution (split-conformal;
//! Vovk et al. 2005, Lei et al. 2018). With too few energies for the asked
//! `alpha` (`n < 1 / alpha - 1`) `tau` would be infinite: that is an error.
//!
//! With `per_class` every predicted class has a `tau` of its own from the inputs predicted
//! as that class, so that the share holds for each class; a class with too few of them
//! (`n < 1 / alpha - 1`) uses the common `tau`.
//!
//! A view is accepted as by the gate `margin`; `margin = 0` accepts any lower energy.

use super::margin::{MARGIN, Scale};
use super::threshold::read_tau;
use super::{Calibration, Case, Gate, Look, Make, Reason, sorted};
use crate::config::{Param, Settings};
use crate::error::{Error, Result};
use crate::registry::Kind;
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "conformal",
    about: "search at most a share alpha of new upright inputs like the calibration ones, on average \
            over such calibrations; accept clear improvements",
    params: &[
        Param::real("alpha", 0.05, 1e-6, 1.0, "largest share of upright inputs searched"),
        Param::flag("per_class", false, "keep the share within every predicted class"),
        MARGIN,
    ],
    make: Make { searched: false, fit, load },
};

#[derive(Debug)]
struct Conformal {
    tau: f32,
    /// By predicted class; a class beyond the end uses `tau`.
    taus: Vec<f32>,
    scale: Scale,
}

fn fit(settings: &Settings, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    let alpha = settings.real("alpha");
    let n = sorted(calibration.upright).len();
    let Some(tau) = quantile(calibration.upright, alpha) else {
        return Err(Error::TooFew {
            part: "gate `conformal`".into(),
            why: format!(
                "{n} upright calibration inputs cannot guarantee alpha = {alpha}; it takes at \
                 least {}",
                (1.0 / alpha - 1.0).ceil()
            ),
            hint: Some("give more data, a larger alpha, or use the gate `threshold`".into()),
        });
    };
    let mut taus = Vec::new();
    if settings.flag("per_class") {
        let classes = calibration.upright.iter().map(|c| c.raw.label + 1).max().unwrap_or(0);
        taus.extend((0..classes).map(|class| {
            let own = calibration.upright.iter().filter(|c| c.raw.label == class);
            quantile(own, alpha).unwrap_or(tau)
        }));
    }
    let scale = Scale::new(settings.real("margin") as f32, calibration);
    Ok(Box::new(Conformal { tau, taus, scale }))
}

/// The energy that at most a share `alpha` of fresh inputs exceeds; `None` if there are too
/// few to tell.
fn quantile<'a>(cases: impl IntoIterator<Item = &'a Case>, alpha: f64) -> Option<f32> {
    let energies = sorted(cases);
    let rank = ((energies.len() + 1) as f64 * (1.0 - alpha) - 1e-9).ceil() as usize;
    match rank {
        0 => Some(f32::NEG_INFINITY),
        _ => energies.get(rank - 1).copied(),
    }
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Gate>> {
    let (tau, taus) = (read_tau(state)?, state.read_f32("taus")?);
    Ok(Box::new(Conformal { tau, taus, scale: Scale::read(state)? }))
}

impl Conformal {
    /// The `tau` of a predicted class.
    fn tau_of(&self, label: u32) -> f32 {
        self.taus.get(label as usize).copied().unwrap_or(self.tau)
    }
}

impl Gate for Conformal {
    fn search(&self, raw: Look) -> bool {
        raw.energy > self.tau_of(raw.label)
    }

    fn accept(&self, raw: Look, best: Look) -> bool {
        self.scale.clear(raw.energy, best.energy)
    }

    fn tau(&self) -> f32 {
        self.tau
    }

    fn reason(&self, raw: Look, best: Option<Look>) -> Reason {
        let tau = self.tau_of(raw.label);
        let class = (tau.to_bits() != self.tau.to_bits()).then_some(raw.label);
        self.scale.reason(self.search(raw), (tau, class), raw, best)
    }

    fn state(&self) -> State {
        self.scale.store(State::new().f32("tau", &[self.tau]).f32("taus", &self.taus))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::gate::{Calibration, Case, Look, fit};

    fn tau(n: u16, alpha: f64) -> crate::Result<f32> {
        let upright: Vec<Case> = (1..=n).rev().map(f32::from).map(Case::unsearched).collect();
        let calibration = Calibration { upright: &upright, transformed: &[] };
        Ok(fit(&Part::new("conformal").number("alpha", alpha), &calibration)?.tau())
    }

    /// n = 19, alpha = 0.05: ceil(20 * 0.95) = 19th smallest; n = 99: ceil(95) = 95th.
    #[test]
    fn tau_is_the_finite_sample_quantile() {
        assert!((tau(19, 0.05).unwrap() - 19.0).abs() < 1e-6);
        assert!((tau(99, 0.05).unwrap() - 95.0).abs() < 1e-6);
        assert!((tau(100, 0.05).unwrap() - 96.0).abs() < 1e-6);
    }

    #[test]
    fn too_few_inputs_for_alpha_is_an_error_that_says_how_many_it_takes() {
        let e = tau(18, 0.05).unwrap_err();
        assert!(e.to_string().contains("it takes at least 19"), "{e}");
    }

    /// Class 0 has energies 1..=39, class 1 has 101..=139: with alpha 0.1 the common tau is
    /// the 72nd of 78 (133), the own ones the 36th of 39 (36 and 136). Class 2 has none.
    #[test]
    fn with_per_class_each_class_keeps_its_own_share() {
        let upright: Vec<Case> = (0..2u8)
            .flat_map(|label| (1..=39u8).map(move |i| (label, i)))
            .map(|(label, i)| Case {
                raw: Look { energy: f32::from(label) * 100.0 + f32::from(i), label: label.into() },
                best: None,
                truth: None,
            })
            .collect();
        let calibration = Calibration { upright: &upright, transformed: &[] };
        let part = Part::new("conformal").number("alpha", 0.1).flag("per_class", true);
        let gate = fit(&part, &calibration).unwrap();
        assert!((gate.tau() - 133.0).abs() < 1e-6, "{}", gate.tau());
        let search = |energy, label| gate.search(Look { energy, label });
        assert!(search(37.0, 0) && !search(36.0, 0));
        assert!(search(137.0, 1) && !search(136.0, 1));
        assert!(search(134.0, 2) && !search(133.0, 2));

        let reason = |energy, label| gate.reason(Look { energy, label }, None);
        for (label, tau, class) in [(0, 36.0, Some(0)), (1, 136.0, Some(1)), (2, 133.0, None)] {
            let kept = reason(tau, label);
            assert_eq!((kept.searched, kept.tau, kept.class), (false, tau, class));
            assert!(reason(tau + 1.0, label).searched);
            assert_eq!((kept.accepted, kept.overtaken), (None, None));
        }
    }

    /// Uniform energies: over repeated splits the searched share of fresh inputs
    /// averages `alpha * (n + 1 - ...)`, never above alpha but for sampling error.
    #[test]
    fn the_searched_share_of_fresh_inputs_keeps_below_alpha() {
        let mut share = 0.0;
        let repeats = 200;
        for repeat in 0..repeats {
            let draw = |i: u64| crate::search::unit_for_tests(repeat, i);
            let upright: Vec<Case> = (0..59).map(draw).map(Case::unsearched).collect();
            let calibration = Calibration { upright: &upright, transformed: &[] };
            let gate = fit(&Part::new("conformal").number("alpha", 0.1), &calibration).unwrap();
            let searched =
                (100..300).filter(|&i| gate.search(Look { energy: draw(i), label: 0 })).count();
            share += searched as f64 / 200.0 / repeats as f64;
        }
        assert!((0.085..0.105).contains(&share), "{share}");
    }
}
