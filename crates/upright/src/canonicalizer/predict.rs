//! Predicting: look at inputs as they are, search those that the gate opens
//! for, all in step, and let readout and gate decide.

use rayon::prelude::*;

use super::{Canonicalizer, Prediction, Verdict, switch};
use crate::abstain::Doubt;
use crate::error::{Error, Result};
use crate::gate::Look;
use crate::readout::Answer;
use crate::search::{Ask, Brief, Run, Seen};
use crate::seed;
use crate::tensor::{Batch, argmax};
use crate::trace::Trace;

impl Canonicalizer {
    /// Answers for a batch of prepared inputs, in order.
    ///
    /// An input's answer depends on its content, the fitted parts and the seed alone, not
    /// on the batch it comes in, the thread count or the order. An input that is kept or
    /// rejected gets the bare model's logits bit for bit.
    pub fn predict(&self, batch: &Batch) -> Result<Vec<Prediction>> {
        let raw = self.begin(batch)?;
        let mut predictions: Vec<Prediction> = raw.iter().map(|t| self.kept(t)).collect();
        let (rows, raw): (Vec<usize>, Vec<Trace>) = raw
            .into_iter()
            .enumerate()
            .filter(|(_, trace)| self.gate.search(trace.raw_look()))
            .unzip();
        for (row, trace) in rows.iter().zip(self.search_rows(batch, &rows, raw)?) {
            self.settle(&mut predictions[*row], &trace);
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
    pub fn decide(&self, trace: &Trace) -> Prediction {
        let mut prediction = self.kept(trace);
        if self.gate.search(trace.raw_look()) {
            self.settle(&mut prediction, trace);
        }
        prediction
    }

    /// The answer that the readout gives for a search.
    pub fn read(&self, trace: &Trace) -> Option<Answer> {
        self.readout.read(trace)
    }

    /// Looks at inputs as they are.
    pub(super) fn begin(&self, batch: &Batch) -> Result<Vec<Trace>> {
        if batch.signal() != self.model.signal() {
            return Err(Error::shape(
                "inputs",
                self.model.signal().shape(),
                batch.signal().shape(),
            ));
        }
        let (outputs, energies) = self.raw(batch)?;
        let seen = |energy, logits: &[f32]| Seen {
            pose: self.space.identity(),
            energy,
            label: argmax(logits) as u32,
            gradient: None,
        };
        Ok(energies
            .into_iter()
            .zip(outputs.logits.iter())
            .map(|(energy, logits)| Trace::new(seen(energy, logits), logits.to_vec()))
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

    /// Runs the searches of some rows in step, each going on from its trace.
    fn search_rows(
        &self,
        batch: &Batch,
        rows: &[usize],
        mut traces: Vec<Trace>,
    ) -> Result<Vec<Trace>> {
        if self.config.switch.is_some() {
            return self.switch_rows(batch, rows, traces);
        }
        let starts: Vec<Seen> = traces.iter().map(|t| t.raw.clone()).collect();
        let seeds: Vec<Vec<Vec<f32>>> =
            rows.par_iter().map(|&row| self.seeds(batch, row)).collect();
        let mut runs: Vec<Box<dyn Run + '_>> = rows
            .iter()
            .zip(&starts)
            .zip(&seeds)
            .map(|((&row, raw), seeds)| {
                self.search.start(&Brief {
                    space: &self.space,
                    seed: seed::of_content(self.config.seed, batch.item(row)),
                    budget: self.config.budget,
                    raw,
                    seeds,
                })
            })
            .collect();
        // A gradient that cannot be had is not paid for.
        let gradients = self.model.differentiable().is_ok();
        loop {
            let mut asked = Vec::new();
            let mut counts = vec![0; runs.len()];
            let room = |trace: &Trace| self.config.budget - trace.cost;
            let asks: Vec<Vec<Ask>> = runs
                .par_iter_mut()
                .zip(&traces)
                .map(|(run, trace)| match room(trace) {
                    0 => Vec::new(),
                    room => run.ask(room),
                })
                .collect();
            for (i, asks) in asks.into_iter().enumerate() {
                let room = room(&traces[i]);
                let cost: usize =
                    if gradients { asks.iter().map(Ask::cost).sum() } else { asks.len() };
                if cost > room {
                    return Err(Error::BadSetting {
                        part: format!("search {}", self.config.search.name),
                        name: "budget".into(),
                        value: format!("{cost} asked"),
                        range: format!("at most {room}"),
                    });
                }
                counts[i] = asks.len();
                traces[i].cost += cost;
                asked.extend(asks.into_iter().map(|ask| (rows[i], ask)));
            }
            if asked.is_empty() {
                break;
            }
            let mut seen = self.evaluate(batch, &asked)?.into_iter();
            for (i, run) in runs.iter_mut().enumerate() {
                if counts[i] > 0 {
                    let (told, logits): (Vec<Seen>, Vec<Vec<f32>>) =
                        seen.by_ref().take(counts[i]).unzip();
                    run.tell(&told);
                    traces[i].seen.extend(told);
                    traces[i].logits.extend(logits);
                }
            }
        }
        for (trace, run) in traces.iter_mut().zip(&runs) {
            trace.pick = run.pick();
        }
        Ok(traces)
    }

    /// The poses that the search wants to be told of an input.
    fn seeds(&self, batch: &Batch, row: usize) -> Vec<Vec<f32>> {
        let count = self.search.seeds(self.config.budget);
        match &self.moments {
            Some(moments) if count > 0 => {
                moments.seeds(&self.space, batch.signal(), batch.item(row), count)
            }
            _ => Vec::new(),
        }
    }

    /// Lets the gate decide between the input as it is and the answer of its search.
    fn settle(&self, prediction: &mut Prediction, trace: &Trace) {
        prediction.evaluations += trace.cost;
        prediction.verdict = Verdict::Rejected;
        let answer = self.readout.read(trace);
        let believed = answer.filter(|a| self.gate.accept(trace.raw_look(), a.look));
        if let Some(answer) = believed {
            let pose = &trace.seen[answer.view].pose;
            prediction.verdict = Verdict::Accepted;
            prediction.label = answer.look.label;
            prediction.energy_after = answer.look.energy;
            prediction.map = self.space.map(pose);
            prediction.pose.clone_from(pose);
            prediction.logits = answer.logits;
        }
        if self.config.switch.is_some() {
            switch::switched(prediction);
            return;
        }
        let doubt = Doubt::of(trace, prediction.label, prediction.energy_after);
        prediction.rival = doubt.rival;
        if self.abstain.is_some_and(|a| a.holds(&doubt)) {
            prediction.verdict = Verdict::Abstained;
        }
    }
}
