//! The few products and decompositions the scores share, on top of `faer`.
//!
//! Products of `f32` matrices run in blocks of a fixed number of rows, the
//! last one padded, so that a row's result is the same bits whatever rows
//! stand beside it and however many threads run. Everything at fit time is
//! `f64` on one thread.

use std::ops::Range;

use faer::linalg::matmul::matmul as product;
use faer::{Accum, MatMut, MatRef, Par, Side};
use rayon::prelude::*;

use crate::tensor::Matrix;

mod leading;

pub(crate) use leading::leading;

/// Rows of a block. Every product with the same right side has this shape. Few, so that a lone
/// row costs little; more do not go faster.
const BLOCK: usize = 4;
/// The same where the right side is read across, which every block has to prepare anew.
const BLOCK_ACROSS: usize = 32;
/// Columns of the right side that meet many blocks before the next ones, so
/// that they stay in the cache.
const TILE: usize = 256;
/// Rows a thread takes at a time; whole blocks.
const GROUP: usize = 256;
/// Products of fewer terms are not worth calling other threads.
const SMALL: usize = 1 << 23;

/// `a * b`: one row of the answer a row of `a`. Panics unless `a` is as wide as `b` is high.
pub(crate) fn matmul(a: &Matrix, b: &Matrix) -> Matrix {
    assert_eq!(a.cols(), b.rows(), "inner sizes of a product");
    blocks(a, BLOCK, MatRef::from_row_major_slice(b.data(), b.rows(), b.cols()))
}

/// `a * transpose(b)`: inner products of the rows of `a` with the rows of `b`.
/// Panics unless both are equally wide.
pub(crate) fn matmul_t(a: &Matrix, b: &Matrix) -> Matrix {
    assert_eq!(a.cols(), b.cols(), "inner sizes of a product");
    let across = MatRef::from_row_major_slice(b.data(), b.rows(), b.cols()).transpose();
    blocks(a, BLOCK_ACROSS, across)
}

fn blocks(a: &Matrix, block: usize, b: MatRef<f32>) -> Matrix {
    let width = b.ncols();
    let mut out = Matrix::zeros(a.rows(), width);
    if width == 0 || a.cols() == 0 {
        return out;
    }
    let starts: Vec<(usize, usize)> = (0..a.rows())
        .step_by(GROUP)
        .flat_map(|row| (0..width).step_by(TILE).map(move |col| (row, col)))
        .collect();
    let tile = |&(row, col): &(usize, usize)| {
        let rows = GROUP.min(a.rows() - row);
        multiply(a, row..row + rows, block, b.subcols(col, TILE.min(width - col)))
    };
    let tiles: Vec<Vec<f32>> = if a.rows().saturating_mul(a.cols()).saturating_mul(width) < SMALL {
        starts.iter().map(tile).collect()
    } else {
        starts.par_iter().map(tile).collect()
    };
    for ((row, col), tile) in starts.into_iter().zip(tiles) {
        let wide = TILE.min(width - col);
        for (i, part) in tile.chunks(wide).take(a.rows() - row).enumerate() {
            out.row_mut(row + i)[col..col + wide].copy_from_slice(part);
        }
    }
    out
}

/// Some rows of `a` times `b`, in whole blocks: surplus rows come last.
fn multiply(a: &Matrix, rows: Range<usize>, block: usize, b: MatRef<f32>) -> Vec<f32> {
    let (depth, width) = (a.cols(), b.ncols());
    let mut out = vec![0.0; rows.len().next_multiple_of(block) * width];
    let mut padded = Vec::new();
    let data = &a.data()[rows.start * depth..rows.end * depth];
    for (some, out) in data.chunks(block * depth).zip(out.chunks_mut(block * width)) {
        let some = if some.len() == block * depth {
            some
        } else {
            padded.extend_from_slice(some);
            padded.resize(block * depth, 0.0);
            &padded
        };
        product(
            MatMut::from_row_major_slice_mut(out, block, width),
            Accum::Replace,
            MatRef::from_row_major_slice(some, block, depth),
            b,
            1.0,
            Par::Seq,
        );
    }
    out
}

/// Columns as rows.
pub(crate) fn transposed(m: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(m.cols(), m.rows());
    for (i, row) in m.iter().enumerate() {
        for (j, v) in row.iter().enumerate() {
            out.row_mut(j)[i] = *v;
        }
    }
    out
}

/// Squared Euclidean distance, in double precision and a fixed order. Panics
/// unless both are equally long.
pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "lengths of a distance");
    fold(a, b, |a, b| (a - b) * (a - b))
}

/// Inner product, in double precision and a fixed order. Panics unless both
/// are equally long.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "lengths of an inner product");
    fold(a, b, |a, b| a * b)
}

fn fold(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (left, right) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = left
        .remainder()
        .iter()
        .zip(right.remainder())
        .map(|(&a, &b)| term(f64::from(a), f64::from(b)))
        .sum();
    for (a, b) in left.zip(right) {
        for l in 0..LANES {
            sums[l] += term(f64::from(a[l]), f64::from(b[l]));
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// The mean of some rows; zeros for no rows.
pub(crate) fn mean<'a>(rows: impl Iterator<Item = &'a [f32]>, width: usize) -> Vec<f64> {
    let mut sum = vec![0.0; width];
    let mut count = 0.0;
    for row in rows {
        count += 1.0;
        for (s, &v) in sum.iter_mut().zip(row) {
            *s += f64::from(v);
        }
    }
    if count > 0.0 {
        for s in &mut sum {
            *s /= count;
        }
    }
    sum
}

/// `sum_i (x_i - c_i) (x_i - c_i)^T`, row-major, with a centre for each row.
/// Centres shorter than a row are taken as zeros from there on.
pub(crate) fn scatter<'c>(x: &Matrix, centre: impl Fn(usize) -> &'c [f64]) -> Vec<f64> {
    const ROWS: usize = 512;
    let n = x.cols();
    let mut sum = vec![0.0; n * n];
    let mut part = Vec::with_capacity(ROWS * n);
    for first in (0..x.rows()).step_by(ROWS) {
        part.clear();
        for i in first..x.rows().min(first + ROWS) {
            let centre = centre(i).iter().copied().chain(std::iter::repeat(0.0));
            part.extend(x.row(i).iter().zip(centre).map(|(&v, c)| f64::from(v) - c));
        }
        let part = MatRef::from_row_major_slice(&part, part.len() / n.max(1), n);
        product(
            MatMut::from_row_major_slice_mut(&mut sum, n, n),
            Accum::Add,
            part.transpose(),
            part,
            1.0,
            Par::Seq,
        );
    }
    sum
}

/// Eigenvalues, smallest first, and their unit eigenvectors as rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Eigen {
    /// The eigenvalues, ascending.
    pub(crate) values: Vec<f64>,
    /// Row-major; row `i` belongs to `values[i]`.
    pub(crate) vectors: Vec<f64>,
}

/// Decomposes a symmetric row-major matrix of order `n`. `None` if it holds
/// anything that is not finite, or the iteration fails.
pub(crate) fn eigen(symmetric: &[f64], n: usize) -> Option<Eigen> {
    if symmetric.len() != n * n || symmetric.iter().any(|v| !v.is_finite()) {
        return None;
    }
    if n == 0 {
        return Some(Eigen { values: vec![], vectors: vec![] });
    }
    let d = MatRef::from_row_major_slice(symmetric, n, n).self_adjoint_eigen(Side::Lower).ok()?;
    let values = (0..n).map(|i| d.S()[i]).collect();
    let vectors = (0..n * n).map(|k| d.U()[(k % n, k / n)]).collect();
    Some(Eigen { values, vectors })
}

/// Rounds to a single-precision matrix. Panics unless there are `rows * cols` numbers.
pub(crate) fn single(rows: usize, cols: usize, data: &[f64]) -> Matrix {
    assert_eq!(data.len(), rows * cols, "numbers of a matrix");
    let mut m = Matrix::zeros(rows, cols);
    for (m, &v) in m.data_mut().iter_mut().zip(data) {
        *m = v as f32;
    }
    m
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(rows: usize, cols: usize, seed: u32) -> Matrix {
        let mut state = seed;
        let mut m = Matrix::zeros(rows, cols);
        for v in m.data_mut() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *v = (state >> 8) as f32 / 8_388_608.0 - 1.0;
        }
        m
    }

    #[test]
    fn products_match_the_definition() {
        let (a, b) = (noise(70, 13, 1), noise(13, 9, 2));
        let c = matmul(&a, &b);
        for i in 0..70 {
            for j in 0..9 {
                let want: f64 =
                    (0..13).map(|k| f64::from(a.row(i)[k]) * f64::from(b.row(k)[j])).sum();
                assert!((f64::from(c.row(i)[j]) - want).abs() < 1e-5);
            }
        }
        let mut bt = Matrix::zeros(9, 13);
        for i in 0..9 {
            for j in 0..13 {
                bt.row_mut(i)[j] = b.row(j)[i];
            }
        }
        let d = matmul_t(&a, &bt);
        assert!(c.data().iter().zip(d.data()).all(|(x, y)| (x - y).abs() < 1e-5));
    }

    #[test]
    fn a_row_has_the_same_bits_alone_and_among_others() {
        for (width, depth) in [(1, 1), (1, 40), (10, 1), (3, 7), (47, 64), (130, 300), (600, 520)] {
            let (a, b) = (noise(77, depth, 3), noise(depth, width, 4));
            let bt = noise(width, depth, 5);
            let (all, all_t) = (matmul(&a, &b), matmul_t(&a, &bt));
            for i in [0, 1, 31, 32, 45, 76] {
                assert_eq!(matmul(&a.select(&[i]), &b).data(), all.row(i), "{width}x{depth}");
                assert_eq!(matmul_t(&a.select(&[i]), &bt).data(), all_t.row(i), "{width}x{depth}");
            }
            let back: Vec<_> = (0..77).rev().collect();
            assert_eq!(matmul(&a.select(&back), &b).select(&back), all);
        }
    }

    #[test]
    fn the_thread_count_does_not_change_a_bit() {
        let (a, b) = (noise(600, 90, 6), noise(90, 300, 7));
        let run = |n| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(n)
                .build()
                .unwrap()
                .install(|| matmul(&a, &b))
        };
        assert_eq!(run(1), run(3));
        assert_eq!(matmul(&a.select(&[599]), &b).data(), run(2).row(599));
    }

    #[test]
    fn the_scatter_of_two_points_is_worked_by_hand() {
        let x = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 6.0]).unwrap();
        let centre = mean(x.iter(), 2);
        assert_eq!(centre, [2.0, 4.0]);
        assert_eq!(scatter(&x, |_| &centre), [2.0, 4.0, 4.0, 8.0]);
    }

    #[test]
    fn eigenvectors_come_as_rows_smallest_first() {
        let e = eigen(&[2.0, 1.0, 1.0, 2.0], 2).unwrap();
        assert!((e.values[0] - 1.0).abs() < 1e-12 && (e.values[1] - 3.0).abs() < 1e-12);
        assert!((e.vectors[0] + e.vectors[1]).abs() < 1e-12);
        assert!((e.vectors[2] - e.vectors[3]).abs() < 1e-12);
        assert!(eigen(&[f64::NAN], 1).is_none());
    }

    #[test]
    fn distance_and_inner_product_count_every_entry() {
        let a: Vec<f32> = (0..11).map(|i| i as f32).collect();
        let b = vec![1.0; 11];
        assert!((dot(&a, &b) - 55.0).abs() < 1e-12);
        assert!((squared_distance(&a, &b) - (385.0 - 110.0 + 11.0)).abs() < 1e-12);
    }
}
