//! Entropy of the predicted probabilities: `E = -sum_i p_i log p_i` in nats,
//! `p = softmax(z / T)`.
//!
//! A confident prediction has low entropy. Logarithms come from log-softmax,
//! so no epsilon is needed: a vanished probability counts nothing.

use crate::config::Settings;
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::by_row;
use crate::score::softmax::{TEMPERATURE, entropy, entropy_gradient};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "entropy",
    about: "entropy of the predicted probabilities; needs nothing but logits",
    params: &[TEMPERATURE],
    make: Make { needs: |_| Needs::default(), fit, load },
};

#[derive(Debug)]
struct Entropy {
    temperature: f64,
}

fn fit(settings: &Settings, _: &Bank) -> Result<Box<dyn Score>> {
    load(settings, &State::new())
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(settings: &Settings, _: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(Entropy { temperature: settings.real("temperature") }))
}

impl Score for Entropy {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        outputs.logits.iter().map(|z| entropy(z, self.temperature) as f32).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        by_row(outputs, |z| entropy_gradient(z, self.temperature))
    }

    fn state(&self) -> State {
        State::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Matrix;

    #[test]
    fn equal_logits_have_the_logarithm_of_their_number() {
        let z = Matrix::new(2, 4, vec![7.0, 7.0, 7.0, 7.0, 1e4, 0.0, 0.0, -1e4]).unwrap();
        let e = Entropy { temperature: 1.0 }.energy(&Outputs::new(z, vec![]).unwrap());
        assert!((e[0] - 4f32.ln()).abs() < 1e-6 && e[1].abs() < 1e-30);
    }
}
