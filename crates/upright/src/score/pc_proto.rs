//! Distance to the mean of the remembered features of the predicted class.
//!
//! For a class without samples see [`super::bank`]'s `Neighbours`.

use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::score::bank::{Among, CORRECT_ONLY, Chosen, METRIC, Metric, Neighbours, SQUARED, W_COS};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: NAME,
    about: "distance to the mean of the predicted class; needs features and labels",
    params: &[METRIC, W_COS, SQUARED, CORRECT_ONLY],
    make: Make { needs: |_| Needs { features: true, labels: true, ..Needs::default() }, fit, load },
};

const NAME: &str = "pc-proto";

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let index = Chosen::new(NAME, settings, bank)?.means()?;
    let metric = Metric::chosen(settings, index.cols());
    Ok(Box::new(Neighbours { index, metric, k: 1, among: Among::Predicted }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    Neighbours::load(state, |cols| Metric::chosen(settings, cols), 1, Among::Predicted)
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::score::bank::worked::{correct, near, squared};

    #[test]
    fn energies_equal_those_worked_by_hand() {
        // Means: (0, 1) and (6, 4); their own mean is (3, 2.5), each sqrt(9 + 2.25) from it.
        let unseen = 2.5 + 11.25f64.sqrt();
        near(&Part::new("pc-proto"), [5.0, unseen]);
        near(&squared(Part::new("pc-proto")), [25.0, unseen * unseen]);
        near(&correct(Part::new("pc-proto").word("metric", "cosine")), [0.0, 2.0]);
    }
}
