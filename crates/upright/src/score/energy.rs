//! Free energy of the logits: `E = -T log sum_i exp(z_i / T)`.
//!
//! Liu et al. 2020, "Energy-based Out-of-distribution Detection". A confident
//! prediction has large logits, hence a low energy.

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::Matrix;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "energy",
    about: "minus the log-sum-exp of the logits; needs nothing but logits",
    params: &[Param::real("temperature", 1.0, 1e-3, 1e3, "divides the logits")],
    make: Make { needs: Needs { features: false, head: false, labels: false }, fit, load },
};

#[derive(Debug)]
struct Energy {
    temperature: f64,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn fit(settings: &Settings, _: &Bank) -> Result<Box<dyn Score>> {
    Ok(Box::new(Energy { temperature: settings.real("temperature") }))
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
        let mut d = Matrix::zeros(outputs.len(), outputs.logits.cols());
        for (i, z) in outputs.logits.iter().enumerate() {
            for (d, p) in d.row_mut(i).iter_mut().zip(softmax(z, self.temperature)) {
                *d = -p as f32;
            }
        }
        Cotangents { logits: Some(d), features: vec![None; outputs.features.len()] }
    }

    fn state(&self) -> State {
        State::new()
    }
}

/// `T log sum exp(z / T)`, without overflow.
pub(super) fn log_sum_exp(z: &[f32], temperature: f64) -> f64 {
    let top = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let top = f64::from(top);
    let sum: f64 = z.iter().map(|&v| libm::exp((f64::from(v) - top) / temperature)).sum();
    top + temperature * libm::log(sum)
}

/// Softmax of `z / T`, without overflow.
pub(super) fn softmax(z: &[f32], temperature: f64) -> Vec<f64> {
    let lse = log_sum_exp(z, temperature);
    z.iter().map(|&v| libm::exp((f64::from(v) - lse) / temperature)).collect()
}
