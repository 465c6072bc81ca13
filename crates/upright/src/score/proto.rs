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
    make: Make { needs: Needs { features: true, head: false, labels: true }, fit, load },
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
