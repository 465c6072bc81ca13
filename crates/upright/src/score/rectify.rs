//! The head behind scores that change the features before it: logits
//! `z = W f + b` of changed features, and `energy` or `entropy` of them.

use crate::config::{Param, Settings};
use crate::error::{Error, Result};
use crate::linalg::{matmul, matmul_t};
use crate::outputs::Head;
use crate::score::inputs::rows_of;
use crate::score::softmax::{entropy, entropy_gradient, log_sum_exp, softmax};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// The parameter that chooses what is taken of the new logits.
pub(super) const BASE: Param =
    Param::word("base", &["energy", "entropy"], "what is taken of the new logits");

/// What is taken of the logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// Minus their log-sum-exp.
    Energy,
    /// The entropy of their softmax.
    Entropy,
}

impl Base {
    /// Reads a word of [`BASE`].
    pub(super) fn named(word: &str) -> Base {
        if word == "entropy" { Base::Entropy } else { Base::Energy }
    }

    /// Its value; lower = more familiar.
    pub(super) fn of(self, z: &[f32]) -> f64 {
        match self {
            Base::Energy => -log_sum_exp(z, 1.0),
            Base::Entropy => entropy(z, 1.0),
        }
    }

    /// Its derivative with respect to the logits.
    pub(super) fn gradient(self, z: &[f32]) -> Vec<f64> {
        match self {
            Base::Energy => softmax(z, 1.0).iter().map(|p| -p).collect(),
            Base::Entropy => entropy_gradient(z, 1.0),
        }
    }
}

/// Head and base.
#[derive(Debug)]
pub(super) struct Behind {
    weight: Matrix,
    bias: Vec<f32>,
    base: Base,
}

impl Behind {
    /// Joins a head, already masked or not, with what is taken of its logits.
    pub(super) fn new(weight: Matrix, bias: Vec<f32>, base: Base) -> Behind {
        Behind { weight, bias, base }
    }

    /// The head as it is, with the base of the settings.
    pub(super) fn of(head: &Head, settings: &Settings) -> Behind {
        Behind::new(head.weight.clone(), head.bias.clone(), Base::named(settings.word("base")))
    }

    /// Features expected.
    pub(super) fn width(&self) -> usize {
        self.weight.cols()
    }

    fn logits(&self, features: &Matrix) -> Matrix {
        logits(features, &self.weight, &self.bias)
    }

    /// One energy per row of changed features.
    pub(super) fn energy(&self, features: &Matrix) -> Vec<f32> {
        self.logits(features).iter().map(|z| self.base.of(z) as f32).collect()
    }

    /// Derivative of each row's energy with respect to the changed features.
    pub(super) fn pullback(&self, features: &Matrix) -> Matrix {
        let d = rows_of(&self.logits(features), |z| self.base.gradient(z));
        matmul(&d, &self.weight)
    }

    /// The state with the head in it.
    pub(super) fn store(&self, state: State) -> State {
        state.matrix("weight", &self.weight).f32("bias", &self.bias)
    }

    /// The head that [`Behind::store`] stored.
    pub(super) fn load(settings: &Settings, state: &State) -> Result<Behind> {
        let head = stored_head(state)?;
        Ok(Behind::new(head.weight, head.bias, Base::named(settings.word("base"))))
    }
}

/// `W f + b` for each row.
pub(super) fn logits(features: &Matrix, weight: &Matrix, bias: &[f32]) -> Matrix {
    let mut z = matmul_t(features, weight);
    for i in 0..z.rows() {
        for (z, b) in z.row_mut(i).iter_mut().zip(bias) {
            *z += b;
        }
    }
    z
}

/// Reads `weight` and `bias`.
pub(super) fn stored_head(state: &State) -> Result<Head> {
    Head::new(state.read_matrix("weight")?, state.read_f32("bias")?)
        .map_err(|e: Error| damaged(e.to_string()))
}

/// The `q`-quantile with linear interpolation between neighbours. NaN for no values.
pub(super) fn quantile(values: &mut [f32], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let place = q * (values.len() - 1) as f64;
    let below = (place.floor() as usize).min(values.len() - 1);
    let (_, &mut low, above) = values.select_nth_unstable_by(below, f32::total_cmp);
    let high = above.iter().copied().min_by(f32::total_cmp).unwrap_or(low);
    let (low, high) = (f64::from(low), f64::from(high));
    low + (place - below as f64) * (high - low)
}

/// The same of numbers that stay where they are: two passes over them and 512 kB of
/// counts, however many there are.
pub(super) fn quantile_in_place(values: &[f32], q: f64) -> f64 {
    let at = q * values.len().saturating_sub(1) as f64;
    let below = f64::from(nth(values, at.floor() as usize));
    let above = f64::from(nth(values, at.ceil() as usize));
    below + (above - below) * at.fract()
}

/// The number of a rank, 0 being the smallest, in the order of `total_cmp`: by counting the
/// upper halves of their keys, then the lower halves of those that share the right one.
fn nth(values: &[f32], rank: usize) -> f32 {
    let key = |v: &f32| {
        let bits = v.to_bits();
        if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
    };
    let find = |counts: &[usize], mut rank: usize| {
        for (half, &count) in counts.iter().enumerate() {
            if rank < count {
                return (half as u32, rank);
            }
            rank -= count;
        }
        (counts.len() as u32 - 1, 0)
    };
    let mut counts = vec![0; 1 << 16];
    for v in values {
        counts[(key(v) >> 16) as usize] += 1;
    }
    let (upper, rank) = find(&counts, rank);
    counts.fill(0);
    for key in values.iter().map(key).filter(|k| k >> 16 == upper) {
        counts[(key & 0xffff) as usize] += 1;
    }
    let (lower, _) = find(&counts, rank);
    let key = upper << 16 | lower;
    f32::from_bits(if key >> 31 == 1 { key & !(1 << 31) } else { !key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_a_quantile_agree() {
        let values: Vec<f32> = (0..501).map(|i| ((i * 7919) % 977) as f32 / 31.0 - 9.0).collect();
        for q in [0.0, 0.1, 0.5, 0.9, 0.987, 1.0] {
            let (a, b) = (quantile(&mut values.clone(), q), quantile_in_place(&values, q));
            assert!((a - b).abs() < 1e-9, "{q}: {a} {b}");
        }
    }

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        let mut v = [4.0, 1.0, 3.0, 2.0];
        for (q, want) in [(0.0, 1.0), (0.5, 2.5), (0.9, 3.7), (1.0, 4.0)] {
            assert!((quantile(&mut v, q) - want).abs() < 1e-9, "{q}");
        }
        assert!((quantile(&mut [7.0], 0.3) - 7.0).abs() < 1e-9);
    }
}
