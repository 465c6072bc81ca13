//! `upright fit`: a model and labelled data become an artifact.

use std::path::{Path, PathBuf};

use serde::Serialize;
use upright::Models;
use upright::{
    Advice, Config, Dataset, FitData, FitReport, Model, ModelOptions, Part, Role, Transforms,
    TuneReport, Watch,
};
use upright_data::{Source, Split, Want};

use super::setup::{ModelArgs, PartArgs, artifact_path, note_gradient, open};
use super::tune;
use crate::Common;
use crate::data::{self, DataArgs};
use crate::progress::Progress;
use crate::report::{Failure, Note, Result};
use crate::rows::Sink;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright fit model.onnx train/                      one folder per class; writes model.upright
  upright fit model.onnx train/ --held-out val/      calibrate on data the model has not seen
  upright fit model.onnx train/ -t rotate --score pc-knn --set k=5 --set gate.alpha=0.02
  upright fit model.onnx mnist/ --split train --reduce pool
  upright fit model.onnx s.ndjson.gz --exclude '*-7?' --held-out s.ndjson.gz --held-out-include '*-7?'
                                                     parts of one file, by the names of its rows
  upright fit model.onnx points.npy --labels labels.csv
  upright fit model.onnx list.csv --split train      columns path,row,label,split";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// Labelled, upright data: class folders, a path,label list, or a file of many inputs: idx,
    /// npz, npy, ndjson
    data: PathBuf,
    /// Labelled data the model was not trained on, to calibrate and prove on
    /// [default: a fifth of DATA, at most --calibration rows]
    #[arg(long, value_name = "DATA")]
    held_out: Option<PathBuf>,
    /// Which part of the held-out data to read, where there are several
    #[arg(long, value_parser = data::split())]
    held_out_split: Option<Split>,
    /// Labelled data that really came transformed, to calibrate and prove on
    /// [default: copies of held-out data under random poses]
    #[arg(long, value_name = "DATA")]
    transformed: Option<PathBuf>,
    /// A second classifier, e.g. one trained with such transforms, that answers unfamiliar
    /// inputs instead of a search
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["tune", "abstain"])]
    switch: Option<PathBuf>,
    /// Largest share of right answers that may be withheld by abstaining, e.g. 0.02
    /// [default: always answer]
    #[arg(long, value_name = "SHARE")]
    abstain: Option<f64>,
    /// Read only held-out rows whose names fit this pattern; may be given several times
    #[arg(long, value_name = "GLOB")]
    held_out_include: Vec<String>,
    /// True classes of all held-out rows in order, as for --labels
    #[arg(long, value_name = "FILE")]
    held_out_labels: Option<PathBuf>,
    /// Choose taps, score and search on held-out data first: trials per stage, as in --tune=20,
    /// or minutes, as in --tune=10m; resumes an interrupted run
    #[arg(long, value_name = "BUDGET", num_args = 0..=1, require_equals = true,
          default_missing_value = "12")]
    tune: Option<String>,
    /// Points of upright accuracy that the proof may show to be lost; above it nothing is
    /// written
    #[arg(long, value_name = "POINTS", default_value_t = 1.0)]
    accept_harm: f64,
    /// Where to write the artifact [default: the model's name with .upright]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Most samples kept in the bank [default: all]
    #[arg(long, value_name = "N")]
    bank: Option<usize>,
    /// Most held-out samples used [default: 4000 with the preset learned, 1000 with others]
    #[arg(long, value_name = "N")]
    calibration: Option<usize>,
    #[command(flatten)]
    parts: PartArgs,
    #[command(flatten)]
    loading: ModelArgs,
    #[command(flatten)]
    reading: DataArgs,
}

impl Args {
    /// Parts that have a flag of their own.
    fn shorthands(&self, config: &mut Config) {
        if let Some(withheld) = self.abstain {
            config.parts[Role::Abstain] = Part::new("doubt").number("withheld", withheld);
        }
        if self.switch.is_some() {
            config.parts[Role::Router] = Part::new("switch");
        }
    }
}

/// Shows a fit's phases as progress bars.
struct Bars {
    quiet: bool,
    bar: Option<Progress>,
}

impl Watch for Bars {
    fn phase(&mut self, name: &str, steps: usize) {
        self.bar = None;
        self.bar = Some(Progress::start(format!("{name:<10}"), steps, self.quiet));
    }

    fn advance(&mut self, steps: usize) {
        if let Some(bar) = &self.bar {
            bar.advance(steps);
        }
    }
}

#[derive(Serialize)]
struct Fitted<'a> {
    artifact: String,
    bytes: usize,
    advice: Advice,
    sentence: &'a str,
    report: &'a FitReport,
}

/// Fits and writes the artifact.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let mut parts = args.parts.clone();
    if args.tune.is_some() || args.switch.is_some() {
        // Tuning chooses among scores that search, and a second model needs no search at all.
        parts.preset.get_or_insert_with(|| "search".into());
    }
    let mut config = parts.config(common)?;
    config.bank = args.bank;
    config.calibration = args.calibration.unwrap_or(config.calibration);
    args.shorthands(&mut config);
    config.check()?;
    let options = args.loading.options(common)?;
    let mut model = Model::load(&args.model, &options)?;
    args.parts.suit(&mut config, &model);
    config.space.build()?.check(model.signal())?;
    let data =
        open(std::slice::from_ref(&args.data), &args.reading, Want::Labelled, &model, common)?;
    if !data.classes().is_empty() {
        model = model.with_class_names(data.classes().to_vec());
    }
    let other = |path: &Option<PathBuf>| {
        let held = DataArgs {
            split: args.held_out_split,
            limit: None,
            include: args.held_out_include.clone(),
            exclude: Vec::new(),
            labels: args.held_out_labels.clone(),
            ..args.reading.clone()
        };
        path.as_ref()
            .map(|path| open(std::slice::from_ref(path), &held, Want::Labelled, &model, common))
            .transpose()
    };
    let (held_out, transformed) = (other(&args.held_out)?, other(&args.transformed)?);
    if !common.quiet && !common.json {
        eprintln!("model      {} ({})", args.model.display(), model.preprocess());
        for tap in model.taps() {
            eprintln!("tap        {} ({} features)", tap.tensors.join(" + "), tap.features);
        }
        eprintln!("data       {} rows", data.len());
    }
    let mut bars = Bars { quiet: common.quiet, bar: None };
    let given = FitData {
        bank: &data,
        held_out: held_out.as_ref().map(|s| s as &dyn Dataset),
        transformed: transformed.as_ref().map(|s| s as &dyn Dataset),
    };
    let path = artifact_path(&args.model, args.out.as_ref());
    if let Some(budget) = &args.tune {
        let (tune, log) = (tune::budget(budget)?, tune::log_path(&path));
        let files = (args.model.as_path(), &options);
        let tuned = tune::run(&config, tune, files, &given, &log, &mut bars, common)?;
        let names = model.class_names().map(<[String]>::to_vec);
        model = Model::load(
            &args.model,
            &ModelOptions { taps: tuned.taps.clone(), ..options.clone() },
        )?;
        if let Some(names) = names {
            model = model.with_class_names(names);
        }
        if !common.quiet && !common.json {
            talk_tuned(&tuned, &log);
        }
        config = tuned.config;
    }
    let second = match &args.switch {
        Some(path) => Some(Model::load(path, &ModelOptions { taps: vec![], ..options })?),
        None => None,
    };
    let fitted = config.fit(Models { first: model, second }, &given, &mut bars);
    drop(bars);
    for source in std::iter::once(&data).chain(&held_out).chain(&transformed) {
        note(source, common)?;
    }
    let fitted = fitted?;
    note_gradient(&fitted, common)?;
    if fitted.report().harm() > args.accept_harm {
        return Err(Failure::Harm {
            sentence: fitted.report().advice().1,
            allowed: args.accept_harm,
        });
    }
    let bytes = fitted.to_bytes()?;
    upright::internal::artifact::write_whole(&path, &bytes)?;
    let (advice, sentence) = fitted.report().advice();
    if common.json {
        let row = Fitted {
            artifact: path.display().to_string(),
            bytes: bytes.len(),
            advice,
            sentence: &sentence,
            report: fitted.report(),
        };
        let mut out = Sink::open(None)?;
        out.write(serde_json::to_string(&row).unwrap_or_default().as_bytes())?;
        out.write(b"\n")?;
        out.finish()?;
    } else if !common.quiet {
        talk(fitted.report(), &sentence, held_out.is_some(), &path, bytes.len(), &args.model);
    }
    warn_harm(fitted.report(), advice, &sentence, common);
    Ok(())
}

fn talk_tuned(tuned: &TuneReport, log: &Path) {
    let part = |part: &Part| {
        let settings = part.settings.iter().map(|(n, v)| format!(" {n}={v}"));
        format!("{}{}", part.name, settings.collect::<String>())
    };
    eprintln!(
        "tuned      {} trials; right with the chosen score: {:.1} -> {:.1} % of the tuning data",
        tuned.trials, tuned.accuracy.0, tuned.accuracy.1,
    );
    if let Some((before, after)) = tuned.searched {
        eprintln!(
            "           right with the chosen search: {before:.1} -> {after:.1} % of a third of them"
        );
    }
    eprintln!("           log {}", log.display());
    for tap in &tuned.taps {
        eprintln!("tap        {} ({})", tap.name, tap.reduce);
    }
    for role in [Role::Score, Role::Search] {
        eprintln!("{role:<10} {}", part(tuned.config.part(role)));
    }
}

/// Prints what is worth saying about a data set and lists its unreadable rows.
pub fn note(source: &Source, common: &Common) -> Result<()> {
    if !common.quiet {
        for note in source.notes() {
            Note::from(&note).print(common.json);
        }
    }
    data::write_skipped(&source.skipped(), Path::new("errors.jsonl"))
}

fn talk(report: &FitReport, sentence: &str, apart: bool, path: &Path, bytes: usize, model: &Path) {
    let (up, tr) = (&report.upright, &report.transformed);
    eprintln!("bank       {} samples", report.bank);
    match report.tau {
        Some(tau) => eprintln!("gate       tau {tau:.4}, from {} samples", report.calibrated_on),
        None => eprintln!("gate       no threshold"),
    }
    eprintln!(
        "proof      {} held-out samples{}, upright and {}",
        up.before.of,
        if apart { "" } else { " of the same data" },
        match report.transforms {
            Transforms::Synthetic => "transformed by random poses (synthetic)",
            Transforms::Given => "those that were given transformed",
        }
    );
    eprintln!("                       upright   transformed");
    eprintln!("  model alone         {:>8}   {:>11}", up.before.to_string(), tr.before.to_string());
    eprintln!("  gated               {:>8}   {:>11}", up.after.to_string(), tr.after.to_string());
    eprintln!(
        "  searched            {:>8}   {:>11}",
        up.searched.to_string(),
        tr.searched.to_string()
    );
    if up.abstained.hits + tr.abstained.hits > 0 {
        eprintln!(
            "  unanswered          {:>8}   {:>11}",
            up.abstained.to_string(),
            tr.abstained.to_string()
        );
    }
    for note in &report.notes {
        eprintln!("note       {note}");
    }
    eprintln!("verdict    {sentence}");
    eprintln!("wrote      {} ({:.1} MB)", path.display(), bytes as f64 / 1e6);
    eprintln!("next       upright predict {} FILES", model.display());
}

fn warn_harm(report: &FitReport, advice: Advice, sentence: &str, common: &Common) {
    let useless = report.auroc.is_some_and(|a| a < 0.6);
    if advice == Advice::DoNotUse {
        Note {
            code: if useless { "gate::useless" } else { "gate::harm" },
            warning: true,
            message: sentence.into(),
            help: "the artifact was written; `upright eval` measures it on other data".into(),
        }
        .print(common.json);
    }
}
