//! The few statistics that reports need.

use std::f64::consts::LN_2;

use serde::{Deserialize, Serialize};

/// The normal deviate of 95 % intervals.
const Z: f64 = 1.959_963_984_540_054;

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
        let (low, high) = self.wilson(Z);
        (100.0 * low, 100.0 * high)
    }

    /// The share, 0..1, with about one standard error on top: the upper end of the Wilson
    /// interval at z = 1, which leaves room even where nothing was hit.
    pub(crate) fn cautious(&self) -> f64 {
        self.wilson(1.0).1
    }

    fn wilson(&self, z: f64) -> (f64, f64) {
        wilson(self.hits as f64, self.of as f64, z)
    }
}

/// The 95 % interval in percent of the mean of several shares, all of them of the same trials: that
/// of one share of as many trials; [`Share::interval`] where there is one.
#[doc(hidden)]
pub fn mean_interval(shares: &[Share]) -> (f64, f64) {
    let mean = |number: fn(&Share) -> usize| {
        shares.iter().map(|s| number(s) as f64).sum::<f64>() / shares.len().max(1) as f64
    };
    let (low, high) = wilson(mean(|s| s.hits), mean(|s| s.of), Z);
    (100.0 * low, 100.0 * high)
}

fn wilson(hits: f64, of: f64, z: f64) -> (f64, f64) {
    if of <= 0.0 {
        return (0.0, 1.0);
    }
    let p = hits / of;
    let shrink = 1.0 + z * z / of;
    let centre = (p + z * z / (2.0 * of)) / shrink;
    let half = z / shrink * (p * (1.0 - p) / of + z * z / (4.0 * of * of)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} %", self.percent())
    }
}

/// A number rounded to so many decimals, for print: what rounds to nought has no sign.
#[must_use]
pub fn rounded(v: f64, decimals: i32) -> f64 {
    let unit = 10f64.powi(decimals);
    let round = (v * unit).round() / unit;
    // Large numbers overflow; minus nought plus nought is nought.
    if round.is_finite() { round + 0.0 } else { v }
}

/// What became of the same inputs before and after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Paired {
    /// From wrong to right.
    pub mended: usize,
    /// From right to wrong.
    pub broken: usize,
    /// Inputs in all.
    pub of: usize,
}

impl Paired {
    /// Points gained.
    #[doc(hidden)]
    pub fn gain(&self) -> f64 {
        100.0 * (self.mended as f64 - self.broken as f64) / self.of.max(1) as f64
    }

    /// The interval of the gain at 95 %, in points: Wald's after half an input was added to
    /// each of the four outcomes (Agresti and Min 2005).
    #[doc(hidden)]
    pub fn interval(&self) -> (f64, f64) {
        let n = self.of as f64 + 2.0;
        let net = self.mended as f64 - self.broken as f64;
        let flips = (self.mended + self.broken + 1) as f64;
        let half = Z * (flips - net * net / n).max(0.0).sqrt();
        (100.0 * ((net - half) / n).max(-1.0), 100.0 * ((net + half) / n).min(1.0))
    }

    /// Whether more are mended than broken beyond chance: the exact sign test at 2.5 %.
    #[doc(hidden)]
    pub fn helps(&self) -> bool {
        let (flips, mended) = (self.mended + self.broken, self.mended);
        // P(at least `mended` of `flips` by tossing coins).
        let log = |k: usize| libm::lgamma(k as f64 + 1.0);
        let one = |k: usize| libm::exp(log(flips) - log(k) - log(flips - k) - flips as f64 * LN_2);
        flips > 0 && (mended..=flips).map(one).sum::<f64>() <= 0.025
    }

    /// About how many inputs would show such a gain, or else, that there is less than `least`
    /// points.
    #[doc(hidden)]
    pub fn needed(&self, least: f64) -> usize {
        let n = self.of.max(1) as f64;
        let (gain, flips) = (self.gain() / 100.0, (self.mended + self.broken).max(1) as f64 / n);
        let least = least / 100.0;
        let wanted = if gain > 0.0 {
            // A true gain of this size is seen in four of five samples.
            (Z + 0.842).powi(2) * (flips - gain * gain) / (gain * gain)
        } else {
            Z * Z * flips / (least * least)
        };
        wanted.min(1e9).ceil() as usize
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

/// The logarithm of a sum of numbers whose logarithms are given; of none, minus infinity.
pub(crate) fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + libm::log(logs.map(|v| libm::exp(v - most)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounds_to_nought_has_no_sign() {
        let text = |v: f64| format!("{:+.1}", rounded(v, 1));
        assert_eq!(
            [-0.04, -0.0, 0.04, -0.06, 1e308].map(text)[..4],
            ["+0.0", "+0.0", "+0.0", "-0.1"]
        );
    }

    /// 8 of 10: centre (0.8 + 0.19207) / 1.38415 = 0.71675, half-width 0.22659.
    #[test]
    fn the_wilson_interval_of_eight_in_ten_is_49_to_94_percent() {
        let (low, high) = Share { hits: 8, of: 10 }.interval();
        assert!((low - 49.02).abs() < 0.01 && (high - 94.33).abs() < 0.01, "{low} {high}");
        assert_eq!(Share { hits: 0, of: 0 }.interval(), (0.0, 100.0));
    }

    /// 7 and 8 of 10 are 7.5 of 10: centre (0.75 + 0.19207) / 1.38415 = 0.68061, half-width
    /// 1.416 sqrt(0.01875 + 0.0096036) = 0.23844.
    #[test]
    fn the_interval_of_a_mean_is_that_of_one_share_of_as_many_trials() {
        let [a, b] = [7, 8].map(|hits| Share { hits, of: 10 });
        assert_eq!(mean_interval(&[b, b]), b.interval());
        let (low, high) = mean_interval(&[a, b]);
        assert!((low - 44.22).abs() < 0.01 && (high - 91.90).abs() < 0.01, "{low} {high}");
        assert_eq!(mean_interval(&[]), (0.0, 100.0));
    }

    /// With z = 1, none of 60 may be (1/120 + 1/120) / (1 + 1/60) = 1/61.
    #[test]
    fn a_cautious_share_of_nothing_is_small_but_not_nought() {
        assert!((Share { hits: 0, of: 60 }.cautious() - 1.0 / 61.0).abs() < 1e-12);
        assert!(Share { hits: 0, of: 6000 }.cautious() < 2e-4);
    }

    /// Pairs (u, t) of {1, 2} x {2, 3}: wins 1<2, 1<3, 2<3 and one tie: 3.5 of 4.
    #[test]
    fn auroc_counts_ties_half() {
        assert_eq!(auroc(&[1.0, 2.0], &[2.0, 3.0]), Some(0.875));
        assert_eq!(auroc(&[f32::NAN], &[1.0]), None);
    }

    /// Of 30 inputs one is mended: gain 1 / 32, half-width 1.96 sqrt(2 - 1 / 32) / 32. The sign
    /// test asks for 6 of 6: 2^-6 = 0.016, 2^-5 = 0.031; and 10 of 11: 12 / 2048 = 0.006.
    #[test]
    fn few_flips_prove_nothing() {
        let paired = |mended, broken| Paired { mended, broken, of: 30 };
        let (low, high) = paired(1, 0).interval();
        assert!((low + 5.468).abs() < 1e-2 && (high - 11.718).abs() < 1e-2, "{low} {high}");
        assert!(!paired(0, 0).helps() && !paired(1, 0).helps() && !paired(5, 0).helps());
        assert!(paired(6, 0).helps() && paired(10, 1).helps() && !paired(5, 5).helps());
        let needed = paired(1, 0).needed(2.0);
        assert!((200..300).contains(&needed), "{needed}");
    }
}
