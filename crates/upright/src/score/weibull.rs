//! The two-parameter Weibull distribution of a tail of distances, shifted so
//! that the smallest of the tail lies at 10000.

/// Where the smallest distance of the tail comes to lie.
const SHIFT: f64 = 10_000.0;
/// Largest shape; reached by a tail without spread.
const STEEPEST: f64 = 1e9;

/// `CDF(d) = 1 - exp(-(t / scale)^shape)`, `t = d - least + 10000`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weibull {
    least: f64,
    shape: f64,
    scale: f64,
}

impl Weibull {
    /// Maximum likelihood on a tail of at least one distance, in any order.
    ///
    /// With `y = log(t / t_max)` the shape solves
    /// `sum y e^(shape y) / sum e^(shape y) - mean y = 1 / shape`, whose left
    /// side grows and right side falls, so bisection finds it.
    pub(super) fn fit(tail: &[f64]) -> Weibull {
        let least = tail.iter().copied().fold(f64::INFINITY, f64::min);
        let most = tail.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let top = most - least + SHIFT;
        let y: Vec<f64> = tail.iter().map(|d| libm::log1p((d - most) / top)).collect();
        let count = y.len() as f64;
        let mean = y.iter().sum::<f64>() / count;
        let excess = |shape: f64| {
            let (mut sum, mut weighted) = (0.0, 0.0);
            for &y in &y {
                let e = libm::exp(shape * y);
                sum += e;
                weighted += e * y;
            }
            weighted / sum - mean - 1.0 / shape
        };
        let (mut low, mut high) = (libm::log(1e-6), libm::log(STEEPEST));
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if excess(libm::exp(middle)) < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let shape = libm::exp(high);
        let power = y.iter().map(|&y| libm::exp(shape * y)).sum::<f64>() / count;
        Weibull { least, shape, scale: top * libm::exp(libm::log(power) / shape) }
    }

    /// `t`, and `(t / scale)^shape`; zeros at and below the origin.
    fn power(&self, distance: f64) -> (f64, f64) {
        let t = distance - self.least + SHIFT;
        if t <= 0.0 {
            return (0.0, 0.0);
        }
        (t, libm::exp(self.shape * libm::log1p((t - self.scale) / self.scale)))
    }

    /// Share of the tail that lies nearer.
    pub(super) fn cdf(&self, distance: f64) -> f64 {
        -libm::expm1(-self.power(distance).1)
    }

    /// Its derivative.
    pub(super) fn density(&self, distance: f64) -> f64 {
        let (t, u) = self.power(distance);
        let fade = libm::exp(-u);
        if fade > 0.0 && t > 0.0 { fade * u * self.shape / t } else { 0.0 }
    }

    /// What to store.
    pub(super) fn numbers(&self) -> [f64; 3] {
        [self.least, self.shape, self.scale]
    }

    /// What was stored: three numbers; missing ones are zero.
    pub(super) fn from_numbers(n: &[f64]) -> Weibull {
        let at = |i: usize| n.get(i).copied().unwrap_or(0.0);
        Weibull { least: at(0), shape: at(1), scale: at(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log-likelihood of `t` with the tail's shift.
    fn likelihood(w: &Weibull, tail: &[f64]) -> f64 {
        tail.iter().map(|&d| w.density(d).ln()).sum()
    }

    #[test]
    fn the_fit_is_a_maximum_of_the_likelihood() {
        let tail = [1.0, 1.5, 1.7, 2.5, 3.0, 3.1, 4.5];
        let best = Weibull::fit(&tail);
        let top = likelihood(&best, &tail);
        for (a, b) in [(1.001, 1.0), (0.999, 1.0), (1.0, 1.000_001), (1.0, 0.999_999)] {
            let other = Weibull { shape: best.shape * a, scale: best.scale * b, ..best };
            assert!(likelihood(&other, &tail) < top, "{a} {b}");
        }
    }

    #[test]
    fn a_tail_without_spread_is_a_step() {
        let w = Weibull::fit(&[2.0, 2.0]);
        assert!(w.cdf(1.9) < 1e-6 && w.cdf(2.1) > 1.0 - 1e-6);
        assert!((w.cdf(2.0) - (1.0 - (-1f64).exp())).abs() < 1e-3);
        assert!(w.cdf(-1e9).abs() < 1e-12 && (w.cdf(1e9) - 1.0).abs() < 1e-12);
        assert!(w.density(1e9).is_finite() && w.density(-1e9).is_finite());
    }
}
