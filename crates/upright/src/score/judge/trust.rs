//! Whether the model is right on a view, from its features: one regression for
//! all classes, and one per predicted class on what the first leaves.

use faer::linalg::solvers::Solve;
use faer::{MatRef, Side};
use rayon::prelude::*;

use crate::error::Result;
use crate::linalg::{leading, matmul, mean, scatter, single, transposed};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// Most principal components that are kept.
const COMPONENTS: usize = 256;
/// Rows that the components are found on.
const ROWS: usize = 20_000;
/// Penalties: per row, and as a number of rows for what is a class' own.
const RIDGE: f64 = 0.03;
const ROUGH: f64 = 100.0;

/// Whitened principal components.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Whitening {
    centre: Vec<f32>,
    /// The components of the centre: those of a row are `D (x - c) = D x - D c`.
    offset: Vec<f32>,
    /// A column per component.
    across: Matrix,
}

impl Whitening {
    /// Of the rows of some features; `None` if they do not vary.
    pub(super) fn of(features: &Matrix) -> Option<Self> {
        let stride = features.rows().div_ceil(ROWS).max(1);
        let some: Vec<usize> = (0..features.rows()).step_by(stride).collect();
        let some = (stride > 1).then(|| features.select(&some));
        let some = some.as_ref().unwrap_or(features);
        let centre = mean(some.iter(), features.cols());
        let (variances, mut directions) = leading(some, &centre, COMPONENTS)?;
        for (i, variance) in variances.iter().enumerate() {
            let scale = (1.0 / libm::sqrt(*variance)) as f32;
            directions.row_mut(i).iter_mut().for_each(|v| *v *= scale);
        }
        Some(Whitening::new(centre.iter().map(|c| *c as f32).collect(), &directions))
    }

    fn new(centre: Vec<f32>, directions: &Matrix) -> Self {
        let across = transposed(directions);
        let mut one = Matrix::zeros(1, centre.len());
        one.row_mut(0).copy_from_slice(&centre);
        let offset = matmul(&one, &across).data().to_vec();
        Whitening { centre, offset, across }
    }

    pub(super) fn apply(&self, features: &Matrix) -> Matrix {
        let mut out = matmul(features, &self.across);
        for i in 0..out.rows() {
            for (v, o) in out.row_mut(i).iter_mut().zip(&self.offset) {
                *v -= o;
            }
        }
        out
    }

    /// Features that it reads.
    pub(super) fn width(&self) -> usize {
        self.centre.len()
    }

    pub(super) fn components(&self) -> usize {
        self.across.cols()
    }

    /// The derivative with respect to the features of a derivative with respect to components.
    pub(super) fn pullback(&self, d: &[f32]) -> Vec<f32> {
        self.across.iter().map(|row| row.iter().zip(d).map(|(v, d)| v * d).sum()).collect()
    }

    pub(super) fn state(&self) -> State {
        State::new().f32("centre", &self.centre).matrix("directions", &transposed(&self.across))
    }

    pub(super) fn load(state: &State) -> Result<Self> {
        let (centre, directions) = (state.read_f32("centre")?, state.read_matrix("directions")?);
        if directions.cols() != centre.len() {
            return Err(damaged("the judge's components do not fit".into()));
        }
        Ok(Whitening::new(centre, &directions))
    }
}

/// Weights and a constant for every predicted class, or for all alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trust {
    /// A row per class, or one for all: weights of the components, then the constant.
    weights: Matrix,
}

impl Trust {
    /// Fitted on some rows of components, with the class that was predicted and whether that
    /// was right; for so many classes, if they have something of their own.
    pub(super) fn fit(
        components: &Matrix,
        rows: &[usize],
        predicted: &[u32],
        right: &[bool],
        own: Option<usize>,
    ) -> Self {
        let width = components.cols() + 1;
        let goal = |row: usize| f64::from(u8::from(right[row]));
        let common = solve(components, rows, &goal, RIDGE * rows.len() as f64 + 1.0);
        let Some(classes) = own else { return Trust { weights: single(1, width, &common) } };
        let mut by_class: Vec<Vec<usize>> = vec![Vec::new(); classes];
        for &row in rows {
            if let Some(class) = by_class.get_mut(predicted[row] as usize) {
                class.push(row);
            }
        }
        let own: Vec<Vec<f64>> = by_class
            .par_iter()
            .map(|rows| {
                let left = |row: usize| goal(row) - value(&common, components.row(row));
                solve(components, rows, &left, RIDGE * rows.len() as f64 + ROUGH)
            })
            .collect();
        let numbers: Vec<f64> =
            own.iter().flat_map(|own| own.iter().zip(&common).map(|(a, b)| a + b)).collect();
        Trust { weights: single(classes, width, &numbers) }
    }

    /// How far the model is believed on a view: about 0 for wrong, 1 for right.
    pub(super) fn of(&self, components: &[f32], class: usize) -> f64 {
        let Some((constant, weights)) = self.row(class).split_last() else { return 0.0 };
        let sum: f64 =
            weights.iter().zip(components).map(|(w, c)| f64::from(*w) * f64::from(*c)).sum();
        sum + f64::from(*constant)
    }

    /// The derivative of [`Trust::of`] with respect to the components.
    pub(super) fn slope(&self, class: usize) -> &[f32] {
        let row = self.row(class);
        &row[..row.len() - 1]
    }

    fn row(&self, class: usize) -> &[f32] {
        self.weights.row(if self.weights.rows() == 1 { 0 } else { class })
    }

    pub(super) fn fits(&self, classes: usize, components: usize) -> bool {
        let rows = self.weights.rows();
        (rows == 1 || rows == classes) && self.weights.cols() == components + 1
    }

    pub(super) fn state(&self) -> State {
        State::new().matrix("weights", &self.weights)
    }

    pub(super) fn load(state: &State) -> Result<Self> {
        Ok(Trust { weights: state.read_matrix("weights")? })
    }
}

fn value(weights: &[f64], x: &[f32]) -> f64 {
    let last = weights.last().copied().unwrap_or(0.0);
    weights.iter().zip(x).map(|(w, x)| w * f64::from(*x)).sum::<f64>() + last
}

/// A ridge regression with a constant, which is not penalised where there are rows.
fn solve(
    components: &Matrix,
    rows: &[usize],
    goal: &dyn Fn(usize) -> f64,
    penalty: f64,
) -> Vec<f64> {
    let inner = components.cols();
    if rows.is_empty() {
        return vec![0.0; inner + 1];
    }
    let own = components.select(rows);
    let centre = mean(own.iter(), inner);
    let count = rows.len() as f64;
    let level = rows.iter().map(|&r| goal(r)).sum::<f64>() / count;
    let off: Vec<f64> = rows.iter().map(|&r| goal(r) - level).collect();
    let penalty = penalty.max(1e-9);
    let mut weights = if rows.len() < inner {
        by_rows(&own, &centre, &off, penalty)
    } else {
        by_columns(&own, &centre, &off, penalty)
    };
    let along: f64 = weights.iter().zip(&centre).map(|(w, c)| w * c).sum();
    // A class with few rows keeps to what holds for all.
    weights.push((level - along) * count / (count + 1.0));
    weights
}

/// `(X^T X + p)^-1 X^T y` for the centred rows `X`.
fn by_columns(own: &Matrix, centre: &[f64], off: &[f64], penalty: f64) -> Vec<f64> {
    let inner = own.cols();
    let mut gram = scatter(own, |_| centre);
    for i in 0..inner {
        gram[i * inner + i] += penalty;
    }
    let mut right = vec![0.0; inner];
    for (off, x) in off.iter().zip(own.iter()) {
        for ((r, x), c) in right.iter_mut().zip(x).zip(centre) {
            *r += off * (f64::from(*x) - c);
        }
    }
    solved(&gram, &right)
}

/// The same as `X^T (X X^T + p)^-1 y`: less work where there are fewer rows than columns.
fn by_rows(own: &Matrix, centre: &[f64], off: &[f64], penalty: f64) -> Vec<f64> {
    let n = own.rows();
    let centred: Vec<Vec<f64>> = own
        .iter()
        .map(|row| row.iter().zip(centre).map(|(x, c)| f64::from(*x) - c).collect())
        .collect();
    let mut gram = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = centred[i].iter().zip(&centred[j]).map(|(a, b)| a * b).sum();
            gram[i * n + j] = dot;
            gram[j * n + i] = dot;
        }
        gram[i * n + i] += penalty;
    }
    let dual = solved(&gram, off);
    let mut weights = vec![0.0; own.cols()];
    for (a, row) in dual.iter().zip(&centred) {
        for (w, x) in weights.iter_mut().zip(row) {
            *w += a * x;
        }
    }
    weights
}

/// The solution of a symmetric system; zeros if it has none.
fn solved(gram: &[f64], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let mut solution = faer::Mat::<f64>::from_fn(n, 1, |i, _| right[i]);
    match MatRef::from_row_major_slice(gram, n, n).llt(Side::Lower) {
        Ok(factor) => factor.solve_in_place(&mut solution),
        Err(_) => return vec![0.0; n],
    }
    (0..n).map(|i| solution[(i, 0)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_solving_agree() {
        let numbers: Vec<f32> = (0..30).map(|i| ((i * i) as f32 * 0.37).sin()).collect();
        let own = Matrix::new(6, 5, numbers).unwrap();
        let centre = mean(own.iter(), 5);
        let off = [0.5, -0.5, 0.25, 0.0, -0.75, 0.5];
        let (a, b) = (by_rows(&own, &centre, &off, 0.3), by_columns(&own, &centre, &off, 0.3));
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
        assert!(a.iter().any(|w| w.abs() > 0.05));
    }
}
