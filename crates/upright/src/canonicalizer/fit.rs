//! Fitting: split, fill the bank, fit the score, calibrate the gate, prove
//! the result on samples that none of them has seen.

use std::sync::Arc;

use super::held::Held;
use super::report::{Accuracy, Transforms};
use super::{Canonicalizer, Config, FitReport};
use crate::copies::{self, Copies};
use crate::dataset::{CHUNK, Dataset};
use crate::error::Result;
use crate::model::Model;
use crate::outputs::Outputs;
use crate::proposer::{self, Shape};
use crate::role::Role;
use crate::router::Models;
use crate::score::{self, Bank, Needs};
use crate::seed;
use crate::space::Space;
use crate::tensor::Matrix;

/// Bank samples of which transformed copies are made for scores that learn from them.
const COPIES: usize = 2000;

/// Bank samples whose moments are looked at.
const MEASURED: usize = 4096;

/// Is told how long work goes on.
pub trait Watch {
    /// A new phase of so many steps begins.
    fn phase(&mut self, name: &str, steps: usize);
    /// So many steps are done.
    fn advance(&mut self, steps: usize);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Watch for Silent {
    fn phase(&mut self, _: &str, _: usize) {}
    fn advance(&mut self, _: usize) {}
}

/// What a canonicalizer is fitted on.
#[derive(Clone, Copy)]
pub struct FitData<'a> {
    /// Labelled, upright data that fills the bank.
    pub bank: &'a dyn Dataset,
    /// Labelled, upright data that the model was not trained on, to calibrate and prove on;
    /// `None` holds some of the bank's data out.
    pub held_out: Option<&'a dyn Dataset>,
    /// Labelled data that came transformed; `None` transforms the held-out data by random
    /// poses of the space.
    pub transformed: Option<&'a dyn Dataset>,
}

impl<'a> FitData<'a> {
    /// One data set for everything.
    pub fn new(bank: &'a dyn Dataset) -> Self {
        FitData { bank, held_out: None, transformed: None }
    }
}

impl std::fmt::Debug for FitData<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "FitData({} rows, held out {:?}, transformed {:?})",
            self.bank.len(),
            self.held_out.map(<dyn Dataset>::len),
            self.transformed.map(<dyn Dataset>::len)
        )
    }
}

impl Config {
    /// Fits a canonicalizer for a model, or for two where the router needs a second one.
    ///
    /// The gate is calibrated, and the result proven, on halves of the held-out data that
    /// share no sample: data the model was not trained on makes both honest.
    pub fn fit(
        &self,
        models: impl Into<Models>,
        data: &FitData,
        watch: &mut dyn Watch,
    ) -> Result<Canonicalizer> {
        self.check()?;
        let (bank_rows, held) = self.split(data);
        let (mut c, mut report) = self.with_bank(&models.into(), data.bank, &bank_rows, watch)?;
        let (gate_rows, proof_rows) = held.split();
        report.calibrated_on = gate_rows.upright.len();
        if data.transformed.is_some() {
            report.transforms = Transforms::Given;
        }
        self.calibrate(&mut c, &mut report, &gate_rows, watch)?;
        prove(&c, &mut report, &proof_rows, watch)?;
        c.report = Arc::new(report);
        Ok(c)
    }

    /// Fills the bank and fits what learns from it, score and proposer; the gate stays closed.
    pub(super) fn with_bank(
        &self,
        models: &Models,
        data: &dyn Dataset,
        rows: &[usize],
        watch: &mut dyn Watch,
    ) -> Result<(Canonicalizer, FitReport)> {
        let mut c = Canonicalizer::bare(self, models)?;
        watch.phase("bank", rows.len());
        let (outputs, labels, shapes) = run_rows(&c.model, data, rows, watch)?;
        let (score, proposer) = (self.part(Role::Score), self.part(Role::Proposer));
        let needs = score::needs(score)?;
        let learns = needs.transformed || proposer::row(&proposer.name)?.make.copies;
        let copies = if learns { self.copies(&c.model, data, rows, &c.space)? } else { None };
        let taps = c.fitted.taps.clone();
        let transformed = match &copies {
            Some(copies) => Some(taps.for_score(&copies.outputs)?),
            None => None,
        };
        let bank = Bank {
            outputs: &*taps.for_score(&outputs)?,
            labels: &labels,
            head: c.model.head().filter(|_| taps.head()),
            transformed: transformed.as_deref(),
            seed: self.seed,
        };
        c.fitted.score = score::fit(score, &bank)?.into();
        let copies = match copies {
            Some(Copies { outputs, poses, samples }) => {
                let outputs = taps.for_proposer(&outputs)?.into_owned();
                Some(Copies { outputs, poses, samples })
            }
            None => None,
        };
        let bank = proposer::Bank {
            space: &c.space,
            shapes: &shapes,
            outputs: &*taps.for_proposer(&outputs)?,
            labels: &labels,
            copies: copies.as_ref(),
            seed: self.seed,
        };
        c.fitted.proposer = proposer::fit(proposer, &bank)?.into();
        let mut report = FitReport { bank: outputs.len(), ..FitReport::default() };
        report.notes.extend(few(&score.name, &needs, &labels, &c.model));
        report.notes.extend(c.fitted.score.note());
        report.notes.extend(c.fitted.proposer.note());
        Ok((c, report))
    }

    /// Which rows fill the bank while tuning, and what is tuned on: the half of the held-out
    /// data that does not prove the result.
    pub(super) fn tuning_split<'a>(
        &self,
        data: &FitData<'a>,
        tune: &super::TuneConfig,
    ) -> (Vec<usize>, Held<'a>) {
        let (bank, held) = self.split(data);
        (evenly(&bank, tune.bank.min(bank.len())).0, held.split().0.fewer(tune.samples))
    }

    /// Which rows fill the bank and which are held out.
    fn split<'a>(&self, data: &FitData<'a>) -> (Vec<usize>, Held<'a>) {
        let all = by_class(data.bank, self.seed);
        let some = |other: &dyn Dataset| {
            let rows = by_class(other, self.seed);
            evenly(&rows, self.calibration.min(rows.len())).0
        };
        let (rest, held) = if let Some(other) = data.held_out {
            (all, some(other))
        } else {
            let (held, rest) = evenly(&all, self.calibration.min(all.len() / 5));
            (rest, held)
        };
        let bank = match self.bank {
            Some(most) => evenly(&rest, most.min(rest.len())).0,
            None => rest,
        };
        let transformed = data.transformed.map_or_else(|| held.clone(), some);
        let held = Held {
            data: data.held_out.unwrap_or(data.bank),
            given: data.transformed,
            upright: held,
            transformed,
            seed: self.seed,
        };
        (bank, held)
    }

    /// Transformed copies of some bank samples, for parts that learn from them.
    pub(super) fn copies(
        &self,
        model: &Model,
        data: &dyn Dataset,
        rows: &[usize],
        space: &Space,
    ) -> Result<Option<Copies>> {
        let mut outputs: Option<Outputs> = None;
        let (mut poses, mut samples) = (Vec::new(), Vec::new());
        for rows in evenly(rows, COPIES.min(rows.len())).0.chunks(CHUNK) {
            let loaded = data.read(rows)?;
            let own = copies::random_poses(&loaded.batch, space, self.seed);
            let batch = copies::under(&loaded.batch, &own, space, &self.resample)?;
            extend(&mut outputs, model.run(&batch)?)?;
            poses.extend(own);
            samples.extend(loaded.rows);
        }
        Ok(outputs.map(|outputs| Copies { outputs, poses, samples }))
    }
}

/// Says so if a score looks at more samples than there are, in the bank or in a class of it.
fn few(score: &str, needs: &Needs, labels: &[u32], model: &Model) -> Option<String> {
    let wanted = needs.samples;
    let short = |part: &str, n: usize, others: &str| {
        let noun = if n == 1 { "sample" } else { "samples" };
        format!(
            "{part} has {n} {noun}, fewer than the {wanted} `{score}` looks at{others}: all are used"
        )
    };
    if !needs.labels {
        return (labels.len() < wanted).then(|| short("the bank", labels.len(), ""));
    }
    let mut counts = vec![0usize; model.classes()];
    for &label in labels {
        if let Some(n) = counts.get_mut(label as usize) {
            *n += 1;
        }
    }
    let small = || counts.iter().enumerate().filter(|&(_, &n)| n > 0 && n < wanted);
    let (class, &n) = small().min_by_key(|&(_, n)| n)?;
    let others = match small().count() - 1 {
        0 => String::new(),
        1 => ", and so has another class".into(),
        count => format!(", and so have {count} other classes"),
    };
    Some(short(&format!("class `{}`", model.class_name(class as u32)), n, &others))
}

/// Measures accuracy before and after on samples that nothing was fitted on.
fn prove(
    c: &Canonicalizer,
    report: &mut FitReport,
    held: &Held,
    watch: &mut dyn Watch,
) -> Result<()> {
    watch.phase("prove", held.upright.len() + held.transformed.len());
    let mut judge = |upright: bool, rows: &[usize]| -> Result<Accuracy> {
        let mut accuracy = Accuracy::default();
        c.measure(&held.side(upright), rows, &mut |some| {
            accuracy.add(some.predictions, some.labels);
            watch.advance(some.asked);
        })?;
        Ok(accuracy)
    };
    report.upright = judge(true, &held.upright)?;
    report.transformed = judge(false, &held.transformed)?;
    Ok(())
}

/// Rows with a label, sorted by class and within a class by a seeded shuffle.
fn by_class(data: &dyn Dataset, seed: u64) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..data.len()).filter(|&r| data.label(r).is_some()).collect();
    rows.sort_by_cached_key(|&r| (data.label(r), seed::of_index(seed, "split", r)));
    rows
}

/// Takes `count` rows spread evenly over an ordered list, so that every class gives its
/// share; returns them and the rest.
pub(super) fn evenly(rows: &[usize], count: usize) -> (Vec<usize>, Vec<usize>) {
    let n = rows.len().max(1);
    let (mut taken, mut rest) = (Vec::with_capacity(count), Vec::new());
    for (i, &row) in rows.iter().enumerate() {
        let take = (i + 1) * count / n > i * count / n;
        if take { taken.push(row) } else { rest.push(row) }
    }
    (taken, rest)
}

/// Outputs, labels and moments of some rows of a data set.
pub(super) fn run_rows(
    model: &Model,
    data: &dyn Dataset,
    rows: &[usize],
    watch: &mut dyn Watch,
) -> Result<(Outputs, Vec<u32>, Vec<Option<Shape>>)> {
    let mut all: Option<Outputs> = None;
    let mut labels = Vec::with_capacity(rows.len());
    let mut shapes = Vec::new();
    let stride = rows.len().div_ceil(MEASURED).max(1);
    for chunk in rows.chunks(CHUNK) {
        let loaded = data.read(chunk)?;
        labels.extend(loaded.rows.iter().filter_map(|&r| data.label(r)));
        if !loaded.batch.is_empty() {
            shapes.extend(proposer::shapes(&loaded.batch).into_iter().step_by(stride));
            extend(&mut all, model.run(&loaded.batch)?)?;
        }
        watch.advance(chunk.len());
    }
    let none = || Outputs { logits: Matrix::zeros(0, model.classes()), features: vec![] };
    Ok((all.unwrap_or_else(none), labels, shapes))
}

pub(super) fn extend(all: &mut Option<Outputs>, more: Outputs) -> Result<()> {
    if let Some(all) = all {
        return all.append(&more);
    }
    *all = Some(more);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evenly_takes_the_asked_number_evenly_and_loses_nothing() {
        let rows: Vec<usize> = (100..117).collect();
        for count in 0..=17 {
            let (taken, rest) = evenly(&rows, count);
            assert_eq!((taken.len(), taken.len() + rest.len()), (count, 17));
        }
        assert_eq!(evenly(&[1, 2, 3, 4], 2).0, [2, 4]);
    }
}
