//! Activation shaping: of the `n` features of the first tap only the
//! `k = n - round(n * quantile)` largest stay (at least one; halves round to
//! even), in one of three `mode`s, before they pass the head; then `energy` or
//! `entropy` of the new logits. Nothing is learnt from the bank.
//!
//! With `s` the sum of all features and `t` the sum of those kept:
//! - `p`: kept as they are.
//! - `b`: each kept one becomes `s / k`.
//! - `s`: each kept one is multiplied by `exp(s / t)`.
//!
//! Non-negative features have `1 <= s/t <= n/k`. With features of either sign
//! the ratio can take any size and means nothing where `t <= 0`: it is held in
//! `-40 ..= 40`, and is 1 where `t <= 0`. Equal features are kept by index.
//! Djurisic et al. 2023, "Extremely Simple Activation Shaping for
//! Out-of-Distribution Detection".

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::{head, nothing, on_features, tap, undefined};
use crate::score::rectify::{BASE, Behind};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::Matrix;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "ash",
    about: "energy of the logits after only the largest features are kept and rescaled",
    params: &[
        Param::word("mode", &["s", "b", "p"], "s scales the kept features, b levels, p prunes"),
        Param::real("quantile", 0.65, 0.0, 1.0, "share of an input's features removed"),
        BASE,
    ],
    make: Make { needs: |_| Needs { features: true, head: true, ..Needs::default() }, fit, load },
};

/// Largest exponent of mode `s`, either way: keeps energies finite in single precision.
const STEEPEST: f64 = 40.0;

#[derive(Debug, Clone, Copy)]
enum Mode {
    Prune,
    Level,
    Scale,
}

#[derive(Debug)]
struct Ash {
    mode: Mode,
    quantile: f64,
    behind: Behind,
}

fn make(settings: &Settings, behind: Behind) -> Box<dyn Score> {
    let mode = match settings.word("mode") {
        "p" => Mode::Prune,
        "b" => Mode::Level,
        _ => Mode::Scale,
    };
    Box::new(Ash { mode, quantile: settings.real("quantile"), behind })
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let (_, head) = head(bank, KIND.name)?;
    Ok(make(settings, Behind::of(head, settings)))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    Ok(make(settings, Behind::load(settings, state)?))
}

/// What one row's shaping depends on.
struct Shape {
    kept: Vec<usize>,
    kept_sum: f64,
    /// `s / t` within its bounds, and whether it is strictly inside them.
    ratio: f64,
    free: bool,
    sum: f64,
}

impl Ash {
    fn shape(&self, f: &[f32]) -> Shape {
        let n = f.len();
        let removed = libm::rint(n as f64 * self.quantile) as usize;
        let k = n.saturating_sub(removed).max(1).min(n);
        let mut kept: Vec<usize> = (0..n).collect();
        if k < n {
            let order = |a: &usize, b: &usize| f[*b].total_cmp(&f[*a]).then(a.cmp(b));
            kept.select_nth_unstable_by(k - 1, order);
            kept.truncate(k);
            kept.sort_unstable();
        }
        let sum: f64 = f.iter().map(|&v| f64::from(v)).sum();
        let kept_sum: f64 = kept.iter().map(|&i| f64::from(f[i])).sum();
        let raw = if kept_sum > 0.0 { sum / kept_sum } else { 1.0 };
        let ratio = raw.clamp(-STEEPEST, STEEPEST);
        let free = kept_sum > 0.0 && raw.abs() < STEEPEST;
        Shape { kept, kept_sum, ratio, free, sum }
    }

    fn shaped(&self, features: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(features.rows(), features.cols());
        for (i, f) in features.iter().enumerate() {
            let shape = self.shape(f);
            let scale = libm::exp(shape.ratio);
            let level = shape.sum / shape.kept.len().max(1) as f64;
            let out = out.row_mut(i);
            for &j in &shape.kept {
                out[j] = match self.mode {
                    Mode::Prune => f[j],
                    Mode::Level => level as f32,
                    Mode::Scale => (scale * f64::from(f[j])) as f32,
                };
            }
        }
        out
    }

    fn back(&self, f: &[f32], d: &mut [f32]) {
        let shape = self.shape(f);
        let mut out = vec![0.0; f.len()];
        match self.mode {
            Mode::Prune => shape.kept.iter().for_each(|&j| out[j] = f64::from(d[j])),
            Mode::Level => {
                let slope: f64 = shape.kept.iter().map(|&j| f64::from(d[j])).sum();
                out.fill(slope / shape.kept.len().max(1) as f64);
            }
            Mode::Scale => {
                let scale = libm::exp(shape.ratio);
                if shape.free {
                    let slope: f64 =
                        shape.kept.iter().map(|&j| f64::from(d[j]) * f64::from(f[j])).sum();
                    out.fill(scale * slope / shape.kept_sum);
                    for &j in &shape.kept {
                        out[j] -= scale * slope * shape.ratio / shape.kept_sum;
                    }
                }
                shape.kept.iter().for_each(|&j| out[j] += scale * f64::from(d[j]));
            }
        }
        d.iter_mut().zip(out).for_each(|(d, v)| *d = v as f32);
    }
}

impl Score for Ash {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let Some(features) = tap(outputs, 0, self.behind.width()) else {
            return undefined(outputs);
        };
        self.behind.energy(&self.shaped(features))
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let Some(features) = tap(outputs, 0, self.behind.width()) else {
            return nothing(outputs);
        };
        let mut d = self.behind.pullback(&self.shaped(features));
        for (i, f) in features.iter().enumerate() {
            self.back(f, d.row_mut(i));
        }
        on_features(outputs, d)
    }

    fn state(&self) -> State {
        self.behind.store(State::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::outputs::Head;

    fn energy(mode: &str, f: &[f32]) -> f32 {
        let head = Head::new(Matrix::new(1, 4, vec![1.0; 4]).unwrap(), vec![0.0]).unwrap();
        let features = Matrix::new(1, 4, f.to_vec()).unwrap();
        let outputs = Outputs::new(Matrix::zeros(1, 1), vec![features]).unwrap();
        let bank = Bank { head: Some(&head), ..Bank::of(&outputs, &[]) };
        let part = Part::new("ash").word("mode", mode).number("quantile", 0.5);
        fit(&part.resolve(KIND.params).unwrap(), &bank).unwrap().energy(&outputs)[0]
    }

    #[test]
    fn three_modes_are_worked_by_hand() {
        let f = [1.0, 4.0, 2.0, 3.0];
        assert!((energy("p", &f) + 7.0).abs() < 1e-6);
        assert!((energy("b", &f) + 10.0).abs() < 1e-6);
        assert!((energy("s", &f) + 7.0 * (10f32 / 7.0).exp()).abs() < 1e-4);
    }

    #[test]
    fn sums_that_vanish_or_turn_negative_stay_finite() {
        for f in
            [[0.0; 4], [-1.0, -2.0, -3.0, -4.0], [1e-30, 0.0, 0.0, -5.0], [1.0, -1.0, 0.0, 0.0]]
        {
            assert!(energy("s", &f).is_finite() && energy("b", &f).is_finite(), "{f:?}");
        }
    }
}
