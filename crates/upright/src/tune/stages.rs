//! The two-stage protocol: first each of some small disjoint parts of the
//! validation data on its own, then all of it.
//!
//! Stage 1 runs 40 trials on each of 3 parts, the defaults first. Stage 2 runs
//! 15 on the full set, the defaults and the 3 best of each part first. The best
//! trial of stage 2 wins; between equal ones the first, hence the defaults
//! unless something is better.

use std::path::Path;
use std::time::{Duration, Instant};

use super::knobs::Point;
use super::study::{Report, Setup, Study};
use super::trial::{Series, Trial};
use crate::error::{Error, Result};

/// The data a point is evaluated on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subset {
    /// One of the disjoint parts, from 0.
    Part(usize),
    /// All of it.
    Full,
}

/// What is tuned. Values must follow from point and subset alone.
pub trait Objective {
    /// How many disjoint parts there are; 3 in the protocol.
    fn parts(&self) -> usize;

    /// The value of a point on a subset; higher is better.
    ///
    /// Calls `report` with a step and the value so far where it can, and returns
    /// after a `Break`; steps of different points must be comparable. An error
    /// or a value that is not finite makes a failed trial.
    fn evaluate(&mut self, point: &Point, subset: Subset, report: &mut Report<'_>) -> Result<f64>;
}

/// How much is tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    /// Trials on each part in stage 1.
    pub first: usize,
    /// Trials on the full set in stage 2.
    pub second: usize,
    /// How many of each part's best go on to stage 2.
    pub top: usize,
    /// Points that stage 1 tries after the default one.
    pub starts: Vec<Point>,
    /// A wall-clock budget instead of the numbers of trials, which then say how
    /// it is divided. Points that are enqueued run in any case. It counts from
    /// the start or resumption.
    pub time: Option<Duration>,
}

impl Default for Protocol {
    fn default() -> Self {
        Protocol { first: 40, second: 15, top: 3, starts: Vec::new(), time: None }
    }
}

/// What a progress callback gets after each trial.
#[derive(Debug)]
pub struct Progress<'a> {
    /// The trial that has just finished.
    pub trial: &'a Trial,
    /// The best complete one of its series so far.
    pub best: Option<&'a Trial>,
    /// Trials finished in all, those of a resumed log included.
    pub done: usize,
    /// Trials in all; fewer if the space is small; `None` if time is the budget.
    pub planned: Option<usize>,
}

/// What tuning gives.
#[derive(Debug)]
pub struct Tuned {
    /// Every trial.
    pub study: Study,
    /// The best trial on the full set so far; `None` only if it was stopped
    /// before stage 2 had any.
    pub best: Option<Trial>,
    /// The trial of the default point on the full set, if it was completed.
    pub default: Option<Trial>,
    /// Whether it ran to its end; otherwise it was stopped and can be resumed.
    pub finished: bool,
}

/// The series of the full set.
const FULL: Series = Series { stage: 2, part: 0 };

impl Protocol {
    /// Runs both stages, or what a log says is left of them.
    ///
    /// `stop` is asked before each trial; once it says yes, what was found so far
    /// is returned, and with a log the rest can be done later: the same call
    /// then gives what it would have given without the interruption (with a
    /// budget of time, what the time then allows).
    pub fn run(
        &self,
        setup: Setup,
        log: Option<&Path>,
        objective: &mut dyn Objective,
        stop: &mut dyn FnMut() -> bool,
        progress: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<Tuned> {
        let begun = Instant::now();
        self.run_by(setup, log, objective, stop, progress, &mut || begun.elapsed())
    }

    /// [`run`](Self::run) by a clock that tells the time since the start.
    fn run_by(
        &self,
        mut setup: Setup,
        log: Option<&Path>,
        objective: &mut dyn Objective,
        stop: &mut dyn FnMut() -> bool,
        progress: &mut dyn FnMut(&Progress<'_>),
        clock: &mut dyn FnMut() -> Duration,
    ) -> Result<Tuned> {
        let parts = objective.parts();
        setup.label = self.label(&setup.label, parts);
        let mut study = match log {
            Some(path) => Study::resume(setup, path)?,
            None => Study::new(setup),
        };
        let mut plan: Vec<Series> = (0..parts).map(|part| Series { stage: 1, part }).collect();
        plan.push(FULL);
        let mut open: f64 =
            plan.iter().filter(|s| !study.has_ended(**s)).map(|s| self.share(*s)).sum();
        let mut stopped = false;
        for series in plan {
            self.fill(&mut study, series, parts)?;
            if study.has_ended(series) {
                continue;
            }
            let queued = study.queued(series);
            let deadline = self.time.map(|time| {
                let left = time.saturating_sub(clock());
                time.saturating_sub(left) + left.mul_f64((self.share(series) / open).min(1.0))
            });
            open -= self.share(series);
            let trials = match self.time {
                Some(_) => usize::MAX,
                None => self.count(series).max(queued),
            };
            let planned = self.time.is_none().then(|| self.planned(parts));
            let subset = if series == FULL { Subset::Full } else { Subset::Part(series.part) };
            study.run(
                series,
                trials,
                &mut |number| {
                    stopped = stopped || stop();
                    stopped || number >= queued && deadline.is_some_and(|at| clock() >= at)
                },
                &mut |point, report| objective.evaluate(point, subset, report),
                &mut |study, trial| {
                    let best = study.best(series, 1).first().copied();
                    progress(&Progress { trial, best, done: study.all().count(), planned });
                },
            )?;
            if stopped {
                break;
            }
            study.end(series)?;
        }
        let best = study.best(FULL, 1).first().map(|&t| t.clone());
        if best.is_none() && !stopped {
            return Err(Error::Tune {
                why: "no trial on the full set could be completed".into(),
                hint: Some("the trials' reasons are in the log".into()),
            });
        }
        let default = study.trials(FULL).first().filter(|t| t.value().is_some()).cloned();
        Ok(Tuned { study, best, default, finished: !stopped })
    }

    /// Enqueues what a series begins with; stage 2 needs stage 1 to be over.
    fn fill(&self, study: &mut Study, series: Series, parts: usize) -> Result<()> {
        study.enqueue(series, study.setup().knobs.default_point())?;
        if series == FULL {
            for part in 0..parts {
                let top = study.best(Series { stage: 1, part }, self.top);
                let top: Vec<Point> = top.into_iter().map(|t| t.point.clone()).collect();
                top.into_iter().try_for_each(|point| study.enqueue(series, point))?;
            }
            return Ok(());
        }
        self.starts.iter().try_for_each(|point| study.enqueue(series, point.clone()))
    }

    fn count(&self, series: Series) -> usize {
        if series == FULL { self.second } else { self.first }
    }

    /// A series' part of the time; never nothing, so that parts can be divided.
    fn share(&self, series: Series) -> f64 {
        self.count(series).max(1) as f64
    }

    fn planned(&self, parts: usize) -> usize {
        let first = self.first.max(1 + self.starts.len());
        parts * first + self.second.max(1 + parts * self.top.min(first))
    }

    /// The label with what else the trials follow from.
    fn label(&self, label: &str, parts: usize) -> String {
        let counts = match self.time {
            Some(_) => "by time".into(),
            None => format!("{} + {} trials", self.first, self.second),
        };
        format!("{label}; {parts} parts, {counts}, top {}, {} starts", self.top, self.starts.len())
    }
}

#[cfg(test)]
mod tests;
