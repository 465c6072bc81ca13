//! `upright check`: whether a model and labelled data go together. A few dozen
//! inputs show whether preprocessing, channels and the order of classes are as
//! the model was trained.

use std::path::PathBuf;

use serde::Serialize;
use upright::internal::preprocess::{Channels, Preprocess};
use upright::{Batch, Dataset, Matrix, Model, Paired, Share};
use upright_data::{Source, Want};

use super::setup::{ModelArgs, open};
use crate::Common;
use crate::data::DataArgs;
use crate::progress::Progress;
use crate::report::{Failure, Note, Result};
use crate::rows::Sink;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright check model.onnx val/                          a few dozen labelled inputs
  upright check model.onnx val/ --channels bgr --scale 1
  upright check model.onnx mnist/ --split test --json";

/// Labelled inputs that are looked at.
const LOOKED_AT: usize = 96;
/// Inputs that are run between two steps of the progress.
const AT_ONCE: usize = 8;
/// Fewer right answers than this, in percent, make `fit` and `eval` look closer.
const DOUBTFUL: f64 = 60.0;
/// Points that another setting has to gain.
const BETTER: f64 = 10.0;
/// The share of answers, in percent, from which on a model sees one class in everything.
const ONE_CLASS: f64 = 90.0;
/// The share of answers, in percent, that an order of classes has to explain.
const EXPLAINED: f64 = 80.0;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// Labelled, upright data
    data: PathBuf,
    #[command(flatten)]
    loading: ModelArgs,
    #[command(flatten)]
    reading: DataArgs,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Findings {
    /// Right answers as configured.
    configured: Share,
    /// Right answers with other settings, best first.
    others: Vec<Other>,
    /// What is wrong, if anything is.
    problem: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    help: String,
}

/// Another setting, as flags.
#[derive(Debug, Serialize)]
struct Other {
    flags: String,
    right: Share,
}

/// Looks and says.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let options = args.loading.options(common)?;
    let options = upright::ModelOptions { taps: vec![], ..options };
    let mut model = Model::load(&args.model, &options)?;
    let data = std::slice::from_ref(&args.data);
    let source = open(data, &args.reading, Want::Labelled, &model, common)?;
    if !source.classes().is_empty() {
        model = model.with_class_names(source.classes().to_vec());
    }
    let findings = look(&model, &source, true, common.quiet)?;
    let mut out = Sink::open(None)?;
    let text = if common.json {
        serde_json::to_string(&findings).unwrap_or_default() + "\n"
    } else {
        shown(&findings, &model)
    };
    out.write(text.as_bytes())?;
    out.finish()?;
    match findings.problem {
        Some(message) => Err(Failure::Mismatch { message, help: findings.help }),
        None => Ok(()),
    }
}

/// Warns before an expensive command where a few dozen inputs show that model and data do not
/// go together.
pub fn warn(model: &Model, source: &Source, common: &Common) -> Result<()> {
    if common.quiet {
        return Ok(());
    }
    if let Some(note) = doubt(model, source, common.quiet)? {
        note.print(common.json);
    }
    Ok(())
}

/// What a few dozen inputs show that does not go together, if anything.
pub fn doubt(model: &Model, source: &dyn Dataset, quiet: bool) -> Result<Option<Note>> {
    let findings = look(model, source, false, quiet)?;
    let note =
        |message| Note { code: "data::mismatch", warning: true, message, help: findings.help };
    Ok(findings.problem.map(note))
}

fn shown(findings: &Findings, model: &Model) -> String {
    let mut lines = vec![
        format!("preprocessing  {}", model.preprocess()),
        format!("looked at      {} labelled inputs", findings.configured.of),
        format!("as configured  {} right", findings.configured),
    ];
    lines.extend(
        findings.others.iter().map(|o| format!("{:>13}  with `{}`", o.right.to_string(), o.flags)),
    );
    if findings.problem.is_none() {
        lines.push("model and data go together".into());
    }
    lines.join("\n") + "\n"
}

/// What a model computes of a batch, a few inputs at a time so that progress shows.
fn logits(model: &Model, batch: &Batch, bar: &Progress) -> Result<Matrix> {
    let mut all = Vec::new();
    for from in (0..batch.len()).step_by(AT_ONCE) {
        let some: Vec<usize> = (from..batch.len().min(from + AT_ONCE)).collect();
        bar.advance(some.len());
        all.extend_from_slice(model.run(&batch.select(&some))?.logits.data());
    }
    Ok(Matrix::new(batch.len(), model.classes(), all)?)
}

/// Looks at some inputs spread over the data; closer if asked to, or if few answers are right.
fn look(model: &Model, source: &dyn Dataset, closely: bool, quiet: bool) -> Result<Findings> {
    let labelled: Vec<usize> = (0..source.len()).filter(|&r| source.label(r).is_some()).collect();
    let step = labelled.len().div_ceil(LOOKED_AT).max(1);
    let rows: Vec<usize> = labelled.into_iter().step_by(step).collect();
    let bar = Progress::start("check     ", rows.len(), quiet);
    let loaded = source.read(&rows)?;
    let truths: Vec<u32> = loaded.rows.iter().filter_map(|&row| source.label(row)).collect();
    let own = logits(model, &loaded.batch, &bar)?;
    let right = right(&own, &truths);
    let mut findings = Findings {
        configured: Share::count(right.iter().copied()),
        others: Vec::new(),
        problem: None,
        help: String::new(),
    };
    if truths.is_empty() || !closely && findings.configured.percent() >= DOUBTFUL {
        return Ok(findings);
    }
    if own.data().iter().any(|v| v.is_nan()) {
        findings.problem = Some("the model answers with numbers that are none (NaN)".into());
        findings.help = "check the scale of its inputs, and whether the export is sound".into();
        return Ok(findings);
    }
    drop(bar);
    let variants = variants(model.preprocess());
    let bar = Progress::start("check     ", variants.len() * truths.len(), quiet);
    let mut best: Option<(Paired, String)> = None;
    for (flags, other) in variants {
        let answers =
            self::right(&logits(&model.normalising(&other), &loaded.batch, &bar)?, &truths);
        let paired = Paired {
            mended: right.iter().zip(&answers).filter(|(a, b)| !**a && **b).count(),
            broken: right.iter().zip(&answers).filter(|(a, b)| **a && !**b).count(),
            of: truths.len(),
        };
        findings.others.push(Other { flags: flags.clone(), right: Share::count(answers) });
        if paired.helps()
            && paired.gain() >= BETTER
            && best.as_ref().is_none_or(|(b, _)| paired.gain() > b.gain())
        {
            best = Some((paired, flags));
        }
    }
    findings.others.sort_by_key(|o| std::cmp::Reverse(o.right.hits));
    let now = findings.configured.percent();
    // Channels in the wrong order exchange classes, too, where classes are colours.
    let set_right = best.as_ref().map_or(0.0, |(paired, _)| now + paired.gain());
    let order = order(model, &own, &truths).filter(|(explained, _)| *explained > set_right);
    if let Some((_, order)) = order {
        findings.problem = Some(order);
        findings.help =
            "the order of the classes in the data is not the model's: name folders or labels so \
             that they sort as the model's outputs, or give the model a list of its classes"
                .into();
    } else if let Some((paired, flags)) = best {
        findings.problem = Some(format!(
            "{now:.0} % of {} labelled inputs are answered rightly as configured, {:.0} % with \
             `{flags}`",
            truths.len(),
            now + paired.gain()
        ));
        findings.help = format!("give `{flags}`, or write it into the file beside the model");
    } else if let Some(always) = always(model, &own, &truths) {
        findings.problem = Some(always);
        findings.help =
            "the preprocessing may be unusual, the data of another kind than the model \
                         was trained on, or the export unsound: see `upright inspect`"
                .into();
    } else if chance(findings.configured, model.classes()) {
        findings.problem = Some(format!(
            "{} of {} labelled inputs are answered rightly, no more than by chance",
            findings.configured,
            truths.len()
        ));
        findings.help = "the data may be of another task, or the preprocessing unusual: see \
                         `upright inspect`"
            .into();
    }
    Ok(findings)
}

fn answers(logits: &Matrix) -> Vec<u32> {
    logits.iter().map(|row| upright::internal::tensor::argmax(row) as u32).collect()
}

fn right(logits: &Matrix, truths: &[u32]) -> Vec<bool> {
    answers(logits).iter().zip(truths).map(|(a, b)| a == b).collect()
}

/// Whether so many right answers are to be expected of guessing: the interval holds it.
fn chance(right: Share, classes: usize) -> bool {
    classes > 1 && right.interval().0 <= 100.0 / classes as f64
}

/// One answer to nearly all inputs, where their labels say otherwise.
fn always(model: &Model, logits: &Matrix, truths: &[u32]) -> Option<String> {
    let answers = answers(logits);
    let count = |all: &[u32], class: u32| all.iter().filter(|&&a| a == class).count();
    let share = |hits: usize| 100.0 * hits as f64 / truths.len().max(1) as f64;
    let class = answers.iter().copied().max_by_key(|&a| count(&answers, a))?;
    let answered = share(count(&answers, class));
    let labelled = share(count(truths, class));
    (answered >= ONE_CLASS && labelled <= answered - ONE_CLASS / 3.0).then(|| {
        format!(
            "{answered:.0} % of {} labelled inputs are answered `{}`, which is the label of \
             {labelled:.0} %",
            truths.len(),
            model.class_name(class)
        )
    })
}

/// An order of classes other than the model's, and the share of answers that it explains, in
/// percent.
fn order(model: &Model, logits: &Matrix, truths: &[u32]) -> Option<(f64, String)> {
    let answers = answers(logits);
    let count = truths.len();
    let share = |hits: usize| 100.0 * hits as f64 / count as f64;
    let mut shifts: std::collections::BTreeMap<i64, usize> = std::collections::BTreeMap::new();
    for (a, t) in answers.iter().zip(truths) {
        *shifts.entry(i64::from(*a) - i64::from(*t)).or_default() += 1;
    }
    let (&shift, &hits) = shifts.iter().max_by_key(|(_, hits)| **hits)?;
    if shift != 0 && share(hits) >= EXPLAINED {
        let told = format!(
            "labels look shifted: the answer is the label {shift:+} in {:.0} %",
            share(hits)
        );
        return Some((share(hits), told));
    }
    // Each class with the answer that it gets most often.
    let mut by_class: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
    for (a, t) in answers.iter().zip(truths) {
        by_class.entry(*t).or_default().push(*a);
    }
    let usual: Vec<(u32, u32, usize, usize)> = by_class
        .into_iter()
        .map(|(class, mut own)| {
            own.sort_unstable();
            let most = own.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).unwrap_or(&[]);
            (class, most.first().copied().unwrap_or(class), most.len(), own.len())
        })
        .collect();
    let explained: usize = usual.iter().map(|u| u.2).sum();
    let distinct: std::collections::BTreeSet<u32> = usual.iter().map(|u| u.1).collect();
    let many = count >= 3 * usual.len() && distinct.len() * 10 >= usual.len() * 9;
    let (class, answer, hits, of) =
        usual.iter().copied().filter(|u| u.0 != u.1).max_by_key(|u| u.2)?;
    (many && share(explained) >= EXPLAINED).then(|| {
        let told = format!(
            "labels look permuted: `{}` is answered `{}` in {:.0} %",
            model.class_name(class),
            model.class_name(answer),
            100.0 * hits as f64 / of as f64
        );
        (share(explained), told)
    })
}

/// Other common settings than a model's, each with its flags.
fn variants(now: &Preprocess) -> Vec<(String, Preprocess)> {
    let numbers = |v: &[f64]| v.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let scales: [(&str, f64, Vec<f64>, Vec<f64>); 5] = [
        ("--scale 1/255 --mean 0 --std 1", 1.0 / 255.0, vec![0.0], vec![1.0]),
        (
            "--scale 1/255 --mean imagenet --std imagenet",
            1.0 / 255.0,
            vec![0.485, 0.456, 0.406],
            vec![0.229, 0.224, 0.225],
        ),
        ("--scale 1/127.5 --mean 1 --std 1", 1.0 / 127.5, vec![1.0], vec![1.0]),
        ("--scale 1 --mean 0 --std 1", 1.0, vec![0.0], vec![1.0]),
        (
            "--scale 1 --mean 103.939,116.779,123.68 --std 1",
            1.0,
            vec![103.939, 116.779, 123.68],
            vec![1.0],
        ),
    ];
    let inverted = ("--scale=-1/255 --mean=-1 --std 1", -1.0 / 255.0, vec![-1.0], vec![1.0]);
    let colour = matches!(now.channels, Channels::Rgb | Channels::Bgr);
    let own = (
        format!("--scale {} --mean {} --std {}", now.scale, numbers(&now.mean), numbers(&now.std)),
        now.scale,
        now.mean.clone(),
        now.std.clone(),
    );
    let usual = scales
        .into_iter()
        .filter(|s| colour || s.2.len() == 1)
        .chain((!colour).then_some(inverted))
        .map(|(flags, scale, mean, std)| (flags.to_string(), scale, mean, std));
    let orders: Vec<(Channels, &str)> = match now.channels {
        Channels::Rgb => vec![(Channels::Rgb, ""), (Channels::Bgr, "--channels bgr")],
        Channels::Bgr => vec![(Channels::Bgr, ""), (Channels::Rgb, "--channels rgb")],
        Channels::Gray => vec![(Channels::Gray, "")],
        Channels::AsGiven => vec![],
    };
    let mut all = Vec::new();
    for (scaling, scale, mean, std) in std::iter::once(own).chain(usual) {
        let same = (scale - now.scale).abs() < 1e-9 && mean == now.mean && std == now.std;
        for (channels, order) in &orders {
            let words: Vec<&str> = [*order, if same { "" } else { &scaling }]
                .into_iter()
                .filter(|w| !w.is_empty())
                .collect();
            let other = Preprocess {
                channels: *channels,
                scale,
                mean: mean.clone(),
                std: std.clone(),
                ..now.clone()
            };
            if !words.is_empty() && all.iter().all(|(_, p)| *p != other) {
                all.push((words.join(" "), other));
            }
        }
    }
    all
}
