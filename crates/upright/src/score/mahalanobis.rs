//! Mahalanobis distance to the nearest class: `E = min_c d_c^2`,
//! `d_c^2 = (f - m_c)^T S^-1 (f - m_c)`, with class means `m_c` and the pooled
//! within-class covariance `S`, the scatter divided by the number of samples,
//! plus `ridge` times the identity.
//!
//! Lee et al. 2018, "A Simple Unified Framework for Detecting
//! Out-of-Distribution Samples and Adversarial Attacks". A singular covariance
//! is inverted on its range only. Classes without samples are skipped. Several
//! taps are averaged, or joined by learned weights (`combine`).

use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::score::{Bank, Make, Needs, Score, layers};
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "mahalanobis",
    about: "squared Mahalanobis distance to the nearest class mean, pooled covariance",
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
    layers::fit(settings, bank, KIND.name, false)
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Score>> {
    layers::load(state, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::outputs::Outputs;
    use crate::tensor::Matrix;

    /// Two classes at x = 0 and x = 10; within them x varies by 1, y by 2.
    fn square() -> (Outputs, Vec<u32>) {
        let features = vec![-1.0, 0.0, 1.0, 0.0, 0.0, -2.0, 0.0, 2.0];
        let moved: Vec<f32> = features.chunks(2).flat_map(|f| [f[0] + 10.0, f[1]]).collect();
        let features = Matrix::new(8, 2, [features, moved].concat()).unwrap();
        let outputs = Outputs::new(Matrix::zeros(8, 3), vec![features]).unwrap();
        (outputs, vec![0, 0, 0, 0, 2, 2, 2, 2])
    }

    fn fitted(part: &Part, outputs: &Outputs, labels: &[u32]) -> Result<Box<dyn Score>> {
        let bank = Bank::of(outputs, labels);
        fit(&part.resolve(KIND.params)?, &bank)
    }

    fn at(points: &[f32]) -> Outputs {
        let features = Matrix::new(points.len() / 2, 2, points.to_vec()).unwrap();
        Outputs::new(Matrix::zeros(points.len() / 2, 3), vec![features]).unwrap()
    }

    #[test]
    fn distances_to_two_classes_are_worked_by_hand() {
        let (outputs, labels) = square();
        let score = fitted(&Part::new("mahalanobis"), &outputs, &labels).unwrap();
        // S = diag(1/2, 2), an empty class 1 between them.
        let e = score.energy(&at(&[0.0, 0.0, 3.0, 2.0, 10.0, 4.0]));
        for (e, want) in e.iter().zip([0.0, 20.0, 8.0]) {
            assert!((e - want).abs() < 1e-4, "{e} {want}");
        }
        let ridge = Part::new("mahalanobis").number("ridge", 0.5);
        let e = fitted(&ridge, &outputs, &labels).unwrap().energy(&at(&[3.0, 0.0]));
        assert!((e[0] - 9.0).abs() < 1e-4);
    }

    #[test]
    fn a_singular_covariance_is_inverted_on_its_range() {
        let features = Matrix::new(2, 2, vec![-1.0, 5.0, 1.0, 5.0]).unwrap();
        let outputs = Outputs::new(Matrix::zeros(2, 3), vec![features]).unwrap();
        let score = fitted(&Part::new("mahalanobis"), &outputs, &[0, 0]).unwrap();
        let e = score.energy(&at(&[3.0, 77.0]));
        assert!((e[0] - 9.0).abs() < 1e-4, "{e:?}");
        assert!(format!("{score:?}").contains("width: 2, rank: 1"));
    }

    #[test]
    fn a_bank_without_spread_is_refused_by_rank() {
        let (outputs, labels) = square();
        let one = outputs.select(&[3]);
        let e = fitted(&Part::new("mahalanobis"), &one, &labels[..1]).unwrap_err().to_string();
        assert!(e.contains("mahalanobis") && e.contains("rank"), "{e}");
    }

    #[test]
    fn learned_weights_need_transformed_samples() {
        let (outputs, labels) = square();
        let part = Part::new("mahalanobis").word("combine", "from-transformed");
        let e = fitted(&part, &outputs, &labels).unwrap_err().to_string();
        assert!(e.contains("transformed"), "{e}");
    }
}
