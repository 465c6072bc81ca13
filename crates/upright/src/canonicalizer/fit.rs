//! Fitting: split, fill the bank, fit the score, calibrate the gate, prove
//! the result on samples that none of them has seen.

use std::sync::Arc;

use super::calibrate::Evidence;
use super::held::{Given, Held, calibrating};
use super::plan::{self, Plan};
use super::prove::prove;
use super::report::Transforms;
use super::resume::Phase;
use super::supply::Supply;
use super::{Canonicalizer, Config, FitReport, check_external, space_for};
use crate::copies;
use crate::dataset::{Dataset, chunk};
use crate::error::{Error, Result};
use crate::gate;
use crate::model::Model;
use crate::outputs::Outputs;
use crate::proposer::{self, Proposer};
use crate::role::Role;
use crate::router::Models;
use crate::score::{self, Bank, Lessons, Needs};
use crate::seed;
use crate::tensor::Matrix;

/// Bank samples of which transformed copies are made for scores that learn from them and leave
/// their number open.
pub(super) const COPIES: usize = 2000;

/// Most bank samples that teach a score which views to believe.
const JUDGED: usize = 20_000;

/// Is told how long work goes on.
pub trait Watch {
    /// A new phase of so many steps begins.
    fn phase(&mut self, name: &str, steps: usize);
    /// So many steps are done.
    fn advance(&mut self, steps: usize);
    /// What will be done, and how long that takes.
    fn say(&mut self, words: &str) {
        let _ = words;
    }
    /// What a phase has found, worth keeping in case the fit is interrupted.
    #[doc(hidden)]
    fn keep(&mut self, phase: &str, bytes: &[u8]) {
        let _ = (phase, bytes);
    }
    /// What was kept of a phase.
    #[doc(hidden)]
    fn kept(&mut self, phase: &str) -> Option<Vec<u8>> {
        let _ = phase;
        None
    }
    /// What was kept of a phase is used.
    #[doc(hidden)]
    fn resumed(&mut self, phase: &str) {
        let _ = phase;
    }
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

    /// Refuses labels that are no class of a model of so many.
    fn check_labels(&self, classes: usize) -> Result<()> {
        let sets = [
            ("data", Some(self.bank)),
            ("held-out data", self.held_out),
            ("transformed data", self.transformed),
        ];
        for (name, set) in sets.into_iter().filter_map(|(name, set)| Some((name, set?))) {
            let beyond = |&row: &usize| set.label(row).is_some_and(|l| l as usize >= classes);
            if let Some(row) = (0..set.len()).find(beyond) {
                return Err(Error::Shape {
                    what: format!("label of row {row} of the {name}"),
                    expected: format!("a class below {classes}, as many as the model tells apart"),
                    got: set.label(row).unwrap_or_default().to_string(),
                });
            }
        }
        Ok(())
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
    /// Fits a canonicalizer for a model, with a second one where the router needs it and an
    /// energy network where the score does.
    ///
    /// The gate is calibrated, and the result proven, on parts of the held-out data that
    /// share no sample: data the model was not trained on makes both honest. The gate that is
    /// kept is then calibrated on both.
    pub fn fit(
        &self,
        models: impl Into<Models>,
        data: &FitData,
        watch: &mut dyn Watch,
    ) -> Result<Canonicalizer> {
        self.check()?;
        let models = models.into().joined()?;
        data.check_labels(models.first.classes())?;
        let (bank_rows, held) = self.split(data);
        let (config, note) = self.within_reach(&models.first, bank_rows.len());
        let (bank_rows, held) = if note.is_some() { config.split(data) } else { (bank_rows, held) };
        check_external(&config, &models.first)?;
        space_for(&config, &models.first)?;
        let learns = score::needs(config.part(Role::Score))?.lessons > 0;
        let (given, held) = if learns { held.teaching() } else { (None, held) };
        config.rehearse(&held)?;
        let per_view = plan::seconds_per_view(&config, &models.first, data.bank, &bank_rows)?;
        let first = Plan::of(&config, &models.first, bank_rows.len(), &held)?;
        let (plan, said, cut) = plan::planned(first, config.minutes, per_view.unwrap_or(0.0));
        watch.say(&said);
        let rows =
            BankRows { data: data.bank, rows: &bank_rows, given: given.as_ref(), resumes: true };
        let (mut c, mut report) = config.with_bank(&models, &rows, &plan, watch)?;
        let config = c.config.clone();
        report.notes.extend(note.into_iter().chain(cut));
        let (gate_rows, proof_rows) = held.split();
        let (_, gate_rows) = gate_rows.some(config.tuned_on);
        let most = calibrating(plan.held);
        let (gate_rows, proof_rows) = (gate_rows.some(most).0, proof_rows.some(plan.held - most).0);
        if data.transformed.is_some() {
            report.transforms = Transforms::Given;
        }
        let mut evidence = Evidence::default();
        config.gather(&mut evidence, &c, &gate_rows, watch)?;
        config.calibrate(&mut c, &mut report, &evidence)?;
        prove(&c, &mut report, &proof_rows, watch)?;
        // What has proven may now calibrate: the more inputs there are, the more can be promised.
        config.gather(&mut evidence, &c, &proof_rows, watch)?;
        let note = config.calibrate(&mut c, &mut report, &evidence)?;
        report.notes.extend(note);
        c.report = Arc::new(report);
        Ok(c)
    }

    /// Refuses what can be known to fail before anything expensive is done.
    fn rehearse(&self, held: &Held) -> Result<()> {
        let count = |rows: &[usize]| calibrating(rows.len()).saturating_sub(self.tuned_on);
        let (upright, transformed) = (count(&held.upright), count(&held.transformed));
        gate::rehearse(self.part(Role::Gate), upright, transformed)
    }

    /// Fills the bank and fits what learns from it, score and proposer; the gate stays closed.
    pub(super) fn with_bank(
        &self,
        models: &Models,
        from: &BankRows,
        plan: &Plan,
        watch: &mut dyn Watch,
    ) -> Result<(Canonicalizer, FitReport)> {
        let &BankRows { data, rows, .. } = from;
        let mut c = Canonicalizer::bare(self, models)?;
        let score = self.part(Role::Score);
        let needs = score::needs(score)?;
        // What judges proposals must not be fitted on the samples that made them.
        let (judged, proposing) = if needs.lessons > 0 {
            evenly(rows, JUDGED.min(rows.len() / 3))
        } else {
            (Vec::new(), rows.to_vec())
        };
        let copies = [plan.copies, plan.again];
        let [copied, taught, again] = Phase::all(self, &c.model, from, [&proposing, rows], copies)?;
        let mut report = FitReport { bank: rows.len(), ..FitReport::default() };
        let mut told = self.propose(&mut c, data, (&proposing, plan.copies), &copied, watch)?;
        if c.fitted.proposer.silent()
            && let Some(other) = self.searching()
        {
            let (c, mut found) = other.with_bank(models, from, plan, watch)?;
            let said = |why: &String| format!("{why}; the preset `search` stands in");
            found.notes.extend(told.iter().map(said));
            return Ok((c, found));
        }
        let taught = if let Some((state, notes)) = taught.kept(watch) {
            c.fitted.score = score::load(score, &state)?.into();
            notes
        } else {
            let notes = self.teach(&mut c, from, &judged, plan, watch)?;
            taught.keep(watch, &c.fitted.score.state(), &notes);
            notes
        };
        if plan.again > 0 && !judged.is_empty() {
            let first = c.fitted.proposer.clone();
            let notes = self.propose(&mut c, data, (rows, plan.again), &again, watch)?;
            if c.fitted.proposer.silent() {
                c.fitted.proposer = first;
            } else {
                told = notes;
            }
        }
        report.notes = told;
        report.notes.extend(taught);
        Ok((c, report))
    }

    /// Fits the proposer on copies of some rows, unless that was kept; with its notes.
    fn propose(
        &self,
        c: &mut Canonicalizer,
        data: &dyn Dataset,
        (rows, copies): (&[usize], usize),
        phase: &Phase,
        watch: &mut dyn Watch,
    ) -> Result<Vec<String>> {
        if let Some((state, notes)) = phase.kept(watch) {
            c.fitted.proposer = proposer::load(self.part(Role::Proposer), &state, &c.space)?.into();
            return Ok(notes);
        }
        c.fitted.proposer = self.proposer(c, data, rows, copies, watch)?.into();
        let notes: Vec<String> = c.fitted.proposer.note().into_iter().collect();
        phase.keep(watch, &c.fitted.proposer.state(), &notes);
        Ok(notes)
    }

    /// Fits the score on the bank, or on lessons of the rows that are judged; with its notes.
    fn teach(
        &self,
        c: &mut Canonicalizer,
        from: &BankRows,
        judged: &[usize],
        plan: &Plan,
        watch: &mut dyn Watch,
    ) -> Result<Vec<String>> {
        let &BankRows { data, rows, given, .. } = from;
        let score = self.part(Role::Score);
        let needs = score::needs(score)?;
        let taps = c.fitted.taps.clone();
        let mut notes = Vec::new();
        let mut bank = Samples::default();
        if needs.lessons > 0 {
            bank.lessons = Some(c.lessons(data, judged, plan.lessons, given, watch)?);
        } else {
            watch.phase("bank", rows.len());
            let read = |outputs: Outputs| Ok(taps.for_score(&outputs)?.into_owned());
            (bank.outputs, bank.labels) = run_rows(&c.model, data, rows, &read, watch)?;
            notes.extend(few(&score.name, &needs, &bank.labels, &c.model));
            if needs.transformed {
                let most = if needs.copies > 0 { needs.copies } else { COPIES };
                (bank.transformed, bank.transformed_labels) =
                    self.copies(c, data, rows, most, &read, watch)?;
            }
        }
        let head = c.model.head().filter(|_| taps.head());
        let none = Outputs { logits: Matrix::zeros(0, c.model.classes()), features: vec![] };
        let bank = Bank {
            outputs: bank.outputs.as_ref().unwrap_or(&none),
            labels: &bank.labels,
            head,
            transformed: bank.transformed.as_ref(),
            transformed_labels: &bank.transformed_labels,
            lessons: bank.lessons.as_ref(),
            seed: self.seed,
        };
        c.fitted.score = score::fit(score, &bank)?.into();
        notes.extend(c.fitted.score.note());
        Ok(notes)
    }

    /// Fits the proposer on some rows.
    pub(super) fn proposer(
        &self,
        c: &Canonicalizer,
        data: &dyn Dataset,
        rows: &[usize],
        copies: usize,
        watch: &mut dyn Watch,
    ) -> Result<Box<dyn Proposer>> {
        let mut samples = Supply {
            model: &c.model,
            taps: &c.fitted.taps,
            data,
            rows,
            resample: &self.resample,
            watch,
        };
        let mut bank =
            proposer::Bank { space: &c.space, samples: &mut samples, copies, seed: self.seed };
        proposer::fit(self.part(Role::Proposer), &mut bank)
    }

    /// Which rows fill the bank while tuning, and what is tuned on: held-out data that neither
    /// calibrate the gate nor prove the result.
    pub(super) fn tuning_split<'a>(
        &self,
        data: &FitData<'a>,
        tune: &super::TuneConfig,
    ) -> (Vec<usize>, Held<'a>) {
        let (bank, held) = self.split(data);
        let (open, _) = held.split();
        let most = tune.samples.min(open.upright.len() / 2);
        (evenly(&bank, tune.bank.min(bank.len())).0, open.some(most).0)
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

    /// What the model makes of transformed copies of some bank samples, at most so many, as `read`
    /// takes it, and their classes.
    pub(super) fn copies(
        &self,
        c: &Canonicalizer,
        data: &dyn Dataset,
        rows: &[usize],
        most: usize,
        read: &dyn Fn(Outputs) -> Result<Outputs>,
        watch: &mut dyn Watch,
    ) -> Result<(Option<Outputs>, Vec<u32>)> {
        let mut outputs: Option<Outputs> = None;
        let mut labels = Vec::new();
        let (some, _) = evenly(rows, most.min(rows.len()));
        watch.phase("copies", some.len());
        for rows in some.chunks(chunk(data.signal())) {
            let loaded = data.read(rows)?;
            let copies =
                copies::transformed_copies(&loaded.batch, &c.space, &self.resample, self.seed)?;
            extend(&mut outputs, read(c.model.run(&copies)?)?)?;
            labels.extend(loaded.rows.iter().map(|&row| data.label(row).unwrap_or_default()));
            watch.advance(rows.len());
        }
        Ok((outputs, labels))
    }
}

/// What a score is fitted on.
#[derive(Default)]
struct Samples {
    outputs: Option<Outputs>,
    labels: Vec<u32>,
    transformed: Option<Outputs>,
    transformed_labels: Vec<u32>,
    lessons: Option<Lessons>,
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

/// What the parts that learn are fitted on.
pub(super) struct BankRows<'a> {
    pub(super) data: &'a dyn Dataset,
    pub(super) rows: &'a [usize],
    /// What scores also learn from.
    pub(super) given: Option<&'a Given<'a>>,
    /// Whether what learns may be kept for a fit that is interrupted.
    pub(super) resumes: bool,
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

/// Outputs, as far as `read` keeps them, and labels of some rows of a data set.
pub(super) fn run_rows(
    model: &Model,
    data: &dyn Dataset,
    rows: &[usize],
    read: &dyn Fn(Outputs) -> Result<Outputs>,
    watch: &mut dyn Watch,
) -> Result<(Option<Outputs>, Vec<u32>)> {
    let mut all: Option<Outputs> = None;
    let mut labels = Vec::with_capacity(rows.len());
    for chunk in rows.chunks(chunk(data.signal())) {
        let loaded = data.read(chunk)?;
        labels.extend(loaded.rows.iter().filter_map(|&r| data.label(r)));
        if !loaded.batch.is_empty() {
            extend(&mut all, read(model.run(&loaded.batch)?)?)?;
        }
        watch.advance(chunk.len());
    }
    Ok((all, labels))
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
