//! Fitting: split, fill the bank, fit the score, calibrate the gate, prove
//! the result on samples that none of them has seen.

use super::held::Held;
use super::report::Transforms;
use super::{Canonicalizer, Config};
use crate::config::Value;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::moments::{self, Moments, Shape};
use crate::outputs::Outputs;
use crate::score::{self, Bank};
use crate::seed;
use crate::space::Space;
use crate::tensor::{Batch, Matrix};
use crate::warp::{Resample, View, warp};

/// Rows read and run at a time.
pub(super) const CHUNK: usize = 256;

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
    /// Fits a canonicalizer for a model.
    ///
    /// The gate is calibrated, and the result proven, on halves of the held-out data that
    /// share no sample: data the model was not trained on makes both honest.
    pub fn fit(
        &self,
        model: Model,
        data: &FitData,
        watch: &mut dyn Watch,
    ) -> Result<Canonicalizer> {
        self.fit_parts(model, None, data, watch)
    }

    /// Fits with or without a second model.
    pub(super) fn fit_parts(
        &self,
        model: Model,
        second: Option<Model>,
        data: &FitData,
        watch: &mut dyn Watch,
    ) -> Result<Canonicalizer> {
        self.check()?;
        let (bank_rows, held) = self.split(data);
        let mut c = self.with_bank(model, data.bank, &bank_rows, watch)?;
        if let Some(second) = &second {
            c.agree(second)?;
        }
        c.second = second;
        let (gate_rows, proof_rows) = held.split();
        c.report.calibrated_on = gate_rows.upright.len();
        if data.transformed.is_some() {
            c.report.transforms = Transforms::Given;
        }
        self.calibrate(&mut c, &gate_rows, watch)?;
        prove(&mut c, &proof_rows, watch)?;
        Ok(c)
    }

    /// Fills the bank and fits the score; the gate stays closed.
    pub(super) fn with_bank(
        &self,
        model: Model,
        data: &dyn Dataset,
        rows: &[usize],
        watch: &mut dyn Watch,
    ) -> Result<Canonicalizer> {
        let mut c = Canonicalizer::bare(self, model)?;
        watch.phase("bank", rows.len());
        let (outputs, labels, shapes) = run_rows(&c.model, data, rows, watch)?;
        self.check_bank_size(&labels, &c.model)?;
        let copies =
            if self.learns()? { self.copies(&c.model, data, rows, &c.space)? } else { None };
        let bank = Bank {
            outputs: &outputs,
            labels: &labels,
            head: c.model.head(),
            transformed: copies.as_ref(),
            seed: self.seed,
        };
        c.score = score::fit(&self.score, &bank)?;
        c.moments = Moments::fit(&shapes, &c.space);
        c.report.bank = outputs.len();
        c.report.notes.extend(c.score.note());
        Ok(c)
    }

    /// Which rows fill the bank while tuning, and what is tuned on: the half of the held-out
    /// data that does not prove the result.
    pub(super) fn tuning_split<'a>(
        &self,
        data: &FitData<'a>,
        tune: &super::TuneConfig,
    ) -> (Vec<usize>, Held<'a>) {
        let (bank, held) = self.split(data);
        (spread(&bank, tune.bank.min(bank.len())).0, held.split().0.fewer(tune.samples))
    }

    /// Which rows fill the bank and which are held out.
    fn split<'a>(&self, data: &FitData<'a>) -> (Vec<usize>, Held<'a>) {
        let all = by_class(data.bank, self.seed);
        let some = |other: &dyn Dataset| {
            let rows = by_class(other, self.seed);
            spread(&rows, self.calibration.min(rows.len())).0
        };
        let (rest, held) = if let Some(other) = data.held_out {
            (all, some(other))
        } else {
            let (held, rest) = spread(&all, self.calibration.min(all.len() / 5));
            (rest, held)
        };
        let bank = match self.bank {
            Some(most) => spread(&rest, most.min(rest.len())).0,
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

    /// Whether the score learns from transformed samples.
    fn learns(&self) -> Result<bool> {
        let word = Value::Word("from-transformed".into());
        let needs = score::row(&self.score.name)?.make.needs;
        Ok(needs.transformed || self.score.settings.values().any(|v| *v == word))
    }

    /// Outputs of transformed bank samples, for scores that learn from them.
    pub(super) fn copies(
        &self,
        model: &Model,
        data: &dyn Dataset,
        rows: &[usize],
        space: &Space,
    ) -> Result<Option<Outputs>> {
        let mut all: Option<Outputs> = None;
        for rows in spread(rows, COPIES.min(rows.len())).0.chunks(CHUNK) {
            let batch = data.read(rows)?.batch;
            let copies = transformed_copies(&batch, space, &self.resample, self.seed)?;
            extend(&mut all, model.run(&copies)?)?;
        }
        Ok(all)
    }

    /// Refuses a bank in which the score's `k` neighbours do not exist.
    fn check_bank_size(&self, labels: &[u32], model: &Model) -> Result<()> {
        let row = score::row(&self.score.name)?;
        if !row.params.iter().any(|p| p.name == "k") {
            return Ok(());
        }
        let k = self.score.resolve(row.params)?.whole("k");
        if labels.len() < k {
            return Err(Error::TooFew {
                part: "bank".into(),
                why: format!("it has {} samples; k = {k}", labels.len()),
                help: format!("add samples, or `--set k={}`", labels.len().max(1)),
            });
        }
        if !row.make.needs.labels {
            return Ok(());
        }
        let mut counts = vec![0usize; model.classes()];
        for &l in labels {
            if let Some(n) = counts.get_mut(l as usize) {
                *n += 1;
            }
        }
        let small = counts.iter().enumerate().filter(|&(_, &n)| n > 0 && n < k);
        match small.min_by_key(|&(_, n)| n) {
            None => Ok(()),
            Some((class, n)) => Err(Error::TooFew {
                part: "bank".into(),
                why: format!("it has {n} samples of class {}; k = {k}", model.class_name(class)),
                help: format!("add samples, `--set k={n}`, or `--score proto`"),
            }),
        }
    }
}

/// Measures accuracy before and after on samples that nothing was fitted on.
fn prove(c: &mut Canonicalizer, held: &Held, watch: &mut dyn Watch) -> Result<()> {
    watch.phase("prove", held.upright.len() + held.transformed.len());
    for (upright, rows) in held.chunks() {
        let (batch, labels) = held.read(c, upright, rows)?;
        let predictions = c.predict(&batch)?;
        let total = if upright { &mut c.report.upright } else { &mut c.report.transformed };
        total.add(&predictions, &labels);
        watch.advance(rows.len());
    }
    Ok(())
}

/// Copies of inputs under random poses of a space, one each; images are clamped to 0..1.
///
/// The pose of an input follows from the seed and its content, so a copy does not depend
/// on the batch it is made in.
pub fn transformed_copies(
    batch: &Batch,
    space: &Space,
    resample: &Resample,
    seed: u64,
) -> Result<Batch<'static>> {
    copies(batch, resample, |item| {
        let mut rng = seed::stream(seed::of_content(seed ^ 0x7472_616e, item));
        let unit: Vec<f32> = (0..space.cube()).map(|_| seed::unit(&mut rng)).collect();
        space.map(&space.draw(&unit))
    })
}

/// A copy of each input under the map that its content gives.
pub(super) fn copies(
    batch: &Batch,
    resample: &Resample,
    map: impl Fn(&[f32]) -> crate::map::Map,
) -> Result<Batch<'static>> {
    let views: Vec<View> =
        (0..batch.len()).map(|item| View { item, map: map(batch.item(item)) }).collect();
    warp(batch, &views, &Resample { clamp: true, ..resample.clone() })
}

/// Rows with a label, sorted by class and within a class by a seeded shuffle.
fn by_class(data: &dyn Dataset, seed: u64) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..data.len()).filter(|&r| data.label(r).is_some()).collect();
    rows.sort_by_cached_key(|&r| (data.label(r), seed::of_index(seed, "split", r)));
    rows
}

/// Takes `count` rows spread evenly over an ordered list, so that every class gives its
/// share; returns them and the rest.
pub(super) fn spread(rows: &[usize], count: usize) -> (Vec<usize>, Vec<usize>) {
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
            shapes.extend(moments::shapes(&loaded.batch).into_iter().step_by(stride));
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
    fn spread_takes_the_asked_number_evenly_and_loses_nothing() {
        let rows: Vec<usize> = (100..117).collect();
        for count in 0..=17 {
            let (taken, rest) = spread(&rows, count);
            assert_eq!((taken.len(), taken.len() + rest.len()), (count, 17));
        }
        assert_eq!(spread(&[1, 2, 3, 4], 2).0, [2, 4]);
    }
}
