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
    make: Make {
        needs: |s| Needs { features: true, samples: s.whole("k"), ..Needs::default() },
        fit,
        load,
    },
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
    use crate::config::Part;
    use crate::score::bank::worked::{correct, fitted, near, squared};

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

    /// From (3,0): (0,0) of class 0 and (6,0) of class 1 at 3, then (0,2) of class 0.
    #[test]
    fn neighbours_come_nearest_first_with_their_classes() {
        let (score, query) = fitted(&Part::new("knn"));
        let found = score.neighbours(&query).unwrap();
        let classes: Vec<u32> = found[0].iter().map(|n| n.class).collect();
        assert_eq!(classes, [0, 1, 0]);
        assert!((found[1][2].distance - 13f32.sqrt()).abs() < 1e-6);
    }
}
