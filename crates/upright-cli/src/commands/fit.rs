//! `upright fit`: a model and labelled data become an artifact.

use std::path::{Path, PathBuf};

use serde::Serialize;
use upright::Models;
use upright::internal::stats::rounded;
use upright::{
    Accuracy, Advice, Canonicalizer, Config, Dataset, FitData, FitReport, Model, ModelOptions,
    Overrides, Part, Role, Share, Tap, Transforms, TuneReport, Watch,
};
use upright_data::{Source, Split, Want};

use super::check;
use super::setup::{ModelArgs, PartArgs, artifact_path, check_place, note_gradient, open};
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
  upright fit model.onnx train/ --external energy.onnx    energies of a network of your own
  upright fit model.onnx points.npy --labels labels.csv
  upright fit model.onnx list.csv --split train      columns path,row,label,split";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    pub model: PathBuf,
    /// Labelled, upright data: class folders, a path,label list, or a file of many inputs: idx,
    /// npz, npy, ndjson
    pub data: PathBuf,
    /// Labelled data the model was not trained on, to calibrate and prove on
    /// [default: a fifth of DATA, at most --calibration rows]
    #[arg(long, value_name = "DATA")]
    pub held_out: Option<PathBuf>,
    /// Which part of the held-out data to read, where there are several
    #[arg(long, value_parser = data::split())]
    held_out_split: Option<Split>,
    /// Labelled data that really came transformed, to calibrate and prove on
    /// [default: copies of held-out data under random poses]
    #[arg(long, value_name = "DATA")]
    pub transformed: Option<PathBuf>,
    /// A second classifier, e.g. one trained with such transforms, that answers unfamiliar
    /// inputs instead of a search
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["tune", "abstain"])]
    pub switch: Option<PathBuf>,
    /// A network that says how unfamiliar a view looks, lower = more familiar: an ONNX file with
    /// the classifier's input and one output, or two as the logits of upright and transformed; it
    /// becomes the score `external`
    #[arg(long, value_name = "ENERGY", conflicts_with = "tune")]
    pub external: Option<PathBuf>,
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
    /// Choose taps, score and search on held-out data first: trials, as in --tune=30, or minutes,
    /// as in --tune=10m; resumes an interrupted run
    #[arg(long, value_name = "BUDGET", num_args = 0..=1, require_equals = true,
          default_missing_value = "96")]
    pub tune: Option<String>,
    /// Points of upright accuracy that the proof may show to be lost; above it nothing is
    /// written
    #[arg(long, value_name = "POINTS", default_value_t = 1.0)]
    pub accept_harm: f64,
    /// Minutes that the fit should take: fewer copies, lessons and held-out samples are used to
    /// keep within, which is said and stored; 0 cuts nothing
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    minutes: f64,
    /// Where to write the artifact [default: the model's name with .upright]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Most samples kept in the bank [default: all]
    #[arg(long, value_name = "N")]
    bank: Option<usize>,
    /// Most held-out samples used [default: 4000 with the preset learned, 1000 with others]
    #[arg(long, value_name = "N")]
    calibration: Option<usize>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it")]
    pub parts: PartArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it")]
    pub loading: ModelArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it")]
    pub reading: DataArgs,
}

impl Args {
    /// What the flags choose, checked; [`PartArgs::suit`] completes it.
    pub fn config(&self, common: &Common) -> Result<Config> {
        let mut parts = self.parts.clone();
        if self.tune.is_some() || self.switch.is_some() {
            // Tuning chooses among scores that search, and a second model needs no search at all.
            parts.preset.get_or_insert_with(|| "search".into());
        }
        if self.external.is_some() {
            parts.roles = parts.roles.or(Role::Score, "external");
        }
        let mut config = parts.config(common)?;
        config.bank = self.bank;
        config.minutes = Some(self.minutes).filter(|m| *m > 0.0);
        config.calibration = self.calibration.unwrap_or(config.calibration);
        self.shorthands(&mut config);
        config.check()?;
        Ok(config)
    }

    /// The energy network, prepared by its own rules.
    pub fn energy(&self, common: &Common) -> Result<Option<Model>> {
        let options = self.loading.options(common)?;
        let options = ModelOptions {
            energy: true,
            preprocess: Overrides::default(),
            output: None,
            ..options
        };
        Ok(self.external.as_ref().map(|path| Model::load(path, &options)).transpose()?)
    }

    /// How to read held-out and transformed data.
    pub fn reading_others(&self) -> DataArgs {
        DataArgs {
            split: self.held_out_split,
            limit: None,
            include: self.held_out_include.clone(),
            exclude: Vec::new(),
            labels: self.held_out_labels.clone(),
            ..self.reading.clone()
        }
    }

    /// Refuses what loses more upright accuracy than is allowed.
    pub fn refuse_harm(&self, fitted: &Canonicalizer) -> Result<()> {
        let report = fitted.report();
        if report.harm() <= self.accept_harm {
            return Ok(());
        }
        Err(Failure::Harm {
            sentence: report.advice_allowing(self.accept_harm).1,
            allowed: self.accept_harm,
            gate: fitted.config().part(Role::Gate).name.clone(),
        })
    }

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

/// Shows a fit's phases as progress bars, and keeps what they found beside the artifact until
/// that is written.
struct Bars {
    quiet: bool,
    /// Whether words are wanted beside the bars.
    talks: bool,
    bar: Option<Progress>,
    artifact: PathBuf,
}

/// Where what a phase has found is kept.
fn partial(artifact: &Path, phase: &str) -> PathBuf {
    let mut name = artifact.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{phase}.partial"));
    artifact.with_file_name(name)
}

/// Removes what phases have left.
fn forget(artifact: &Path) {
    for phase in ["copies", "lessons"] {
        let _ = std::fs::remove_file(partial(artifact, phase));
    }
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

    fn say(&mut self, words: &str) {
        if self.talks {
            eprintln!("plan       {words}");
        }
    }

    fn keep(&mut self, phase: &str, bytes: &[u8]) {
        // A fit that cannot be resumed is still a fit.
        let _ = upright::internal::artifact::write_whole(&partial(&self.artifact, phase), bytes);
    }

    fn kept(&mut self, phase: &str) -> Option<Vec<u8>> {
        std::fs::read(partial(&self.artifact, phase)).ok()
    }

    fn resumed(&mut self, phase: &str) {
        if self.talks {
            eprintln!("resumes    after `{phase}` of an earlier fit that was interrupted");
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
    let mut config = args.config(common)?;
    let options = args.loading.options(common)?;
    let mut model = Model::load(&args.model, &options)?;
    let external = args.energy(common)?;
    args.parts.suit(&mut config, &model);
    config.space = config.space.suited(model.signal());
    config.space.build()?.check(model.signal())?;
    let data =
        open(std::slice::from_ref(&args.data), &args.reading, Want::Labelled, &model, common)?;
    if !data.classes().is_empty() {
        model = model.with_class_names(data.classes().to_vec());
    }
    let other = |path: &Option<PathBuf>| {
        let held = args.reading_others();
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
    check::warn(&model, held_out.as_ref().unwrap_or(&data), common)?;
    let talks = !common.quiet && !common.json;
    let path = artifact_path(&args.model, args.out.as_ref());
    let mut bars = Bars { quiet: common.quiet, talks, bar: None, artifact: path.clone() };
    let given = FitData {
        bank: &data,
        held_out: held_out.as_ref().map(|s| s as &dyn Dataset),
        transformed: transformed.as_ref().map(|s| s as &dyn Dataset),
    };
    // A place that cannot be written to is no reason to fit first.
    drop(Sink::open(Some(&path))?);
    check_place(&path, &model)?;
    if let Some(budget) = &args.tune {
        let (tune, log) = (tune::budget(budget)?, tune::log_path(&path));
        let load = |taps: &[Tap]| {
            Model::load(&args.model, &ModelOptions { taps: taps.to_vec(), ..options.clone() })
        };
        let tuned = tune::run(&config, tune, &load, &given, &log, &mut bars, common)?;
        let names = model.class_names().map(<[String]>::to_vec);
        model = load(&tuned.taps)?;
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
    let fitted = config.fit(Models { first: model, second, external }, &given, &mut bars);
    drop(bars);
    for source in std::iter::once(&data).chain(&held_out).chain(&transformed) {
        note(source, &errors_path(&path), common)?;
    }
    let fitted = fitted?;
    forget(&path);
    note_gradient(&fitted, common)?;
    conclude(&fitted, args, held_out.is_some(), &path, common)
}

/// Says what came of a fit, and writes it unless it harms.
fn conclude(
    fitted: &Canonicalizer,
    args: &Args,
    apart: bool,
    path: &Path,
    common: &Common,
) -> Result<()> {
    let report = fitted.report();
    let (advice, sentence) = report.advice_allowing(args.accept_harm);
    let talks = !common.quiet && !common.json;
    if talks {
        talk(report, apart);
    }
    args.refuse_harm(fitted)?;
    let bytes = fitted.to_bytes()?;
    upright::internal::artifact::write_whole(path, &bytes)?;
    if common.json {
        let row = Fitted {
            artifact: path.display().to_string(),
            bytes: bytes.len(),
            advice,
            sentence: &sentence,
            report,
        };
        let mut out = Sink::open(None)?;
        out.write(serde_json::to_string(&row).unwrap_or_default().as_bytes())?;
        out.write(b"\n")?;
        out.finish()?;
    } else if talks {
        eprintln!("verdict    {sentence}");
        eprintln!("wrote      {} ({:.1} MB)", path.display(), bytes.len() as f64 / 1e6);
        eprintln!("next       {}", next(report, advice, args));
    }
    if advice == Advice::DoNotUse && !talks {
        Note {
            code: "gate::useless",
            warning: true,
            message: sentence,
            help: format!("the artifact was written; next: {}", next(report, advice, args)),
        }
        .print(common.json);
    }
    Ok(())
}

/// What to type next.
fn next(report: &FitReport, advice: Advice, args: &Args) -> String {
    let model = args.model.display();
    let fit = format!("upright fit {model} {}", args.data.display());
    match advice {
        Advice::Use | Advice::RetrainInstead => format!("upright predict {model} FILES"),
        Advice::TooFew if args.held_out.is_none() => {
            format!("{fit} --held-out DATA, labelled data the model was not trained on")
        }
        Advice::TooFew => format!("{fit} with more data for --held-out"),
        Advice::DoNotUse if report.auroc.is_some_and(|a| a < 0.6) && args.tune.is_none() => {
            format!("{fit} --tune=10m, which tries other scores and taps")
        }
        Advice::DoNotUse => format!("upright report {model} {}", args.data.display()),
    }
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
pub fn note(source: &Source, errors: &Path, common: &Common) -> Result<()> {
    if !common.quiet {
        for note in source.notes() {
            Note::from(&note).print(common.json);
        }
    }
    data::write_skipped(&source.skipped(), errors)
}

/// Where unreadable rows are listed: beside what a command writes or reads.
pub fn errors_path(beside: &Path) -> PathBuf {
    beside.with_file_name("errors.jsonl")
}

fn talk(report: &FitReport, apart: bool) {
    let (up, tr) = (&report.upright, &report.transformed);
    eprintln!("bank       {} samples", report.bank);
    match report.tau {
        Some(tau) => eprintln!(
            "gate       searches inputs that look less familiar than the threshold: an energy \
             above {:.4}, set on {} samples",
            rounded(tau.into(), 4),
            report.calibrated_on
        ),
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
    let row = |name: &str, a: String, b: String| eprintln!("  {name:<16} {a:>22} {b:>22}");
    let share = |s: &Share| {
        let (low, high) = s.interval();
        format!("{s} ({low:.1}..{high:.1})")
    };
    let gain = |a: &Accuracy| {
        let (low, high) = a.paired.interval();
        let [gain, low, high] = [a.paired.gain(), low, high].map(|v| rounded(v, 1));
        format!("{gain:+.1} ({low:+.1}..{high:+.1})")
    };
    row("", "upright".into(), "transformed".into());
    row("model alone", share(&up.before), share(&tr.before));
    row("gated", share(&up.after), share(&tr.after));
    row("gain, points", gain(up), gain(tr));
    let flips = |a: &Accuracy| format!("{}, {}", a.paired.mended, a.paired.broken);
    row("mended, broken", flips(up), flips(tr));
    row("searched", up.searched.to_string(), tr.searched.to_string());
    if up.abstained.hits + tr.abstained.hits > 0 {
        row("unanswered", up.abstained.to_string(), tr.abstained.to_string());
    }
    for note in &report.notes {
        eprintln!("note       {note}");
    }
}
