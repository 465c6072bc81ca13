//! Simplified Hopfield energy: `E = -<f, m_c>`, `c` the predicted class, `m_c`
//! the mean feature of the bank's **correctly classified** samples of class
//! `c`; features of the first tap, not normalised.
//!
//! Zhang et al. 2023, "Out-of-Distribution Detection based on In-Distribution
//! Data Patterns Memorization with Modern Hopfield Energy". The energy of an
//! input predicted as a class without a correctly classified sample is
//! undefined: NaN.

use crate::config::Settings;
use crate::error::Result;
use crate::linalg::{dot, mean, single};
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::{chosen, features, nothing, on_features, tap, undefined};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::{Matrix, argmax};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "she",
    about: "minus the inner product with the predicted class's mean feature",
    params: &[],
    make: Make { needs: |_| Needs { features: true, labels: true, ..Needs::default() }, fit, load },
};

#[derive(Debug)]
struct She {
    /// One row per class; NaN without samples.
    patterns: Matrix,
}

fn fit(_: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let features = features(bank, KIND.name)?;
    let correct = chosen(bank, true, KIND.name)?;
    let mut patterns = Vec::new();
    for class in 0..bank.outputs.logits.cols() as u32 {
        let own = || correct.iter().filter(|&&i| bank.labels[i] == class);
        if own().next().is_some() {
            patterns.extend(mean(own().map(|&i| features.row(i)), features.cols()));
        } else {
            patterns.extend(std::iter::repeat_n(f64::NAN, features.cols()));
        }
    }
    let patterns = single(bank.outputs.logits.cols(), features.cols(), &patterns);
    Ok(Box::new(She { patterns }))
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(She { patterns: state.read_matrix("patterns")? }))
}

impl She {
    fn pattern(&self, z: &[f32]) -> Option<&[f32]> {
        let class = argmax(z);
        let pattern = (class < self.patterns.rows()).then(|| self.patterns.row(class))?;
        pattern.iter().all(|m| m.is_finite()).then_some(pattern)
    }
}

impl Score for She {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let Some(features) = tap(outputs, 0, self.patterns.cols()) else {
            return undefined(outputs);
        };
        let energy = |(f, z)| self.pattern(z).map_or(f32::NAN, |m| -dot(f, m) as f32);
        features.iter().zip(outputs.logits.iter()).map(energy).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        if tap(outputs, 0, self.patterns.cols()).is_none() {
            return nothing(outputs);
        }
        let mut d = Matrix::zeros(outputs.len(), self.patterns.cols());
        for (i, z) in outputs.logits.iter().enumerate() {
            for (d, m) in d.row_mut(i).iter_mut().zip(self.pattern(z).unwrap_or_default()) {
                *d = -m;
            }
        }
        on_features(outputs, d)
    }

    fn state(&self) -> State {
        State::new().matrix("patterns", &self.patterns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;

    #[test]
    fn a_misclassified_sample_leaves_no_mark() {
        let logits = Matrix::new(3, 2, vec![1.0, 0.0, 1.0, 0.0, 1.0, 0.0]).unwrap();
        let features = Matrix::new(3, 2, vec![1.0, 2.0, 3.0, 4.0, 100.0, 100.0]).unwrap();
        let outputs = Outputs::new(logits, vec![features]).unwrap();
        let bank = Bank::of(&outputs, &[0, 0, 1]);
        let score = fit(&Part::new("she").resolve(KIND.params).unwrap(), &bank).unwrap();
        // Pattern (2, 3).
        assert_eq!(score.energy(&outputs), [-8.0, -18.0, -500.0]);
        let mut other = outputs.select(&[0]);
        other.logits.row_mut(0)[1] = 2.0;
        assert!(score.energy(&other)[0].is_nan());
        assert_eq!(score.pullback(&other).features[0].as_ref().unwrap().data(), [0.0, 0.0]);
    }
}
