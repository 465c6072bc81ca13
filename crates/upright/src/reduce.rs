//! Features to vectors: what a tapped tensor of one input becomes before a
//! score sees it.
//!
//! `pool` is torch's `adaptive_avg_pool2d` to 3 x 3: bin `i` of `n` covers the
//! rows `floor(i H / n) .. ceil((i + 1) H / n)`. A projection is `y = P x` with
//! Gaussian rows of unit length, drawn from its seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::linalg::{matmul, matmul_t};
use crate::tensor::Matrix;

/// Largest projection: 1 GiB.
const LIMIT: u64 = 1 << 30;

/// Bins a side of the pooled map.
const BINS: usize = 3;

/// How a tapped tensor becomes a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Reduce {
    /// All numbers, in their order.
    #[default]
    None,
    /// The mean over positions (`[C,H,W]`) or tokens (`[T,C]`).
    Mean,
    /// Averages over 3 x 3 regions, then a random projection if more than `dim` numbers remain.
    Pool {
        /// Largest length.
        dim: usize,
        /// Seed of the projection.
        seed: u64,
    },
    /// Averages over the finest grid of regions, at most 5 x 5, that leaves at most `dim`
    /// numbers, then a random projection where even one region leaves more.
    Grid {
        /// Largest length.
        dim: usize,
        /// Seed of the projection.
        seed: u64,
    },
    /// All numbers, then a random projection if there are more than `dim`.
    Project {
        /// Largest length.
        dim: usize,
        /// Seed of the projection.
        seed: u64,
    },
}

/// A [`Reduce`] for tensors of one shape.
#[derive(Debug, Clone)]
pub struct Reduction {
    shape: Vec<usize>,
    pooling: Pooling,
    projection: Option<Matrix>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Pooling {
    None,
    /// Mean over the last dimension of `[outer, inner]`.
    Last {
        outer: usize,
        inner: usize,
    },
    /// Mean over the first dimension of `[tokens, width]`.
    First {
        tokens: usize,
        width: usize,
    },
    /// Regional means of `[channels, height, width]`.
    Regions {
        channels: usize,
        height: usize,
        width: usize,
        bins: [usize; 2],
    },
}

impl Reduce {
    /// The usual length of projected vectors.
    #[doc(hidden)]
    pub const DIM: usize = 1024;

    /// Prepares the reduction of tensors whose shape, without the batch, is given.
    ///
    /// A shape of three dimensions is `[C,H,W]`, of two `[T,C]` (tokens first, as in a
    /// transformer), of one a plain vector, which `Mean` and `Pool` keep.
    pub(crate) fn fit(self, shape: &[usize]) -> Result<Reduction> {
        let size = shape.iter().try_fold(1usize, |a, d| a.checked_mul(*d));
        let Some(size) = size.filter(|s| *s > 0) else {
            return Err(Error::shape("tapped tensor", "at least one number", shape));
        };
        let pooling = match (self, shape) {
            (Reduce::Mean, &[channels, _, _, ..]) => {
                Pooling::Last { outer: channels, inner: size / channels }
            }
            (Reduce::Pool { .. }, &[_, BINS, BINS]) => Pooling::None,
            (Reduce::Pool { .. }, &[channels, height, width]) => {
                Pooling::Regions { channels, height, width, bins: [BINS; 2] }
            }
            (Reduce::Grid { dim, .. }, &[channels, height, width]) => {
                let bins = [height, width].map(|side| finest(dim / channels).min(side));
                Pooling::Regions { channels, height, width, bins }
            }
            (Reduce::Mean | Reduce::Pool { .. } | Reduce::Grid { .. }, &[tokens, width]) => {
                Pooling::First { tokens, width }
            }
            _ => Pooling::None,
        };
        let pooled = pooling.len(size);
        let projection = match self {
            Reduce::Pool { dim, seed }
            | Reduce::Grid { dim, seed }
            | Reduce::Project { dim, seed }
                if pooled > dim =>
            {
                Some(gaussian(dim, pooled, seed)?)
            }
            _ => None,
        };
        Ok(Reduction { shape: shape.to_vec(), pooling, projection })
    }
}

impl std::fmt::Display for Reduce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reduce::None => write!(f, "none"),
            Reduce::Mean => write!(f, "mean"),
            Reduce::Pool { dim, .. } => write!(f, "pool 3x3 to at most {dim}"),
            Reduce::Grid { dim, .. } => write!(f, "grid of at most {dim}"),
            Reduce::Project { dim, .. } => write!(f, "project to at most {dim}"),
        }
    }
}

impl Pooling {
    fn len(self, size: usize) -> usize {
        match self {
            Pooling::None => size,
            Pooling::Last { outer, .. } => outer,
            Pooling::First { width, .. } => width,
            Pooling::Regions { channels, bins: [rows, cols], .. } => channels * rows * cols,
        }
    }

    fn apply(self, x: &[f32], out: &mut [f32]) {
        match self {
            Pooling::None => out.copy_from_slice(x),
            Pooling::Last { inner, .. } => {
                for (o, x) in out.iter_mut().zip(x.chunks_exact(inner)) {
                    *o = mean(x.iter().copied(), inner);
                }
            }
            Pooling::First { tokens, width } => {
                for (i, o) in out.iter_mut().enumerate() {
                    *o = mean((0..tokens).map(|t| x[t * width + i]), tokens);
                }
            }
            Pooling::Regions { height, width, bins: [down, across], .. } => {
                for (o, x) in
                    out.chunks_exact_mut(down * across).zip(x.chunks_exact(height * width))
                {
                    for (i, o) in o.iter_mut().enumerate() {
                        let rows = bin(i / across, down, height);
                        let cols = bin(i % across, across, width);
                        let count = rows.len() * cols.len();
                        let cell = rows.flat_map(|y| cols.clone().map(move |x| y * width + x));
                        *o = mean(cell.map(|at| x[at]), count);
                    }
                }
            }
        }
    }

    fn pullback(self, d: &[f32], out: &mut [f32]) {
        match self {
            Pooling::None => out.copy_from_slice(d),
            Pooling::Last { inner, .. } => {
                for (d, o) in d.iter().zip(out.chunks_exact_mut(inner)) {
                    o.fill(d / inner as f32);
                }
            }
            Pooling::First { tokens, width } => {
                for o in out.chunks_exact_mut(width) {
                    for (o, d) in o.iter_mut().zip(d) {
                        *o = d / tokens as f32;
                    }
                }
            }
            Pooling::Regions { height, width, bins: [down, across], .. } => {
                for (d, o) in
                    d.chunks_exact(down * across).zip(out.chunks_exact_mut(height * width))
                {
                    for (i, d) in d.iter().enumerate() {
                        let rows = bin(i / across, down, height);
                        let cols = bin(i % across, across, width);
                        let part = d / (rows.len() * cols.len()) as f32;
                        for y in rows {
                            for x in cols.clone() {
                                o[y * width + x] += part;
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Bin `i` of so many over a side.
fn bin(i: usize, bins: usize, size: usize) -> std::ops::Range<usize> {
    i * size / bins..((i + 1) * size).div_ceil(bins)
}

/// The most bins per side, at most 5, of which so many fit.
fn finest(regions: usize) -> usize {
    (1..=5).rev().find(|side| side * side <= regions).unwrap_or(1)
}

fn mean(values: impl Iterator<Item = f32>, count: usize) -> f32 {
    (values.map(f64::from).sum::<f64>() / count as f64) as f32
}

impl Reduction {
    /// The shape it takes, without the batch.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Numbers it takes from one input.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Length of the vectors it makes.
    pub fn len(&self) -> usize {
        match &self.projection {
            Some(p) => p.rows(),
            None => self.pooled(),
        }
    }

    /// Numbers that are left of one input when it is pooled.
    pub(crate) fn pooled(&self) -> usize {
        self.pooling.len(self.size())
    }

    /// Whether it makes nothing; it never does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it hands on all numbers unchanged.
    pub fn keeps(&self) -> bool {
        self.projection.is_none() && self.pooling == Pooling::None
    }

    /// Reduces one tensor per row. A row's result does not depend on the others.
    pub fn apply(&self, rows: &Matrix) -> Result<Matrix> {
        Ok(self.project(self.pool(rows.clone())?))
    }

    /// The cheap half of [`Reduction::apply`].
    pub(crate) fn pool(&self, rows: Matrix) -> Result<Matrix> {
        if rows.cols() != self.size() {
            return Err(Error::shape("tapped tensor", self.size(), rows.cols()));
        }
        if self.pooling == Pooling::None {
            return Ok(rows);
        }
        let mut pooled = Matrix::zeros(rows.rows(), self.pooled());
        for (i, x) in rows.iter().enumerate() {
            self.pooling.apply(x, pooled.row_mut(i));
        }
        Ok(pooled)
    }

    /// The expensive half of [`Reduction::apply`]; best given many pooled rows at a time.
    pub(crate) fn project(&self, pooled: Matrix) -> Matrix {
        match &self.projection {
            Some(p) => matmul_t(&pooled, p),
            None => pooled,
        }
    }

    /// Derivatives with respect to the vectors, as derivatives with respect to the tensors.
    pub fn pullback(&self, d: &Matrix) -> Result<Matrix> {
        if d.cols() != self.len() {
            return Err(Error::shape("derivative of reduced features", self.len(), d.cols()));
        }
        let back = self.projection.as_ref().map(|p| matmul(d, p));
        let d = back.as_ref().unwrap_or(d);
        let mut out = Matrix::zeros(d.rows(), self.size());
        for (i, d) in d.iter().enumerate() {
            self.pooling.pullback(d, out.row_mut(i));
        }
        Ok(out)
    }
}

/// Gaussian rows of unit length.
fn gaussian(rows: usize, cols: usize, seed: u64) -> Result<Matrix> {
    let size = (rows as u64).saturating_mul(cols as u64).saturating_mul(4);
    if size > LIMIT || rows == 0 {
        return Err(Error::TooLarge {
            what: format!("the projection of {cols} features to {rows}"),
            size,
            limit: LIMIT,
        });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut m = Matrix::zeros(rows, cols);
    for i in 0..rows {
        let mut values: Vec<f64> = Vec::with_capacity(cols + 1);
        while values.len() < cols {
            let (a, b) = normal_pair(&mut rng);
            values.extend([a, b]);
        }
        values.truncate(cols);
        let length = libm::sqrt(values.iter().map(|v| v * v).sum());
        for (m, v) in m.row_mut(i).iter_mut().zip(values) {
            *m = (v / length) as f32;
        }
    }
    Ok(m)
}

/// Two standard normal numbers (Box and Muller 1958).
fn normal_pair(rng: &mut ChaCha8Rng) -> (f64, f64) {
    let mut unit = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let radius = libm::sqrt(-2.0 * libm::log(unit()));
    let (sin, cos) = libm::sincos(std::f64::consts::TAU * unit());
    (radius * cos, radius * sin)
}

#[cfg(test)]
mod tests;
