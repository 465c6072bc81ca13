//! Distances between two feature vectors, exactly and by their derivative.
//!
//! Euclidean `|q - b|`, cosine `1 - cos(q, b)`, and the mix
//! `(1 - w_cos) |q - b| / sqrt(D) + w_cos (1 - cos(q, b))`. With `squared` the
//! Euclidean part is `|q - b|^2`, over `sqrt(D)` in the mix; the cosine part is never
//! squared. The cosine distance to or from a zero vector is 1. Sums are taken
//! in `f64`, in a fixed order, directly from the differences, so that a vector
//! is at distance exactly 0 from itself.

use crate::config::{Param, Settings};

/// The choice of the distance.
pub(in crate::score) const METRIC: Param =
    Param::word("metric", &["euclidean", "cosine", "mix"], "the distance between features");

/// The weight of the cosine distance in the mix.
pub(in crate::score) const W_COS: Param =
    Param::real("w_cos", 0.5, 0.0, 1.0, "weight of the cosine distance in the mix");

/// Whether the Euclidean distance is squared.
pub(in crate::score) const SQUARED: Param =
    Param::flag("squared", false, "square the Euclidean distance");

/// A distance: a weighted sum of a Euclidean and a cosine part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::score) struct Metric {
    /// Weight of `|q - b|`, or of its square.
    pub(super) euclid: f64,
    /// Weight of `1 - cos(q, b)`.
    pub(super) cosine: f64,
    /// Whether the Euclidean part is squared.
    pub(super) squared: bool,
}

/// The sums every distance is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sums {
    /// `|q - b|^2`.
    pub(super) square: f64,
    /// `q . b`.
    pub(super) dot: f64,
    /// `|q|^2`.
    pub(super) query: f64,
    /// `|b|^2`.
    pub(super) row: f64,
}

const LANES: usize = 8;

impl Sums {
    pub(super) fn new(query: &[f32], row: &[f32]) -> Self {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || Sums::add_up(query, row),
        )
    }

    #[expect(clippy::inline_always, reason = "it takes the caller's instruction set only so")]
    #[inline(always)]
    fn add_up(query: &[f32], row: &[f32]) -> Self {
        let mut lanes = [[0.0f64; LANES]; 4];
        let (q, q_rest) = query.as_chunks::<LANES>();
        let (b, b_rest) = row.as_chunks::<LANES>();
        for (q, b) in q.iter().zip(b) {
            for l in 0..LANES {
                let (q, b) = (f64::from(q[l]), f64::from(b[l]));
                lanes[0][l] += (q - b) * (q - b);
                lanes[1][l] += q * b;
                lanes[2][l] += q * q;
                lanes[3][l] += b * b;
            }
        }
        for (l, (&q, &b)) in q_rest.iter().zip(b_rest).enumerate() {
            let (q, b) = (f64::from(q), f64::from(b));
            lanes[0][l] += (q - b) * (q - b);
            lanes[1][l] += q * b;
            lanes[2][l] += q * q;
            lanes[3][l] += b * b;
        }
        let [square, dot, query, row] = lanes.map(|l| l.iter().sum());
        Sums { square, dot, query, row }
    }

    /// `1 - cos`, in 0..2.
    pub(super) fn cosine(&self) -> f64 {
        let norms = (self.query * self.row).sqrt();
        if norms > 0.0 { 1.0 - (self.dot / norms).clamp(-1.0, 1.0) } else { 1.0 }
    }
}

/// `|q - b|^2`, with the rounding of [`Sums::new`].
#[expect(clippy::inline_always, reason = "it takes the caller's instruction set only so")]
#[inline(always)]
fn square(query: &[f32], row: &[f32]) -> f64 {
    let mut lanes = [0.0f64; LANES];
    let (q, q_rest) = query.as_chunks::<LANES>();
    let (b, b_rest) = row.as_chunks::<LANES>();
    for (q, b) in q.iter().zip(b) {
        for l in 0..LANES {
            let d = f64::from(q[l]) - f64::from(b[l]);
            lanes[l] += d * d;
        }
    }
    for (l, (&q, &b)) in lanes.iter_mut().zip(q_rest.iter().zip(b_rest)) {
        let d = f64::from(q) - f64::from(b);
        *l += d * d;
    }
    lanes.iter().sum()
}

impl Metric {
    /// What `metric`, `w_cos` and `squared` ask for, in `cols` dimensions.
    pub(in crate::score) fn chosen(settings: &Settings, cols: usize) -> Self {
        let squared = settings.flag("squared");
        match settings.word("metric") {
            "mix" => Metric::mix(settings, cols),
            _ => Metric { squared, ..Metric::plain(settings, cols) },
        }
    }

    /// What `metric` and `w_cos` ask for, never squared, in `cols` dimensions.
    pub(in crate::score) fn plain(settings: &Settings, cols: usize) -> Self {
        match settings.word("metric") {
            "cosine" => Metric { euclid: 0.0, cosine: 1.0, squared: false },
            "mix" => Metric::mixed(settings.real("w_cos"), false, cols),
            _ => Metric { euclid: 1.0, cosine: 0.0, squared: false },
        }
    }

    /// The mix that `w_cos` and `squared` ask for, in `cols` dimensions.
    pub(in crate::score) fn mix(settings: &Settings, cols: usize) -> Self {
        Metric::mixed(settings.real("w_cos"), settings.flag("squared"), cols)
    }

    fn mixed(w_cos: f64, squared: bool, cols: usize) -> Self {
        Metric { euclid: (1.0 - w_cos) / (cols as f64).sqrt(), cosine: w_cos, squared }
    }

    /// The sums this distance needs; the others are left at zero.
    pub(super) fn sums(&self, query: &[f32], row: &[f32]) -> Sums {
        if self.cosine > 0.0 {
            return Sums::new(query, row);
        }
        let square = pulp::Arch::new().dispatch(
            #[inline(always)]
            || square(query, row),
        );
        Sums { square, dot: 0.0, query: 0.0, row: 0.0 }
    }

    /// The distance two vectors with these sums have.
    pub(super) fn distance(&self, sums: &Sums) -> f64 {
        let euclid = if self.squared { sums.square } else { sums.square.sqrt() };
        let mut d = 0.0;
        if self.euclid > 0.0 {
            d += self.euclid * euclid;
        }
        if self.cosine > 0.0 {
            d += self.cosine * sums.cosine();
        }
        d
    }

    /// Adds `weight` times the distance's derivative with respect to the query.
    /// It is zero where the distance has a kink: at the row itself, and at zero.
    pub(in crate::score) fn add_slope(
        &self,
        query: &[f32],
        row: &[f32],
        weight: f64,
        slope: &mut [f64],
    ) {
        let sums = Sums::new(query, row);
        let root = sums.square.sqrt();
        let euclid = match (self.squared, root > 0.0) {
            (true, _) => 2.0 * self.euclid,
            (false, true) => self.euclid / root,
            (false, false) => 0.0,
        };
        let norms = (sums.query * sums.row).sqrt();
        let (along, back) = if norms > 0.0 {
            (self.cosine / norms, self.cosine * sums.dot / (norms * sums.query))
        } else {
            (0.0, 0.0)
        };
        for ((s, &q), &b) in slope.iter_mut().zip(query).zip(row) {
            let (q, b) = (f64::from(q), f64::from(b));
            *s += weight * (euclid * (q - b) - along * b + back * q);
        }
    }

    /// The largest distance that a vector within `reach` can have.
    pub(super) fn farthest(&self, reach: f64) -> f64 {
        let euclid = if self.squared { reach * reach } else { reach };
        self.euclid * euclid + self.cosine * 2.0
    }

    /// Derivative of [`Metric::farthest`] with respect to the reach.
    pub(super) fn farthest_slope(&self, reach: f64) -> f64 {
        self.euclid * if self.squared { 2.0 * reach } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(euclid: f64, cosine: f64, squared: bool) -> Metric {
        Metric { euclid, cosine, squared }
    }

    #[test]
    fn distances_equal_those_worked_by_hand() {
        // q = (3, 4), b = (0, 5): |q - b|^2 = 10, q.b = 20, |q| = |b| = 5, cos = 0.8.
        let sums = Sums::new(&[3.0, 4.0], &[0.0, 5.0]);
        assert_eq!(sums, Sums { square: 10.0, dot: 20.0, query: 25.0, row: 25.0 });
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-14, "{a} {b}");
        near(metric(1.0, 0.0, false).distance(&sums), 10f64.sqrt());
        near(metric(1.0, 0.0, true).distance(&sums), 10.0);
        near(metric(0.0, 1.0, true).distance(&sums), 0.2);
        // (1 - 0.25) sqrt(10) / sqrt(2) + 0.25 * 0.2, and (1 - 0.25) 10 / 2 + 0.25 * 0.2.
        near(metric(0.75 / 2f64.sqrt(), 0.25, false).distance(&sums), 0.75 * 5f64.sqrt() + 0.05);
        near(metric(0.75 / 2.0, 0.25, true).distance(&sums), 3.75 + 0.05);
    }

    #[test]
    fn squares_alone_equal_those_among_all_sums() {
        let v = |s: f32| (0..37).map(|i| (i as f32 * s).sin()).collect::<Vec<f32>>();
        let (all, alone) = (Sums::new(&v(0.3), &v(0.7)), square(&v(0.3), &v(0.7)));
        assert_eq!(all.square.to_bits(), alone.to_bits());
    }

    #[test]
    fn a_vector_is_at_distance_zero_from_itself() {
        let v: Vec<f32> = (0..37).map(|i| 1e3 + (i as f32).sin()).collect();
        let sums = Sums::new(&v, &v);
        for m in [metric(1.0, 0.0, false), metric(0.0, 1.0, false), metric(0.3, 0.5, true)] {
            assert!(m.distance(&sums).abs() < f64::MIN_POSITIVE, "{m:?}");
        }
    }

    #[test]
    fn the_cosine_distance_of_a_zero_vector_is_one() {
        for (q, b) in [([0.0, 0.0], [1.0, 2.0]), ([1.0, 2.0], [0.0, 0.0]), ([0.0; 2], [0.0; 2])] {
            assert!((Sums::new(&q, &b).cosine() - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn slopes_equal_finite_differences() {
        let (q, b) = ([0.5f32, -1.25, 2.0], [1.0f32, 0.25, -0.5]);
        for m in [
            metric(1.0, 0.0, false),
            metric(1.0, 0.0, true),
            metric(0.0, 1.0, false),
            metric(0.4, 0.6, false),
            metric(0.4, 0.6, true),
        ] {
            let mut slope = [0.0; 3];
            m.add_slope(&q, &b, 2.0, &mut slope);
            for i in 0..3 {
                let at = |h: f32| {
                    let mut q = q;
                    q[i] += h;
                    m.distance(&Sums::new(&q, &b))
                };
                let step = 2f32.powi(-10);
                let want = 2.0 * (at(step) - at(-step)) / (2.0 * f64::from(step));
                assert!((slope[i] - want).abs() < 1e-5, "{m:?} {i}: {} {want}", slope[i]);
            }
        }
    }

    #[test]
    fn slopes_at_kinks_are_zero() {
        let mut slope = [0.0; 2];
        metric(1.0, 0.0, false).add_slope(&[1.0, 2.0], &[1.0, 2.0], 1.0, &mut slope);
        metric(0.0, 1.0, false).add_slope(&[0.0, 0.0], &[1.0, 2.0], 1.0, &mut slope);
        assert!(slope.iter().all(|s| s.abs() < f64::MIN_POSITIVE));
    }
}
