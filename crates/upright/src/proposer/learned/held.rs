//! Copies of samples that nothing is learnt from: they choose the penalty of
//! the regression, tell how far its readings are to be believed, and how often
//! it finds the pose.

use super::Learned;
use super::fit::silent;
use crate::copies::Kind;
use crate::ridge::{Normal, Ridge};
use crate::stats::log_softmax;
use crate::tensor::{Matrix, argmax};

/// Most copies that are held apart, and their share.
const MOST: usize = 1500;
const SHARE: u64 = 10;
/// Penalties that are tried, per copy.
const PENALTIES: [f64; 4] = [0.03, 0.1, 0.3, 1.0];
/// The penalty where too few copies are held apart to choose one.
const USUAL: f64 = 0.03;
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

    /// Solves the regression with the given penalty, or with the one that makes the copies
    /// likeliest; and says what is worth knowing.
    pub(super) fn choose(
        &self,
        learned: &mut Learned,
        normal: &mut Normal,
        penalty: Option<f64>,
    ) -> Option<String> {
        let failed = || Some(silent("the features of the copies cannot be regressed on"));
        let count = self.targets.len();
        if count < FEWEST {
            learned.ridge = normal.solve(penalty.unwrap_or(USUAL));
            return if learned.ridge.is_some() { None } else { failed() };
        }
        let rows = Matrix::new(count, self.rows.len() / count, self.rows.clone()).ok()?;
        let tried: Vec<f64> = penalty.map_or(PENALTIES.to_vec(), |p| vec![p]);
        let mut best: Option<(f64, Ridge, Matrix)> = None;
        for penalty in tried {
            let Some(ridge) = normal.solve(penalty) else { continue };
            let read = ridge.apply(&rows);
            let (likely, _) = self.heat(&read, &|t| t);
            if best.as_ref().is_none_or(|(most, ..)| likely > *most) {
                best = Some((likely, ridge, read));
            }
        }
        let Some((_, ridge, read)) = best else { return failed() };
        learned.ridge = Some(ridge);
        let cells = learned.cells.len();
        let mut poses = Matrix::zeros(count, cells);
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
