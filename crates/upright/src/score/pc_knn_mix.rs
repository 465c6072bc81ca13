//! Mean of the k smallest mixed distances,
//! `(1 - w_cos) |f - b| / sqrt(D) + w_cos (1 - cos(f, b))`, to remembered features
//! of the predicted class.

use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::score::bank::{
    Among, COMPRESS, CORRECT_ONLY, Chosen, K, Metric, Neighbours, SQUARED, STORAGE, W_COS,
};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: NAME,
    about: "mean Euclidean-cosine distance to the k nearest samples of the predicted class; needs features and labels",
    params: &[K, W_COS, SQUARED, CORRECT_ONLY, STORAGE, COMPRESS],
    make: Make { needs: Needs { features: true, head: false, labels: true }, fit, load },
};

const NAME: &str = "pc-knn-mix";

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let chosen = Chosen::new(NAME, settings, bank)?;
    let index = chosen.index(settings, bank.seed)?;
    let metric = Metric::mix(settings, index.cols());
    Ok(Box::new(Neighbours { index, metric, k: settings.whole("k"), among: Among::Predicted }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let metric = |cols| Metric::mix(settings, cols);
    Neighbours::load(state, metric, settings.whole("k"), Among::Predicted)
}

#[cfg(test)]
mod tests {
    use crate::config::{Part, Value};
    use crate::outputs::Outputs;
    use crate::score::{Bank, fit};
    use crate::tensor::Matrix;

    /// Bank: (0,0) and (0,2) of class 0, (6,0) and (6,8) of class 1; the last is misclassified.
    /// Query: (3,0), predicted as class 1; then as class 2, which has no samples.
    fn energy(part: &Part) -> Vec<f32> {
        let features = Matrix::new(4, 2, vec![0.0, 0.0, 6.0, 0.0, 0.0, 2.0, 6.0, 8.0]).unwrap();
        let logits =
            Matrix::new(4, 3, vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
                .unwrap();
        let outputs = Outputs::new(logits, vec![features]).unwrap();
        let bank = Bank {
            outputs: &outputs,
            labels: &[0, 1, 0, 1],
            head: None,
            transformed: None,
            seed: 0,
        };
        let query = Outputs::new(
            Matrix::new(2, 3, vec![0.0, 1.0, 0.0, 0.0, 0.0, 1.0]).unwrap(),
            vec![Matrix::new(2, 2, vec![3.0, 0.0, 3.0, 0.0]).unwrap()],
        )
        .unwrap();
        fit(part, &bank).unwrap().energy(&query)
    }

    fn near(part: &Part, want: [f64; 2]) {
        for (got, want) in energy(part).iter().zip(want) {
            assert!((f64::from(*got) - want).abs() < 1e-6 * (1.0 + want), "{part:?}: {got} {want}");
        }
    }

    fn correct(part: Part) -> Part {
        part.with("correct_only", Value::Flag(true))
    }

    fn squared(part: Part) -> Part {
        part.with("squared", Value::Flag(true))
    }

    #[test]
    fn energies_equal_those_worked_by_hand() {
        // Class 1: (6, 0) at 3 and cosine 0; (6, 8) at sqrt(73) and cosine 0.4.
        let e = |d: f64| 0.5 * d / 2f64.sqrt();
        let unseen = e(2.5 + 39.25f64.sqrt()) + 0.5 * 2.0;
        let far = e(73f64.sqrt()) + 0.2;
        near(&Part::new("pc-knn-mix"), [f64::midpoint(e(3.0), far), unseen]);
        near(&correct(Part::new("pc-knn-mix").number("w_cos", 1.0)), [0.0, 2.0]);
        near(
            &squared(Part::new("pc-knn-mix").number("k", 1.0).number("w_cos", 0.0)),
            [9.0 / 2f64.sqrt(), (2.5 + 39.25f64.sqrt()).powi(2) / 2f64.sqrt()],
        );
    }
}
