//! `upright score`: a score on plain arrays, without any model.

use std::path::{Path, PathBuf};

use serde::Serialize;
use upright::score::{self, Bank};
use upright::{Head, Matrix, Outputs, Part, Role, Value};
use upright_data::{Array, Npz, write_floats};

use crate::Common;
use crate::report::{Failure, Result};
use crate::rows::Sink;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Arrays of both files, as `numpy.savez` writes them:
  logits      [N,C]; may be left out if features, weight and bias are there
  features    [N,D]; further taps as features_1, features_2, ...
  labels      [N], class numbers from 0; of --train only
  weight bias [C,D] and [C], the model's last layer; of --train only

Energies are lower for more familiar inputs, whatever the score.

Examples:
  upright score --score energy --train bank.npz --test new.npz
  upright score --score energy --set temperature=2 --train bank.npz --test new.npz --out e.npy";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The score; `upright list scores` shows them
    #[arg(long, value_name = "NAME")]
    score: String,
    /// A setting of the score; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, Value)>,
    /// Familiar samples to fit on (.npz)
    #[arg(long, value_name = "FILE")]
    train: PathBuf,
    /// Samples to score (.npz)
    #[arg(long, value_name = "FILE")]
    test: PathBuf,
    /// Where to write energies: .npy, .csv or .json [default: standard output, one per line]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn setting(text: &str) -> std::result::Result<(String, Value), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().into(), Value::parse(value.trim())))
        }
        _ => Err("write it as name=value".into()),
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    score: &'a Part,
    energies: &'a [f32],
}

/// Fits, scores, writes.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let part = args
        .set
        .iter()
        .fold(Part::new(&args.score), |part, (name, value)| part.with(name, value.clone()));
    Role::Score.settings(&part)?;
    let format = args.out.as_deref().map(format_of).transpose()?;

    let mut train = Npz::open(&args.train)?;
    let head = head(&mut train, &args.train)?;
    let known = outputs(&mut train, &args.train, head.as_ref())?;
    let labels = labels(&mut train, &args.train, known.len())?;
    let asked = outputs(&mut Npz::open(&args.test)?, &args.test, head.as_ref())?;
    agree(&args.test, &known, &asked)?;

    let bank = Bank {
        head: head.as_ref(),
        seed: common.seed,
        ..Bank::of(&known, labels.as_deref().unwrap_or(&[]))
    };
    let energies = score::fit(&part, &bank)?.energy(&asked);

    let format = format.unwrap_or(if common.json { Format::Json } else { Format::Lines });
    let mut out = Sink::open(args.out.as_deref())?;
    out.write(&encoded(format, &part, &energies))?;
    out.finish()?;
    if let Some(path) = args.out.as_ref().filter(|_| !common.quiet && !common.json) {
        eprintln!("{} energies by `{}` in {}", energies.len(), part.name, path.display());
    }
    match energies.iter().filter(|e| e.is_nan()).count() {
        0 => Ok(()),
        failed => Err(Failure::Partial {
            failed,
            total: energies.len(),
            what: "energies are NaN".into(),
            help: "look for NaN, infinite or all-zero rows among the logits and features".into(),
        }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Lines,
    Npy,
    Csv,
    Json,
}

fn format_of(path: &Path) -> Result<Format> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("npy") => Ok(Format::Npy),
        Some("csv") => Ok(Format::Csv),
        Some("json") => Ok(Format::Json),
        _ => Err(Failure::usage(
            format!("`{}` does not say how to write energies", path.display()),
            "end its name in .npy, .csv or .json",
        )),
    }
}

fn encoded(format: Format, part: &Part, energies: &[f32]) -> Vec<u8> {
    let lines = |head: &str, line: &dyn Fn((usize, &f32)) -> String| {
        let body: String = energies.iter().enumerate().map(line).collect();
        format!("{head}{body}").into_bytes()
    };
    match format {
        Format::Npy => write_floats(energies),
        Format::Lines => lines("", &|(_, e)| format!("{e}\n")),
        Format::Csv => lines("row,energy\n", &|(i, e)| format!("{i},{e}\n")),
        Format::Json => {
            let mut text =
                serde_json::to_vec(&Answer { score: part, energies }).unwrap_or_default();
            text.push(b'\n');
            text
        }
    }
}

fn matrix(path: &Path, name: &str, array: &Array) -> Result<Matrix> {
    let [rows, cols] = *array.shape() else {
        return Err(Failure::data(
            path,
            format!("array `{name}` has shape {:?}, not two dimensions", array.shape()),
            "pool or flatten it to one row per sample",
        ));
    };
    Ok(Matrix::new(rows, cols, array.all_floats())?)
}

fn head(npz: &mut Npz, path: &Path) -> Result<Option<Head>> {
    let (weight, bias) = (npz.array("weight")?, npz.array("bias")?);
    match (weight, bias) {
        (None, None) => Ok(None),
        (Some(weight), Some(bias)) => {
            Ok(Some(Head::new(matrix(path, "weight", &weight)?, bias.all_floats())?))
        }
        (weight, _) => Err(Failure::data(
            path,
            format!("`{}` without its partner", if weight.is_some() { "weight" } else { "bias" }),
            "give both `weight` [C,D] and `bias` [C], or neither",
        )),
    }
}

fn labels(npz: &mut Npz, path: &Path, rows: usize) -> Result<Option<Vec<u32>>> {
    let Some(array) = npz.array("labels")? else { return Ok(None) };
    if array.len() != rows {
        return Err(Failure::data(
            path,
            format!("{} labels for {rows} rows", array.len()),
            "give one label per row",
        ));
    }
    let labels = array.labels();
    labels.map(Some).map_err(|e| Failure::data(path, format!("array `labels`: {e}"), ""))
}

fn outputs(npz: &mut Npz, path: &Path, head: Option<&Head>) -> Result<Outputs> {
    let mut features = Vec::new();
    for tap in 0.. {
        let name = if tap == 0 { "features".into() } else { format!("features_{tap}") };
        let Some(array) = npz.array(&name)? else { break };
        features.push(matrix(path, &name, &array)?);
    }
    let logits = match (npz.array("logits")?, features.first(), head) {
        (Some(array), _, _) => matrix(path, "logits", &array)?,
        (None, Some(features), Some(head)) => derived(path, features, head)?,
        (None, _, _) => {
            return Err(Failure::data(
                path,
                format!("no array `logits`; there are: {}", npz.names().join(", ")),
                "add `logits` [N,C], or `features` here with `weight` and `bias` in --train",
            ));
        }
    };
    Ok(Outputs::new(logits, features)?)
}

/// `logits = weight * features + bias`, summed in order and in double precision.
fn derived(path: &Path, features: &Matrix, head: &Head) -> Result<Matrix> {
    if features.cols() != head.weight.cols() {
        return Err(Failure::data(
            path,
            format!("{} features, but weights for {}", features.cols(), head.weight.cols()),
            "give the features that the last layer sees",
        ));
    }
    let mut logits = Matrix::zeros(features.rows(), head.weight.rows());
    for (i, x) in features.iter().enumerate() {
        for (z, (w, b)) in logits.row_mut(i).iter_mut().zip(head.weight.iter().zip(&head.bias)) {
            let dot: f64 = w.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
            *z = (dot + f64::from(*b)) as f32;
        }
    }
    Ok(logits)
}

fn agree(path: &Path, train: &Outputs, test: &Outputs) -> Result<()> {
    let widths = |o: &Outputs| -> Vec<usize> {
        std::iter::once(&o.logits).chain(&o.features).map(Matrix::cols).collect()
    };
    let (expected, got) = (widths(train), widths(test));
    if expected == got {
        return Ok(());
    }
    Err(Failure::data(
        path,
        format!("logits and features have widths {got:?}, those of --train {expected:?}"),
        "give both files the same arrays of the same model",
    ))
}
