//! Held-out inputs, upright and transformed: given, or copied under random poses.

use super::Canonicalizer;
use super::fit::{CHUNK, copies, spread, transformed_copies};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::search::moved;
use crate::seed;
use crate::tensor::Batch;

/// Largest pose that upright inputs are jittered by, as a share of each axis' extent.
const JITTER: f32 = 0.01;

/// Held-out inputs of both kinds.
pub(super) struct Held<'a> {
    pub(super) data: &'a dyn Dataset,
    /// Inputs that came transformed; otherwise copies are made.
    pub(super) given: Option<&'a dyn Dataset>,
    pub(super) upright: Vec<usize>,
    pub(super) transformed: Vec<usize>,
    pub(super) seed: u64,
}

impl Held<'_> {
    /// Chunks of rows, upright (true) and transformed (false).
    pub(super) fn chunks(&self) -> impl Iterator<Item = (bool, &[usize])> {
        let kind = |upright: bool| move |rows| (upright, rows);
        let upright = self.upright.chunks(CHUNK).map(kind(true));
        upright.chain(self.transformed.chunks(CHUNK).map(kind(false)))
    }

    /// Inputs and their classes.
    pub(super) fn read(
        &self,
        c: &Canonicalizer,
        upright: bool,
        rows: &[usize],
    ) -> Result<(Batch<'static>, Vec<Option<u32>>)> {
        let data = self.given.filter(|_| !upright).unwrap_or(self.data);
        let loaded = data.read(rows)?;
        let labels = loaded.rows.iter().map(|&r| data.label(r)).collect();
        let copies = !upright && self.given.is_none();
        let batch = if copies {
            transformed_copies(&loaded.batch, &c.space, &c.config.resample, self.seed)?
        } else {
            loaded.batch
        };
        Ok((batch, labels))
    }

    /// Copies under tiny poses, resampled as transformed copies are.
    pub(super) fn jittered(&self, c: &Canonicalizer, batch: &Batch) -> Result<Batch<'static>> {
        copies(batch, &c.config.resample, |item| {
            let mut rng = seed::stream(seed::of_content(self.seed ^ 0x6a69_7474, item));
            let steps: Vec<f32> =
                (0..c.space.size()).map(|_| JITTER * (2.0 * seed::unit(&mut rng) - 1.0)).collect();
            c.space.map(&moved(&c.space, &c.space.identity(), &steps))
        })
    }

    /// Disjoint slices of both kinds of rows, each spread over the classes.
    pub(super) fn slices(&self, count: usize) -> impl Iterator<Item = (Vec<usize>, Vec<usize>)> {
        let every = move |rows: &[usize], i: usize| -> Vec<usize> {
            rows.iter().copied().skip(i).step_by(count).collect()
        };
        (0..count).map(move |i| (every(&self.upright, i), every(&self.transformed, i)))
    }

    /// At most so many of either kind.
    pub(super) fn fewer(self, most: usize) -> Self {
        let few = |rows: &[usize]| spread(rows, most.min(rows.len())).0;
        Held { upright: few(&self.upright), transformed: few(&self.transformed), ..self }
    }

    /// Two halves without a common sample.
    pub(super) fn split(self) -> (Self, Self) {
        let half = |rows: &[usize]| spread(rows, rows.len().div_ceil(2));
        let ((a, b), (c, d)) = (half(&self.upright), half(&self.transformed));
        (Held { upright: a, transformed: c, ..self }, Held { upright: b, transformed: d, ..self })
    }
}
