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
    make: Make {
        needs: |s| Needs {
            features: true,
            labels: true,
            samples: s.whole("k"),
            ..Needs::default()
        },
        fit,
        load,
    },
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
    use crate::config::Part;
    use crate::score::bank::worked::{correct, near, squared};

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
