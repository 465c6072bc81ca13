//! Generalised entropy: `E = sum over the M largest p of p^gamma (1 - p)^gamma`.
//!
//! Liu, Lochman and Zach 2023, "GEN: Pushing the Limits of Softmax-Based
//! Out-of-Distribution Detection". The sum, not the mean; `top` = M is capped
//! by the number of classes. A confident prediction has every `p` near 0 or 1,
//! hence a low energy.
//!
//! `1 - p` is taken from the log-sum-exp of the other logits, so the score
//! keeps its digits where the softmax saturates.

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::by_row;
use crate::score::softmax::log_softmax;
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::argmax;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "gen",
    about: "generalised entropy of the largest probabilities; needs nothing but logits",
    params: &[
        Param::real("gamma", 0.1, 1e-3, 10.0, "power; small ones feel small probabilities"),
        Param::whole("top", 100, 1, 1_000_000, "how many of the largest probabilities count"),
    ],
    make: Make { needs: |_| Needs::default(), fit, load },
};

#[derive(Debug)]
struct Gen {
    gamma: f64,
    top: usize,
}

fn fit(settings: &Settings, _: &Bank) -> Result<Box<dyn Score>> {
    load(settings, &State::new())
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(settings: &Settings, _: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(Gen { gamma: settings.real("gamma"), top: settings.whole("top") }))
}

/// One row's probabilities in logarithms.
struct Logs {
    /// `log p`.
    p: Vec<f64>,
    /// The largest class and `log (1 - p)` of it.
    top: usize,
    rest: f64,
    /// The classes that count.
    counted: Vec<usize>,
}

impl Gen {
    fn logs(&self, z: &[f32]) -> Logs {
        let p = log_softmax(z, 1.0);
        let top = argmax(z);
        let others = || p.iter().enumerate().filter(|&(k, _)| k != top).map(|(_, &l)| l);
        let second = others().fold(f64::NEG_INFINITY, f64::max);
        let rest = if second.is_finite() {
            second + libm::log(others().map(|l| libm::exp(l - second)).sum())
        } else {
            f64::NEG_INFINITY
        };
        let mut counted: Vec<usize> = (0..z.len()).collect();
        if self.top < z.len() {
            counted.sort_by(|&a, &b| z[b].total_cmp(&z[a]).then(a.cmp(&b)));
            counted.truncate(self.top);
            counted.sort_unstable();
        }
        Logs { p, top, rest, counted }
    }

    fn term(&self, logs: &Logs, k: usize) -> f64 {
        let rest = if k == logs.top { logs.rest } else { libm::log1p(-libm::exp(logs.p[k])) };
        libm::exp(self.gamma * (logs.p[k] + rest))
    }
}

impl Score for Gen {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let energy = |z: &[f32]| {
            let logs = self.logs(z);
            logs.counted.iter().map(|&k| self.term(&logs, k)).sum::<f64>() as f32
        };
        outputs.logits.iter().map(energy).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        by_row(outputs, |z| {
            let logs = self.logs(z);
            let p: Vec<f64> = logs.p.iter().map(|&l| libm::exp(l)).collect();
            let mut d = vec![0.0; z.len()];
            let mut total = 0.0;
            for &k in &logs.counted {
                let term = self.gamma * self.term(&logs, k);
                if k == logs.top {
                    let rest = libm::exp(logs.rest);
                    for (j, d) in d.iter_mut().enumerate() {
                        *d += term
                            * if j == k {
                                rest - p[k]
                            } else {
                                p[k] * libm::exp((logs.p[j] - logs.rest).min(0.0)) - p[j]
                            };
                    }
                } else {
                    let slope = term * (1.0 - 2.0 * p[k]) / (1.0 - p[k]);
                    d[k] += slope;
                    total += slope;
                }
            }
            for (d, p) in d.iter_mut().zip(&p) {
                *d -= total * p;
            }
            d
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

    fn one(z: &[f32]) -> Outputs {
        Outputs::new(Matrix::new(1, z.len(), z.to_vec()).unwrap(), vec![]).unwrap()
    }

    #[test]
    fn three_quarters_and_one_quarter_are_worked_by_hand() {
        let outputs = one(&[3f32.ln(), 0.0]);
        let all = Gen { gamma: 0.5, top: 100 }.energy(&outputs)[0];
        assert!((all - 2.0 * (3f32 / 16.0).sqrt()).abs() < 1e-6);
        let top = Gen { gamma: 0.5, top: 1 }.energy(&outputs)[0];
        assert!((top - (3f32 / 16.0).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn a_saturated_softmax_keeps_its_digits() {
        // p = 1 / (1 + e^-60): (p (1-p))^0.1 = e^-6 for both classes.
        let e = Gen { gamma: 0.1, top: 100 }.energy(&one(&[60.0, 0.0]))[0];
        assert!((e / (2.0 * (-6f32).exp()) - 1.0).abs() < 1e-5);
        let gen_score = Gen { gamma: 0.1, top: 100 };
        for z in [&[1e4, 0.0, -1e4][..], &[5.0], &[-1e4, -1e4]] {
            assert!(gen_score.energy(&one(z))[0].is_finite());
            let d = gen_score.pullback(&one(z)).logits.unwrap();
            assert!(d.data().iter().all(|v| v.is_finite()), "{z:?}");
        }
    }
}
