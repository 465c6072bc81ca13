//! Rectified activations: features above a threshold are cut to it,
//! `f <- min(f, theta)`, before they pass the head; then `energy` or `entropy`
//! of the new logits.
//!
//! `theta` is the `quantile` of all activations of the first tap in the bank,
//! one number, with linear interpolation. Sun, Guo and Li 2021, "`ReAct`:
//! Out-of-distribution Detection With Rectified Activations".

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::{head, nothing, on_features, tap, undefined};
use crate::score::rectify::{BASE, Behind, quantile_in_place};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "react",
    about: "energy of the logits after large features are cut to a threshold",
    params: &[
        Param::real("quantile", 0.9, 0.0, 1.0, "share of the bank's activations left as they are"),
        BASE,
    ],
    make: Make { needs: |_| Needs { features: true, head: true, ..Needs::default() }, fit, load },
};

#[derive(Debug)]
struct React {
    theta: f32,
    behind: Behind,
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let (features, head) = head(bank, KIND.name)?;
    let theta = quantile_in_place(features.data(), settings.real("quantile")) as f32;
    Ok(Box::new(React { theta, behind: Behind::of(head, settings) }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let theta = state.read_f32("theta")?;
    let &[theta] = theta.as_slice() else {
        return Err(damaged("`theta` is not one number".into()));
    };
    Ok(Box::new(React { theta, behind: Behind::load(settings, state)? }))
}

impl React {
    fn cut(&self, features: &Matrix) -> Matrix {
        let mut cut = features.clone();
        // Not `min`: a NaN must stay one.
        cut.data_mut().iter_mut().filter(|v| **v > self.theta).for_each(|v| *v = self.theta);
        cut
    }
}

impl Score for React {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let Some(features) = tap(outputs, 0, self.behind.width()) else {
            return undefined(outputs);
        };
        self.behind.energy(&self.cut(features))
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let Some(features) = tap(outputs, 0, self.behind.width()) else {
            return nothing(outputs);
        };
        let mut d = self.behind.pullback(&self.cut(features));
        for (d, &f) in d.data_mut().iter_mut().zip(features.data()) {
            if f > self.theta {
                *d = 0.0;
            }
        }
        on_features(outputs, d)
    }

    fn state(&self) -> State {
        self.behind.store(State::new().f32("theta", &[self.theta]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::outputs::Head;

    #[test]
    fn a_large_feature_counts_as_the_threshold() {
        let features = Matrix::new(2, 2, vec![0.0, 1.0, 2.0, 4.0]).unwrap();
        let head = Head::new(Matrix::new(1, 2, vec![1.0, 10.0]).unwrap(), vec![0.5]).unwrap();
        let outputs = Outputs::new(Matrix::zeros(2, 1), vec![features]).unwrap();
        let bank = Bank { head: Some(&head), ..Bank::of(&outputs, &[]) };
        let settings = Part::new("react").number("quantile", 0.5).resolve(KIND.params).unwrap();
        let score = fit(&settings, &bank).unwrap();
        // theta = 1.5, the only logit is its own log-sum-exp.
        let e = score.energy(&outputs);
        assert!((e[0] + 10.5).abs() < 1e-6 && (e[1] + 17.0).abs() < 1e-6);
        let d = score.pullback(&outputs).features[0].clone().unwrap();
        assert_eq!(d.data(), [-1.0, -10.0, 0.0, 0.0]);
    }
}
