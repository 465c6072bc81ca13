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
use crate::linalg::{dot, leading, matmul, matmul_t, mean, squared_distance, transposed};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// Most directions.
const DIRECTIONS: usize = 128;
/// The sharpness `s`, times the median squared distance of rows.
const SHARPNESS: f64 = 2.0;

/// Rows to compare with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Landmarks {
    /// From features to coordinates.
    directions: Ridge,
    /// A column of coordinates per landmark; every number fits half precision.
    places: Matrix,
    /// Half the squared length of each.
    halves: Vec<f32>,
    sharpness: f32,
}

impl Landmarks {
    /// The given rows, in the directions of a regression; `None` if its answers do not vary.
    pub(crate) fn of(ridge: &Ridge, rows: &Matrix) -> Option<Self> {
        let answers = ridge.apply(rows);
        let centre = mean(answers.iter(), answers.cols());
        let (variances, vectors) = leading(&answers, &centre, DIRECTIONS)?;
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
            places: transposed(&places),
            sharpness: (SHARPNESS / usual) as f32,
        })
    }

    /// Features that are read.
    pub(crate) fn width(&self) -> usize {
        self.directions.width()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.cols()
    }

    /// How near each row lies to each landmark. A row does not depend on the others.
    pub(crate) fn nearness(&self, rows: &Matrix) -> Matrix {
        let at = self.directions.apply(rows);
        let own = halves(&at);
        let mut out = matmul(&at, &self.places);
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
            .matrix_f16("places", &transposed(&self.places))
            .f32("sharpness", &[self.sharpness])
    }

    /// Restores them.
    pub(crate) fn load(state: &State) -> Result<Self> {
        let directions = Ridge::load(&state.part("directions."))?;
        let places = state.read_matrix_f16("places")?;
        let sharpness = state.read_f32("sharpness")?;
        match sharpness.as_slice() {
            &[sharpness] if places.cols() == directions.targets() => {
                let (halves, places) = (halves(&places), transposed(&places));
                Ok(Landmarks { directions, places, halves, sharpness })
            }
            _ => Err(damaged("the landmarks of a regression do not fit".into())),
        }
    }
}

/// Half the squared length of every row.
fn halves(rows: &Matrix) -> Vec<f32> {
    rows.iter().map(|row| (0.5 * dot(row, row)) as f32).collect()
}

/// The median squared distance between rows that lie half of all apart.
fn usual_distance(rows: &Matrix) -> Option<f64> {
    let half = rows.rows() / 2;
    let mut all: Vec<f64> = (0..half)
        .map(|i| squared_distance(rows.row(i), rows.row(i + half)))
        .filter(|d| d.is_finite() && *d > 0.0)
        .collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::super::Normal;
    use super::*;
    use crate::seed;

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
}
