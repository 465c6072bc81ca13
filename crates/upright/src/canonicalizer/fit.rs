//! Fitting: split, fill the bank, fit the score, calibrate the gate, prove
//! the result on samples that none of them has seen.

use super::report::{Accuracy, FitReport};
use super::{Canonicalizer, Config};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::gate::{self, Calibration};
use crate::model::Model;
use crate::outputs::Outputs;
use crate::score::{self, Bank};
use crate::search;
use crate::seed;
use crate::space::Space;
use crate::stats::{Share, auroc};
use crate::tensor::{Batch, Matrix};
use crate::warp::{Resample, View, warp};

/// Rows read and run at a time.
const CHUNK: usize = 256;

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

impl Config {
    /// Fits a canonicalizer for a model on labelled, upright data.
    ///
    /// The gate is calibrated, and the result proven, on samples held out from `data`, or
    /// on `held_out` if given: data the model was not trained on makes both honest.
    pub fn fit(
        &self,
        model: Model,
        data: &dyn Dataset,
        held_out: Option<&dyn Dataset>,
        watch: &mut dyn Watch,
    ) -> Result<Canonicalizer> {
        self.check()?;
        let space = self.space.build()?;
        space.check(model.signal())?;
        let search = search::make(&self.search)?;
        let all = by_class(data, self.seed);
        let (bank_rows, held_rows) = if let Some(other) = held_out {
            let rows = by_class(other, self.seed);
            (all, spread(&rows, self.calibration.min(rows.len())).0)
        } else {
            let (held, rest) = spread(&all, self.calibration.min(all.len() / 5));
            (rest, held)
        };
        let bank_rows = match self.bank {
            Some(most) => spread(&bank_rows, most.min(bank_rows.len())).0,
            None => bank_rows,
        };

        watch.phase("bank", bank_rows.len());
        let (outputs, labels) = run_rows(&model, data, &bank_rows, watch)?;
        self.check_bank_size(&labels, &model)?;
        let bank = Bank {
            outputs: &outputs,
            labels: &labels,
            head: model.head(),
            transformed: None,
            seed: self.seed,
        };
        let score = score::fit(&self.score, &bank)?;
        let size = outputs.len();
        drop(outputs);

        let held = held_out.unwrap_or(data);
        let (gate_rows, proof_rows) = spread(&held_rows, held_rows.len().div_ceil(2));
        let mut c = Canonicalizer {
            gate: gate::fit(
                &crate::config::Part::new("never"),
                &Calibration { upright: &[], transformed: &[] },
            )?,
            model,
            score,
            search,
            space,
            config: self.clone(),
            report: FitReport {
                bank: size,
                calibrated_on: gate_rows.len(),
                tau: None,
                auroc: None,
                upright: Accuracy::default(),
                transformed: Accuracy::default(),
                nan: 0,
            },
        };
        self.calibrate(&mut c, held, &gate_rows, watch)?;
        self.prove(&mut c, held, &proof_rows, watch)?;
        Ok(c)
    }

    /// Fits the gate on the energies of upright and transformed held-out samples.
    fn calibrate(
        &self,
        c: &mut Canonicalizer,
        held: &dyn Dataset,
        rows: &[usize],
        watch: &mut dyn Watch,
    ) -> Result<()> {
        watch.phase("calibrate", rows.len());
        let (mut upright, mut transformed) = (Vec::new(), Vec::new());
        for rows in rows.chunks(CHUNK) {
            let loaded = held.read(rows)?;
            upright.extend(c.raw(&loaded.batch)?.1);
            let copies = transformed_copies(&loaded.batch, &c.space, &self.resample, self.seed)?;
            transformed.extend(c.raw(&copies)?.1);
            watch.advance(rows.len());
        }
        let nan = upright.iter().chain(&transformed).filter(|e| e.is_nan()).count();
        let total = upright.len() + transformed.len();
        if nan * 100 > total {
            return Err(Error::NanScore {
                score: self.score.name.clone(),
                count: nan,
                total,
                cause: "the model's logits or features are not numbers for these inputs".into(),
            });
        }
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        c.gate = gate::fit(&self.gate, &calibration)?;
        c.report.nan = nan;
        c.report.tau = Some(c.gate.tau()).filter(|t| t.is_finite());
        c.report.auroc = auroc(&upright, &transformed);
        Ok(())
    }

    /// Measures accuracy before and after on samples that nothing was fitted on.
    fn prove(
        &self,
        c: &mut Canonicalizer,
        held: &dyn Dataset,
        rows: &[usize],
        watch: &mut dyn Watch,
    ) -> Result<()> {
        watch.phase("prove", 2 * rows.len());
        for rows in rows.chunks(CHUNK) {
            let loaded = held.read(rows)?;
            let labels: Vec<Option<u32>> = loaded.rows.iter().map(|&r| held.label(r)).collect();
            let upright = accuracy(c, &loaded.batch, &labels)?;
            watch.advance(rows.len());
            let copies = transformed_copies(&loaded.batch, &c.space, &self.resample, self.seed)?;
            let transformed = accuracy(c, &copies, &labels)?;
            watch.advance(rows.len());
            add(&mut c.report.upright, &upright);
            add(&mut c.report.transformed, &transformed);
        }
        Ok(())
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

fn accuracy(c: &Canonicalizer, batch: &Batch, labels: &[Option<u32>]) -> Result<Accuracy> {
    let predictions = c.predict(batch)?;
    let known = || predictions.iter().zip(labels).filter_map(|(p, l)| l.map(|l| (p, l)));
    Ok(Accuracy {
        before: Share::count(known().map(|(p, l)| p.raw_label == l)),
        after: Share::count(known().map(|(p, l)| p.label == l)),
        searched: Share::count(predictions.iter().map(|p| p.evaluations > 1)),
    })
}

fn add(total: &mut Accuracy, part: &Accuracy) {
    for (total, part) in [
        (&mut total.before, part.before),
        (&mut total.after, part.after),
        (&mut total.searched, part.searched),
    ] {
        total.hits += part.hits;
        total.of += part.of;
    }
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
) -> Result<Batch> {
    let views: Vec<View> = (0..batch.len())
        .map(|item| {
            let mut rng = seed::stream(seed::of_content(seed ^ 0x7472_616e, batch.item(item)));
            let unit: Vec<f32> = (0..space.cube()).map(|_| seed::unit(&mut rng)).collect();
            View { item, map: space.map(&space.draw(&unit)) }
        })
        .collect();
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
fn spread(rows: &[usize], count: usize) -> (Vec<usize>, Vec<usize>) {
    let n = rows.len().max(1);
    let (mut taken, mut rest) = (Vec::with_capacity(count), Vec::new());
    for (i, &row) in rows.iter().enumerate() {
        let take = (i + 1) * count / n > i * count / n;
        if take { taken.push(row) } else { rest.push(row) }
    }
    (taken, rest)
}

/// Outputs and labels of some rows of a data set.
fn run_rows(
    model: &Model,
    data: &dyn Dataset,
    rows: &[usize],
    watch: &mut dyn Watch,
) -> Result<(Outputs, Vec<u32>)> {
    let mut all: Option<Outputs> = None;
    let mut labels = Vec::with_capacity(rows.len());
    for chunk in rows.chunks(CHUNK) {
        let loaded = data.read(chunk)?;
        labels.extend(loaded.rows.iter().filter_map(|&r| data.label(r)));
        if !loaded.batch.is_empty() {
            let outputs = model.run(&loaded.batch)?;
            match &mut all {
                Some(all) => all.append(&outputs)?,
                None => all = Some(outputs),
            }
        }
        watch.advance(chunk.len());
    }
    Ok((
        all.unwrap_or(Outputs { logits: Matrix::zeros(0, model.classes()), features: vec![] }),
        labels,
    ))
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
