//! A threshold with a guarantee: at most a share `alpha` of upright inputs is
//! searched.
//!
//! With n held-out upright energies, `tau` is the `ceil((n + 1)(1 - alpha))`-th
//! smallest. For a fresh upright input exchangeable with them,
//! `P(raw > tau) <= alpha`, for every n and every distribution (split-conformal;
//! Vovk et al. 2005, Lei et al. 2018). With too few energies for the asked
//! `alpha` (`n < 1 / alpha - 1`) `tau` would be infinite: that is an error.
//!
//! A view is accepted as by the gate `margin`; `margin = 0` accepts any lower energy.

use super::margin::{MARGIN, Margin, load};
use super::{Calibration, Gate, Make, sorted};
use crate::config::{Param, Settings};
use crate::error::{Error, Result};
use crate::registry::Kind;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "conformal",
    about: "search at most a share alpha of upright inputs, guaranteed; accept clear improvements",
    params: &[
        Param::real("alpha", 0.05, 1e-6, 1.0, "largest share of upright inputs searched"),
        MARGIN,
    ],
    make: Make { fit, load },
};

fn fit(settings: &Settings, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    let alpha = settings.real("alpha");
    let upright = sorted(calibration.upright);
    let n = upright.len();
    let rank = ((n + 1) as f64 * (1.0 - alpha) - 1e-9).ceil() as usize;
    if rank > n {
        return Err(Error::TooFew {
            part: "gate `conformal`".into(),
            why: format!(
                "{n} upright calibration inputs cannot guarantee alpha = {alpha}; it takes at \
                 least {}",
                (1.0 / alpha - 1.0).ceil()
            ),
            help: "give more data, a larger alpha, or use the gate `threshold`".into(),
        });
    }
    let tau = if rank == 0 { f32::NEG_INFINITY } else { upright[rank - 1] };
    Ok(Box::new(Margin::new(tau, settings, calibration)))
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::gate::{Calibration, fit};

    fn tau(n: u16, alpha: f64) -> crate::Result<f32> {
        let upright: Vec<f32> = (1..=n).rev().map(f32::from).collect();
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

    /// Uniform energies: over repeated splits the searched share of fresh inputs
    /// averages `alpha * (n + 1 - ...)`, never above alpha but for sampling error.
    #[test]
    fn the_searched_share_of_fresh_inputs_keeps_below_alpha() {
        let mut share = 0.0;
        let repeats = 200;
        for repeat in 0..repeats {
            let draw = |i: u64| crate::search::unit_for_tests(repeat, i);
            let upright: Vec<f32> = (0..59).map(draw).collect();
            let calibration = Calibration { upright: &upright, transformed: &[] };
            let gate = fit(&Part::new("conformal").number("alpha", 0.1), &calibration).unwrap();
            let searched = (100..300).filter(|&i| gate.search(draw(i))).count();
            share += searched as f64 / 200.0 / repeats as f64;
        }
        assert!((0.085..0.105).contains(&share), "{share}");
    }
}
