//! Mean distance to the k nearest remembered features.
//!
//! Sun et al. 2022, "Out-of-Distribution Detection with Deep Nearest
//! Neighbors", there the k-th distance on normalised features; here the mean of
//! the k smallest distances, averaged over what exists if there are fewer.

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
    about: "mean distance to the k nearest samples; needs features",
    params: &[K, METRIC, W_COS, SQUARED, CORRECT_ONLY, STORAGE, COMPRESS],
    make: Make { needs: Needs { features: true, head: false, labels: false }, fit, load },
};

const NAME: &str = "knn";

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let chosen = Chosen::new(NAME, settings, bank)?;
    let index = chosen.index(settings, bank.seed)?;
    let metric = Metric::chosen(settings, index.cols());
    Ok(Box::new(Neighbours { index, metric, k: settings.whole("k"), among: Among::All }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let metric = |cols| Metric::chosen(settings, cols);
    Neighbours::load(state, metric, settings.whole("k"), Among::All)
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
        // Distances: 3, 3, sqrt(9 + 4), sqrt(9 + 64).
        let (c, d) = (13f64.sqrt(), 73f64.sqrt());
        near(&Part::new("knn").number("k", 2.0), [3.0; 2]);
        near(&Part::new("knn"), [(6.0 + c) / 3.0; 2]);
        near(&Part::new("knn").number("k", 9.0), [(6.0 + c + d) / 4.0; 2]);
        near(&correct(Part::new("knn").number("k", 9.0)), [(6.0 + c) / 3.0; 2]);
        near(&squared(Part::new("knn")), [(9.0 + 9.0 + 13.0) / 3.0; 2]);
        // 1 - cos: 1 (zero vector), 0, 1, 1 - 0.6.
        near(&Part::new("knn").word("metric", "cosine"), [(0.0 + 0.4 + 1.0) / 3.0; 2]);
    }
}
