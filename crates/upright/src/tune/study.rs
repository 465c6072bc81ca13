//! A study: series of trials, run one after the other, that can be stopped at
//! any time and resumed from a log to the same end.
//!
//! The trials of a series are first the points that were enqueued, in order,
//! then what [`Tpe`] proposes from the series so far. Both follow from the
//! set-up and the finished trials, hence a resumed study equals one that was
//! never interrupted as long as values are a function of the point.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;

use super::knobs::{Knobs, Point};
use super::log::{Header, Line, Log};
use super::tpe::Tpe;
use super::trial::{Outcome, Series, Trial};
use crate::error::{Error, Result};
use crate::seed;

/// The log's format.
const VERSION: u32 = 1;

/// Called by an evaluation with a step and the value so far; after a `Break`
/// the evaluation should return, whatever it returns is ignored.
pub type Report<'a> = dyn FnMut(usize, f64) -> ControlFlow<()> + 'a;

/// Gives up a trial whose best value so far is below the median of the complete
/// trials of its series at the same step (Golovin et al. 2017, "Google Vizier",
/// section 3.2.2; Optuna's `MedianPruner`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pruner {
    /// Complete trials before any is pruned.
    pub startup: usize,
    /// Steps below this one are not looked at.
    pub warmup: usize,
}

impl Default for Pruner {
    fn default() -> Self {
        Pruner { startup: 5, warmup: 0 }
    }
}

impl Pruner {
    /// Whether to give up after these steps, given the earlier trials of the series.
    pub fn prunes(&self, earlier: &[Trial], steps: &[(usize, f64)]) -> bool {
        let Some(&(step, _)) = steps.last() else { return false };
        let complete = earlier.iter().filter(|t| t.value().is_some());
        if step < self.warmup || complete.clone().count() < self.startup {
            return false;
        }
        let at_step = |t: &Trial| t.steps.iter().find(|s| s.0 == step).map(|s| s.1);
        let best = steps.iter().map(|s| s.1).fold(f64::NEG_INFINITY, f64::max);
        median(complete.filter_map(at_step).collect()).is_some_and(|middle| best < middle)
    }
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(lower.midpoint(upper))
}

/// All that a study's trials follow from, besides the values.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// What is turned.
    pub knobs: Knobs,
    /// Where randomness comes from.
    pub seed: u64,
    /// How points are proposed.
    pub tpe: Tpe,
    /// When trials are given up; `None`: never.
    pub pruner: Option<Pruner>,
    /// What the values depend on, e.g. model and data; a log of another label
    /// is not resumed.
    pub label: String,
}

impl Setup {
    /// The usual sampler and pruner.
    pub fn new(knobs: Knobs, seed: u64, label: impl Into<String>) -> Self {
        let (tpe, pruner) = (Tpe::default(), Some(Pruner::default()));
        Setup { knobs, seed, tpe, pruner, label: label.into() }
    }

    /// BLAKE3 of the set-up; logs of equal fingerprints continue each other.
    pub fn fingerprint(&self) -> Result<String> {
        Ok(self.header()?.fingerprint)
    }

    fn header(&self) -> Result<Header> {
        let json = |value: serde_json::Result<serde_json::Value>| {
            value.map_err(|e| Error::Tune { why: e.to_string(), hint: None })
        };
        let knobs = json(serde_json::to_value(&self.knobs))?;
        let sampler = json(serde_json::to_value((&self.tpe, &self.pruner)))?;
        let all = format!("{VERSION}\n{}\n{}\n{sampler}\n{knobs}", self.seed, self.label);
        let fingerprint = blake3::hash(all.as_bytes()).to_hex().to_string();
        let (seed, label) = (self.seed, self.label.clone());
        Ok(Header { version: VERSION, fingerprint, seed, label, sampler, knobs })
    }
}

/// A study under way.
#[derive(Debug)]
pub struct Study {
    setup: Setup,
    log: Option<Log>,
    trials: BTreeMap<Series, Vec<Trial>>,
    ended: BTreeSet<Series>,
    queues: BTreeMap<Series, Vec<Point>>,
}

impl Study {
    /// A study that is kept in memory only.
    pub fn new(setup: Setup) -> Self {
        Study {
            setup,
            log: None,
            trials: BTreeMap::new(),
            ended: BTreeSet::new(),
            queues: BTreeMap::new(),
        }
    }

    /// A study that continues its log, which is made if there is none.
    ///
    /// A log of another set-up is refused, as is one that is damaged elsewhere
    /// than at its end.
    pub fn resume(setup: Setup, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (log, lines) = Log::open(path, &setup.header()?)?;
        let mut study = Study { log: Some(log), ..Study::new(setup) };
        for (at, line) in lines.into_iter().enumerate() {
            let fits = match line {
                Line::Study(_) => false,
                Line::Ended(series) => study.ended.insert(series),
                Line::Trial(trial) => {
                    let fits = study.fits(&trial);
                    study.trials.entry(trial.series).or_default().push(trial);
                    fits
                }
            };
            if !fits {
                return Err(Error::Tune {
                    why: format!("{}: line {} does not follow", path.display(), at + 2),
                    hint: Some("the log was changed; give another file for it".into()),
                });
            }
        }
        Ok(study)
    }

    fn fits(&self, trial: &Trial) -> bool {
        trial.number == self.trials(trial.series).len()
            && !self.ended.contains(&trial.series)
            && self.setup.knobs.admits(&trial.point)
    }

    /// What the study follows from.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The finished trials of a series in order.
    pub fn trials(&self, series: Series) -> &[Trial] {
        self.trials.get(&series).map_or(&[], Vec::as_slice)
    }

    /// All finished trials, by series.
    pub fn all(&self) -> impl Iterator<Item = &Trial> {
        self.trials.values().flatten()
    }

    /// The best complete trials of a series, at most `count`; the earlier one of
    /// two equal ones first.
    pub fn best(&self, series: Series, count: usize) -> Vec<&Trial> {
        let complete = self.trials(series).iter().filter(|t| t.value().is_some());
        let mut best: Vec<&Trial> = complete.collect();
        best.sort_by(|a, b| a.rank(b));
        best.truncate(count);
        best
    }

    /// Whether a series gets no further trials.
    pub fn has_ended(&self, series: Series) -> bool {
        self.ended.contains(&series)
    }

    /// Closes a series, also for those who resume.
    pub fn end(&mut self, series: Series) -> Result<()> {
        if self.ended.insert(series)
            && let Some(log) = &mut self.log
        {
            log.append(&Line::Ended(series))?;
        }
        Ok(())
    }

    /// Adds a point to those a series begins with, unless it is already among
    /// them.
    ///
    /// Whoever resumes enqueues the same points again; it is an error if the
    /// series went on differently before.
    pub fn enqueue(&mut self, series: Series, point: Point) -> Result<()> {
        if !self.setup.knobs.admits(&point) {
            // `complete` says what is wrong where it can.
            self.setup.knobs.complete(&point)?;
            return Err(Error::Tune {
                why: "an enqueued point lacks knobs, or has some that do not exist there".into(),
                hint: Some("complete it first".into()),
            });
        }
        let queue = self.queues.entry(series).or_default();
        if queue.contains(&point) {
            return Ok(());
        }
        let done = self.trials.get(&series).and_then(|trials| trials.get(queue.len()));
        if done.is_some_and(|trial| trial.point != point) {
            return Err(Error::Tune {
                why: "a trial that has finished is not the one that was enqueued".into(),
                hint: Some(
                    "enqueue the same points in the same order before a series begins".into(),
                ),
            });
        }
        queue.push(point);
        Ok(())
    }

    /// How many points a series begins with.
    pub fn queued(&self, series: Series) -> usize {
        self.queues.get(&series).map_or(0, Vec::len)
    }

    /// Runs trials of a series until it has `trials` of them, `stop` says so
    /// (asked before each, with its number), the space is used up or the series
    /// has ended.
    ///
    /// `seen` is called after each trial, once it is in the log. An evaluation
    /// that returns an error or a value that is not finite is a failed trial; if
    /// all of the first [`Tpe::startup`] fail, the study does.
    pub fn run(
        &mut self,
        series: Series,
        trials: usize,
        stop: &mut dyn FnMut(usize) -> bool,
        evaluate: &mut dyn FnMut(&Point, &mut Report<'_>) -> Result<f64>,
        seen: &mut dyn FnMut(&Study, &Trial),
    ) -> Result<()> {
        let seed = seed::of_index(self.setup.seed, &format!("stage {}", series.stage), series.part);
        while self.trials(series).len() < trials && !self.has_ended(series) {
            let earlier = self.trials(series);
            let number = earlier.len();
            if stop(number) {
                break;
            }
            let queued = self.queues.get(&series).and_then(|queue| queue.get(number)).cloned();
            let next = || self.setup.tpe.suggest(&self.setup.knobs, seed, earlier);
            let Some(point) = queued.or_else(next) else { break };
            let (steps, outcome) = attempt(self.setup.pruner, earlier, &point, evaluate);
            let trial = Trial { series, number, point, steps, outcome };
            if let Some(log) = &mut self.log {
                log.append(&Line::Trial(trial.clone()))?;
            }
            self.trials.entry(series).or_default().push(trial.clone());
            seen(self, &trial);
            if number + 1 == self.setup.tpe.startup.max(1) {
                self.refuse_if_all_failed(series)?;
            }
        }
        Ok(())
    }

    fn refuse_if_all_failed(&self, series: Series) -> Result<()> {
        let mut reason = None;
        for trial in self.trials(series) {
            match &trial.outcome {
                Outcome::Failed(why) => reason = reason.or(Some(why)),
                Outcome::Complete(_) | Outcome::Pruned => return Ok(()),
            }
        }
        let Some(reason) = reason else { return Ok(()) };
        let log = self.log.as_ref().map(|log| log.path().display().to_string());
        Err(Error::Tune {
            why: format!(
                "all of the first {} trials failed, the first with: {reason}",
                self.trials(series).len()
            ),
            hint: Some(log.map_or_else(
                || "correct the cause".into(),
                |path| format!("correct the cause, remove {path} and start again").into(),
            )),
        })
    }
}

/// Evaluates a point under the pruner.
fn attempt(
    pruner: Option<Pruner>,
    earlier: &[Trial],
    point: &Point,
    evaluate: &mut dyn FnMut(&Point, &mut Report<'_>) -> Result<f64>,
) -> (Vec<(usize, f64)>, Outcome) {
    let mut steps = Vec::new();
    let mut over: Option<Outcome> = None;
    let mut report = |step: usize, value: f64| {
        if over.is_none() {
            if value.is_finite() {
                steps.push((step, value));
                if pruner.is_some_and(|pruner| pruner.prunes(earlier, &steps)) {
                    over = Some(Outcome::Pruned);
                }
            } else {
                over = Some(Outcome::Failed(format!("its value at step {step} is {value}")));
            }
        }
        if over.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let result = evaluate(point, &mut report);
    let outcome = over.unwrap_or_else(|| match result {
        Ok(value) if value.is_finite() => Outcome::Complete(value),
        Ok(value) => Outcome::Failed(format!("its value is {value}")),
        Err(e) => Outcome::Failed(e.to_string()),
    });
    (steps, outcome)
}

#[cfg(test)]
mod tests;
