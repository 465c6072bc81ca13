//! Maximum softmax probability: `E = -max_i p_i`, `p = softmax(z / T)`; in `-1..0`.
//!
//! Hendrycks and Gimpel 2017, "A Baseline for Detecting Misclassified and
//! Out-of-Distribution Examples". It saturates at -1 for confident inputs.

use crate::config::Settings;
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::by_row;
use crate::score::softmax::{TEMPERATURE, softmax};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::argmax;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "msp",
    about: "minus the largest predicted probability; needs nothing but logits",
    params: &[TEMPERATURE],
    make: Make { needs: |_| Needs::default(), fit, load },
};

#[derive(Debug)]
struct Msp {
    temperature: f64,
}

fn fit(settings: &Settings, _: &Bank) -> Result<Box<dyn Score>> {
    load(settings, &State::new())
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(settings: &Settings, _: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(Msp { temperature: settings.real("temperature") }))
}

impl Score for Msp {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        outputs.logits.iter().map(|z| -softmax(z, self.temperature)[argmax(z)] as f32).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        by_row(outputs, |z| {
            let top = argmax(z);
            let p = softmax(z, self.temperature);
            let others: f64 = p.iter().enumerate().filter(|&(k, _)| k != top).map(|(_, p)| p).sum();
            let scale = p[top] / self.temperature;
            (0..z.len()).map(|k| scale * if k == top { -others } else { p[k] }).collect()
        })
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
    fn odds_of_three_to_one_give_three_quarters() {
        let z = Matrix::new(1, 2, vec![0.0, 3f32.ln()]).unwrap();
        let e = Msp { temperature: 1.0 }.energy(&Outputs::new(z, vec![]).unwrap());
        assert!((e[0] + 0.75).abs() < 1e-6);
    }
}
