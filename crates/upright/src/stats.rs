//! The few statistics that reports need.

use serde::{Deserialize, Serialize};

/// A count of successes out of some trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Share {
    /// Successes.
    pub hits: usize,
    /// Trials.
    pub of: usize,
}

impl Share {
    /// Counts how many are true.
    #[doc(hidden)]
    pub fn count(trials: impl IntoIterator<Item = bool>) -> Self {
        let mut share = Share::default();
        for hit in trials {
            share.of += 1;
            share.hits += usize::from(hit);
        }
        share
    }

    /// In percent; NaN of nothing.
    pub fn percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.of as f64
    }

    /// The Wilson score interval at 95 %, in percent.
    ///
    /// Centre `(p + z^2 / 2n) / (1 + z^2 / n)`, half-width
    /// `z / (1 + z^2 / n) sqrt(p (1 - p) / n + z^2 / 4 n^2)`, z = 1.96 (Wilson 1927).
    pub fn interval(&self) -> (f64, f64) {
        if self.of == 0 {
            return (0.0, 100.0);
        }
        let (n, z) = (self.of as f64, 1.959_963_984_540_054);
        let p = self.hits as f64 / n;
        let shrink = 1.0 + z * z / n;
        let centre = (p + z * z / (2.0 * n)) / shrink;
        let half = z / shrink * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        (100.0 * (centre - half).max(0.0), 100.0 * (centre + half).min(1.0))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} %", self.percent())
    }
}

/// How often a transformed input's energy exceeds an upright one's, ties
/// counting half: the area under the ROC curve. NaN energies are left out;
/// `None` if one side is empty.
pub fn auroc(upright: &[f32], transformed: &[f32]) -> Option<f64> {
    let mut all: Vec<(f32, bool)> = upright
        .iter()
        .map(|&e| (e, false))
        .chain(transformed.iter().map(|&e| (e, true)))
        .filter(|(e, _)| !e.is_nan())
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positives = all.iter().filter(|(_, t)| *t).count();
    let negatives = all.len() - positives;
    if positives == 0 || negatives == 0 {
        return None;
    }
    let (mut wins, mut below, mut i) = (0.0, 0usize, 0);
    while i < all.len() {
        let tied = all[i..].iter().take_while(|(e, _)| e.total_cmp(&all[i].0).is_eq()).count();
        let high = all[i..i + tied].iter().filter(|(_, t)| *t).count();
        wins += high as f64 * (below as f64 + (tied - high) as f64 / 2.0);
        below += tied - high;
        i += tied;
    }
    Some(wins / (positives as f64 * negatives as f64))
}

/// Log-softmax of `z / T`. The largest logit is subtracted first, so that
/// equal logits of any size keep equal shares.
pub(crate) fn log_softmax(z: &[f32], temperature: f64) -> Vec<f64> {
    let top = f64::from(z.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let mut logs: Vec<f64> = z.iter().map(|&v| (f64::from(v) - top) / temperature).collect();
    let sum = libm::log(logs.iter().map(|&l| libm::exp(l)).sum());
    for l in &mut logs {
        *l -= sum;
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 of 10: centre (0.8 + 0.19207) / 1.38415 = 0.71675, half-width 0.22659.
    #[test]
    fn the_wilson_interval_of_eight_in_ten_is_49_to_94_percent() {
        let (low, high) = Share { hits: 8, of: 10 }.interval();
        assert!((low - 49.02).abs() < 0.01 && (high - 94.33).abs() < 0.01, "{low} {high}");
        assert_eq!(Share { hits: 0, of: 0 }.interval(), (0.0, 100.0));
    }

    /// Pairs (u, t) of {1, 2} x {2, 3}: wins 1<2, 1<3, 2<3 and one tie: 3.5 of 4.
    #[test]
    fn auroc_counts_ties_half() {
        assert_eq!(auroc(&[1.0, 2.0], &[2.0, 3.0]), Some(0.875));
        assert_eq!(auroc(&[f32::NAN], &[1.0]), None);
    }
}
