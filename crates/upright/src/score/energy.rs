//! Free energy of the logits: `E = -T log sum_i exp(z_i / T)`.
//!
//! Liu et al. 2020, "Energy-based Out-of-distribution Detection". A confident
//! prediction has large logits, hence a low energy.

use crate::config::Settings;
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::by_row;
use crate::score::softmax::{TEMPERATURE, log_sum_exp, softmax};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "energy",
    about: "minus the log-sum-exp of the logits; needs nothing but logits",
    params: &[TEMPERATURE],
    make: Make { needs: |_| Needs::default(), fit, load },
};

#[derive(Debug)]
struct Energy {
    temperature: f64,
}

fn fit(settings: &Settings, _: &Bank) -> Result<Box<dyn Score>> {
    load(settings, &State::new())
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(settings: &Settings, _: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(Energy { temperature: settings.real("temperature") }))
}

impl Score for Energy {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        outputs.logits.iter().map(|z| -log_sum_exp(z, self.temperature) as f32).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        by_row(outputs, |z| softmax(z, self.temperature).iter().map(|p| -p).collect())
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
    fn two_equal_logits_add_the_logarithm_of_two() {
        let z = Matrix::new(1, 2, vec![3.0, 3.0]).unwrap();
        let outputs = Outputs::new(z, vec![]).unwrap();
        for t in [0.5, 1.0, 2.0] {
            let e = Energy { temperature: t }.energy(&outputs)[0];
            assert!((f64::from(e) + 3.0 + t * 2f64.ln()).abs() < 1e-6);
        }
    }
}
