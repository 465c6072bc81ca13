//! Regressions in closed form or nearly so: ridge regression from streamed
//! rows, on features or on how near they lie to landmarks, logistic regression
//! and the conditional logit.
//!
//! Everything runs in a fixed order of operations: neither the number of
//! threads nor the sizes of the pieces of a stream change a bit.

mod landmarks;
mod logit;
#[cfg(test)]
mod tests;

pub(crate) use landmarks::Landmarks;
pub(crate) use logit::{conditional, logistic};

use faer::linalg::matmul::matmul as product;
use faer::linalg::solvers::Solve;
use faer::{Accum, MatMut, MatRef, Par, Side};
use half::f16;
use rayon::prelude::*;

use crate::error::Result;
use crate::linalg::matmul;
use crate::state::{Data, State, Stored, damaged};
use crate::tensor::Matrix;

/// Rows that are gathered before they are multiplied.
const ROWS: usize = 512;
/// Columns of one product.
const TILE: usize = 256;
/// Most numbers in the sums: 12,000 features, 1.2 GB while they are solved.
const LIMIT: usize = 144 << 20;
/// Deviations below this share of the mean deviation are raised to it.
const FLOOR: f64 = 0.05;

/// The normal equations of a ridge regression, which grow row by row: features of any number
/// of samples are summed up in `width * (width + targets)` numbers.
#[derive(Debug)]
pub(crate) struct Normal {
    width: usize,
    targets: usize,
    /// Subtracted from every row, so that little cancels later: the first row.
    shift: Vec<f32>,
    pending: Vec<f32>,
    pending_targets: Vec<Vec<(u32, f32)>>,
    count: f64,
    /// `X^T X`, in tiles below the diagonal.
    gram: Vec<Vec<f32>>,
    /// `Y^T X`, a row per target.
    cross: Vec<f32>,
    sum: Vec<f64>,
    target_sum: Vec<f64>,
}

impl Normal {
    /// Whether so many features and targets can be held.
    pub(crate) fn fits(width: usize, targets: usize) -> bool {
        width.saturating_mul(width.saturating_add(targets)) <= LIMIT
    }

    pub(crate) fn new(width: usize, targets: usize) -> Self {
        let gram = tiles(width).map(|(a, b)| vec![0.0; a.len() * b.len()]).collect();
        Normal {
            width,
            targets,
            shift: Vec::new(),
            pending: Vec::new(),
            pending_targets: Vec::new(),
            count: 0.0,
            gram,
            cross: vec![0.0; width * targets],
            sum: vec![0.0; width],
            target_sum: vec![0.0; targets],
        }
    }

    /// Adds a row with its targets, of which those not named are 0. A row that is not finite
    /// is left out.
    pub(crate) fn add(&mut self, row: &[f32], targets: Vec<(u32, f32)>) {
        debug_assert_eq!(row.len(), self.width);
        if row.is_empty() || row.iter().any(|v| !v.is_finite()) {
            return;
        }
        if self.shift.is_empty() {
            self.shift = row.to_vec();
        }
        self.pending.extend(row.iter().zip(&self.shift).map(|(v, s)| v - s));
        self.pending_targets.push(targets);
        if self.pending_targets.len() == ROWS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let rows = self.pending_targets.len();
        if rows == 0 {
            return;
        }
        let width = self.width;
        let x = MatRef::from_row_major_slice(&self.pending, rows, width);
        self.gram.par_iter_mut().zip(tiles(width).collect::<Vec<_>>()).for_each(|(sum, (a, b))| {
            product(
                MatMut::from_row_major_slice_mut(sum, a.len(), b.len()),
                Accum::Add,
                x.subcols(a.start, a.len()).transpose(),
                x.subcols(b.start, b.len()),
                1.0,
                Par::Seq,
            );
        });
        let mut by_target: Vec<Vec<(usize, f32)>> = vec![Vec::new(); self.targets];
        for (row, targets) in self.pending_targets.iter().enumerate() {
            for &(target, weight) in targets {
                by_target[target as usize].push((row, weight));
                self.target_sum[target as usize] += f64::from(weight);
            }
        }
        let pending = &self.pending;
        self.cross.par_chunks_mut(width).zip(by_target).for_each(|(sum, rows)| {
            for (row, weight) in rows {
                let x = &pending[row * width..(row + 1) * width];
                for (s, x) in sum.iter_mut().zip(x) {
                    *s += weight * x;
                }
            }
        });
        for row in self.pending.chunks_exact(width) {
            for (s, v) in self.sum.iter_mut().zip(row) {
                *s += f64::from(*v);
            }
        }
        self.count += rows as f64;
        self.pending.clear();
        self.pending_targets.clear();
    }

    /// Rows that were added.
    pub(crate) fn len(&self) -> usize {
        self.count as usize + self.pending_targets.len()
    }

    /// The ridge regression on standardised features with the penalty `lambda` per row; `None`
    /// without rows.
    pub(crate) fn solve(&mut self, lambda: f64) -> Option<Ridge> {
        self.flush();
        let (n, width, targets) = (self.count, self.width, self.targets);
        if n == 0.0 || width == 0 {
            return None;
        }
        let mut gram = vec![0.0f64; width * width];
        for (tile, (a, b)) in self.gram.iter().zip(tiles(width)) {
            for (i, row) in a.zip(tile.chunks_exact(b.len())) {
                for (j, v) in b.clone().zip(row) {
                    gram[i * width + j] = f64::from(*v);
                    gram[j * width + i] = f64::from(*v);
                }
            }
        }
        let mean: Vec<f64> = self.sum.iter().map(|s| s / n).collect();
        let deviation: Vec<f64> = (0..width)
            .map(|i| (gram[i * width + i] / n - mean[i] * mean[i]).max(0.0).sqrt())
            .collect();
        let usual = deviation.iter().sum::<f64>() / width as f64;
        let scale: Vec<f64> =
            deviation.iter().map(|d| 1.0 / d.max(FLOOR * usual).max(1e-12)).collect();
        for i in 0..width {
            for j in 0..width {
                let v = &mut gram[i * width + j];
                *v = (*v - n * mean[i] * mean[j]) * scale[i] * scale[j];
            }
            gram[i * width + i] += lambda * n;
        }
        let factor = MatRef::from_row_major_slice(&gram, width, width).llt(Side::Lower).ok()?;
        let solved: Vec<Vec<f32>> = (0..targets)
            .collect::<Vec<_>>()
            .par_chunks(32)
            .flat_map(|some| {
                let mut right = faer::Mat::<f64>::zeros(width, some.len());
                for (k, &t) in some.iter().enumerate() {
                    let own = &self.cross[t * width..(t + 1) * width];
                    for i in 0..width {
                        let centred = f64::from(own[i]) - mean[i] * self.target_sum[t];
                        right[(i, k)] = centred * scale[i];
                    }
                }
                factor.solve_in_place(&mut right);
                let column = |k: usize| (0..width).map(|i| right[(i, k)] as f32).collect();
                (0..some.len()).map(column).collect::<Vec<Vec<f32>>>()
            })
            .collect();
        let mut weight = Matrix::zeros(width, targets);
        for (t, column) in solved.iter().enumerate() {
            for (i, v) in column.iter().enumerate() {
                weight.row_mut(i)[t] = *v;
            }
        }
        let mut ridge = Ridge {
            mean: mean.iter().zip(&self.shift).map(|(m, s)| (m + f64::from(*s)) as f32).collect(),
            scale: scale.iter().map(|s| *s as f32).collect(),
            weight,
            bias: self.target_sum.iter().map(|s| (s / n) as f32).collect(),
        };
        ridge.round();
        Some(ridge)
    }
}

/// The tiles of a symmetric matrix on and below its diagonal.
fn tiles(width: usize) -> impl Iterator<Item = (std::ops::Range<usize>, std::ops::Range<usize>)> {
    let range = move |i: usize| i..(i + TILE).min(width);
    (0..width)
        .step_by(TILE)
        .flat_map(move |a| (0..=a).step_by(TILE).map(move |b| (range(a), range(b))))
}

/// A fitted ridge regression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ridge {
    mean: Vec<f32>,
    scale: Vec<f32>,
    /// A row per feature, a column per target; every number fits half precision.
    weight: Matrix,
    bias: Vec<f32>,
}

impl Ridge {
    /// Features it reads.
    pub(crate) fn width(&self) -> usize {
        self.mean.len()
    }

    /// Numbers it gives.
    pub(crate) fn targets(&self) -> usize {
        self.bias.len()
    }

    /// Rounds the weights to what is stored: half precision times a factor per target.
    fn round(&mut self) {
        let state = self.state();
        if let Ok(rounded) = Ridge::load(&state) {
            *self = rounded;
        }
    }

    /// One row of targets per row of features. A row does not depend on the others.
    pub(crate) fn apply(&self, rows: &Matrix) -> Matrix {
        let mut standard = rows.clone();
        for i in 0..standard.rows() {
            let (mean, scale) = (&self.mean, &self.scale);
            for ((v, m), s) in standard.row_mut(i).iter_mut().zip(mean).zip(scale) {
                *v = (*v - m) * s;
            }
        }
        let mut out = matmul(&standard, &self.weight);
        for i in 0..out.rows() {
            for (o, b) in out.row_mut(i).iter_mut().zip(&self.bias) {
                *o += b;
            }
        }
        out
    }

    /// What to store: weights as half-precision numbers with a factor per target.
    pub(crate) fn state(&self) -> State {
        let targets = self.targets();
        let mut most = vec![0.0f32; targets];
        for row in self.weight.iter() {
            for (m, w) in most.iter_mut().zip(row) {
                *m = m.max(w.abs());
            }
        }
        // A power of two changes no digit of a weight that was rounded before.
        let unit: Vec<f32> = most
            .iter()
            .map(|m| if *m > 0.0 { libm::exp2f(libm::log2f(*m).ceil()) } else { 1.0 })
            .collect();
        let bits = self
            .weight
            .iter()
            .flat_map(|row| row.iter().zip(&unit).map(|(w, u)| f16::from_f32(w / u).to_bits()))
            .collect();
        let mut state = State::new()
            .f32("mean", &self.mean)
            .f32("scale", &self.scale)
            .f32("bias", &self.bias)
            .f32("unit", &unit);
        let shape = vec![self.width(), targets];
        state.put("weight", Stored { shape, data: Data::F16(bits) });
        state
    }

    /// Restores it.
    pub(crate) fn load(state: &State) -> Result<Self> {
        let (mean, scale) = (state.read_f32("mean")?, state.read_f32("scale")?);
        let (bias, unit) = (state.read_f32("bias")?, state.read_f32("unit")?);
        let weight = match state.tensors().get("weight") {
            Some(Stored { data: Data::F16(bits), .. })
                if bits.len() == mean.len() * bias.len()
                    && scale.len() == mean.len()
                    && unit.len() == bias.len() =>
            {
                let wide = bias.len().max(1);
                let number = |(i, b): (usize, &u16)| f16::from_bits(*b).to_f32() * unit[i % wide];
                let numbers = bits.iter().enumerate().map(number).collect();
                Matrix::new(mean.len(), bias.len(), numbers)?
            }
            _ => return Err(damaged("the weights of a regression do not fit".into())),
        };
        Ok(Ridge { mean, scale, weight, bias })
    }
}
