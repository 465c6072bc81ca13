//! Tuning before a fit: `upright fit --tune`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use upright::internal::tune::{Outcome, Progress};
use upright::{
    Config, FitData, Model, ModelOptions, Role, TuneConfig, TuneReport, TuneWatch, Value, Watch,
};

use crate::Common;
use crate::report::{Failure, Result};

/// Reads a budget: trials per stage, or minutes as in `10m`.
pub fn budget(text: &str) -> Result<TuneConfig> {
    let usual = TuneConfig::default();
    let bad = || {
        Failure::usage(
            format!("`{text}` is not a budget for tuning"),
            "give trials per stage as in `--tune=20`, or minutes as in `--tune=10m`",
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
    if trials == 0 {
        return Err(bad());
    }
    Ok(TuneConfig { first: trials, second: trials, ..usual })
}

/// Where the trials of an artifact are logged, so that tuning can be resumed.
pub fn log_path(artifact: &Path) -> PathBuf {
    artifact.with_extension("tune.jsonl")
}

/// Tunes a config on data; the model comes with its new taps.
pub fn run(
    config: &Config,
    tune: TuneConfig,
    (model, options): (&Path, &ModelOptions),
    data: &FitData,
    log: &Path,
    watch: &mut dyn Watch,
    common: &Common,
) -> Result<TuneReport> {
    let number = |name: &str, otherwise: f64| match config.part(Role::Gate).settings.get(name) {
        Some(Value::Number(v)) => *v,
        _ => otherwise,
    };
    let tune = TuneConfig {
        transformed: number("transformed", tune.transformed),
        drop: number("drop", tune.drop).max(tune.drop),
        ..tune
    };
    let load = |taps: &[upright::Tap]| {
        Model::load(model, &ModelOptions { taps: taps.to_vec(), ..options.clone() })
    };
    let mut say = |progress: &Progress<'_>| {
        if common.quiet || common.json {
            return;
        }
        let value = match &progress.trial.outcome {
            Outcome::Complete(v) => format!("{v:.2}"),
            Outcome::Pruned => "pruned".into(),
            Outcome::Failed(why) => format!("failed: {why}"),
        };
        let best = progress
            .best
            .and_then(upright::internal::tune::Trial::value)
            .map_or("-".into(), |v| format!("{v:.2}"));
        let words: Vec<String> =
            progress.trial.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        eprintln!("trial {:<4} {value:<8} best {best:<8} {}", progress.done, words.join(" "));
    };
    let mut watch = TuneWatch { watch, trial: &mut say, stop: &mut || false };
    Ok(config.tune(&tune, &load, data, Some(log), &mut watch)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_trials_or_minutes() {
        assert_eq!(budget("7").unwrap().first, 7);
        assert_eq!(budget("13m").unwrap().time, Some(Duration::from_mins(10)));
        for bad in ["", "0", "m", "-3m", "x", "1e9m"] {
            assert!(budget(bad).is_err(), "{bad}");
        }
    }
}
