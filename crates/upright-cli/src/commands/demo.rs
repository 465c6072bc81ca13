//! `upright demo`: the whole thing on built-in digits, strokes or solids, in seconds, offline.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use upright::internal::canonicalizer::Posed;
use upright::internal::samples as facts;
use upright::{
    Artifact, Canonicalizer, Dataset, FitData, Model, ModelOptions, Part, Prediction, Role,
    Samples, Silent, Value, View, samples,
};

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
  upright demo                   a table, and a before/after sheet in runs/demo/
  upright demo --signal strokes  the same digits as the path of a pen
  upright demo --signal cloud    furniture and goods as point clouds, turned in space
  upright demo --json            the same figures for programs
  upright demo --count 2000      more inputs
  upright demo --score energy    another score, search, gate or space
  upright demo --report demo.html --explain one.svg";

/// Inputs in the bank, and held out to calibrate on.
const TRAINING: usize = 5000;
/// What parts learn from: less than usual, so that it takes seconds.
const FEWER: [(Role, &str, &str, f64); 2] =
    [(Role::Proposer, "learned", "copies", 9_000.0), (Role::Score, "judge", "lessons", 2000.0)];

/// Their seed: the classifiers were trained on samples of another one.
const BANK_SEED: u64 = 11;

/// What the demo shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Subject {
    /// Drawn digits
    Image,
    /// Drawn digits as the path of the pen
    Strokes,
    /// Furniture and household goods as points on their surface
    #[value(alias = "clouds")]
    Cloud,
}

/// What belongs to a [`Subject`].
struct Scene {
    /// The classifier, as the table calls it.
    title: &'static str,
    /// One input, and several.
    noun: [&'static str; 2],
    /// What happens to half of them.
    moved: &'static str,
    /// The margin of the gate, unless one is asked for; the gate's own if `None`.
    margin: Option<f64>,
    names: &'static [&'static str],
    model: &'static [u8],
    data: fn(usize, u64) -> upright::Result<Samples<'static>>,
}

impl Subject {
    fn scene(self) -> Scene {
        let digits = facts::NAMES.split_at(10).0;
        match self {
            Subject::Image => Scene {
                title: "digit classifier",
                noun: ["image", "digits"],
                moved: "rotated, sheared and scaled",
                margin: None,
                names: digits,
                model: samples::glyph_model(),
                data: samples::digits,
            },
            Subject::Strokes => Scene {
                title: "stroke classifier",
                noun: ["item", "pen-drawn digits"],
                moved: "rotated, sheared and scaled",
                margin: None,
                names: digits,
                model: samples::stroke_model(),
                data: samples::strokes,
            },
            Subject::Cloud => Scene {
                title: "point cloud classifier",
                noun: ["cloud", "solids"],
                moved: "turned in space",
                // Turned solids are so foreign that half the calibration energies lie far above
                // the other half: few of them separate a good view from a bad one.
                margin: Some(0.1),
                names: facts::SOLID_NAMES,
                model: samples::solid_model(),
                data: samples::solids,
            },
        }
    }
}

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to show
    #[arg(long, value_enum, default_value = "image", value_name = "KIND")]
    signal: Subject,
    /// Test inputs, half of them transformed
    #[arg(long, default_value_t = 400, value_name = "N", value_parser = clap::value_parser!(u32).range(20..=100_000))]
    count: u32,
    /// Folder to write into [default: runs/demo/N, counting up]
    #[arg(long, short, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Also write an HTML report on these inputs
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also explain one transformed input in a drawing, .svg or .html
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
    signal: Subject,
    inputs: usize,
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
    let scene = args.signal.scene();
    let options = ModelOptions {
        threads: common.threads.map(std::num::NonZeroUsize::get),
        engine: common.engine(),
        ..ModelOptions::default()
    };
    let model = Model::from_bytes(scene.title, scene.model, &options)?;
    let names = scene.names.iter().map(|&name| name.into()).collect();
    let model = model.with_class_names(names);
    let mut config = args.parts.config(common)?;
    args.parts.suit(&mut config, &model);
    if let Some(margin) = scene.margin
        && ["conformal", "margin"].contains(&config.part(Role::Gate).name.as_str())
    {
        config.parts[Role::Gate].settings.entry("margin".into()).or_insert(Value::Number(margin));
    }
    for (role, name, setting, count) in FEWER {
        let part = &mut config.parts[role];
        if part.name == name {
            part.settings.entry(setting.into()).or_insert(Value::Number(count));
        }
    }
    let training = (scene.data)(TRAINING, BANK_SEED)?;
    let c = config.fit(model, &FitData::new(&training), &mut Silent)?;
    let tau = c.gate().tau();

    let half = args.count as usize / 2;
    let test = (scene.data)(2 * half, common.seed.wrapping_add(1_000_003))?;
    let sides = [part(&test, 0..half)?, part(&test, half..2 * half)?];

    let pages = Instant::now();
    write_pages(args, &scene, &c, &sides, common)?;
    let pages = pages.elapsed();
    let mut lines = Vec::new();
    let mut shown = Vec::new();
    for (name, gate) in
        [("gated", None), ("model alone", Some("never")), ("always canonicalize", Some("always"))]
    {
        let c = match gate {
            Some(gate) => c.with_part(Role::Gate, Part::new(gate))?,
            None => c.clone(),
        };
        let (up, _) = answer(&c, &sides[0], None)?;
        let (tr, predictions) = answer(&c, &sides[1], Some(common.seed))?;
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
    draw(&path, &scene, &c, &Posed { data: &sides[1], copies: Some(common.seed) }, &shown)?;
    let report = Report {
        seed: common.seed,
        signal: args.signal,
        inputs: 2 * half,
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
        table(&report, &scene, c.report().bank)
    };
    let mut out = Sink::open(None)?;
    out.write(text.as_bytes())?;
    out.finish()
}

/// Writes the report and the explanation that were asked for.
fn write_pages(
    args: &Args,
    scene: &Scene,
    c: &Canonicalizer,
    [upright, other]: &[Samples; 2],
    common: &Common,
) -> Result<()> {
    let (half, seed) = (other.len(), common.seed);
    let inputs = [
        Inputs { kind: "upright", data: upright, source: None, copies: false, seed },
        Inputs { kind: "transformed", data: other, source: None, copies: true, seed },
    ];
    if let Some(path) = &args.report {
        let digest = Artifact::from_bytes("demo", &c.to_bytes()?)?.manifest.digest;
        let names = report::Names {
            model: format!("built-in {}", scene.title),
            artifact: format!("fitted for this demo ({})", &digest[..digest.len().min(16)]),
            data: scene.noun[1].into(),
            transformed: None,
        };
        report::write(&report::make(c, &inputs, None, &names, common)?, path, None)?;
    }
    if let Some(path) = &args.explain {
        let (batch, _) = inputs[1].read(c, &(0..half).collect::<Vec<_>>())?;
        let predictions = c.predict(&batch)?;
        let drop = |i: usize| predictions[i].energy_before - predictions[i].energy_after;
        let right = |i: usize| Some(predictions[i].label) == other.label(i);
        let mended = |&i: &usize| right(i) && predictions[i].raw_label != predictions[i].label;
        let best = (0..half).filter(mended).max_by(|&a, &b| drop(a).total_cmp(&drop(b)));
        let row = best.unwrap_or(0);
        let name = format!("number {row} of the test {}, {} at random", scene.noun[1], scene.moved);
        explain::write(c, &batch.select(&[row]), &name, path)?;
    }
    Ok(())
}

/// Some rows of samples.
fn part(samples: &Samples, rows: std::ops::Range<usize>) -> Result<Samples<'static>> {
    let labels = samples.labels().unwrap_or(&[])[rows.clone()].to_vec();
    Ok(Samples::labelled(samples.batch().select(&rows.collect::<Vec<_>>()), labels)?)
}

/// What becomes of samples, or of copies of them under random poses.
fn answer(
    c: &Canonicalizer,
    samples: &Samples,
    copies: Option<u64>,
) -> Result<(Tally, Vec<Prediction>)> {
    let (mut tally, mut predictions) = (Tally::default(), Vec::new());
    let rows: Vec<usize> = (0..samples.len()).collect();
    c.measure(&Posed { data: samples, copies }, &rows, &mut |some| {
        tally.add(some);
        predictions.extend_from_slice(some.predictions);
    })?;
    Ok((tally, predictions))
}

fn draw(
    path: &std::path::Path,
    scene: &Scene,
    c: &Canonicalizer,
    inputs: &Posed,
    predictions: &[Prediction],
) -> Result<()> {
    let rows: Vec<usize> = (0..predictions.len().min(48)).collect();
    let batch = inputs.read(c, &rows)?.batch;
    let views: Vec<View> =
        rows.iter().map(|&item| View { item, map: predictions[item].map }).collect();
    let views = c.shown(&batch, &views)?;
    let cells: Vec<sheet::Cell> = rows
        .iter()
        .map(|&i| sheet::Cell {
            before: batch.item(i),
            after: views.item(i),
            model_label: predictions[i].raw_label,
            label: predictions[i].label,
            truth: inputs.data.label(i).unwrap_or(0),
        })
        .collect();
    sheet::draw(path, batch.signal(), &cells, scene.names, 6)
}

/// The first of `runs/demo/1`, `2`, ... that does not exist.
fn next_run() -> PathBuf {
    let base = PathBuf::from("runs/demo");
    (1..100_000u32).map(|n| base.join(n.to_string())).find(|p| !p.exists()).unwrap_or(base)
}

fn table(report: &Report, scene: &Scene, bank: usize) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let [one, many] = scene.noun;
    let _ = writeln!(
        out,
        "{} (built in, {:.1} MB) · bank of {bank} {many} · {} test {many}, half of them {} · \
         {:.0} s\n",
        scene.title,
        scene.model.len() as f64 / 1e6,
        report.inputs,
        scene.moved,
        report.seconds,
    );
    let _ = writeln!(
        out,
        "{:22} {:>9} {:>13} {:>7} {:>10}",
        "",
        "upright",
        "transformed",
        "views",
        format!("ms/{one}")
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
            "\nthe gate opened for {} of upright and {} of transformed {many}",
            gated.upright.searched, gated.transformed.searched
        );
    }
    let _ = writeln!(out, "sheet   {}", report.sheet);
    for (name, path) in [("report", &report.page), ("one", &report.explained)] {
        if let Some(path) = path {
            let _ = writeln!(out, "{name:<7} {path}");
        }
    }
    let _ = writeln!(out, "next    upright fit YOUR_MODEL.onnx YOUR_TRAIN_FOLDER");
    out
}
