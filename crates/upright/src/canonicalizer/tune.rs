//! Tuning: what to tap, which score with which settings, then the parts of other
//! roles, by the accuracy that the best gate reaches on held-out inputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fit::{BankRows, FitData, Watch};
use super::held::Held;
use super::plan::Plan;
use super::replay::{Replay, SCORE, TAP, Worth};
use super::{Canonicalizer, Config};
use crate::config::{Param, Part, Value};
use crate::error::{Error, Result};
use crate::gate::Case;
use crate::model::{Model, Tap};
use crate::reduce::Reduce;
use crate::role::Role;
use crate::router::Models;
use crate::score;
use crate::tune::{
    Knob, Knobs, Objective, Point, Progress, Protocol, Report, Setup, Subset, Tuned, knobs,
};

/// How to tune.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneConfig {
    /// Names of parts that are tried beside the config's own, by role: scores first, then all
    /// other roles together, whose parts must need no fit.
    pub rows: BTreeMap<Role, Vec<String>>,
    /// Most held-out samples looked at, upright and transformed each; roles other than the
    /// score, whose trials cost model evaluations, get a third of them.
    pub samples: usize,
    /// Most samples in the bank while tuning.
    pub bank: usize,
    /// Views of each input that scores are compared on.
    pub views: usize,
    /// Share of inputs that come transformed.
    pub transformed: f64,
    /// Points of upright accuracy that may be lost.
    pub drop: f64,
    /// Trials of a score on each of three parts of these samples.
    pub first: usize,
    /// Trials of a score on all of them.
    pub second: usize,
    /// Trials of the parts of other roles, together.
    pub others: usize,
    /// Time for the score instead of numbers of trials, which then say how it is divided; the
    /// search gets three tenths of it on top.
    pub time: Option<Duration>,
}

impl TuneConfig {
    /// The names of a role.
    fn names(&self, role: Role) -> &[String] {
        self.rows.get(&role).map_or(&[], Vec::as_slice)
    }

    /// The roles beside the score that are tuned.
    fn other_roles(&self) -> Vec<Role> {
        let tuned = |role: &Role| *role != Role::Score && !self.names(*role).is_empty();
        Role::ALL.into_iter().filter(tuned).collect()
    }

    fn protocol(&self) -> Protocol {
        let (first, second, time) = (self.first, self.second, self.time);
        Protocol { first, second, time, ..Protocol::default() }
    }
}

impl Default for TuneConfig {
    fn default() -> Self {
        let words = |w: &[&str]| w.iter().map(|w| (*w).into()).collect();
        TuneConfig {
            rows: BTreeMap::from([
                (
                    Role::Score,
                    words(&[
                        "pc-knn",
                        "knn",
                        "pc-knn-mix",
                        "pc-proto",
                        "relative-mahalanobis",
                        "fisher",
                        "pc-knn-fisher",
                        "energy",
                    ]),
                ),
                (Role::Search, words(&["rivals", "random", "random-refine"])),
            ]),
            samples: 360,
            bank: 4000,
            views: 40,
            transformed: 0.5,
            drop: 1.0,
            first: 12,
            second: 12,
            others: 12,
            time: None,
        }
    }
}

/// What tuning found.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneReport {
    /// The config with the chosen parts.
    pub config: Config,
    /// What to tap.
    pub taps: Vec<Tap>,
    /// Trials in all.
    pub trials: usize,
    /// Accuracy in percent on traffic of the asked mix, behind the best gate, on the tuning
    /// data: with the config's score and with the chosen one, on fixed views.
    pub accuracy: (f64, f64),
    /// The same with the config's other parts and with the chosen ones, on fewer inputs; absent
    /// if none were tried.
    pub searched: Option<(f64, f64)>,
    /// Whether it ran to its end; otherwise it can be resumed.
    pub finished: bool,
}

/// Loads the model with other taps.
pub type Load<'a> = dyn Fn(&[Tap]) -> Result<Model> + 'a;

/// Where a tuning reports to, and what may stop it.
pub struct TuneWatch<'a> {
    /// Is told how the preparation goes on.
    pub watch: &'a mut dyn Watch,
    /// Is told of every trial.
    pub trial: &'a mut dyn FnMut(&Progress<'_>),
    /// Asked before every trial.
    pub stop: &'a mut dyn FnMut() -> bool,
}

impl std::fmt::Debug for TuneWatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TuneWatch")
    }
}

impl Config {
    /// Tunes taps, score and search for a model on held-out data that neither calibrate the
    /// gate nor prove the result. Parts that
    /// learn from copies are not tuned: the preset `search` stands in for them.
    ///
    /// With a log an interrupted tuning resumes and ends as if it had not
    /// been interrupted; the search's trials are in a second file beside it.
    pub fn tune(
        &self,
        tune: &TuneConfig,
        load: &Load<'_>,
        data: &FitData,
        log: Option<&Path>,
        watch: &mut TuneWatch<'_>,
    ) -> Result<TuneReport> {
        self.check()?;
        if let Some(config) = self.searching() {
            return config.tune(tune, load, data, log, watch);
        }
        // Searches are tuned, wherever unfamiliar inputs go in the end.
        let searching = &self.clone().with(Role::Router, Part::new("none"));
        let taps = candidates(&load(&[Tap::auto()])?, self.seed, load);
        let model = load(&taps)?;
        let (bank, held) = self.tuning_split(data, tune);
        let worth = Worth { share: tune.transformed, drop: tune.drop };
        let label = format!(
            "{} on {} + {} samples, budget {}, {}",
            model.fingerprint(),
            bank.len(),
            held.upright.len(),
            self.budget,
            serde_json::to_string(&self.space).unwrap_or_default()
        );
        let setup = Setup::new(self.score_knobs(tune, &taps)?, self.seed, &label);
        let bare = Canonicalizer::bare(searching, &model.into())?;
        let views = tune.views.min(self.budget).max(1);
        let mut replay =
            Replay::build(self, &bare, (data.bank, &bank), &held, (views, worth), watch.watch)?;
        let scores = tune.protocol().run(setup, log, &mut replay, watch.stop, watch.trial)?;
        drop(replay);
        let mut report = TuneReport {
            config: Config { tuned_on: held.upright.len(), ..self.clone() },
            taps: vec![taps[0].clone()],
            trials: scores.study.all().count(),
            accuracy: values(&scores),
            searched: None,
            finished: scores.finished,
        };
        let Some(best) = scores.best else { return Ok(report) };
        if let Some(part) = knobs::part(&best.point, SCORE) {
            report.config.parts[Role::Score] = part;
        }
        if let Some(Value::Number(tap)) = best.point.get(TAP) {
            report.taps = taps.get(*tap as usize).cloned().into_iter().collect();
        }
        let others = tune.other_roles();
        if !report.finished || others.is_empty() {
            return Ok(report);
        }
        let tried = report.config.clone().with(Role::Router, Part::new("none"));
        let models: Models = load(&report.taps)?.into();
        let plan = Plan::of(&tried, &models.first, bank.len(), &held)?;
        let rows = BankRows { data: data.bank, rows: &bank, given: None, resumes: false };
        let (c, _) = tried.with_bank(&models, &rows, &plan, watch.watch)?;
        let second = log.map(second_log);
        let setup = Setup::new(
            self.other_knobs(tune)?,
            self.seed,
            format!(
                "{label}, {}",
                serde_json::to_string(tried.part(Role::Score)).unwrap_or_default()
            ),
        );
        let protocol = Protocol {
            second: tune.others,
            time: tune.time.map(|t| t.mul_f64(0.3).max(Duration::from_secs(1))),
            ..tune.protocol()
        };
        let held = held.some(tune.samples / 3).0;
        let mut searches = Searches { c, roles: &others, held: &held, worth };
        let found =
            protocol.run(setup, second.as_deref(), &mut searches, watch.stop, watch.trial)?;
        report.trials += found.study.all().count();
        report.finished = found.finished;
        if let Some(best) = &found.best {
            for role in others {
                if let Some(part) = knobs::part(&best.point, role.name()) {
                    report.config.parts[role] = part;
                }
            }
            report.searched = Some(values(&found));
        }
        Ok(report)
    }

    /// The knobs of taps and scores; their defaults are this config.
    fn score_knobs(&self, tune: &TuneConfig, taps: &[Tap]) -> Result<Knobs> {
        let (names, mut all) = self.role_knobs(Role::Score, tune)?;
        let mut free = Vec::new();
        for name in &names {
            let needs = score::needs(&Part::new(name))?;
            if needs.features && !needs.head {
                free.push(Value::Word(name.clone()));
            }
        }
        if taps.len() > 1 && !free.is_empty() {
            let numbers = (0..taps.len()).map(|i| Value::Number(i as f64)).collect();
            all.push(Knob::choice(TAP, numbers).when(SCORE, free));
        }
        Knobs::new(all)
    }

    /// The knobs of all other roles that are tuned.
    fn other_knobs(&self, tune: &TuneConfig) -> Result<Knobs> {
        let mut all = Vec::new();
        for role in tune.other_roles() {
            all.extend(self.role_knobs(role, tune)?.1);
        }
        Knobs::new(all)
    }

    /// The names that are tried for a role, and its knobs: the choice among them, then the
    /// settings of each.
    fn role_knobs(&self, role: Role, tune: &TuneConfig) -> Result<(Vec<String>, Vec<Knob>)> {
        let part = self.part(role);
        let names = first(&part.name, tune.names(role));
        let word = |n: &String| Value::Word(n.clone());
        let mut all = vec![Knob::choice(role.name(), names.iter().map(word).collect())];
        for name in &names {
            all.extend(own(role.name(), part, name, role.row(name)?.params));
        }
        Ok((names, all))
    }
}

/// The knobs of a row, starting from what a config sets on it.
fn own(chooser: &str, part: &Part, name: &str, params: &[Param]) -> Vec<Knob> {
    Knob::of_row(chooser, name, params)
        .into_iter()
        .map(|knob| {
            let short = knob.name.rsplit('.').next().unwrap_or_default();
            match part.settings.get(short) {
                Some(value) if part.name == name && knob.range.admits(value) => {
                    knob.starting(value.clone())
                }
                _ => knob,
            }
        })
        .collect()
}

/// The config's own name first, then the others.
fn first(own: &str, others: &[String]) -> Vec<String> {
    let rest = others.iter().filter(|n| *n != own).cloned();
    std::iter::once(own.to_string()).chain(rest).collect()
}

fn values(tuned: &Tuned) -> (f64, f64) {
    let value = |t: &Option<crate::tune::Trial>| t.as_ref().and_then(crate::tune::Trial::value);
    let best = value(&tuned.best).unwrap_or(f64::NAN);
    (value(&tuned.default).unwrap_or(best), best)
}

fn second_log(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(".search.jsonl");
    path.with_file_name(name)
}

/// Operators after which there are no positions left.
const FLAT: [&str; 5] = ["GlobalAveragePool", "ReduceMean", "Flatten", "Squeeze", "Reshape"];

/// What is worth tapping: the last layer's input, then the last block's map in regional
/// means and as one mean, and a map from about two thirds of the way, as far as the
/// model has them.
fn candidates(model: &Model, seed: u64, load: &Load<'_>) -> Vec<Tap> {
    let maps: Vec<String> = model
        .graph()
        .into_iter()
        .flat_map(|graph| graph.candidates(model.output()))
        .filter(|c| !c.head && !FLAT.contains(&c.op.as_str()))
        .map(|c| c.name)
        .collect();
    let pool = Reduce::Pool { dim: Reduce::DIM, seed };
    let mut wanted = Vec::new();
    if let Some(last) = maps.last() {
        wanted.push(Tap::new(last.as_str()).reduced(pool));
        wanted.push(Tap::new(last.as_str()).reduced(Reduce::Mean));
    }
    if maps.len() > 3 {
        wanted.push(Tap::new(maps[2 * maps.len() / 3 - 1].as_str()).reduced(pool));
    }
    let mut taps = vec![Tap::auto()];
    taps.extend(wanted.into_iter().filter(|tap| load(std::slice::from_ref(tap)).is_ok()));
    taps
}

/// Searches of held-out inputs with a fitted score.
struct Searches<'a, 'h> {
    c: Canonicalizer,
    roles: &'a [Role],
    held: &'a Held<'h>,
    worth: Worth,
}

impl Objective for Searches<'_, '_> {
    fn parts(&self) -> usize {
        0
    }

    fn evaluate(&mut self, point: &Point, _: Subset, report: &mut Report<'_>) -> Result<f64> {
        let mut c = self.c.clone();
        for &role in self.roles {
            let part = knobs::part(point, role.name()).ok_or_else(|| Error::Tune {
                why: format!("the point names no {role}"),
                hint: None,
            })?;
            c = c.with_part(role, part)?;
        }
        let mut cases: Vec<(bool, Case)> = Vec::new();
        for (step, (upright, transformed)) in self.held.slices(SLICES).enumerate() {
            for (kind, rows) in [(true, upright), (false, transformed)] {
                let (batch, labels) = self.held.read(&c, kind, &rows)?;
                for (trace, truth) in c.trace(&batch)?.iter().zip(labels) {
                    let best = c.read(trace).map(|a| a.look);
                    cases.push((kind, Case { raw: trace.raw_look(), best, truth }));
                }
            }
            if report(step, self.worth.of(&cases)).is_break() {
                break;
            }
        }
        Ok(self.worth.of(&cases))
    }
}

/// Slices of a trial after which it may be given up.
const SLICES: usize = 4;

#[cfg(test)]
mod tests;
