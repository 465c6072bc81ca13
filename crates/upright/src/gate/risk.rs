//! Risk control: a limit on what upright inputs may lose that holds for new
//! inputs, not only for those that a gate was fitted on.
//!
//! A gate spoils some upright inputs and mends others; what is lost is the
//! difference. It may be used if one that loses the share `drop` would do so
//! well on `n` calibration inputs with a probability of at most
//! `1 - confidence`. Half of that probability is spent on each of two tests:
//! that few enough are spoilt, by the exact binomial, which is best where
//! nothing is mended; and that few more are spoilt than mended, by the
//! difference of two Poisson counts (Skellam), whose sum is bounded first
//! (Berger and Boos 1994). Levels are tried in an order that does not depend on
//! these inputs, from `never` on until the first one fails, so that all of them
//! together hold with the given confidence (fixed-sequence testing: Angelopoulos
//! et al., "Learn then Test", 2021).

use crate::config::{Param, Settings};

/// What may be lost.
pub(super) const DROP: Param = Param::auto(
    "drop",
    0.0,
    100.0,
    "points of upright accuracy that may be lost; auto is 1, or the least that can be promised",
);
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
    /// Whether it may be raised to what can be promised.
    pub(super) gives: bool,
}

impl Limit {
    /// Points that may be lost unless said otherwise, if that can be promised.
    pub(super) const USUAL: f64 = 1.0;

    pub(super) fn of(settings: &Settings) -> Self {
        let drop = settings.auto("drop");
        Limit {
            drop: drop.unwrap_or(Limit::USUAL),
            confidence: settings.real("confidence"),
            gives: drop.is_none(),
        }
    }

    /// Most points that a gate may seem to lose for a limit to give way to it.
    const SEEMING: f64 = 0.3;

    /// The limit that `n` inputs can promise of a gate that changes the share `changed` of them,
    /// 0..1, and seems to lose [`Limit::SEEMING`], if it gives way.
    pub(super) fn suited(self, n: usize, changed: f64) -> Self {
        if !self.gives {
            return self;
        }
        let least = (self.least(n) * 10.0).ceil() / 10.0;
        let flips = (0.5 * changed * n as f64).ceil() as usize;
        let lost = (Limit::SEEMING / 100.0 * n as f64) as usize;
        let tenths = (10.0 * self.drop.max(least)) as u32;
        let kept = (tenths..1000)
            .map(|tenths| Limit { drop: f64::from(tenths) / 10.0, ..self })
            .find(|limit| limit.kept(flips + lost, flips, n));
        kept.unwrap_or(Limit { drop: 100.0, ..self })
    }

    /// Whether a gate that spoils and mends so many of `n` inputs keeps the limit.
    pub(super) fn kept(&self, spoilt: usize, mended: usize, n: usize) -> bool {
        let allowed = (1.0 - self.confidence) / 2.0;
        let drop = self.drop / 100.0;
        drop >= 1.0
            || at_most(spoilt, n, drop) <= allowed
            || net_at_most(spoilt, mended, drop * n as f64, allowed) <= allowed
    }

    /// The least limit, in points, that `n` inputs of which none is spoilt keep.
    pub(super) fn least(&self, n: usize) -> f64 {
        let allowed = (1.0 - self.confidence) / 2.0;
        100.0 * (1.0 - libm::pow(allowed, 1.0 / n.max(1) as f64))
    }

    /// About how many inputs would keep the limit if these shares of them, 0..1, are spoilt and
    /// mended; `None` if no number would.
    pub(super) fn samples(&self, spoilt: f64, mended: f64) -> Option<usize> {
        let enough = |n: usize| {
            let (spoilt, mended) = (spoilt * n as f64, mended * n as f64);
            self.kept(spoilt.ceil() as usize, mended as usize, n)
        };
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

/// An upper bound on the probability that so few more inputs are spoilt than mended if `lost`
/// more are to be expected, whatever the number of both.
fn net_at_most(spoilt: usize, mended: usize, lost: f64, allowed: f64) -> f64 {
    if spoilt as f64 - mended as f64 >= lost {
        return 1.0;
    }
    let doubt = allowed / 10.0;
    // The most flips to be expected that still make so few likely enough.
    let flips = spoilt + mended;
    let (mut low, mut high) = (flips as f64, flips as f64 + 50.0 + 10.0 * (flips as f64).sqrt());
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        let likely = poisson(middle, flips).iter().sum::<f64>() > doubt;
        *(if likely { &mut low } else { &mut high }) = middle;
    }
    let most = high;
    if most < lost {
        return doubt;
    }
    let (up, down) = (f64::midpoint(most, lost), 0.5 * (most - lost));
    // P(S - M <= d) = sum over M of P(M) P(S <= M + d).
    let reach = (down + 12.0 * down.sqrt() + 30.0) as usize;
    let mut below = 0.0;
    let cumulative: Vec<f64> = poisson(up, reach + spoilt)
        .iter()
        .map(|p| {
            below += p;
            below
        })
        .collect();
    let by_mended = poisson(down, reach).into_iter().enumerate();
    let found: f64 = by_mended
        .filter_map(|(m, p)| {
            let s = (m + spoilt).checked_sub(mended)?;
            Some(p * cumulative.get(s).copied().unwrap_or(1.0))
        })
        .sum();
    found + doubt
}

/// Poisson probabilities of 0 to `most` events where `mean` are to be expected.
fn poisson(mean: f64, most: usize) -> Vec<f64> {
    if mean > 500.0 {
        // The recurrence would start from nothing.
        let one =
            |k: usize| libm::exp(k as f64 * libm::log(mean) - mean - libm::lgamma(k as f64 + 1.0));
        return (0..=most).map(one).collect();
    }
    let mut p = libm::exp(-mean);
    let mut next = |k: usize| {
        if k > 0 {
            p *= mean / k as f64;
        }
        p
    };
    (0..=most).map(&mut next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `scipy.stats`, `binom.cdf(5, 2000, 0.005)` = 0.0666, `binom.cdf(14, 2000, 0.01)` =
    /// 0.1037, with 12 0.0383 and with 13 0.0652.
    #[test]
    fn spoilt_inputs_are_tested_by_the_binomial() {
        let limit = |drop| Limit { drop, confidence: 0.9, gives: false };
        assert!((at_most(5, 2000, 0.005) - 0.066_61).abs() < 1e-5);
        assert!((at_most(14, 2000, 0.01) - 0.103_70).abs() < 1e-5);
        assert!(limit(1.0).kept(12, 0, 2000) && !limit(1.0).kept(13, 0, 2000));
        // 0.99^298 = 0.0500 and 0.99^299 = 0.0495.
        assert!(limit(1.0).kept(0, 0, 299) && !limit(1.0).kept(0, 0, 298));
        assert!(limit(100.0).kept(7, 0, 7) && !limit(0.0).kept(0, 0, 10_000));
    }

    /// By `scipy.stats`, `skellam.cdf(0, 60, 40)` = 0.0250.
    #[test]
    fn mended_inputs_count_against_spoilt_ones() {
        let up = poisson(60.0, 400);
        let down = poisson(40.0, 400);
        let direct: f64 = (0..400).map(|m| down[m] * up[..=m].iter().sum::<f64>()).sum();
        assert!((direct - 0.025_02).abs() < 1e-5, "{direct}");
        let limit = Limit { drop: 1.0, confidence: 0.9, gives: false };
        assert!(!limit.kept(30, 0, 2000), "a loss of 1.5 points");
        assert!(limit.kept(30, 32, 2000), "nothing is lost");
        assert!(!limit.kept(90, 88, 2000), "it may be chance");
        assert!(!limit.kept(30, 32, 300), "300 inputs cannot tell");
    }

    #[test]
    fn a_limit_that_gives_way_is_what_can_be_promised() {
        let limit = Limit { drop: 1.0, confidence: 0.9, gives: true };
        let few = limit.suited(96, 0.0);
        assert!((few.drop - 3.1).abs() < 1e-9, "{few:?}");
        assert!(few.kept(0, 0, 96) && !limit.kept(0, 0, 96));
        // One of 400 seems lost: 0.988^400 + 400 * 0.012 * 0.988^399 = 0.047, 0.065 at 1.1 points.
        // One of 500: 0.99^500 + 500 * 0.01 * 0.99^499 = 0.040.
        assert!((limit.suited(400, 0.0).drop - 1.2).abs() < 1e-9);
        assert_eq!(limit.suited(500, 0.0), limit);
        // 47 spoilt and 45 mended of 900: 0.2 points and 1.65 sqrt(92) / 900 are 2.0, and more as
        // the number of flips is a chance, too.
        let restless = limit.suited(900, 0.1);
        assert!((2.0..2.6).contains(&restless.drop), "{restless:?}");
        assert!(restless.kept(47, 45, 900) && !limit.kept(47, 45, 900));
        let calm = limit.suited(900, 0.01);
        assert!((1.0..1.6).contains(&calm.drop), "{calm:?}");
    }

    #[test]
    fn samples_that_lift_a_limit_keep_it() {
        let limit = Limit { drop: 1.0, confidence: 0.9, gives: false };
        let n = limit.samples(0.005, 0.0).unwrap();
        assert!(limit.kept((0.005 * n as f64).ceil() as usize, 0, n), "{n}");
        assert!((limit.least(299) - 1.0).abs() < 0.01);
        assert_eq!(limit.samples(0.02, 0.0), None);
        assert!(limit.samples(0.03, 0.03).unwrap() > 2000);
    }
}
