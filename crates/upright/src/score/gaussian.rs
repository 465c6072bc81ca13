//! Gaussians around classes, for `mahalanobis` and `relative-mahalanobis`.
//!
//! A covariance is used by way of its whitening map `A` (`A^T A` is its
//! inverse), made of its eigenvectors: a query costs one product with `A` and
//! the distances to the whitened class means. Eigenvalues below
//! `D * eps^2` of the largest (`eps` of single precision, the rounding of the
//! features) count as zero and are left out, which is the pseudo-inverse of a
//! singular covariance.

use std::fmt;

use crate::error::Result;
use crate::linalg::{dot, eigen, matmul, matmul_t, mean, scatter, single, squared_distance};
use crate::score::inputs::{finite, lack};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// Turns features into coordinates in which the covariance is the identity.
#[derive(PartialEq)]
pub(super) struct Whitener {
    centre: Vec<f32>,
    /// `rank x D`.
    axes: Matrix,
}

impl fmt::Debug for Whitener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, rank) = (self.axes.cols(), self.axes.rows());
        f.debug_struct("Whitener")
            .field("width", &width)
            .field("rank", &rank)
            .finish_non_exhaustive()
    }
}

impl Whitener {
    /// The whitening map of a covariance (row-major) plus `ridge` times the
    /// identity; `None` if it has rank zero or is not finite.
    fn new(centre: &[f64], mut covariance: Vec<f64>, ridge: f64) -> Option<Whitener> {
        let width = centre.len();
        for i in 0..width {
            covariance[i * width + i] += ridge;
        }
        let e = eigen(&covariance, width)?;
        let noise = f64::from(f32::EPSILON) * f64::from(f32::EPSILON);
        let least = e.values.last().copied().unwrap_or(0.0) * width as f64 * noise;
        let first = e.values.iter().position(|&v| v > least && v > 0.0)?;
        let mut axes = e.vectors[first * width..].to_vec();
        for (axis, value) in axes.chunks_mut(width).zip(&e.values[first..]) {
            for v in axis {
                *v /= value.sqrt();
            }
        }
        Some(Whitener {
            centre: centre.iter().map(|&v| v as f32).collect(),
            axes: single(width - first, width, &axes),
        })
    }

    fn apply(&self, features: &Matrix) -> Matrix {
        let mut moved = features.clone();
        for i in 0..moved.rows() {
            moved.row_mut(i).iter_mut().zip(&self.centre).for_each(|(v, c)| *v -= c);
        }
        matmul_t(&moved, &self.axes)
    }

    fn store(&self, state: State, name: &str) -> State {
        state
            .f32(&format!("{name}.centre"), &self.centre)
            .matrix(&format!("{name}.axes"), &self.axes)
    }

    fn load(state: &State, name: &str) -> Result<Whitener> {
        let centre = state.read_f32(&format!("{name}.centre"))?;
        let axes = state.read_matrix(&format!("{name}.axes"))?;
        if axes.cols() != centre.len() {
            return Err(damaged(format!("`{name}.axes` and `{name}.centre` disagree")));
        }
        Ok(Whitener { centre, axes })
    }
}

/// The class Gaussians of one tap, with a shared covariance; and, for the
/// relative distance, the Gaussian of all samples.
#[derive(Debug, PartialEq)]
pub(super) struct Classes {
    within: Whitener,
    /// Whitened means of the classes that have samples.
    means: Matrix,
    global: Option<Whitener>,
}

impl Classes {
    /// Fits on labelled features. Classes without samples are skipped.
    pub(super) fn fit(
        features: &Matrix,
        labels: &[u32],
        classes: usize,
        ridge: f64,
        relative: bool,
        score: &str,
    ) -> Result<Classes> {
        finite(features, score, "features")?;
        let width = features.cols();
        let mut sums = vec![vec![0.0; width]; classes];
        let mut counts = vec![0_usize; classes];
        for (f, &l) in features.iter().zip(labels) {
            counts[l as usize] += 1;
            sums[l as usize].iter_mut().zip(f).for_each(|(s, &v)| *s += f64::from(v));
        }
        for (sum, &count) in sums.iter_mut().zip(&counts) {
            for s in sum {
                *s /= count.max(1) as f64;
            }
        }
        let centre = mean(features.iter(), width);
        let count = features.rows() as f64;
        let covariance = |mut scatter: Vec<f64>| {
            for v in &mut scatter {
                *v /= count;
            }
            scatter
        };
        let flat = |spread: &str| {
            lack(
                score,
                format!(
                    "features that vary {spread}: the covariance of {} samples has rank 0",
                    features.rows()
                ),
                "give more samples, choose another tap, or set `ridge`",
            )
        };
        let pooled = covariance(scatter(features, |i| &sums[labels[i] as usize]));
        let within =
            Whitener::new(&centre, pooled, ridge).ok_or_else(|| flat("within the classes"))?;
        let global = if relative {
            let total = covariance(scatter(features, |_| &centre));
            Some(Whitener::new(&centre, total, ridge).ok_or_else(|| flat("at all"))?)
        } else {
            None
        };
        let present: Vec<f64> = sums
            .iter()
            .zip(&counts)
            .filter(|(_, n)| **n > 0)
            .flat_map(|(s, _)| s.iter().copied())
            .collect();
        let means = within.apply(&single(present.len() / width, width, &present));
        Ok(Classes { within, means, global })
    }

    /// Features expected.
    pub(super) fn width(&self) -> usize {
        self.within.centre.len()
    }

    fn nearest(&self, x: &[f32]) -> (usize, f64) {
        let mut best = (0, f64::NAN);
        for (c, m) in self.means.iter().enumerate() {
            let d = squared_distance(x, m);
            if d < best.1 || best.1.is_nan() {
                best = (c, d);
            }
        }
        best
    }

    /// `min_c d_c^2`, less `d_0^2` if relative, for each row.
    pub(super) fn energy(&self, features: &Matrix) -> Vec<f64> {
        let mut energy: Vec<f64> =
            self.within.apply(features).iter().map(|x| self.nearest(x).1).collect();
        if let Some(global) = &self.global {
            for (e, x) in energy.iter_mut().zip(global.apply(features).iter()) {
                *e -= dot(x, x);
            }
        }
        energy
    }

    /// Derivative of each row's energy with respect to the features.
    pub(super) fn pullback(&self, features: &Matrix) -> Matrix {
        let mut x = self.within.apply(features);
        for i in 0..x.rows() {
            let nearest = self.nearest(x.row(i)).0;
            let mean = self.means.row(nearest);
            x.row_mut(i).iter_mut().zip(mean).for_each(|(x, m)| *x = 2.0 * (*x - m));
        }
        let mut d = matmul(&x, &self.within.axes);
        if let Some(global) = &self.global {
            let less = matmul(&global.apply(features), &global.axes);
            d.data_mut().iter_mut().zip(less.data()).for_each(|(d, l)| *d -= 2.0 * l);
        }
        d
    }

    /// The state with these Gaussians under a name.
    pub(super) fn store(&self, state: State, name: &str) -> State {
        let state = self.within.store(state, &format!("{name}.within"));
        let state = state.matrix(&format!("{name}.means"), &self.means);
        match &self.global {
            Some(global) => global.store(state, &format!("{name}.global")),
            None => state,
        }
    }

    /// The Gaussians that [`Classes::store`] stored.
    pub(super) fn load(state: &State, name: &str, relative: bool) -> Result<Classes> {
        let within = Whitener::load(state, &format!("{name}.within"))?;
        let means = state.read_matrix(&format!("{name}.means"))?;
        let global =
            relative.then(|| Whitener::load(state, &format!("{name}.global"))).transpose()?;
        let fits = |g: &Whitener| g.centre.len() == within.centre.len();
        if means.cols() != within.axes.rows() || means.rows() == 0 || !global.iter().all(fits) {
            return Err(damaged(format!("the Gaussians of `{name}` disagree")));
        }
        Ok(Classes { within, means, global })
    }
}
