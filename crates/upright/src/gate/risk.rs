//! Risk control: a limit on what upright inputs may lose that holds for new
//! inputs, not only for those that a gate was fitted on.
//!
//! If a gate spoils a share `p` of all upright inputs, the number it spoils of
//! `n` calibration inputs is binomial. It may be used if a gate that spoils the
//! share `drop` would spoil so few with a probability of at most
//! `1 - confidence`. Thresholds are tried from `never` on until the first one
//! fails: the lower a threshold, the more it spoils, so all of them together
//! hold with the given confidence (fixed-sequence testing: Angelopoulos et al.,
//! "Learn then Test", 2021). What the search mends is not counted.

use crate::config::{Param, Settings};

/// What may be lost.
pub(super) const DROP: Param =
    Param::real("drop", 1.0, 0.0, 100.0, "points of upright accuracy that may be lost");
/// How surely.
pub(super) const CONFIDENCE: Param =
    Param::real("confidence", 0.9, 0.5, 0.9999, "how sure it is that no more is lost");

/// A limit on the share of upright inputs that are spoilt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limit {
    /// In points, 0..100.
    pub(super) drop: f64,
    /// 0..1.
    pub(super) confidence: f64,
}

impl Limit {
    pub(super) fn of(settings: &Settings) -> Self {
        Limit { drop: settings.real("drop"), confidence: settings.real("confidence") }
    }

    /// The most spoilt inputs among `n` that keep the limit; `None` if not even none is enough.
    pub(super) fn most(&self, n: usize) -> Option<usize> {
        (0..=n).take_while(|&k| self.kept(k, n)).last()
    }

    /// Whether `spoilt` of `n` inputs keep the limit.
    fn kept(&self, spoilt: usize, n: usize) -> bool {
        self.drop >= 100.0 || at_most(spoilt, n, self.drop / 100.0) <= 1.0 - self.confidence
    }

    /// The least limit, in points, that `n` inputs of which none is spoilt keep.
    pub(super) fn least(&self, n: usize) -> f64 {
        100.0 * (1.0 - libm::pow(1.0 - self.confidence, 1.0 / n.max(1) as f64))
    }

    /// About how many inputs would keep the limit if this share of them, 0..1, is spoilt;
    /// `None` if no number would.
    pub(super) fn samples(&self, share: f64) -> Option<usize> {
        let enough = |n: usize| self.kept((share * n as f64).ceil() as usize, n);
        let mut high = 16;
        while !enough(high) {
            high *= 2;
            if high > 1 << 20 {
                return None;
            }
        }
        let mut low = high / 2;
        while high - low > (high / 200).max(1) {
            let middle = usize::midpoint(low, high);
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// The probability of at most `k` successes in `n` trials of probability `p`.
fn at_most(k: usize, n: usize, p: f64) -> f64 {
    if k >= n || p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    let factorial = |m: usize| libm::lgamma(m as f64 + 1.0);
    let (yes, no) = (libm::log(p), libm::log1p(-p));
    (0..=k)
        .map(|i| {
            let ways = factorial(n) - factorial(i) - factorial(n - i);
            libm::exp(ways + i as f64 * yes + (n - i) as f64 * no)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `scipy.stats`, `binom.cdf(5, 2000, 0.005)` = 0.0666, with 6 0.1295;
    /// `binom.cdf(14, 2000, 0.01)` = 0.1037, with 13 0.0652.
    #[test]
    fn the_most_spoilt_inputs_are_those_of_the_binomial() {
        let limit = |drop| Limit { drop, confidence: 0.9 };
        assert!((at_most(5, 2000, 0.005) - 0.066_61).abs() < 1e-5);
        assert!((at_most(14, 2000, 0.01) - 0.103_70).abs() < 1e-5);
        assert_eq!(limit(0.5).most(2000), Some(5));
        assert_eq!(limit(1.0).most(2000), Some(13));
        // 0.99^229 = 0.1001 and 0.99^230 = 0.0991.
        assert_eq!((limit(1.0).most(229), limit(1.0).most(230)), (None, Some(0)));
        assert_eq!(limit(100.0).most(7), Some(7));
        assert_eq!(limit(0.0).most(10_000), None);
    }

    #[test]
    fn samples_that_lift_a_limit_keep_it() {
        let limit = Limit { drop: 1.0, confidence: 0.9 };
        let n = limit.samples(0.005).unwrap();
        assert!(limit.most(n).unwrap() as f64 >= 0.005 * n as f64, "{n}");
        assert!((limit.least(230) - 1.0).abs() < 0.01);
        assert_eq!(limit.samples(0.02), None);
    }
}
