//! Regressions in closed form or nearly so: ridge regression from streamed
//! rows, logistic regression and the conditional logit.
//!
//! Everything runs in a fixed order of operations: neither the number of
//! threads nor the sizes of the pieces of a stream change a bit.

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
        if row.iter().any(|v| !v.is_finite()) {
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
    pub(crate) fn solve(mut self, lambda: f64) -> Option<Ridge> {
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
        drop(self.gram);
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

/// Rounds of Newton's method.
const NEWTON: usize = 30;

/// The logistic regression of a label on a few numbers and a constant, which comes last:
/// maximum likelihood with the penalty `lambda` on squares of the weights, the constant apart.
/// Numbers should be of the order of one.
pub(crate) fn logistic(rows: &[Vec<f64>], labels: &[bool], lambda: f64) -> Vec<f64> {
    let width = rows.first().map_or(0, Vec::len) + 1;
    newton(width, width - 1, lambda, &|w| {
        let mut step = Step::new(width);
        for (row, &label) in rows.iter().zip(labels) {
            let x = || row.iter().copied().chain([1.0]);
            let z: f64 = x().zip(w).map(|(x, w)| x * w).sum();
            let p = 1.0 / (1.0 + libm::exp(-z));
            let x: Vec<f64> = x().collect();
            step.add(&x, p - f64::from(u8::from(label)), p * (1.0 - p));
        }
        step
    })
}

/// The conditional logit: of several candidates, each with a few numbers, some are right, and
/// the weights make the log of the summed probability of those largest. Groups without a right
/// or without a wrong candidate tell nothing.
pub(crate) fn conditional(groups: &[Vec<(Vec<f64>, bool)>], lambda: f64) -> Vec<f64> {
    let width = groups.iter().flatten().next().map_or(0, |(row, _)| row.len());
    newton(width, width, lambda, &|w| {
        let mut step = Step::new(width);
        for group in groups {
            let right = group.iter().filter(|(_, right)| *right).count();
            if right == 0 || right == group.len() {
                continue;
            }
            let z: Vec<f64> =
                group.iter().map(|(row, _)| row.iter().zip(w).map(|(x, w)| x * w).sum()).collect();
            let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let e: Vec<f64> = z.iter().map(|z| libm::exp(z - top)).collect();
            let all: f64 = e.iter().sum();
            let good: f64 =
                e.iter().zip(group).filter(|(_, (_, right))| *right).map(|(e, _)| e).sum();
            let mut centre = vec![0.0; width];
            for (e, (row, _)) in e.iter().zip(group) {
                for (c, x) in centre.iter_mut().zip(row) {
                    *c += e / all * x;
                }
            }
            for (e, (row, right)) in e.iter().zip(group) {
                let p = e / all;
                let q = if *right { e / good.max(1e-300) } else { 0.0 };
                let away: Vec<f64> = row.iter().zip(&centre).map(|(x, c)| x - c).collect();
                step.gradient(row, p - q);
                step.curve(&away, p);
            }
        }
        step
    })
}

/// Gradient and curvature of a convex loss.
struct Step {
    gradient: Vec<f64>,
    curvature: Vec<f64>,
}

impl Step {
    fn new(width: usize) -> Self {
        Step { gradient: vec![0.0; width], curvature: vec![0.0; width * width] }
    }

    fn add(&mut self, x: &[f64], slope: f64, weight: f64) {
        self.gradient(x, slope);
        self.curve(x, weight);
    }

    fn gradient(&mut self, x: &[f64], slope: f64) {
        for (g, x) in self.gradient.iter_mut().zip(x) {
            *g += slope * x;
        }
    }

    fn curve(&mut self, x: &[f64], weight: f64) {
        let n = x.len();
        for i in 0..n {
            for j in 0..n {
                self.curvature[i * n + j] += weight * x[i] * x[j];
            }
        }
    }
}

/// Newton's method for a convex loss with a penalty on the first `penalised` weights.
fn newton(width: usize, penalised: usize, lambda: f64, at: &dyn Fn(&[f64]) -> Step) -> Vec<f64> {
    let mut w = vec![0.0; width];
    for _ in 0..NEWTON {
        let Step { mut gradient, mut curvature } = at(&w);
        for i in 0..width {
            let own = if i < penalised { lambda } else { 0.0 };
            gradient[i] += own * w[i];
            curvature[i * width + i] += own.max(1e-9);
        }
        let Ok(factor) = MatRef::from_row_major_slice(&curvature, width, width).llt(Side::Lower)
        else {
            break;
        };
        let mut step = faer::Mat::<f64>::from_fn(width, 1, |i, _| gradient[i]);
        factor.solve_in_place(&mut step);
        // A full step may leave the region where the curvature tells anything.
        let length = (0..width).map(|i| step[(i, 0)].abs()).fold(0.0, f64::max);
        let share = if length > 2.0 { 2.0 / length } else { 1.0 };
        for (i, w) in w.iter_mut().enumerate() {
            *w -= share * step[(i, 0)];
        }
        if length < 1e-9 {
            break;
        }
    }
    w
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn oracle(name: &str) -> Value {
        let text = include_str!("../tests/fixtures/ridge.json");
        serde_json::from_str::<Value>(text).unwrap()[name].clone()
    }

    fn numbers(v: &Value) -> Vec<f64> {
        v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    }

    fn rows(v: &Value) -> Vec<Vec<f64>> {
        v.as_array().unwrap().iter().map(numbers).collect()
    }

    fn single(row: &[f64]) -> Vec<f32> {
        row.iter().map(|v| *v as f32).collect()
    }

    fn near(got: &[f64], want: &[f64], slack: f64) {
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).abs() <= slack * (1.0 + w.abs()), "{got:?} is not {want:?}");
        }
        assert_eq!(got.len(), want.len());
    }

    /// Weights are rounded to half precision, hence the slack.
    #[test]
    fn a_streamed_ridge_is_that_of_scikit_learn() {
        let case = oracle("ridge");
        let (x, y) = (rows(&case["rows"]), rows(&case["targets"]));
        let mut normal = Normal::new(x[0].len(), y[0].len());
        for (x, y) in x.iter().zip(&y) {
            let targets = y.iter().enumerate().map(|(t, v)| (t as u32, *v as f32)).collect();
            normal.add(&single(x), targets);
        }
        normal.add(&[f32::NAN; 7], vec![(0, 1.0)]);
        assert_eq!(normal.len(), x.len(), "a row that is not finite is left out");
        let ridge = normal.solve(case["lambda"].as_f64().unwrap()).unwrap();
        for (test, want) in rows(&case["test"]).iter().zip(rows(&case["predicted"])) {
            let row = Matrix::new(1, test.len(), single(test)).unwrap();
            let got: Vec<f64> = ridge.apply(&row).row(0).iter().map(|v| f64::from(*v)).collect();
            near(&got, &want, 1e-3);
        }
        assert_eq!(Ridge::load(&ridge.state()).unwrap(), ridge);
    }

    #[test]
    fn wide_rows_fill_the_whole_matrix_of_products() {
        // y = x_300: a penalty of nearly nothing finds it among 601 columns that vary alone.
        let width = 601;
        let mut normal = Normal::new(width, 1);
        for i in 0..1300usize {
            let mut row = vec![0.0; width];
            row[i % width] = if i >= width { 1.0 } else { -1.0 };
            let y = row[300];
            normal.add(&row, vec![(0, y)]);
        }
        let ridge = normal.solve(1e-6).unwrap();
        let mut probe = Matrix::zeros(1, width);
        probe.row_mut(0)[300] = 1.0;
        let got = ridge.apply(&probe).row(0)[0];
        assert!((got - 1.0).abs() < 0.01, "{got}");
    }

    #[test]
    fn the_logistic_regression_is_that_of_scikit_learn() {
        let case = oracle("logistic");
        let labels: Vec<bool> =
            case["labels"].as_array().unwrap().iter().map(|l| l.as_bool().unwrap()).collect();
        let got = logistic(&rows(&case["rows"]), &labels, case["lambda"].as_f64().unwrap());
        near(&got, &numbers(&case["weights"]), 1e-5);
    }

    #[test]
    fn the_conditional_logit_minimises_its_loss() {
        let case = oracle("conditional");
        let candidate = |c: &Value| (numbers(&c[0]), c[1].as_bool().unwrap());
        let group = |g: &Value| g.as_array().unwrap().iter().map(candidate).collect();
        let groups: Vec<Vec<(Vec<f64>, bool)>> =
            case["groups"].as_array().unwrap().iter().map(group).collect();
        let got = conditional(&groups, case["lambda"].as_f64().unwrap());
        near(&got, &numbers(&case["weights"]), 1e-4);
    }
}
