//! What experiments fit, kept by the hash of all that it follows from: the
//! program, the classifier, the data and the config.

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use upright::internal::artifact::write_whole;
use upright::internal::canonicalizer::States;
use upright::score::{self, Bank};
use upright::{
    Artifact, Batch, Canonicalizer, Config, Dataset, FitData, FitReport, Model, Outputs, Part,
    Role, Silent, Tap, TuneConfig, TuneWatch, Watch,
};

use super::rows::Rows;
use super::scale::Scale;
use super::tasks::Task;
use super::{Lab, folder};

/// A hash of the sources that fits follow from.
const FITTED_BY: &str = env!("UPRIGHT_FITTED_BY");
/// Rows of a bank that the classifier sees at a time.
const CHUNK: usize = 256;
/// Bank samples of which transformed copies are made for scores that learn from them and leave
/// their number open.
const COPIES: usize = 2000;

/// Something fitted, and what that cost.
#[derive(Clone)]
pub(crate) struct Fit {
    pub(crate) c: Canonicalizer,
    pub(crate) cost: Cost,
}

/// What a fit took and what it stores.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
}

/// A score that was tuned, what it reads, and the search that was tuned after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    pub(crate) score: Part,
    /// `None` leaves it to the config.
    pub(crate) search: Option<Part>,
    pub(crate) taps: Vec<Tap>,
    /// Accuracy in percent of the default score and of this one, on what it was tuned on.
    pub(crate) accuracy: (f64, f64),
}

impl Chosen {
    /// A score with its defaults and what it reads.
    pub(crate) fn untuned(score: &str, taps: Vec<Tap>) -> Self {
        let accuracy = (f64::NAN, f64::NAN);
        Chosen { score: Part::new(score), search: None, taps, accuracy }
    }
}

impl Lab {
    /// The default over a task's space, cut to the scale.
    pub(crate) fn config(&self, task: &Task) -> Config {
        let mut config = Config { space: task.space.clone(), ..Config::default() };
        config.seed = self.seed;
        config.bank = self.scale.bank;
        config.calibration = config.calibration.min(self.scale.calibration);
        if let Some((copies, lessons)) = self.scale.learns {
            let proposer = Part::new("learned").number("copies", copies as f64);
            let judge = Part::new("judge").number("lessons", lessons as f64);
            config = config.with(Role::Proposer, proposer).with(Role::Score, judge);
        }
        config
    }

    /// Ours: the default, fitted on training data and calibrated on held-out data.
    pub(crate) fn ours(&self, task: &Task) -> upright::Result<Fit> {
        self.fitted(task, task.usual()?, &self.config(task))
    }

    /// A canonicalizer fitted on a task.
    pub(crate) fn fitted(
        &self,
        task: &Task,
        model: Model,
        config: &Config,
    ) -> upright::Result<Fit> {
        let path = self.kept("fit", task, &model, config)?;
        let told = path.with_extension("json");
        if let Some(cost) = read(&told) {
            let c = Artifact::read(path.with_extension("upright"))?.join(model)?;
            return Ok(Fit { c, cost });
        }
        let start = Instant::now();
        let data = FitData { bank: &task.train, held_out: Some(&task.held), transformed: None };
        let kept = format!("phase-{}-{}", task.name, &FITTED_BY[..16]);
        let mut phases = Phases::new(self.cache().join(kept));
        let c = config.fit(model, &data, &mut phases)?;
        let seconds = start.elapsed().as_secs_f64() + phases.saved;
        let seconds = (seconds * 10.0).round() / 10.0;
        c.save(path.with_extension("upright"))?;
        let bytes = c.to_bytes()?.len() as u64;
        let cost = Cost { seconds, bytes };
        write(&told, &cost)?;
        Ok(Fit { c, cost })
    }

    /// The paper's score, tuned by the accuracy that views found by it reach on transformed
    /// held-out inputs; then its search.
    pub(crate) fn tuned(
        &self,
        task: &Task,
        names: &[&str],
        config: &Config,
    ) -> upright::Result<Chosen> {
        let model = task.model(&[Tap::auto()])?;
        let t = self.scale.tuning;
        let path = self.kept("tuned", task, &model, &(config, names))?.with_extension("json");
        if let Some(chosen) = read(&path) {
            return Ok(chosen);
        }
        let search = config.part(Role::Search).name.clone();
        let tune = TuneConfig {
            rows: [
                (Role::Score, names.iter().map(|n| (*n).into()).collect()),
                (Role::Search, vec![search]),
            ]
            .into(),
            samples: t.samples,
            bank: t.bank,
            views: config.budget,
            transformed: 1.0,
            drop: 100.0,
            first: t.first,
            second: t.second,
            others: t.second,
            time: None,
        };
        let data = FitData { bank: &task.train, held_out: Some(&task.held), transformed: None };
        let mut watch = TuneWatch { watch: &mut Silent, trial: &mut |_| {}, stop: &mut || false };
        let load = |taps: &[Tap]| task.model(taps);
        let found = config.tune(&tune, &load, &data, None, &mut watch)?;
        let chosen = Chosen {
            score: found.config.part(Role::Score).clone(),
            search: Some(found.config.part(Role::Search).clone()),
            taps: found.taps,
            accuracy: found.accuracy,
        };
        write(&path, &chosen)?;
        Ok(chosen)
    }

    /// Where something that follows from a task and settings is kept, its ending left open.
    fn kept(
        &self,
        what: &str,
        task: &Task,
        model: &Model,
        settings: &impl Serialize,
    ) -> upright::Result<PathBuf> {
        let mut hasher = blake3::Hasher::new();
        let json = |v: &dyn Fn() -> serde_json::Result<String>| v().unwrap_or_default();
        let Scale { bank, calibration, tuning, .. } = &self.scale;
        let scale = format!("{bank:?} {calibration} {tuning:?}");
        for text in [
            what,
            task.name,
            &task.hashes[0],
            &task.hashes[1],
            FITTED_BY,
            &scale,
            &json(&|| serde_json::to_string(settings)),
            &json(&|| serde_json::to_string(&model.options())),
        ] {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        }
        let cache = self.cache();
        folder(&cache)?;
        let hash: String = hasher.finalize().to_hex().chars().take(24).collect();
        Ok(cache.join(format!("{what}-{}-{hash}", task.name)))
    }
}

/// Keeps what the last fit of a task has learnt from copies: fits that differ in later parts
/// begin with it.
struct Phases {
    path: PathBuf,
    /// Since the last phase that was kept or used.
    begun: Instant,
    /// Seconds that phases took when they were kept.
    saved: f64,
}

impl Phases {
    fn new(path: PathBuf) -> Self {
        Phases { path, begun: Instant::now(), saved: 0.0 }
    }

    fn took(&self, phase: &str) -> PathBuf {
        self.path.with_extension(format!("{phase}.json"))
    }
}

impl Watch for Phases {
    fn phase(&mut self, _: &str, _: usize) {}

    fn advance(&mut self, _: usize) {}

    fn keep(&mut self, phase: &str, bytes: &[u8]) {
        // Without it the phase is done again.
        let _ = write_whole(&self.path.with_extension(phase), bytes);
        let _ = write(&self.took(phase), &self.begun.elapsed().as_secs_f64());
        self.begun = Instant::now();
    }

    fn kept(&mut self, phase: &str) -> Option<Vec<u8>> {
        std::fs::read(self.path.with_extension(phase)).ok()
    }

    fn resumed(&mut self, phase: &str) {
        self.saved += read::<f64>(&self.took(phase)).unwrap_or_default();
        self.begun = Instant::now();
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &std::path::Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn write(path: &std::path::Path, value: &impl Serialize) -> upright::Result<()> {
    let text = serde_json::to_string(value).unwrap_or_default();
    std::fs::write(path, text).map_err(|e| upright::Error::io(path, e))
}

/// What a classifier makes of rows, changed or not, and their classes.
fn seen(
    model: &Model,
    rows: &Rows,
    change: &dyn Fn(Batch<'static>) -> upright::Result<Batch<'static>>,
) -> upright::Result<(Outputs, Vec<u32>)> {
    let mut all: Option<Outputs> = None;
    let mut labels = Vec::with_capacity(rows.len());
    let numbers: Vec<usize> = (0..rows.len()).collect();
    for chunk in numbers.chunks(CHUNK) {
        let loaded = rows.read(chunk)?;
        labels.extend(loaded.rows.iter().filter_map(|&r| rows.label(r)));
        let outputs = model.run(&change(loaded.batch)?)?;
        match &mut all {
            None => all = Some(outputs),
            Some(all) => all.append(&outputs)?,
        }
    }
    let all = all.ok_or_else(|| upright::Error::shape("training data", "some", 0))?;
    Ok((all, labels))
}

/// What a classifier makes of training data.
pub(crate) struct Filled {
    pub(crate) outputs: Outputs,
    pub(crate) labels: Vec<u32>,
    /// The same of transformed copies of some of them, where scores learn from them, and the
    /// classes of these.
    pub(crate) transformed: Option<(Outputs, Vec<u32>)>,
}

impl Filled {
    /// Runs a classifier over training data, at most so many of them.
    pub(crate) fn of(task: &Task, model: &Model, most: Option<usize>) -> upright::Result<Self> {
        let rows = task.train.some(most.unwrap_or(usize::MAX));
        let (outputs, labels) = seen(model, &rows, &|batch| Ok(batch))?;
        Ok(Filled { outputs, labels, transformed: None })
    }

    /// The same with what scores of some parts learn from beside it.
    pub(crate) fn for_scores(
        task: &Task,
        model: &Model,
        most: Option<usize>,
        parts: &[Part],
    ) -> upright::Result<Self> {
        let mut filled = Filled::of(task, model, most)?;
        let copies = |part: &Part| {
            let needs = score::needs(part).ok().filter(|n| n.transformed)?;
            Some(if needs.copies > 0 { needs.copies } else { COPIES })
        };
        if let Some(count) = parts.iter().filter_map(copies).max() {
            let rows = task.train.some(count.min(most.unwrap_or(usize::MAX)));
            filled.transformed = Some(seen(model, &rows, &|batch| task.copies(&batch, 42))?);
        }
        Ok(filled)
    }

    /// Fits a score on it.
    pub(crate) fn score(
        &self,
        part: &Part,
        model: &Model,
        seed: u64,
    ) -> upright::Result<Box<dyn score::Score>> {
        score::fit(part, &self.bank(model, seed))
    }

    fn bank<'a>(&'a self, model: &'a Model, seed: u64) -> Bank<'a> {
        Bank {
            head: model.head(),
            transformed: self.transformed.as_ref().map(|(outputs, _)| outputs),
            transformed_labels: self.transformed.as_ref().map_or(&[], |(_, labels)| labels),
            seed,
            ..Bank::of(&self.outputs, &self.labels)
        }
    }

    /// A canonicalizer that searches every input by a score fitted on it; nothing is proposed.
    pub(crate) fn searching(
        &self,
        model: &Model,
        config: Config,
    ) -> upright::Result<Canonicalizer> {
        let score = self.score(config.part(Role::Score), model, config.seed)?;
        let config = config.with(Role::Gate, Part::new("always"));
        let states = States::from([(Role::Score, score.state())]);
        let report = FitReport { bank: self.labels.len(), ..FitReport::default() };
        Canonicalizer::restore(model.clone(), config, report, &states)
    }
}
