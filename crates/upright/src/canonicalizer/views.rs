//! Evaluating views: warp, model, proposer, score, in chunks that bound the
//! memory; and the way back, from energies to poses.

use std::borrow::Cow;

use super::Canonicalizer;
use crate::error::Result;
use crate::outputs::Outputs;
use crate::parallel;
use crate::proposer::{self, Proposal, Viewed};
use crate::score::Context;
use crate::search::{Ask, Seen};
use crate::seed;
use crate::tensor::{Batch, Matrix, argmax};
use crate::trace::Proposed;
use crate::warp::{self, View, warp};

/// Most numbers held in warped views at a time: 64 MiB.
const ROOM: usize = 16 << 20;

/// What was seen at a pose, and the view's logits.
pub(super) type Evaluation = (Seen, Vec<f32>);

/// What the model makes of inputs as they are, their energies, and for each its proposer with
/// what that suggests.
pub(super) type Identity<'a> =
    (Outputs, Vec<f32>, Vec<(Box<dyn proposer::Run + 'a>, Vec<Proposal>)>);

/// The poses asked for of one input.
pub(super) struct Asked<'r, 'p> {
    /// The input's place in the batch.
    pub(super) item: usize,
    pub(super) asks: Vec<Ask>,
    /// What was proposed so far.
    pub(super) proposed: &'r [Proposed],
    /// What the proposer knows of the input.
    pub(super) run: &'r mut (dyn proposer::Run + 'p),
}

/// What came of them: one evaluation per ask, and what the proposer suggests now.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) evaluations: Vec<Evaluation>,
    pub(super) proposals: Vec<Proposal>,
}

impl Canonicalizer {
    /// What the proposer is told of an input before any view.
    pub(super) fn propose<'a>(&'a self, item: Cow<'a, [f32]>) -> Box<dyn proposer::Run + 'a> {
        let seed = seed::of_content(self.config.seed, &item);
        let signal = self.model.signal();
        self.fitted.proposer.start(proposer::Brief { space: &self.space, signal, item, seed })
    }

    /// Outputs and energies of inputs as they are, and for each a proposer that was told of
    /// it, with what it suggests.
    pub(super) fn identity<'a>(&'a self, batch: &'a Batch) -> Result<Identity<'a>> {
        self.identity_of(batch, |item| batch.item(item).into())
    }

    /// The same, where `content` gives the proposer the numbers of an input.
    pub(super) fn identity_of<'a>(
        &'a self,
        batch: &Batch,
        content: impl Fn(usize) -> Cow<'a, [f32]> + Sync,
    ) -> Result<Identity<'a>> {
        let outputs = self.model.run(batch)?;
        let read = self.fitted.taps.for_proposer(&outputs)?;
        let pose = self.space.identity();
        let runs = parallel::map(0..batch.len(), |item| self.propose(content(item)));
        let wanted: Vec<_> = runs.iter().map(|run| run.reads(&pose)).collect();
        let readings = self.readings(&read, wanted);
        let runs: Vec<_> = parallel::map(runs.into_iter().enumerate(), |(item, mut run)| {
            let suggested = tell(run.as_mut(), &read, &[(item, &pose)], &readings);
            (run, suggested)
        });
        let contexts = raw_contexts(&runs, &pose);
        let read = self.fitted.taps.for_score(&outputs)?;
        let energies = self.fitted.score.energy_of(&read, &contexts);
        drop(contexts);
        drop(read);
        Ok((outputs, energies, runs))
    }

    /// Looks at the asked poses of some inputs, tells the proposers, and gives energies.
    ///
    /// Gradients are given where they are asked for and the model has a gradient; a search
    /// that gets none goes on without. All views of an input without gradient are told to its
    /// proposer before any of them gets its energy; those with gradient afterwards.
    pub(super) fn evaluate(&self, batch: &Batch, asked: &mut [Asked]) -> Result<Vec<Told>> {
        let wanted = asked.iter().flat_map(|a| &a.asks).any(|ask| ask.gradient);
        let able = wanted && self.model.differentiable().is_ok();
        let mut told: Vec<Told> = asked.iter().map(|_| Told::default()).collect();
        let mut found: Vec<Vec<Option<Evaluation>>> =
            asked.iter().map(|a| vec![None; a.asks.len()]).collect();
        for gradient in [false, true] {
            let mine = |ask: &Ask| (ask.gradient && able) == gradient;
            let room = (ROOM / batch.signal().size()).max(1);
            let mut start = 0;
            while start < asked.len() {
                // A chunk holds whole inputs, so that what a proposer knows at an energy does
                // not depend on the other inputs.
                let (mut end, mut views) = (start, 0);
                while end < asked.len() {
                    let more = asked[end].asks.iter().filter(|a| mine(a)).count();
                    if views > 0 && views + more > room {
                        break;
                    }
                    views += more;
                    end += 1;
                }
                if views > 0 {
                    let rows: Vec<(usize, usize)> = (start..end)
                        .flat_map(|i| (0..asked[i].asks.len()).map(move |k| (i, k)))
                        .filter(|&(i, k)| mine(&asked[i].asks[k]))
                        .collect();
                    let seen = if gradient {
                        self.look_and_differentiate(batch, asked, &rows, &mut told)?
                    } else {
                        self.look(batch, asked, &rows, &mut told)?
                    };
                    for ((i, k), one) in rows.into_iter().zip(seen) {
                        found[i][k] = Some(one);
                    }
                }
                start = end;
            }
        }
        for (told, found) in told.iter_mut().zip(found) {
            told.evaluations = found.into_iter().flatten().collect();
        }
        Ok(told)
    }

    fn look(
        &self,
        batch: &Batch,
        asked: &mut [Asked],
        rows: &[(usize, usize)],
        told: &mut [Told],
    ) -> Result<Vec<Evaluation>> {
        let outputs = self.seen(batch, asked, rows, told)?;
        let read = self.fitted.taps.for_score(&outputs)?;
        let energies = self.fitted.score.energy_of(&read, &contexts(asked, rows));
        Ok(self.evaluations(asked, rows, &outputs, energies, None))
    }

    /// What the model makes of some rows, of which the proposers are told.
    pub(super) fn seen(
        &self,
        batch: &Batch,
        asked: &mut [Asked],
        rows: &[(usize, usize)],
        told: &mut [Told],
    ) -> Result<Outputs> {
        let warped = warp(batch, &self.views(asked, rows), &self.config.resample)?;
        let outputs = self.model.run(&warped)?;
        self.tell_all(asked, rows, &outputs, told)?;
        Ok(outputs)
    }

    fn look_and_differentiate(
        &self,
        batch: &Batch,
        asked: &mut [Asked],
        rows: &[(usize, usize)],
        told: &mut [Told],
    ) -> Result<Vec<Evaluation>> {
        let views = self.views(asked, rows);
        let warped = warp(batch, &views, &self.config.resample)?;
        let mut energies = Vec::with_capacity(rows.len());
        let contexts = contexts(asked, rows);
        let (outputs, d) = self.model.run_with_pullback(&warped, |_, o| {
            let own = &contexts[energies.len()..energies.len() + o.len()];
            let read = self.fitted.taps.for_score(o)?;
            let (energy, d) = self.fitted.score.energy_of_and_pullback(&read, own);
            energies.extend(energy);
            self.fitted.taps.back(d, o.features.len())
        })?;
        drop(contexts);
        self.tell_all(asked, rows, &outputs, told)?;
        let slopes = warp::pullback(batch, &views, &self.config.resample, &d)?;
        Ok(self.evaluations(asked, rows, &outputs, energies, Some(&slopes)))
    }

    fn views(&self, asked: &[Asked], rows: &[(usize, usize)]) -> Vec<View> {
        rows.iter()
            .map(|&(i, k)| View {
                item: asked[i].item,
                map: self.space.map(&asked[i].asks[k].pose),
            })
            .collect()
    }

    fn evaluations(
        &self,
        asked: &[Asked],
        rows: &[(usize, usize)],
        outputs: &Outputs,
        energies: Vec<f32>,
        slopes: Option<&Matrix>,
    ) -> Vec<Evaluation> {
        rows.iter()
            .zip(energies)
            .zip(outputs.logits.iter())
            .enumerate()
            .map(|(row, ((&(i, k), energy), logits))| {
                let Ask { pose, follows, .. } = &asked[i].asks[k];
                let seen = Seen {
                    pose: pose.clone(),
                    energy,
                    label: argmax(logits) as u32,
                    gradient: slopes.map(|m| self.slope(pose, m.row(row))),
                    follows: *follows,
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

/// What the proposer has read off some rows, where it was wanted.
type Readings = Vec<Option<Vec<f32>>>;

impl Canonicalizer {
    /// Lets the proposer read the rows that its runs want, all at once.
    fn readings(&self, outputs: &Outputs, wanted: Vec<Option<Vec<f32>>>) -> Readings {
        let mut readings = vec![None; wanted.len()];
        let (rows, own): (Vec<usize>, Vec<Vec<f32>>) =
            wanted.into_iter().enumerate().filter_map(|(row, own)| Some((row, own?))).unzip();
        if rows.is_empty() {
            return readings;
        }
        if let Some(found) = self.fitted.proposer.read(&outputs.select(&rows), &own) {
            for (row, reading) in rows.into_iter().zip(found.iter()) {
                readings[row] = Some(reading.to_vec());
            }
        }
        readings
    }

    /// Tells every input's proposer of its views among some rows.
    fn tell_all(
        &self,
        asked: &mut [Asked],
        rows: &[(usize, usize)],
        outputs: &Outputs,
        told: &mut [Told],
    ) -> Result<()> {
        let outputs = &*self.fitted.taps.for_proposer(outputs)?;
        let wanted = rows.iter().map(|&(i, k)| asked[i].run.reads(&asked[i].asks[k].pose));
        let readings = self.readings(outputs, wanted.collect());
        let mut row = 0;
        for own in rows.chunk_by(|a, b| a.0 == b.0) {
            let Asked { asks, run, .. } = &mut asked[own[0].0];
            let views: Vec<(usize, &Vec<f32>)> =
                own.iter().enumerate().map(|(n, &(_, k))| (row + n, &asks[k].pose)).collect();
            told[own[0].0].proposals.extend(tell(&mut **run, outputs, &views, &readings));
            row += own.len();
        }
        Ok(())
    }
}

/// Tells a proposer of some rows of outputs, each with its pose.
fn tell(
    run: &mut dyn proposer::Run,
    outputs: &Outputs,
    views: &[(usize, &Vec<f32>)],
    readings: &Readings,
) -> Vec<Proposal> {
    let features: Vec<Vec<&[f32]>> = views
        .iter()
        .map(|&(row, _)| outputs.features.iter().map(|f| f.row(row)).collect())
        .collect();
    let viewed: Vec<Viewed> = views
        .iter()
        .zip(&features)
        .map(|(&(row, pose), features)| Viewed {
            pose,
            logits: outputs.logits.row(row),
            features,
            reading: readings[row].as_deref(),
        })
        .collect();
    run.tell(&viewed)
}

/// The contexts of inputs as they are.
pub(super) fn raw_contexts<'a>(
    runs: &'a [(Box<dyn proposer::Run + '_>, Vec<Proposal>)],
    pose: &'a [f32],
) -> Vec<Context<'a>> {
    let context = |run: &'a (Box<dyn proposer::Run + '_>, Vec<Proposal>)| Context {
        pose,
        raw: true,
        proposal: None,
        proposer: run.0.as_ref(),
    };
    runs.iter().map(context).collect()
}

pub(super) fn contexts<'a>(asked: &'a [Asked], rows: &[(usize, usize)]) -> Vec<Context<'a>> {
    rows.iter()
        .map(|&(i, k)| {
            let Asked { asks, proposed, run, .. } = &asked[i];
            Context {
                pose: &asks[k].pose,
                raw: false,
                proposal: asks[k].follows.and_then(|n| proposed.get(n)).map(|p| &p.proposal),
                proposer: &**run,
            }
        })
        .collect()
}
