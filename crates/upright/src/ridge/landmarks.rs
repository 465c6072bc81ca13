//! Landmarks: some rows that others are compared with, in the few directions
//! that a linear regression found telling. A regression on how near a row lies
//! to each of them bends where a linear one cannot (the Nyström method), and is
//! still solved in closed form.
//!
//! Directions are the principal ones of the linear regression's answers `W z`,
//! `z` a standardised row: `x = D^(-1/4) V^T W z` with their variances `D`. The
//! nearness to a landmark `l` is `exp(-s |x - l|^2)`.

use half::f16;

use super::Ridge;
use crate::error::Result;
use crate::linalg::{eigen, matmul, matmul_t, mean, single};
use crate::seed;
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// Most directions.
const DIRECTIONS: usize = 128;
/// Directions that are followed beside them, and how often, until the wanted ones stand.
const BESIDE: usize = 32;
const ROUNDS: usize = 6;
/// Directions with a smaller share of the largest variance are noise.
const NOISE: f64 = 1e-6;
/// The sharpness `s`, times the median squared distance of rows.
const SHARPNESS: f64 = 2.0;

/// Rows to compare with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Landmarks {
    /// From features to coordinates.
    directions: Ridge,
    /// A row of coordinates per landmark; every number fits half precision.
    places: Matrix,
    /// Half the squared length of each.
    halves: Vec<f32>,
    sharpness: f32,
}

impl Landmarks {
    /// The given rows, in the directions of a regression; `None` if its answers do not vary.
    pub(crate) fn of(ridge: &Ridge, rows: &Matrix) -> Option<Self> {
        let mut answers = ridge.apply(rows);
        let centre = mean(answers.iter(), answers.cols());
        for i in 0..answers.rows() {
            for (v, c) in answers.row_mut(i).iter_mut().zip(&centre) {
                *v -= *c as f32;
            }
        }
        let (variances, vectors) = leading(&answers, DIRECTIONS)?;
        let mut turned = matmul_t(&ridge.weight, &vectors);
        for i in 0..turned.rows() {
            for (v, variance) in turned.row_mut(i).iter_mut().zip(&variances) {
                *v /= libm::sqrt(libm::sqrt(*variance)) as f32;
            }
        }
        let mut directions = Ridge {
            mean: ridge.mean.clone(),
            scale: ridge.scale.clone(),
            bias: vec![0.0; turned.cols()],
            weight: turned,
        };
        directions.round();
        let mut places = directions.apply(rows);
        for v in places.data_mut() {
            *v = f16::from_f32(*v).to_f32();
        }
        let usual = usual_distance(&places)?;
        Some(Landmarks {
            directions,
            halves: halves(&places),
            places,
            sharpness: (SHARPNESS / usual) as f32,
        })
    }

    /// Features that are read.
    pub(crate) fn width(&self) -> usize {
        self.directions.width()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.rows()
    }

    /// How near each row lies to each landmark. A row does not depend on the others.
    pub(crate) fn nearness(&self, rows: &Matrix) -> Matrix {
        let at = self.directions.apply(rows);
        let own = halves(&at);
        let mut out = matmul_t(&at, &self.places);
        for (i, own) in own.iter().enumerate() {
            for (v, half) in out.row_mut(i).iter_mut().zip(&self.halves) {
                let squared = (2.0 * (own + half - *v)).max(0.0);
                *v = libm::expf(-self.sharpness * squared);
            }
        }
        out
    }

    /// What to store.
    pub(crate) fn state(&self) -> State {
        State::new()
            .with_part("directions.", &self.directions.state())
            .matrix_f16("places", &self.places)
            .f32("sharpness", &[self.sharpness])
    }

    /// Restores them.
    pub(crate) fn load(state: &State) -> Result<Self> {
        let directions = Ridge::load(&state.part("directions."))?;
        let places = state.read_matrix_f16("places")?;
        let sharpness = state.read_f32("sharpness")?;
        match sharpness.as_slice() {
            &[sharpness] if places.cols() == directions.targets() => {
                Ok(Landmarks { directions, halves: halves(&places), places, sharpness })
            }
            _ => Err(damaged("the landmarks of a regression do not fit".into())),
        }
    }
}

/// Half the squared length of every row.
fn halves(rows: &Matrix) -> Vec<f32> {
    rows.iter().map(|row| (0.5 * crate::linalg::dot(row, row)) as f32).collect()
}

/// The median squared distance between rows that lie half of all apart.
fn usual_distance(rows: &Matrix) -> Option<f64> {
    let half = rows.rows() / 2;
    let mut all: Vec<f64> = (0..half)
        .map(|i| crate::linalg::squared_distance(rows.row(i), rows.row(i + half)))
        .filter(|d| d.is_finite() && *d > 0.0)
        .collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// The largest variances of centred rows and their directions, a row each, by iterating on a
/// subspace; `None` if nothing varies.
fn leading(rows: &Matrix, most: usize) -> Option<(Vec<f64>, Matrix)> {
    let width = rows.cols();
    let count = (most + BESIDE).min(width).min(rows.rows());
    let mut basis = Matrix::zeros(count, width);
    for (i, v) in basis.data_mut().iter_mut().enumerate() {
        let drawn = seed::of_index(0, "directions", i) >> 40;
        *v = drawn as f32 / (1u32 << 23) as f32 - 1.0;
    }
    orthonormal(&mut basis)?;
    let mut answers = matmul_t(rows, &basis);
    for _ in 0..ROUNDS {
        basis = matmul(&transposed(&answers), rows);
        orthonormal(&mut basis)?;
        answers = matmul_t(rows, &basis);
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

fn transposed(m: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(m.cols(), m.rows());
    for (i, row) in m.iter().enumerate() {
        for (j, v) in row.iter().enumerate() {
            out.row_mut(j)[i] = *v;
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
    use super::super::Normal;
    use super::*;

    /// Points of a ring in 3 numbers: one class within a radius of 1, the other outside. No
    /// linear regression on x and y tells them apart; landmarks do.
    fn ring(count: usize, seed: u64) -> (Matrix, Vec<u32>) {
        let draw = |i: usize| (seed::of_index(seed, "ring", i) >> 40) as f32 / (1u32 << 24) as f32;
        let mut rows = Matrix::zeros(count, 3);
        let mut classes = Vec::new();
        for i in 0..count {
            let class = (i % 2) as u32;
            let radius = 0.3 + 0.4 * draw(2 * i) + class as f32;
            let angle = std::f32::consts::TAU * draw(2 * i + 1);
            rows.row_mut(i).copy_from_slice(&[radius * angle.cos(), radius * angle.sin(), 0.1]);
            classes.push(class);
        }
        (rows, classes)
    }

    fn regression(rows: &Matrix, classes: &[u32], lambda: f64) -> Ridge {
        let mut normal = Normal::new(rows.cols(), 4);
        for (row, class) in rows.iter().zip(classes) {
            // Nearness has no x and y: what is asked for beside the class is the row's own.
            let beside = [2, 3].map(|t| (t, row[t as usize - 2]));
            normal.add(row, [&[(*class, 1.0)][..], &beside].concat());
        }
        normal.solve(lambda).unwrap()
    }

    #[test]
    fn what_no_plane_divides_is_told_apart_by_nearness() {
        let (rows, classes) = ring(400, 1);
        let linear = regression(&rows, &classes, 1e-3);
        let landmarks = Landmarks::of(&linear, &rows.select(&(0..80).collect::<Vec<_>>())).unwrap();
        let bent = regression(&landmarks.nearness(&rows), &classes, 1e-4);
        let (fresh, truth) = ring(200, 2);
        let right = |read: &Matrix| {
            read.iter().zip(&truth).filter(|(r, t)| u32::from(r[1] > r[0]) == **t).count()
        };
        let by_plane = right(&linear.apply(&fresh));
        let by_nearness = right(&bent.apply(&landmarks.nearness(&fresh)));
        assert!(by_plane < 140 && by_nearness > 190, "{by_plane}, {by_nearness} of 200");
    }

    #[test]
    fn a_landmark_is_nearest_to_itself_and_what_is_stored_comes_back() {
        let (rows, classes) = ring(120, 3);
        let linear = regression(&rows, &classes, 1e-3);
        let landmarks = Landmarks::of(&linear, &rows).unwrap();
        let near = landmarks.nearness(&rows);
        for (i, row) in near.iter().enumerate() {
            assert!((row[i] - 1.0).abs() < 1e-2, "{}", row[i]);
        }
        assert_eq!(near.select(&[7]).data(), landmarks.nearness(&rows.select(&[7])).data());
        assert_eq!(Landmarks::load(&landmarks.state()).unwrap(), landmarks);
        let few = State::new().with_part("directions.", &linear.state());
        assert!(Landmarks::load(&few).is_err());
    }

    /// Variances 9, 4 and 1 along known axes.
    #[test]
    fn leading_directions_are_those_of_the_largest_variance() {
        let mut rows = Matrix::zeros(6, 3);
        for (i, v) in [3.0f32, 2.0, 1.0].into_iter().enumerate() {
            let v = v * 3f32.sqrt();
            rows.row_mut(2 * i)[i] = v;
            rows.row_mut(2 * i + 1)[i] = -v;
        }
        let (variances, vectors) = leading(&rows, 2).unwrap();
        assert!((variances[0] - 9.0).abs() < 1e-4 && (variances[1] - 4.0).abs() < 1e-4);
        assert!((vectors.row(0)[0].abs() - 1.0).abs() < 1e-5);
        assert!((vectors.row(1)[1].abs() - 1.0).abs() < 1e-5);
        assert!(leading(&Matrix::zeros(4, 3), 2).is_none());
    }
}
