//! Predicting: look at inputs as they are, search those that the gate opens
//! for, all in step, and let readout and gate decide.

use std::borrow::Cow;

use super::underway::{Begun, Underway};
use super::{Canonicalizer, Prediction, Verdict};
use crate::abstain::Doubt;
use crate::error::{Error, Result};
use crate::gate::Look;
use crate::readout::Answer;
use crate::search::Seen;
use crate::tensor::{Batch, argmax};
use crate::trace::Trace;
use crate::warp::{View, warp};

impl Canonicalizer {
    /// Answers for a batch of prepared inputs, in order; images may lack what the model's
    /// preprocessing keeps around its crop.
    ///
    /// An input's answer depends on its content, the fitted parts and the seed alone, not
    /// on the batch it comes in, the thread count or the order. An input that is kept or
    /// rejected gets the bare model's logits bit for bit.
    pub fn predict(&self, batch: &Batch) -> Result<Vec<Prediction>> {
        let batch = &self.model.whole(batch.slice(0..batch.len()))?;
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
        let batch = &self.model.whole(batch.slice(0..batch.len()))?;
        let rows: Vec<usize> = (0..batch.len()).collect();
        self.search_rows(batch, &rows, self.begin(batch)?)
    }

    /// Views of inputs as the network sees them.
    #[doc(hidden)]
    pub fn shown(&self, batch: &Batch, views: &[View]) -> Result<Batch<'static>> {
        let whole = self.model.whole(batch.slice(0..batch.len()))?;
        self.model.centre(warp(&whole, views, &self.config.resample)?)
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
        self.begin_with(batch, |item| batch.item(item).into())
    }

    /// The same, where `content` gives the proposer the numbers of an input.
    pub(super) fn begin_with<'a>(
        &'a self,
        batch: &Batch,
        content: impl Fn(usize) -> Cow<'a, [f32]> + Sync,
    ) -> Result<Vec<Begun<'a>>> {
        if batch.signal() != self.model.signal() {
            return Err(Error::shape(
                "inputs",
                self.model.signal().shape(),
                batch.signal().shape(),
            ));
        }
        let (outputs, energies, runs) = self.identity_of(batch, content)?;
        let all = energies.into_iter().zip(outputs.logits.iter()).zip(runs);
        Ok(all
            .map(|((energy, logits), (run, suggested))| {
                let raw = Seen::new(self.space.identity(), energy, argmax(logits) as u32);
                Begun { trace: Trace::new(raw, logits.to_vec()), proposer: run, suggested }
            })
            .collect())
    }

    /// The bare model's answer.
    pub(super) fn kept(&self, trace: &Trace) -> Prediction {
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
            && let Some(traces) = self.routed(&batch.select(rows), &begun)?
        {
            return Ok(traces);
        }
        let contents = rows.iter().map(|&row| batch.item(row));
        let mut searches = self.start(begun, contents.collect())?;
        while searches.iter().any(|search| search.wanted() > 0) {
            self.advance(batch, rows, &mut searches)?;
        }
        Ok(searches.into_iter().map(Underway::end).collect())
    }

    /// What the second model says of inputs, as a view of the lowest energy there is; `None` if
    /// they are searched.
    pub(super) fn routed(&self, batch: &Batch, begun: &[Begun]) -> Result<Option<Vec<Trace>>> {
        let Some(logits) = self.fitted.router.answer(batch)? else { return Ok(None) };
        let trace = |(begun, logits): (&Begun, &[f32])| {
            let mut trace = begun.trace.clone();
            let label = argmax(logits) as u32;
            trace.seen.push(Seen::new(trace.raw.pose.clone(), f32::NEG_INFINITY, label));
            trace.logits.push(logits.to_vec());
            trace.cost = 1;
            trace
        };
        Ok(Some(begun.iter().zip(logits.iter()).map(trace).collect()))
    }

    /// Lets the gate decide between the input as it is and the answer of its search.
    pub(super) fn answer(&self, prediction: &mut Prediction, trace: &Trace) {
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
