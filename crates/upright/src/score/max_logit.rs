//! Largest logit: `E = -max_i z_i`.
//!
//! Hendrycks et al. 2022, "Scaling Out-of-Distribution Detection for
//! Real-World Settings". The limit of `energy` at temperature zero.

use crate::config::Settings;
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::on_logits;
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::{Matrix, argmax};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "max-logit",
    about: "minus the largest logit; needs nothing but logits",
    params: &[],
    make: Make { needs: |_| Needs::default(), fit, load },
};

#[derive(Debug)]
struct MaxLogit;

fn fit(settings: &Settings, _: &Bank) -> Result<Box<dyn Score>> {
    load(settings, &State::new())
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(_: &Settings, _: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(MaxLogit))
}

impl Score for MaxLogit {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        outputs.logits.iter().map(|z| z.get(argmax(z)).map_or(f32::NAN, |v| -v)).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let mut d = Matrix::zeros(outputs.len(), outputs.logits.cols());
        for (i, z) in outputs.logits.iter().enumerate() {
            if let Some(d) = d.row_mut(i).get_mut(argmax(z)) {
                *d = -1.0;
            }
        }
        on_logits(outputs, d)
    }

    fn state(&self) -> State {
        State::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_largest_logit_counts() {
        let z = Matrix::new(2, 3, vec![1.0, 5.0, 2.0, -4.0, -1.0, -2.0]).unwrap();
        let outputs = Outputs::new(z, vec![]).unwrap();
        assert_eq!(MaxLogit.energy(&outputs), [-5.0, 1.0]);
        let d = MaxLogit.pullback(&outputs).logits.unwrap();
        assert_eq!(d.data(), [0.0, -1.0, 0.0, 0.0, -1.0, 0.0]);
    }
}
