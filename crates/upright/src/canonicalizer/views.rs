//! Evaluating views: warp, model, score, in chunks that bound the memory.

use super::Canonicalizer;
use crate::error::Result;
use crate::search::{Ask, Seen};
use crate::tensor::{Batch, argmax};
use crate::warp::{View, warp};

/// Most numbers held in warped views at a time: 64 MiB.
const ROOM: usize = 16 << 20;

impl Canonicalizer {
    /// Energy, label and logits of each asked pose of an item, in order.
    pub(super) fn evaluate(
        &self,
        batch: &Batch,
        asked: &[(usize, Ask)],
    ) -> Result<Vec<(Seen, Vec<f32>)>> {
        let step = self.model.micro_batch();
        let chunk = (ROOM / batch.signal().size() / step).max(1) * step;
        let mut out = Vec::with_capacity(asked.len());
        for asked in asked.chunks(chunk) {
            let views: Vec<View> = asked
                .iter()
                .map(|(item, ask)| View { item: *item, map: self.space.map(&ask.pose) })
                .collect();
            let outputs = self.model.run(&warp(batch, &views, &self.config.resample)?)?;
            let energies = self.score.energy(&outputs);
            for (((_, ask), energy), logits) in
                asked.iter().zip(energies).zip(outputs.logits.iter())
            {
                let seen = Seen {
                    pose: ask.pose.clone(),
                    energy,
                    label: argmax(logits) as u32,
                    gradient: None,
                };
                out.push((seen, logits.to_vec()));
            }
        }
        Ok(out)
    }
}
