//! Predicting: look at inputs as they are, search those that the gate opens
//! for, all in step, and let readout and gate decide.

use rayon::prelude::*;

use super::views::{Asked, Told};
use super::{Canonicalizer, Prediction, Verdict};
use crate::abstain::Doubt;
use crate::error::{Error, Result};
use crate::gate::Look;
use crate::proposer::{self, Proposal};
use crate::readout::Answer;
use crate::role::Role;
use crate::search::{self, Ask, Brief, Run, Seen};
use crate::seed;
use crate::tensor::{Batch, Matrix, argmax};
use crate::trace::{Proposed, Trace};

/// An input that was looked at as it is.
pub(super) struct Begun<'a> {
    pub(super) trace: Trace,
    run: Box<dyn proposer::Run + 'a>,
    /// What the proposer suggests after the input as it is.
    suggested: Vec<Proposal>,
}

impl Canonicalizer {
    /// Answers for a batch of prepared inputs, in order.
    ///
    /// An input's answer depends on its content, the fitted parts and the seed alone, not
    /// on the batch it comes in, the thread count or the order. An input that is kept or
    /// rejected gets the bare model's logits bit for bit.
    pub fn predict(&self, batch: &Batch) -> Result<Vec<Prediction>> {
        let begun = self.begin(batch)?;
        let mut predictions: Vec<Prediction> = begun.iter().map(|b| self.kept(&b.trace)).collect();
        let (rows, begun): (Vec<usize>, Vec<Begun>) = begun
            .into_iter()
            .enumerate()
            .filter(|(_, b)| self.fitted.gate.search(b.trace.raw_look()))
            .unzip();
        for (row, trace) in rows.iter().zip(self.search_rows(batch, &rows, begun)?) {
            self.answer(&mut predictions[*row], &trace);
        }
        Ok(predictions)
    }

    /// Searches every input of a batch, whatever the gate says, and returns all that was
    /// looked at.
    pub fn trace(&self, batch: &Batch) -> Result<Vec<Trace>> {
        let rows: Vec<usize> = (0..batch.len()).collect();
        self.search_rows(batch, &rows, self.begin(batch)?)
    }

    /// What the gate makes of a finished search of an input.
    #[doc(hidden)]
    pub fn decide(&self, trace: &Trace) -> Prediction {
        let mut prediction = self.kept(trace);
        if self.fitted.gate.search(trace.raw_look()) {
            self.answer(&mut prediction, trace);
        }
        prediction
    }

    /// The answer that the readout gives for a search.
    #[doc(hidden)]
    pub fn read(&self, trace: &Trace) -> Option<Answer> {
        self.fitted.readout.read(trace)
    }

    /// Looks at inputs as they are.
    pub(super) fn begin<'a>(&'a self, batch: &'a Batch) -> Result<Vec<Begun<'a>>> {
        if batch.signal() != self.model.signal() {
            return Err(Error::shape(
                "inputs",
                self.model.signal().shape(),
                batch.signal().shape(),
            ));
        }
        let (outputs, energies, runs) = self.identity(batch)?;
        let all = energies.into_iter().zip(outputs.logits.iter()).zip(runs);
        Ok(all
            .map(|((energy, logits), (run, suggested))| {
                let raw = Seen::new(self.space.identity(), energy, argmax(logits) as u32);
                Begun { trace: Trace::new(raw, logits.to_vec()), run, suggested }
            })
            .collect())
    }

    /// The bare model's answer.
    fn kept(&self, trace: &Trace) -> Prediction {
        let Look { energy, label } = trace.raw_look();
        Prediction {
            label,
            rival: None,
            logits: trace.raw_logits.clone(),
            raw_label: label,
            energy_before: energy,
            energy_after: energy,
            map: self.space.map(&trace.raw.pose),
            pose: trace.raw.pose.clone(),
            verdict: Verdict::Kept,
            evaluations: 1,
        }
    }

    /// Runs the searches of some rows in step, each going on from how it has begun.
    fn search_rows<'a>(
        &'a self,
        batch: &'a Batch,
        rows: &[usize],
        begun: Vec<Begun<'a>>,
    ) -> Result<Vec<Trace>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        if self.switches()
            && let Some(logits) = self.fitted.router.answer(&batch.select(rows))?
        {
            return Ok(routed(begun, &logits));
        }
        let mut traces = Vec::with_capacity(begun.len());
        let mut proposers = Vec::with_capacity(begun.len());
        for Begun { trace, run, suggested } in begun {
            traces.push(trace);
            proposers.push((run, suggested));
        }
        let first = self.fitted.search.first(self.config.budget);
        let proposals: Vec<Vec<Proposal>> = proposers
            .par_iter_mut()
            .map(|(run, suggested)| {
                let mut proposals = run.first(first);
                proposals.append(suggested);
                proposals
            })
            .collect();
        let starts: Vec<Seen> = traces.iter().map(|t| t.raw.clone()).collect();
        let mut runs: Vec<Box<dyn Run + '_>> = rows
            .iter()
            .zip(&starts)
            .zip(&proposals)
            .map(|((&row, raw), proposals)| {
                self.fitted.search.start(&Brief {
                    space: &self.space,
                    seed: seed::of_content(self.config.seed, batch.item(row)),
                    budget: self.config.budget,
                    raw,
                    proposals,
                    sure: self.fitted.score.sure(),
                })
            })
            .collect();
        for (trace, proposals) in traces.iter_mut().zip(&proposals) {
            note(trace, proposals);
        }
        // A gradient that cannot be had is not paid for.
        let gradients = search::row(&self.config.part(Role::Search).name)?.make.gradient
            && self.model.differentiable().is_ok();
        loop {
            let asks = self.asks(&mut runs, &mut traces, gradients)?;
            let mut asked: Vec<Asked> = asks
                .into_iter()
                .zip(rows)
                .zip(traces.iter().zip(&mut proposers))
                .map(|((asks, &item), (trace, (run, _)))| Asked {
                    item,
                    asks,
                    proposed: &trace.proposals,
                    run: run.as_mut(),
                })
                .collect();
            if asked.iter().all(|a| a.asks.is_empty()) {
                break;
            }
            let told = self.evaluate(batch, &mut asked)?;
            for ((run, trace), Told { evaluations, proposals }) in
                runs.iter_mut().zip(&mut traces).zip(told)
            {
                if evaluations.is_empty() {
                    continue;
                }
                let (seen, logits): (Vec<Seen>, Vec<Vec<f32>>) = evaluations.into_iter().unzip();
                run.tell(&seen);
                trace.seen.extend(seen);
                trace.logits.extend(logits);
                if !proposals.is_empty() {
                    run.suggest(&proposals);
                    note(trace, &proposals);
                }
            }
        }
        for (trace, run) in traces.iter_mut().zip(&runs) {
            trace.pick = run.pick();
        }
        Ok(traces)
    }

    /// What each search asks for next, which must be within its budget and is paid for.
    fn asks(
        &self,
        runs: &mut [Box<dyn Run + '_>],
        traces: &mut [Trace],
        gradients: bool,
    ) -> Result<Vec<Vec<Ask>>> {
        let room = |trace: &Trace| self.config.budget - trace.cost;
        let asks: Vec<Vec<Ask>> = runs
            .par_iter_mut()
            .zip(&*traces)
            .map(|(run, trace)| match room(trace) {
                0 => Vec::new(),
                room => run.ask(room),
            })
            .collect();
        for (asks, trace) in asks.iter().zip(traces) {
            let room = room(trace);
            let cost: usize = if gradients { asks.iter().map(Ask::cost).sum() } else { asks.len() };
            if cost > room {
                return Err(Error::BadSetting {
                    part: format!("search {}", self.config.part(Role::Search).name),
                    name: "budget".into(),
                    value: format!("{cost} asked"),
                    range: format!("at most {room}"),
                });
            }
            trace.cost += cost;
        }
        Ok(asks)
    }

    /// Lets the gate decide between the input as it is and the answer of its search.
    fn answer(&self, prediction: &mut Prediction, trace: &Trace) {
        prediction.evaluations += trace.cost;
        prediction.verdict = Verdict::Rejected;
        let answer = self.fitted.readout.read(trace);
        let believed = answer.filter(|a| self.fitted.gate.accept(trace.raw_look(), a.look));
        if let Some(answer) = believed {
            let pose = &trace.seen[answer.view].pose;
            prediction.verdict = Verdict::Accepted;
            prediction.label = answer.look.label;
            prediction.energy_after = answer.look.energy;
            prediction.map = self.space.map(pose);
            prediction.pose.clone_from(pose);
            prediction.logits = answer.logits;
        }
        if self.switches() {
            prediction.energy_after = prediction.energy_before;
            if prediction.verdict == Verdict::Accepted {
                prediction.verdict = Verdict::Switched;
            }
            return;
        }
        let doubt = Doubt::of(trace, prediction.label, prediction.energy_after);
        prediction.rival = doubt.rival;
        if self.fitted.abstain.holds(&doubt) {
            prediction.verdict = Verdict::Abstained;
        }
    }
}

/// What another model says of inputs, as a view of the lowest energy there is.
fn routed(begun: Vec<Begun>, logits: &Matrix) -> Vec<Trace> {
    begun
        .into_iter()
        .zip(logits.iter())
        .map(|(Begun { mut trace, .. }, logits)| {
            let label = argmax(logits) as u32;
            trace.seen.push(Seen::new(trace.raw.pose.clone(), f32::NEG_INFINITY, label));
            trace.logits.push(logits.to_vec());
            trace.cost = 1;
            trace
        })
        .collect()
}

/// Records what was proposed after the views so far.
fn note(trace: &mut Trace, proposals: &[Proposal]) {
    let after = trace.seen.len();
    let proposed = |p: &Proposal| Proposed { after, proposal: p.clone() };
    trace.proposals.extend(proposals.iter().map(proposed));
}
