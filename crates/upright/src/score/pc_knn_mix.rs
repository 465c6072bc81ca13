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

const NAME: &str = "pc-knn-mix";

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    fitted(NAME, settings, bank)
}

/// As [`fit`], for a score of another name.
pub(super) fn fitted(
    name: &'static str,
    settings: &Settings,
    bank: &Bank,
) -> Result<Box<dyn Score>> {
    let chosen = Chosen::new(name, settings, bank)?;
    let index = chosen.index(settings, bank.seed)?;
    let metric = Metric::mix(settings, index.cols());
    Ok(Box::new(Neighbours { index, metric, k: settings.whole("k"), among: Among::Predicted }))
}

pub(super) fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let metric = |cols| Metric::mix(settings, cols);
    Neighbours::load(state, metric, settings.whole("k"), Among::Predicted)
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::score::bank::worked::{correct, near, squared};

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
