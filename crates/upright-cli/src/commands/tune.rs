//! Tuning before a fit: `upright fit --tune`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use upright::internal::tune::{Point, Progress, Trial};
use upright::{Config, FitData, Model, Role, Tap, TuneConfig, TuneReport, TuneWatch, Value, Watch};

use crate::Common;
use crate::progress::Progress as Bar;
use crate::report::{Failure, Result};

/// Trials that every series gets one of: a score's on three parts and on all, and a search's.
const FEWEST: usize = 5;

/// Reads a budget: trials in all, or minutes as in `10m`.
pub fn budget(text: &str) -> Result<TuneConfig> {
    let usual = TuneConfig::default();
    let bad = || {
        Failure::usage(
            format!("`{text}` is not a budget for tuning"),
            "give trials as in `--tune=30`, or minutes as in `--tune=10m`",
        )
    };
    if let Some(minutes) = text.strip_suffix('m') {
        let minutes: f64 = minutes.parse().map_err(|_| bad())?;
        if !(minutes > 0.0 && minutes <= 1e5) {
            return Err(bad());
        }
        // The search's trials take their time on top, three tenths of the score's.
        let time = Some(Duration::from_secs_f64(60.0 * minutes / 1.3));
        return Ok(TuneConfig { time, ..usual });
    }
    let trials: usize = text.parse().map_err(|_| bad())?;
    if trials < FEWEST {
        return Err(Failure::usage(
            format!("{trials} trials are too few to tune by"),
            format!(
                "give {FEWEST} or more: scores on three parts of the data and on all, searches"
            ),
        ));
    }
    let first = (trials / 14).max(1);
    let others = (trials - 3 * first) / 2;
    Ok(TuneConfig { first, second: trials - 3 * first - others, others, ..usual })
}

/// Trials in all, unless time is the budget.
fn planned(tune: &TuneConfig) -> usize {
    3 * tune.first + tune.second + tune.others
}

/// Where the trials of an artifact are logged, so that tuning can be resumed.
pub fn log_path(artifact: &Path) -> PathBuf {
    artifact.with_extension("tune.jsonl")
}

/// The same, aiming at what the config's gate aims at.
pub fn for_gate(tune: TuneConfig, config: &Config) -> TuneConfig {
    let number = |name: &str, otherwise: f64| match config.part(Role::Gate).settings.get(name) {
        Some(Value::Number(v)) => *v,
        _ => otherwise,
    };
    TuneConfig {
        transformed: number("transformed", tune.transformed),
        drop: number("drop", tune.drop).max(tune.drop),
        ..tune
    }
}

/// Tunes a config on data; the model comes with its new taps.
pub fn run(
    config: &Config,
    tune: TuneConfig,
    load: &dyn Fn(&[Tap]) -> upright::Result<Model>,
    data: &FitData,
    log: &Path,
    watch: &mut dyn Watch,
    common: &Common,
) -> Result<TuneReport> {
    let tune = for_gate(tune, config);
    let bar = Bar::start("tune      ", planned(&tune), common.quiet);
    let mut tried: Vec<Tried> = Vec::new();
    let mut say = |progress: &Progress<'_>| {
        bar.advance(1);
        let best = progress.best.and_then(Trial::value);
        bar.say(best.map_or(String::new(), |v| format!("best {v:.1} %")));
        // The second stage tries on all of the data.
        if let (2, Some(value)) = (progress.trial.series.stage, progress.trial.value()) {
            tried.push(Tried { value, words: words(&progress.trial.point) });
        }
    };
    let mut watch = TuneWatch { watch, trial: &mut say, stop: &mut || false };
    let report = config.tune(&tune, load, data, Some(log), &mut watch)?;
    drop(bar);
    if !common.quiet && !common.json {
        for line in table(&tried) {
            eprintln!("{line}");
        }
    }
    Ok(report)
}

/// A trial on all of the tuning data.
struct Tried {
    value: f64,
    words: Vec<(String, String)>,
}

/// What a trial tried: the part of each role with its settings, rounded for reading.
fn words(point: &Point) -> Vec<(String, String)> {
    point.iter().map(|(name, value)| (name.clone(), short(value))).collect()
}

/// A setting with no more digits than matter.
pub fn short(value: &Value) -> String {
    match value {
        Value::Number(v) if *v != 0.0 && v.abs() < 0.01 => format!("{v:.1e}"),
        Value::Number(v) => format!("{v:.3}").trim_end_matches('0').trim_end_matches('.').into(),
        other => other.to_string(),
    }
}

/// The best few of each stage.
fn table(tried: &[Tried]) -> Vec<String> {
    let mut lines = Vec::new();
    for stage in ["score", "search"] {
        let own = |t: &&Tried| t.words.iter().any(|(name, _)| name == stage);
        let mut rows: Vec<&Tried> = tried.iter().filter(own).collect();
        rows.sort_by(|a, b| b.value.total_cmp(&a.value));
        rows.dedup_by(|a, b| a.words == b.words);
        if !rows.is_empty() {
            lines.push(format!(
                "{stage:<10} best of {}, right answers behind the best gate",
                rows.len()
            ));
        }
        for row in rows.iter().take(5) {
            let words = named(stage, &row.words);
            lines.push(format!("  {:>6.1} %  {}", row.value, words));
        }
    }
    lines
}

/// The part that a role has, then its settings, then whatever else was chosen.
fn named(role: &str, words: &[(String, String)]) -> String {
    let part = words.iter().find(|(name, _)| name == role).map_or("", |(_, part)| part.as_str());
    let settings = words.iter().filter(|(name, _)| name != role).map(|(name, value)| {
        let own = name.strip_prefix(part).and_then(|rest| rest.strip_prefix('.'));
        format!(" {}={value}", own.unwrap_or(name))
    });
    format!("{part}{}", settings.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_the_best_few_of_each_stage() {
        let tried = |value, role: &str, name: &str| Tried {
            value,
            // By name, as a trial has them.
            words: vec![(format!("{name}.k"), "5".into()), (role.into(), name.into())],
        };
        let all = [
            tried(50.04, "score", "knn"),
            tried(61.26, "score", "proto"),
            tried(62.0, "search", "rivals"),
        ];
        assert_eq!(
            table(&all),
            [
                "score      best of 2, right answers behind the best gate",
                "    61.3 %  proto k=5",
                "    50.0 %  knn k=5",
                "search     best of 1, right answers behind the best gate",
                "    62.0 %  rivals k=5",
            ]
        );
    }

    #[test]
    fn a_budget_is_trials_or_minutes() {
        for trials in 5..200 {
            let tune = budget(&trials.to_string()).unwrap();
            assert_eq!(planned(&tune), trials);
            // The best of each part go on, which takes trials, too.
            assert!(tune.second > 3 * (tune.first - 1).min(3), "{tune:?}");
        }
        assert_eq!(budget("13m").unwrap().time, Some(Duration::from_mins(10)));
        for bad in ["", "0", "4", "m", "-3m", "x", "1e9m"] {
            assert!(budget(bad).is_err(), "{bad}");
        }
    }
}
