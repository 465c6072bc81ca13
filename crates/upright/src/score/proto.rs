//! Distance to the nearest class mean of the remembered features.

use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::score::bank::{Among, CORRECT_ONLY, Chosen, METRIC, Metric, Neighbours, SQUARED, W_COS};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: NAME,
    about: "distance to the nearest class mean; needs features and labels",
    params: &[METRIC, W_COS, SQUARED, CORRECT_ONLY],
    make: Make { needs: |_| Needs { features: true, labels: true, ..Needs::default() }, fit, load },
};

const NAME: &str = "proto";

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let index = Chosen::new(NAME, settings, bank)?.means()?;
    let metric = Metric::chosen(settings, index.cols());
    Ok(Box::new(Neighbours { index, metric, k: 1, among: Among::All }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    Neighbours::load(state, |cols| Metric::chosen(settings, cols), 1, Among::All)
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::score::bank::worked::{correct, near, squared};

    #[test]
    fn energies_equal_those_worked_by_hand() {
        // Means: (0, 1) and (6, 4), or (6, 0) without the misclassified sample.
        near(&Part::new("proto"), [10f64.sqrt(); 2]);
        near(&squared(Part::new("proto")), [10.0; 2]);
        near(&correct(Part::new("proto")), [3.0; 2]);
        near(&Part::new("proto").word("metric", "cosine"), [1.0 - 6.0 / 52f64.sqrt(); 2]);
        let mix = 0.5 * 10f64.sqrt() / 2f64.sqrt() + 0.5;
        let other = 0.5 * 5.0 / 2f64.sqrt() + 0.5 * (1.0 - 6.0 / 52f64.sqrt());
        near(&Part::new("proto").word("metric", "mix"), [mix.min(other); 2]);
    }
}
