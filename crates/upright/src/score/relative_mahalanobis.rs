//! Relative Mahalanobis distance: `E = min_c (d_c^2 - d_0^2)`, with `d_c` as
//! in `mahalanobis` and `d_0` the distance to the Gaussian of all samples
//! (their mean and total covariance, divided by the number of samples, plus
//! the same `ridge`).
//!
//! Ren et al. 2021, "A Simple Fix to Mahalanobis Distance for Improving
//! Near-OOD Detection". Familiar inputs usually have negative energies.
//! Several taps are averaged, or joined by learned weights (`combine`).

use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::score::{Bank, Make, Needs, Score, layers};
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "relative-mahalanobis",
    about: "squared Mahalanobis distance to the nearest class less that to all samples",
    params: layers::PARAMS,
    make: Make {
        needs: |s| Needs {
            features: true,
            labels: true,
            transformed: layers::learns(s),
            ..Needs::default()
        },
        fit,
        load,
    },
};

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    layers::fit(settings, bank, KIND.name, true)
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Score>> {
    layers::load(state, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::outputs::Outputs;
    use crate::tensor::Matrix;

    #[test]
    fn the_global_distance_is_subtracted() {
        // Classes at -5 and 5, each spread by 1: S = 1, total covariance 26, mean 0.
        let features = Matrix::new(4, 1, vec![-6.0, -4.0, 4.0, 6.0]).unwrap();
        let outputs = Outputs::new(Matrix::zeros(4, 2), vec![features]).unwrap();
        let bank = Bank::of(&outputs, &[0, 0, 1, 1]);
        let settings = Part::new("relative-mahalanobis").resolve(KIND.params).unwrap();
        let query = Matrix::new(2, 1, vec![5.0, 0.0]).unwrap();
        let query = Outputs::new(Matrix::zeros(2, 2), vec![query]).unwrap();
        let e = fit(&settings, &bank).unwrap().energy(&query);
        assert!((e[0] + 25.0 / 26.0).abs() < 1e-5 && (e[1] - 25.0).abs() < 1e-4, "{e:?}");
    }
}
