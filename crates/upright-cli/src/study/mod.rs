//! What a fitted canonicalizer does to labelled data, looked at closely: every
//! input is searched, whatever the gate says, so that one search of each tells
//! what every threshold would have done.

mod budget;
mod health;
mod landscape;
mod latency;

use upright::gate::{Calibration, Case, Look};
use upright::internal::canonicalizer::Posed;
use upright::internal::dataset::CHUNK;
use upright::internal::seed;
use upright::internal::stats::auroc;
use upright::{
    Accuracy, Advice, Batch, Canonicalizer, Dataset, Model, Prediction, Share, Trace, Transforms,
    Verdict,
};
use upright_data::Source;

pub use budget::{Budget, budgets};
pub use health::Health;
pub use landscape::{Grid, Landscape, Line, landscape, slice};
pub use latency::{Latency, PARTS, Percentiles, Split};

use crate::Common;
use crate::progress::Progress;
use crate::report::Result;

/// Labelled inputs to study.
pub struct Inputs<'a> {
    /// `upright` or `transformed`.
    pub kind: &'static str,
    /// Where they come from.
    pub data: &'a dyn Dataset,
    /// The same as files, if they are.
    pub source: Option<&'a Source>,
    /// Whether copies under random poses are studied instead of the inputs themselves.
    pub copies: bool,
    /// Seed of these poses.
    pub seed: u64,
}

impl Inputs<'_> {
    /// The inputs as they are studied.
    pub fn posed(&self) -> Posed<'_> {
        Posed { data: self.data, copies: self.copies.then_some(self.seed) }
    }

    /// Some rows, as they are studied, without the unreadable ones; and which rows they are.
    pub fn read(&self, c: &Canonicalizer, rows: &[usize]) -> Result<(Batch<'static>, Vec<usize>)> {
        let loaded = self.posed().read(c, rows)?;
        Ok((loaded.batch, loaded.rows))
    }

    /// What to call a row.
    pub fn name(&self, row: usize) -> String {
        self.source.map_or_else(|| format!("{} {row}", self.kind), |s| s.name(row))
    }
}

/// What became of one input.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its row in the data.
    pub row: usize,
    /// Its class.
    pub truth: u32,
    /// The answer, without its logits.
    pub prediction: Prediction,
    /// The input as it is.
    pub raw: Look,
    /// What the readout makes of its search, whether or not the gate believes it.
    pub found: Option<Look>,
    /// How much more probable the true class became, -1..1.
    pub gain: f32,
    /// Suggestions that were looked at, in the order of looking.
    pub followed: Vec<Followed>,
}

/// A suggestion of the proposer that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    /// The class that the model gives the view.
    pub label: u32,
    /// Whether the readout took it for its answer.
    pub answered: bool,
}

/// The views that follow a suggestion with a class.
fn followed(trace: &Trace, answer: Option<usize>) -> Vec<Followed> {
    let named = |n: usize| trace.proposals.get(n).is_some_and(|p| p.proposal.class.is_some());
    let views = trace.seen.iter().enumerate().filter(|(_, s)| s.follows.is_some_and(named));
    views.map(|(i, s)| Followed { label: s.label, answered: answer == Some(i) }).collect()
}

impl Outcome {
    /// Whether the bare model is right.
    pub fn before(&self) -> bool {
        self.prediction.raw_label == self.truth
    }

    /// Whether the answer is right.
    pub fn after(&self) -> bool {
        self.prediction.label == self.truth
    }

    fn case(&self) -> Case {
        Case { raw: self.raw, best: self.found, truth: Some(self.truth) }
    }
}

/// What became of all inputs of a kind.
#[derive(Debug)]
pub struct Side {
    /// `upright` or `transformed`.
    pub kind: &'static str,
    /// One per input that could be read and has a label.
    pub outcomes: Vec<Outcome>,
    /// The state of the data.
    pub health: Health,
}

impl Side {
    /// Searches every input.
    pub fn study(c: &Canonicalizer, inputs: &Inputs, common: &Common) -> Result<Self> {
        let bar = Progress::start(inputs.kind, inputs.data.len(), common.quiet);
        let mut side = Side { kind: inputs.kind, outcomes: Vec::new(), health: Health::default() };
        let all: Vec<usize> = (0..inputs.data.len()).collect();
        for chunk in all.chunks(CHUNK) {
            let loaded = inputs.data.read(chunk)?;
            let labels = inputs.posed().labels(&loaded.rows);
            side.health.add(&loaded.batch, &loaded.rows, &labels);
            let batch = inputs.posed().pose(c, loaded.batch)?;
            let traces = c.trace(&batch)?;
            for ((trace, &row), label) in traces.iter().zip(&loaded.rows).zip(labels) {
                let Some(truth) = label else { continue };
                let mut prediction = c.decide(trace);
                let before = probability(&trace.raw_logits, truth);
                let gain = probability(&prediction.logits, truth) - before;
                prediction.logits = Vec::new();
                let answer = c.read(trace);
                let followed = followed(trace, answer.as_ref().map(|a| a.view));
                let found = answer.map(|a| a.look);
                let raw = trace.raw_look();
                side.outcomes.push(Outcome { row, truth, prediction, raw, found, gain, followed });
            }
            bar.advance(chunk.len());
        }
        side.health.finish(inputs.source, inputs.data.len());
        side.health.not_numbers = side.outcomes.iter().filter(|o| o.raw.energy.is_nan()).count();
        Ok(side)
    }

    /// Right answers of the bare model and behind the gate.
    pub fn accuracy(&self) -> Accuracy {
        let mut accuracy = Accuracy::default();
        for o in &self.outcomes {
            accuracy.add(std::slice::from_ref(&o.prediction), &[Some(o.truth)]);
        }
        accuracy
    }

    /// Energies of the inputs as they are.
    pub fn energies(&self) -> Vec<f32> {
        self.outcomes.iter().map(|o| o.raw.energy).collect()
    }

    /// How many inputs were treated in a way.
    pub fn verdicts(&self, verdict: Verdict) -> Share {
        Share::count(self.outcomes.iter().map(|o| o.prediction.verdict == verdict))
    }
}

/// Right answers of a classifier on inputs as they are.
pub fn answered(model: &Model, c: &Canonicalizer, inputs: &Inputs) -> Result<Share> {
    let mut right = Vec::with_capacity(inputs.data.len());
    let all: Vec<usize> = (0..inputs.data.len()).collect();
    for chunk in all.chunks(CHUNK) {
        let (batch, rows) = inputs.read(c, chunk)?;
        let labels = model.run(&batch)?.labels();
        let truths = inputs.posed().labels(&rows);
        right.extend(labels.iter().zip(truths).filter_map(|(l, t)| Some(*l == t?)));
    }
    Ok(Share::count(right))
}

/// Upright and transformed inputs together.
#[derive(Debug)]
pub struct Study {
    /// Upright inputs.
    pub upright: Side,
    /// Transformed ones.
    pub transformed: Side,
    /// Where the transformed ones come from.
    pub transforms: Transforms,
    /// Right answers of another classifier on both, e.g. one that was trained with the transforms.
    pub retrained: Option<[Share; 2]>,
}

impl Study {
    /// Both kinds, with their names.
    pub fn sides(&self) -> [&Side; 2] {
        [&self.upright, &self.transformed]
    }

    /// What moving the gate's threshold alone would do.
    pub fn curve(&self, c: &Canonicalizer) -> Vec<upright::internal::gate::Point> {
        let cases = |side: &Side| side.outcomes.iter().map(Outcome::case).collect::<Vec<_>>();
        let (upright, transformed) = (cases(&self.upright), cases(&self.transformed));
        let cases = Calibration { upright: &upright, transformed: &transformed };
        upright::internal::gate::curve(c.gate(), &cases)
    }

    /// How often a transformed input's energy exceeds an upright one's.
    pub fn auroc(&self) -> Option<f64> {
        auroc(&self.upright.energies(), &self.transformed.energies())
    }

    /// Whether to use it, judged on these data as a fit judges itself.
    pub fn advice(&self, c: &Canonicalizer) -> (Advice, String) {
        let mut report = c.report().clone();
        report.upright = self.upright.accuracy();
        report.transformed = self.transformed.accuracy();
        report.transforms = self.transforms;
        report.auroc = self.auroc();
        report.advice()
    }
}

/// The softmax probability of a class.
fn probability(logits: &[f32], class: u32) -> f32 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|&l| (l - top).exp()).sum();
    logits.get(class as usize).map_or(0.0, |&l| (l - top).exp() / sum)
}

/// A fingerprint that goes on from another: 64 bits of BLAKE3.
fn chained(from: u64, item: &[f32]) -> u64 {
    seed::of_content(from, item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_softmax_and_do_not_overflow() {
        assert!((probability(&[0.0, 3f32.ln()], 1) - 0.75).abs() < 1e-6);
        assert!((probability(&[1000.0, 1000.0], 0) - 0.5).abs() < 1e-6);
        assert!(probability(&[1.0], 7).abs() < 1e-9);
    }
}
