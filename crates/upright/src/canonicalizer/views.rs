//! Evaluating views: warp, model, score, in chunks that bound the memory; and
//! the way back, from energies to poses.

use super::Canonicalizer;
use crate::error::Result;
use crate::outputs::Outputs;
use crate::search::{Ask, Seen};
use crate::tensor::{Batch, Matrix, argmax};
use crate::warp::{self, View, warp};

/// Most numbers held in warped views at a time: 64 MiB.
const ROOM: usize = 16 << 20;

/// What was seen at a pose, and the view's logits.
pub(super) type Evaluation = (Seen, Vec<f32>);

impl Canonicalizer {
    /// Energy, label and logits of each asked pose of an item, in order.
    ///
    /// Gradients are given where they are asked for and the model has a gradient; a search
    /// that gets none goes on without.
    pub(super) fn evaluate(
        &self,
        batch: &Batch,
        asked: &[(usize, Ask)],
    ) -> Result<Vec<Evaluation>> {
        let steep = |ask: &Ask| ask.gradient && self.model.differentiable().is_ok();
        let mut seen: Vec<Option<Evaluation>> = vec![None; asked.len()];
        for gradient in [false, true] {
            let group: Vec<usize> =
                (0..asked.len()).filter(|&i| steep(&asked[i].1) == gradient).collect();
            let step = self.model.micro_batch();
            let chunk = (ROOM / batch.signal().size() / step).max(1) * step;
            for rows in group.chunks(chunk) {
                let asks: Vec<&(usize, Ask)> = rows.iter().map(|&i| &asked[i]).collect();
                for (&row, one) in rows.iter().zip(self.look(batch, &asks, gradient)?) {
                    seen[row] = Some(one);
                }
            }
        }
        Ok(seen.into_iter().flatten().collect())
    }

    /// Evaluates some poses together, all with or all without gradient.
    fn look(
        &self,
        batch: &Batch,
        asks: &[&(usize, Ask)],
        gradient: bool,
    ) -> Result<Vec<Evaluation>> {
        let views: Vec<View> = asks
            .iter()
            .map(|(item, ask)| View { item: *item, map: self.space.map(&ask.pose) })
            .collect();
        let warped = warp(batch, &views, &self.config.resample)?;
        if !gradient {
            let outputs = self.model.run(&warped)?;
            return Ok(self.told(asks, &outputs, self.score.energy(&outputs), None));
        }
        let mut energies = Vec::with_capacity(asks.len());
        let (outputs, d) = self.model.run_with_pullback(&warped, |_, o| {
            let (energy, d) = self.score.energy_and_pullback(o);
            energies.extend(energy);
            Ok(d)
        })?;
        let slopes = warp::pullback(batch, &views, &self.config.resample, &d)?;
        Ok(self.told(asks, &outputs, energies, Some(&slopes)))
    }

    fn told(
        &self,
        asks: &[&(usize, Ask)],
        outputs: &Outputs,
        energies: Vec<f32>,
        slopes: Option<&Matrix>,
    ) -> Vec<Evaluation> {
        asks.iter()
            .zip(energies)
            .zip(outputs.logits.iter())
            .enumerate()
            .map(|(i, (((_, ask), energy), logits))| {
                let seen = Seen {
                    pose: ask.pose.clone(),
                    energy,
                    label: argmax(logits) as u32,
                    gradient: slopes.map(|m| self.slope(&ask.pose, m.row(i))),
                };
                (seen, logits.to_vec())
            })
            .collect()
    }

    /// The chain's last link: from the derivative by the map to that by the pose.
    fn slope(&self, pose: &[f32], by_map: &[f32]) -> Vec<f32> {
        self.space
            .derivative(pose)
            .iter()
            .map(|d| d.entries().iter().zip(by_map).map(|(d, m)| d * m).sum())
            .collect()
    }
}
