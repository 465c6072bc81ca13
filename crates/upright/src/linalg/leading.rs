//! Principal directions of many long rows, of which only the first are
//! wanted: iterating on a subspace takes no matrix as wide as it is high.

use super::{eigen, matmul, matmul_t, single, transposed};
use crate::seed;
use crate::tensor::Matrix;

/// Directions that are followed beside the wanted ones, and how often, until those stand.
const BESIDE: usize = 32;
const ROUNDS: usize = 6;
/// Directions with a smaller share of the largest variance are noise.
const NOISE: f64 = 1e-6;

/// The largest variances of rows about their centre, falling, and their directions, a row of
/// unit length each; `None` if nothing varies. No copy of the rows is made.
pub(crate) fn leading(rows: &Matrix, centre: &[f64], most: usize) -> Option<(Vec<f64>, Matrix)> {
    let width = rows.cols();
    let count = (most + BESIDE).min(width).min(rows.rows());
    let mut basis = Matrix::zeros(count, width);
    for (i, v) in basis.data_mut().iter_mut().enumerate() {
        let drawn = seed::of_index(0, "directions", i) >> 40;
        *v = drawn as f32 / (1u32 << 23) as f32 - 1.0;
    }
    orthonormal(&mut basis)?;
    let mut answers = along(rows, centre, &basis);
    for _ in 0..ROUNDS {
        basis = matmul(&transposed(&answers), rows);
        orthonormal(&mut basis)?;
        answers = along(rows, centre, &basis);
    }
    let across = transposed(&answers);
    let small: Vec<f64> = matmul_t(&across, &across).data().iter().map(|v| f64::from(*v)).collect();
    let found = eigen(&small, count)?;
    let largest = found.values.last().copied().filter(|v| *v > 0.0)?;
    let kept: Vec<usize> =
        (0..count).rev().take(most).filter(|&i| found.values[i] > NOISE * largest).collect();
    let turns: Vec<f64> =
        kept.iter().flat_map(|&i| found.vectors[i * count..(i + 1) * count].to_vec()).collect();
    let variances = kept.iter().map(|&i| found.values[i] / rows.rows() as f64).collect();
    Some((variances, matmul(&single(kept.len(), count, &turns), &basis)))
}

/// `(x - c) B^T` of every row `x`.
fn along(rows: &Matrix, centre: &[f64], basis: &Matrix) -> Matrix {
    let across = transposed(basis);
    let offset = matmul(&single(1, centre.len(), centre), &across);
    let mut out = matmul(rows, &across);
    for i in 0..out.rows() {
        for (v, o) in out.row_mut(i).iter_mut().zip(offset.row(0)) {
            *v -= o;
        }
    }
    out
}

/// Makes rows of unit length and at right angles, each from what those before it leave; a row
/// of which nothing is left becomes zero. `None` if all do, or a number is not finite.
fn orthonormal(rows: &mut Matrix) -> Option<()> {
    let width = rows.cols();
    let mut done: Vec<Vec<f64>> = Vec::with_capacity(rows.rows());
    let mut any = false;
    for i in 0..rows.rows() {
        let mut own: Vec<f64> = rows.row(i).iter().map(|v| f64::from(*v)).collect();
        let length = |v: &[f64]| libm::sqrt(v.iter().map(|x| x * x).sum::<f64>());
        let before = length(&own);
        if !before.is_finite() {
            return None;
        }
        // Twice, for what rounding left of the first time.
        for _ in 0..2 {
            for other in &done {
                let along: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                for (a, b) in own.iter_mut().zip(other) {
                    *a -= along * b;
                }
            }
        }
        let left = length(&own);
        if left > 1e-9 * before && left > 0.0 {
            for v in &mut own {
                *v /= left;
            }
            any = true;
        } else {
            own = vec![0.0; width];
        }
        for (r, v) in rows.row_mut(i).iter_mut().zip(&own) {
            *r = *v as f32;
        }
        done.push(own);
    }
    any.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variances 9, 4 and 1 along known axes.
    #[test]
    fn leading_directions_are_those_of_the_largest_variance() {
        let mut rows = Matrix::zeros(6, 3);
        for (i, v) in [3.0f32, 2.0, 1.0].into_iter().enumerate() {
            let v = v * 3f32.sqrt();
            rows.row_mut(2 * i)[i] = v;
            rows.row_mut(2 * i + 1)[i] = -v;
        }
        let (variances, vectors) = leading(&rows, &[0.0; 3], 2).unwrap();
        assert!((variances[0] - 9.0).abs() < 1e-4 && (variances[1] - 4.0).abs() < 1e-4);
        assert!((vectors.row(0)[0].abs() - 1.0).abs() < 1e-5);
        assert!((vectors.row(1)[1].abs() - 1.0).abs() < 1e-5);
        let away =
            single(6, 3, &rows.data().iter().map(|v| f64::from(*v) + 5.0).collect::<Vec<_>>());
        let (again, _) = leading(&away, &[5.0; 3], 2).unwrap();
        assert!(again.iter().zip(&variances).all(|(a, b)| (a - b).abs() < 1e-4), "{again:?}");
        assert!(leading(&Matrix::zeros(4, 3), &[0.0; 3], 2).is_none());
    }
}
