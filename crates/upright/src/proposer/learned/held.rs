//! Copies of samples that nothing is learnt from: they choose the penalty of
//! the regression, tell how far its readings are to be believed, and how often
//! it finds the pose.

use super::Learned;
use crate::copies::Kind;
use crate::ridge::{Landmarks, Normal, Ridge};
use crate::stats::log_softmax;
use crate::tensor::{Matrix, argmax};

/// Most copies that are held apart, and their share.
const MOST: usize = 1500;
const SHARE: u64 = 10;
/// Fewer copies than this are nothing to go by.
const FEWEST: usize = 100;

/// Some copies.
pub(super) struct Held {
    rows: Vec<f32>,
    targets: Vec<Vec<(u32, f32)>>,
    kinds: Vec<Kind>,
    room: usize,
}

impl Held {
    /// Of so many copies of so many samples.
    pub(super) fn new(samples: usize, copies: usize) -> Self {
        let room = if samples < 10 * SHARE as usize { 0 } else { MOST.min(copies / 8) };
        Held { rows: Vec::new(), targets: Vec::new(), kinds: Vec::new(), room }
    }

    /// Whether the copies of a sample, given by a number for its content, are held apart.
    pub(super) fn wants(&self, sample: u64) -> bool {
        self.room > 0 && sample.is_multiple_of(SHARE)
    }

    /// Takes a copy; beyond what there is room for, it is left out.
    pub(super) fn add(&mut self, row: Vec<f32>, targets: Vec<(u32, f32)>, kind: Kind) {
        if self.targets.len() < self.room {
            self.rows.extend(row);
            self.targets.push(targets);
            self.kinds.push(kind);
        }
    }

    /// What a regression reads of them: their features, or how near they lie to landmarks. No
    /// row where they are too few to go by.
    pub(super) fn rows(&self, landmarks: Option<&Landmarks>) -> Matrix {
        let count = self.targets.len();
        let width = self.rows.len() / count.max(1);
        match Matrix::new(count, width, self.rows.clone()) {
            Ok(rows) if count >= FEWEST => match landmarks {
                Some(landmarks) => landmarks.nearness(&rows),
                None => rows,
            },
            _ => Matrix::zeros(0, landmarks.map_or(width, Landmarks::len)),
        }
    }

    /// The regression with the penalty that makes them likeliest by the rows that it reads, and
    /// what it makes of these; with the first penalty where there are none. `None` if none can be
    /// solved.
    pub(super) fn best(
        &self,
        normal: &mut Normal,
        rows: &Matrix,
        penalties: &[f64],
    ) -> Option<(Ridge, Matrix)> {
        let few = rows.rows() == 0;
        let mut best: Option<(f64, Ridge, Matrix)> = None;
        for &penalty in if few { &penalties[..1] } else { penalties } {
            let Some(ridge) = normal.solve(penalty) else { continue };
            if few {
                let read = Matrix::zeros(0, ridge.targets());
                return Some((ridge, read));
            }
            let read = ridge.apply(rows);
            let (likely, _) = self.heat(&read, &|t| t);
            if best.as_ref().is_none_or(|(most, ..)| likely > *most) {
                best = Some((likely, ridge, read));
            }
        }
        best.map(|(_, ridge, read)| (ridge, read))
    }

    /// How far readings of poses are to be believed, where there are copies to go by, and what
    /// is worth knowing.
    pub(super) fn tell(&self, learned: &mut Learned, read: &Matrix) -> Option<String> {
        if read.rows() == 0 {
            return None;
        }
        let cells = learned.cells.len();
        let mut poses = Matrix::zeros(read.rows(), cells);
        for (i, reading) in read.iter().enumerate() {
            for (c, v) in poses.row_mut(i).iter_mut().enumerate() {
                *v = learned.over_classes(reading, c);
            }
        }
        learned.heat = self.heat(&poses, &|t| t % cells as u32).1;
        let kinds = learned.kinds();
        learned.photographs.then(|| self.by_kind(kinds, &poses))
    }

    /// The factor of the readings that makes the right targets likeliest as a softmax, and the
    /// mean log-probability of their sum then. `of` says where a target is found in a reading,
    /// if it is in it.
    fn heat(&self, read: &Matrix, of: &dyn Fn(u32) -> u32) -> (f64, f32) {
        let likelihood = |heat: f32| -> f64 {
            let one = |(reading, targets): (&[f32], &Vec<(u32, f32)>)| {
                let likely = log_softmax(reading, 1.0 / f64::from(heat));
                let own = targets.iter().filter_map(|&(t, _)| likely.get(of(t) as usize));
                own.map(|&l| libm::exp(l)).sum::<f64>().max(1e-6).ln()
            };
            read.iter().zip(&self.targets).map(one).sum::<f64>() / self.targets.len() as f64
        };
        let tried = (0..17).map(|step| 2f32.powf(0.5 * step as f32));
        tried
            .map(|heat| (likelihood(heat), heat))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((f64::NEG_INFINITY, 1.0))
    }

    /// How often the best pose is the right one, for each kind of copies.
    fn by_kind(&self, kinds: &[Kind], poses: &Matrix) -> String {
        let cells = poses.cols() as u32;
        let shares: Vec<String> = kinds
            .iter()
            .map(|kind| {
                let own: Vec<usize> =
                    (0..self.kinds.len()).filter(|&i| self.kinds[i] == *kind).collect();
                let right = own
                    .iter()
                    .filter(|&&i| {
                        let found = argmax(poses.row(i)) as u32;
                        self.targets[i].iter().any(|&(t, _)| t % cells == found)
                    })
                    .count();
                let percent = 100.0 * right as f64 / own.len().max(1) as f64;
                format!("{percent:.0} % {}", kind.name())
            })
            .collect();
        format!(
            "from one view the proposer finds the pose of held-out copies: {} ({} copies)",
            shares.join(", "),
            self.kinds.len()
        )
    }
}
