//! Mean of the k smallest mixed distances,
//! `(1 - w_cos) |f - b| / sqrt(D) + w_cos (1 - cos(f, b))`, to remembered features.

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
    about: "mean Euclidean-cosine distance to the k nearest samples; needs features",
    params: &[K, W_COS, SQUARED, CORRECT_ONLY, STORAGE, COMPRESS],
    make: Make {
        needs: |s| Needs { features: true, samples: s.whole("k"), ..Needs::default() },
        fit,
        load,
    },
};

const NAME: &str = "knn-mix";

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let chosen = Chosen::new(NAME, settings, bank)?;
    let index = chosen.index(settings, bank.seed)?;
    let metric = Metric::mix(settings, index.cols());
    Ok(Box::new(Neighbours { index, metric, k: settings.whole("k"), among: Among::All }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let metric = |cols| Metric::mix(settings, cols);
    Neighbours::load(state, metric, settings.whole("k"), Among::All)
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::score::bank::worked::{correct, near, squared};

    #[test]
    fn energies_equal_those_worked_by_hand() {
        // Euclid / sqrt(2): 3, 3, sqrt(13), sqrt(73) over sqrt(2); cosine: 1, 0, 1, 0.4.
        // w_cos = 0.5: the nearest are (6, 0), then (0, 0).
        let e = |d: f64| d / 2f64.sqrt();
        near(&Part::new("knn-mix").number("k", 1.0), [0.5 * e(3.0); 2]);
        near(
            &Part::new("knn-mix").number("k", 2.0).number("w_cos", 0.25),
            [f64::midpoint(0.75 * e(3.0), 0.75 * e(3.0) + 0.25); 2],
        );
        near(&squared(Part::new("knn-mix").number("k", 1.0)), [0.5 * 9.0 / 2f64.sqrt(); 2]);
        near(&correct(Part::new("knn-mix").number("k", 1.0)), [0.5 * e(3.0); 2]);
    }
}
