//! Lessons: views that the proposer leads to, of samples whose class is known,
//! for scores that learn which views to believe.

use super::Canonicalizer;
use super::fit::{Watch, evenly, extend};
use super::held::Given;
use super::views::{Asked, Told, contexts, raw_contexts};
use crate::copies::{Kind, jittered, of_kinds, random_poses};
use crate::dataset::{Dataset, chunk};
use crate::error::Result;
use crate::outputs::Outputs;
use crate::score::{Context, Lesson, Lessons};
use crate::search::Ask;
use crate::seed;
use crate::tensor::Batch;
use crate::trace::Proposed;

/// Upright inputs per transformed one.
const UPRIGHT: f64 = 0.4;
/// Most numbers in the views of a chunk of inputs: 64 MiB.
const ROOM: usize = 16 << 20;
/// Most numbers of features that are kept: 768 MiB.
const KEPT: usize = 192 << 20;
/// Most copies of one sample.
const ROUNDS: usize = 6;
/// Proposals that are looked at per input.
const PROPOSALS: usize = 4;

impl Canonicalizer {
    /// Views of some rows, as about `count` copies under random poses and as they are, and of
    /// inputs that came transformed.
    pub(super) fn lessons(
        &self,
        data: &dyn Dataset,
        rows: &[usize],
        count: usize,
        given: Option<&Given>,
        watch: &mut dyn Watch,
    ) -> Result<Lessons> {
        let width = self.fitted.taps.score_width(&self.model) + self.model.classes();
        let most = KEPT / (width * (2 + PROPOSALS));
        let count = count.min((most as f64 / (1.0 + UPRIGHT)) as usize).max(1);
        let rounds = (count / rows.len().max(1)).clamp(1, ROUNDS);
        let transformed = evenly(rows, count.min(rows.len())).0;
        let upright = evenly(rows, ((UPRIGHT * count as f64) as usize).min(rows.len())).0;
        let more = given.map_or(0, |g| g.rows.len());
        watch.phase("lessons", rounds * transformed.len() + upright.len() + more);
        let signal = self.model.signal();
        let chunk = (ROOM / (PROPOSALS * signal.size())).clamp(1, chunk(signal));
        let mut lessons = Lessons::default();
        let mut outputs: Option<Outputs> = None;
        let turned = (0..rounds).map(|round| (&transformed, Some(round)));
        for (rows, round) in turned.chain([(&upright, None)]) {
            for some in rows.chunks(chunk) {
                let loaded = data.read(some)?;
                let truths = self.truths(data, &loaded.rows, 0);
                let batch = self.lesson_inputs(&loaded.batch, round)?;
                self.learn_from(&batch, &truths, round.is_some(), &mut lessons, &mut outputs)?;
                watch.advance(some.len());
            }
        }
        for some in given.iter().flat_map(|g| g.rows.chunks(chunk)) {
            let Some(Given { data: given, .. }) = given else { break };
            let loaded = given.read(some)?;
            let truths = self.truths(*given, &loaded.rows, data.len());
            self.learn_from(&loaded.batch, &truths, true, &mut lessons, &mut outputs)?;
            watch.advance(some.len());
        }
        if let Some(outputs) = outputs {
            lessons.outputs = outputs;
        }
        Ok(lessons)
    }

    /// The sample numbers, from `first` on, and classes of some rows; a class that the model does
    /// not know teaches nothing.
    fn truths(
        &self,
        data: &dyn Dataset,
        rows: &[usize],
        first: usize,
    ) -> Vec<(usize, Option<u32>)> {
        let known = |label: &u32| (*label as usize) < self.model.classes();
        rows.iter().map(|&row| (first + row, data.label(row).filter(known))).collect()
    }

    /// Copies under random poses of a round; or samples, every other one resampled by a tiny
    /// pose, those of photographs of every kind.
    fn lesson_inputs(&self, batch: &Batch, round: Option<usize>) -> Result<Batch<'static>> {
        let salt = seed::of_index(self.config.seed, "lessons", round.unwrap_or(0));
        let resample = &self.config.resample;
        let kinds = Kind::of(self.fitted.proposer.pooled());
        if let Some(round) = round {
            let poses = random_poses(batch, &self.space, salt);
            kinds[round % kinds.len()].copies(batch, &poses, &self.space, resample, salt)
        } else if kinds.len() > 1 {
            let numbers: Vec<usize> = (0..batch.len()).collect();
            let poses = vec![self.space.identity(); batch.len()];
            of_kinds(kinds, (batch, &numbers), &poses, &self.space, resample, salt)
        } else {
            let mut mixed = jittered(batch, &self.space, resample, salt)?;
            let size = batch.signal().size();
            for i in (0..batch.len()).step_by(2) {
                mixed.data_mut()[i * size..(i + 1) * size].copy_from_slice(batch.item(i));
            }
            Ok(mixed)
        }
    }

    fn learn_from(
        &self,
        batch: &Batch,
        truths: &[(usize, Option<u32>)],
        turned: bool,
        lessons: &mut Lessons,
        outputs: &mut Option<Outputs>,
    ) -> Result<()> {
        let (raw, _, mut runs) = self.identity(batch)?;
        let first = lessons.inputs;
        lessons.inputs += batch.len();
        let pose = self.space.identity();
        let mut keep = |rows: Vec<usize>, seen: &Outputs, contexts: &[Context]| -> Result<()> {
            let read = self.fitted.taps.for_score(seen)?;
            let mut kept = Vec::new();
            for (row, (&item, context)) in rows.iter().zip(contexts).enumerate() {
                let (sample, Some(truth)) = truths[item] else { continue };
                kept.push(row);
                let said = read.logits.row(row);
                lessons.views.push(Lesson::new(
                    (first + item, sample),
                    !turned,
                    truth,
                    said,
                    context,
                ));
            }
            extend(outputs, read.select(&kept))
        };
        keep((0..batch.len()).collect(), &raw, &raw_contexts(&runs, &pose))?;
        let mut proposed: Vec<Vec<Proposed>> = runs
            .iter_mut()
            .map(|(run, suggested)| {
                let mut all = run.first(1);
                all.append(suggested);
                all.into_iter().map(|proposal| Proposed { after: 0, proposal }).collect()
            })
            .collect();
        // The views that are read first, then the best of what follows from them, then steps from
        // those.
        let lead = |all: &Vec<Proposed>| all.iter().take_while(|p| p.proposal.probe).count();
        let probes: Vec<usize> = proposed.iter().map(lead).collect();
        let mut known = vec![0; batch.len()];
        for round in 0..3 {
            let mut asked: Vec<Asked> = runs
                .iter_mut()
                .zip(&proposed)
                .zip(&mut known)
                .enumerate()
                .map(|(item, (((run, _), proposed), known))| {
                    let probes = probes[item];
                    let wanted = match round {
                        0 => 0..probes,
                        1 => probes..(probes + PROPOSALS).min(proposed.len()),
                        _ => *known..proposed.len(),
                    };
                    *known = proposed.len();
                    let asks = wanted
                        .map(|n| Ask::following(proposed[n].proposal.pose.clone(), n))
                        .collect();
                    Asked { item, asks, proposed, run: run.as_mut() }
                })
                .collect();
            let rows: Vec<(usize, usize)> = asked
                .iter()
                .enumerate()
                .flat_map(|(i, a)| (0..a.asks.len()).map(move |k| (i, k)))
                .collect();
            if rows.is_empty() {
                continue;
            }
            let mut told: Vec<Told> = asked.iter().map(|_| Told::default()).collect();
            let seen = self.seen(batch, &mut asked, &rows, &mut told)?;
            let items = rows.iter().map(|&(i, _)| i).collect();
            keep(items, &seen, &contexts(&asked, &rows))?;
            drop(asked);
            for (proposed, told) in proposed.iter_mut().zip(told) {
                let more = told.proposals.into_iter();
                proposed.extend(more.map(|proposal| Proposed { after: 1, proposal }));
            }
        }
        Ok(())
    }
}
