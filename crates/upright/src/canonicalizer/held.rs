//! Held-out inputs, upright and transformed: given, or copied under random poses.

use super::Canonicalizer;
use super::fit::evenly;
use super::measure::Posed;
use crate::copies::{Kind, jittered, of_kinds, random_poses};
use crate::dataset::{Dataset, Loaded, chunk};
use crate::error::Result;
use crate::tensor::Batch;

/// How many of some held-out inputs calibrate; the others prove.
pub(super) fn calibrating(held: usize) -> usize {
    (3 * held).div_ceil(5)
}

/// Fewer inputs that came transformed than this teach nothing: they are needed elsewhere.
const TEACHING: usize = 300;

/// Inputs that came transformed and teach scores which views to believe.
pub(super) struct Given<'a> {
    pub(super) data: &'a dyn Dataset,
    pub(super) rows: Vec<usize>,
}

/// Held-out inputs of both kinds.
pub(super) struct Held<'a> {
    pub(super) data: &'a dyn Dataset,
    /// Inputs that came transformed; otherwise copies are made.
    pub(super) given: Option<&'a dyn Dataset>,
    pub(super) upright: Vec<usize>,
    pub(super) transformed: Vec<usize>,
    pub(super) seed: u64,
}

impl<'a> Held<'a> {
    /// A third of the inputs that came transformed, if there are enough, and the rest of all.
    pub(super) fn teaching(mut self) -> (Option<Given<'a>>, Self) {
        let Some(data) = self.given.filter(|_| self.transformed.len() >= TEACHING) else {
            return (None, self);
        };
        let (rows, rest) = evenly(&self.transformed, self.transformed.len() / 3);
        self.transformed = rest;
        (Some(Given { data, rows }), self)
    }
}

impl Held<'_> {
    /// Chunks of rows, upright (true) and transformed (false).
    pub(super) fn chunks(&self) -> impl Iterator<Item = (bool, &[usize])> {
        let kind = |upright: bool| move |rows| (upright, rows);
        let count = chunk(self.data.signal());
        let upright = self.upright.chunks(count).map(kind(true));
        upright.chain(self.transformed.chunks(count).map(kind(false)))
    }

    /// Inputs and their classes. Copies of photographs are of several kinds, or a gate would only
    /// know those with corners; upright ones, too, or it would take being drawn in for a pose.
    pub(super) fn read(
        &self,
        c: &Canonicalizer,
        upright: bool,
        rows: &[usize],
    ) -> Result<(Batch<'static>, Vec<Option<u32>>)> {
        let side = self.side(upright);
        let kinds = Kind::of(c.fitted.proposer.pooled());
        if kinds.len() == 1 || self.given.is_some() {
            let Loaded { batch, rows } = side.read(c, rows)?;
            return Ok((batch, side.labels(&rows)));
        }
        let Loaded { batch, rows } = side.data.read(rows)?;
        let poses = match side.copies {
            Some(seed) => random_poses(&batch, &c.space, seed),
            None => vec![c.space.identity(); batch.len()],
        };
        let resample = &c.config.resample;
        let batch = of_kinds(kinds, (&batch, &rows), &poses, &c.space, resample, self.seed)?;
        Ok((batch, side.labels(&rows)))
    }

    /// The upright inputs, or the transformed ones.
    pub(super) fn side(&self, upright: bool) -> Posed<'_> {
        match self.given.filter(|_| !upright) {
            Some(given) => Posed { data: given, copies: None },
            None => Posed { data: self.data, copies: (!upright).then_some(self.seed) },
        }
    }

    /// Copies under tiny poses, resampled as transformed copies are.
    pub(super) fn jittered(&self, c: &Canonicalizer, batch: &Batch) -> Result<Batch<'static>> {
        jittered(batch, &c.space, &c.config.resample, self.seed)
    }

    /// Disjoint slices of both kinds of rows, each spread over the classes.
    pub(super) fn slices(&self, count: usize) -> impl Iterator<Item = (Vec<usize>, Vec<usize>)> {
        let every = move |rows: &[usize], i: usize| -> Vec<usize> {
            rows.iter().copied().skip(i).step_by(count).collect()
        };
        (0..count).map(move |i| (every(&self.upright, i), every(&self.transformed, i)))
    }

    /// At most so many of either kind, and the rest.
    pub(super) fn some(self, most: usize) -> (Self, Self) {
        let some = |rows: &[usize]| evenly(rows, most.min(rows.len()));
        let ((a, b), (c, d)) = (some(&self.upright), some(&self.transformed));
        (Held { upright: a, transformed: c, ..self }, Held { upright: b, transformed: d, ..self })
    }

    /// What calibrates and what proves, without a common sample: limits are kept better with
    /// more of the former.
    pub(super) fn split(self) -> (Self, Self) {
        let share = |rows: &[usize]| evenly(rows, calibrating(rows.len()));
        let ((a, b), (c, d)) = (share(&self.upright), share(&self.transformed));
        (Held { upright: a, transformed: c, ..self }, Held { upright: b, transformed: d, ..self })
    }
}
