//! `upright demo`: the whole thing on built-in digits, in seconds, offline.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use upright::artifact::Artifact;
use upright::canonicalizer::{
    Canonicalizer, Config, FitData, Prediction, Silent, transformed_copies,
};
use upright::config::Part;
use upright::dataset::{Dataset, Samples};
use upright::model::{Model, Options, Tap};
use upright::reduce::Reduce;
use upright::samples;
use upright::tensor::Batch;
use upright::warp::{View, warp};

use super::eval::Tally;
use super::setup::PartArgs;
use super::{explain, report};
use crate::Common;
use crate::report::{Failure, Result};
use crate::rows::Sink;
use crate::sheet;
use crate::study::Inputs;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright demo                 a table, and a before/after sheet in runs/demo/
  upright demo --json          the same figures for programs
  upright demo --count 2000    more digits
  upright demo --score energy  another score, search, gate or space
  upright demo --report demo.html --explain digit.svg";

/// Digits in the bank, and held out to calibrate on.
const TRAINING: usize = 5000;

/// Their seed: the classifier was trained on digits of another one.
const BANK_SEED: u64 = 11;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Test digits, half of them transformed
    #[arg(long, default_value_t = 400, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=100_000))]
    count: u32,
    /// Folder to write into [default: runs/demo/N, counting up]
    #[arg(long, short, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Also write an HTML report on these digits
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also explain one transformed digit in a picture, .svg or .html
    #[arg(long, value_name = "FILE")]
    explain: Option<PathBuf>,
    #[command(flatten)]
    parts: PartArgs,
}

#[derive(Serialize)]
struct Line {
    name: &'static str,
    upright: Tally,
    transformed: Tally,
}

#[derive(Serialize)]
struct Report {
    seed: u64,
    digits: usize,
    seconds: f64,
    tau: f32,
    lines: Vec<Line>,
    sheet: String,
    #[serde(rename = "report")]
    page: Option<String>,
    explained: Option<String>,
}

/// Runs the demo.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    if let Some(path) = &args.explain {
        explain::check(path)?;
    }
    let start = Instant::now();
    let options = Options {
        taps: vec![Tap { name: "auto".into(), reduce: Reduce::None }],
        threads: common.threads.map(std::num::NonZeroUsize::get),
        ..Options::default()
    };
    let model = Model::from_bytes("built-in digits", samples::glyph_model(), &options)?;
    let config = Config { calibration: 1000, ..args.parts.config(common)? };
    let training = samples::digits(TRAINING, BANK_SEED)?;
    let mut c = config.fit(model, &FitData::new(&training), &mut Silent)?;
    let tau = c.gate().tau();

    let half = args.count as usize / 2;
    let test = samples::digits(2 * half, common.seed.wrapping_add(1_000_003))?;
    let labels = test.labels().unwrap_or(&[]).to_vec();
    let (upright, transformed) = halves(&c, &test, half, common.seed)?;

    let pages = Instant::now();
    write_pages(args, &mut c, &test, half, common)?;
    let pages = pages.elapsed();
    let mut lines = Vec::new();
    let mut shown = Vec::new();
    for (name, gate) in
        [("gated", None), ("model alone", Some("never")), ("always canonicalize", Some("always"))]
    {
        if let Some(gate) = gate {
            c.set_gate(Part::new(gate))?;
        }
        let (up, _) = answer(&c, &upright, &labels[..half])?;
        let (tr, predictions) = answer(&c, &transformed, &labels[half..])?;
        if name == "gated" {
            shown = predictions;
        }
        lines.push(Line { name, upright: up, transformed: tr });
    }
    lines.rotate_left(1);

    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => next_run(),
    };
    std::fs::create_dir_all(&folder).map_err(|e| Failure::io(&folder, e))?;
    let path = folder.join("before-after.png");
    draw(&path, &c, &transformed, &shown, &labels[half..])?;
    let report = Report {
        seed: common.seed,
        digits: 2 * half,
        seconds: start.elapsed().saturating_sub(pages).as_secs_f64(),
        tau,
        lines,
        sheet: path.display().to_string(),
        page: args.report.as_ref().map(|p| p.display().to_string()),
        explained: args.explain.as_ref().map(|p| p.display().to_string()),
    };
    let text = if common.json {
        serde_json::to_string(&report).unwrap_or_default() + "\n"
    } else {
        table(&report, c.report().bank)
    };
    let mut out = Sink::open(None)?;
    out.write(text.as_bytes())?;
    out.finish()
}

/// Writes the report and the explanation that were asked for.
fn write_pages(
    args: &Args,
    c: &mut Canonicalizer,
    test: &Samples,
    half: usize,
    common: &Common,
) -> Result<()> {
    let part = |rows: std::ops::Range<usize>| {
        let labels = test.labels().unwrap_or(&[])[rows.clone()].to_vec();
        Samples::labelled(test.batch().select(&rows.collect::<Vec<_>>()), labels)
    };
    let (upright, other) = (part(0..half)?, part(half..2 * half)?);
    let seed = common.seed;
    let inputs = [
        Inputs { kind: "upright", data: &upright, source: None, copies: false, seed },
        Inputs { kind: "transformed", data: &other, source: None, copies: true, seed },
    ];
    if let Some(path) = &args.report {
        let digest = Artifact::from_bytes("demo", &c.to_bytes()?)?.manifest.digest;
        let names = report::Names {
            model: "built-in digits".into(),
            artifact: format!("fitted for this demo ({})", &digest[..digest.len().min(16)]),
            data: "drawn digits".into(),
            transformed: None,
        };
        report::write(&report::make(c, &inputs, &names, common)?, path, None)?;
    }
    if let Some(path) = &args.explain {
        let (batch, _) = inputs[1].read(c, &(0..half).collect::<Vec<_>>())?;
        let predictions = c.predict(&batch)?;
        let drop = |i: usize| predictions[i].energy_before - predictions[i].energy_after;
        let right = |i: usize| Some(predictions[i].label) == other.label(i);
        let mended = |&i: &usize| right(i) && predictions[i].raw_label != predictions[i].label;
        let best = (0..half).filter(mended).max_by(|&a, &b| drop(a).total_cmp(&drop(b)));
        let row = best.unwrap_or(0);
        let name = format!("drawn digit {row}, transformed at random");
        explain::write(c, &batch.select(&[row]), &name, path)?;
    }
    Ok(())
}

/// The first half as it is, the second under random poses.
fn halves(c: &Canonicalizer, test: &Samples, half: usize, seed: u64) -> Result<(Batch, Batch)> {
    let rows: Vec<usize> = (0..2 * half).collect();
    let upright = test.batch().select(&rows[..half]);
    let other = test.batch().select(&rows[half..]);
    let transformed = transformed_copies(&other, c.space(), &c.config().resample, seed)?;
    Ok((upright, transformed))
}

fn answer(c: &Canonicalizer, batch: &Batch, labels: &[u32]) -> Result<(Tally, Vec<Prediction>)> {
    let start = Instant::now();
    let predictions = c.predict(batch)?;
    let seconds = start.elapsed().as_secs_f64();
    let labels: Vec<Option<u32>> = labels.iter().copied().map(Some).collect();
    let mut tally = Tally::default();
    tally.add(&predictions, &labels, seconds);
    Ok((tally, predictions))
}

fn draw(
    path: &std::path::Path,
    c: &Canonicalizer,
    batch: &Batch,
    predictions: &[Prediction],
    labels: &[u32],
) -> Result<()> {
    let shown = predictions.len().min(48);
    let views: Vec<View> = predictions[..shown]
        .iter()
        .enumerate()
        .map(|(item, p)| View { item, map: p.map })
        .collect();
    let views = warp(batch, &views, &c.config().resample)?;
    let cells: Vec<sheet::Cell> = (0..shown)
        .map(|i| sheet::Cell {
            before: batch.item(i),
            after: views.item(i),
            model_label: predictions[i].raw_label,
            label: predictions[i].label,
            truth: labels[i],
        })
        .collect();
    sheet::draw(path, batch.signal(), &cells, 6)
}

/// The first of `runs/demo/1`, `2`, ... that does not exist.
fn next_run() -> PathBuf {
    let base = PathBuf::from("runs/demo");
    (1..100_000u32).map(|n| base.join(n.to_string())).find(|p| !p.exists()).unwrap_or(base)
}

fn table(report: &Report, bank: usize) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "digit classifier (built in, {:.1} MB) · bank of {bank} drawn digits · {} test digits, \
         half of them rotated, sheared and scaled · {:.0} s\n",
        samples::glyph_model().len() as f64 / 1e6,
        report.digits,
        report.seconds,
    );
    let _ = writeln!(
        out,
        "{:22} {:>9} {:>13} {:>7} {:>10}",
        "", "upright", "transformed", "views", "ms/image"
    );
    for line in &report.lines {
        let of = (line.upright.model.of + line.transformed.model.of).max(1) as f64;
        let views = (line.upright.evaluations + line.transformed.evaluations) as f64 / of;
        let ms = 1000.0 * (line.upright.seconds + line.transformed.seconds) / of;
        let _ = writeln!(
            out,
            "{:22} {:>9} {:>13} {:>7.1} {:>10.2}{}",
            line.name,
            line.upright.gated.to_string(),
            line.transformed.gated.to_string(),
            views,
            ms,
            if line.name == "gated" { "   <- recommended" } else { "" },
        );
    }
    if let Some(gated) = report.lines.last() {
        let _ = writeln!(
            out,
            "\nthe gate opened for {} of upright and {} of transformed digits",
            gated.upright.searched, gated.transformed.searched
        );
    }
    let _ = writeln!(out, "sheet   {}", report.sheet);
    for (name, path) in [("report", &report.page), ("digit", &report.explained)] {
        if let Some(path) = path {
            let _ = writeln!(out, "{name:<7} {path}");
        }
    }
    let _ = writeln!(out, "next    upright fit YOUR_MODEL.onnx YOUR_TRAIN_FOLDER");
    out
}
