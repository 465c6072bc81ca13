//! Mean distance to the k nearest remembered features of the predicted class.
//!
//! As [`super::knn`], among the samples whose true label is the class that the
//! logits of the same input predict. For a class without samples see
//! [`super::bank`]'s `Neighbours`.

use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::score::bank::{
    Among, COMPRESS, CORRECT_ONLY, Chosen, K, METRIC, Metric, Neighbours, SQUARED, STORAGE, W_COS,
};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: NAME,
    about: "mean distance to the k nearest samples of the predicted class; needs features and labels",
    params: &[K, METRIC, W_COS, SQUARED, CORRECT_ONLY, STORAGE, COMPRESS],
    make: Make { needs: Needs { features: true, head: false, labels: true }, fit, load },
};

const NAME: &str = "pc-knn";

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let chosen = Chosen::new(NAME, settings, bank)?;
    let index = chosen.index(settings, bank.seed)?;
    let metric = Metric::chosen(settings, index.cols());
    Ok(Box::new(Neighbours { index, metric, k: settings.whole("k"), among: Among::Predicted }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let metric = |cols| Metric::chosen(settings, cols);
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
        // Class 1: 3 and sqrt(73). Class 2 has none: the mean is (3, 2.5), the farthest
        // sample (6, 8) at sqrt(9 + 30.25) from it, the query at 2.5.
        let unseen = 2.5 + 39.25f64.sqrt();
        near(&Part::new("pc-knn").number("k", 1.0), [3.0, unseen]);
        near(&Part::new("pc-knn"), [f64::midpoint(3.0, 73f64.sqrt()), unseen]);
        near(&squared(Part::new("pc-knn")), [f64::midpoint(9.0, 73.0), unseen * unseen]);
        near(&Part::new("pc-knn").word("metric", "cosine"), [f64::midpoint(0.0, 0.4), 2.0]);
        // Without (6, 8) the mean is (2, 2/3), the farthest sample (6, 0).
        let (away, radius) = ((1.0f64 + 4.0 / 9.0).sqrt(), (16.0f64 + 4.0 / 9.0).sqrt());
        near(&correct(Part::new("pc-knn")), [3.0, away + radius]);
    }
}
