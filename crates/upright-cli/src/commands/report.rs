//! `upright report`: everything worth knowing about a fitted canonicalizer on
//! labelled data, in one HTML file.

use std::path::{Path, PathBuf};

use serde::Serialize;
use upright::{Batch, Canonicalizer, Model, ModelOptions, Role, Transforms, Verdict, View};

use super::fit::{errors_path, note};
use super::judged::{Judged, JudgedArgs};
use crate::Common;
use crate::figure;
use crate::html::{self, Cell, Drawn, Material, Page};
use crate::report::{Failure, Result};
use crate::rows::Sink;
use crate::study::{self, Inputs, Latency, Outcome, Side, Study};

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright report model.onnx test/                           writes report.html
  upright report model.onnx test/ --transformed rotated/ -o rotated.html
  upright report model.onnx test/ --limit 500 --csv figures/
  upright report model.onnx test/ --baseline retrained.onnx  beside a classifier trained with the transforms
  upright demo --report demo.html                           the same on built-in digits";

/// Most pairs shown of each kind.
const SHOWN: [usize; 2] = [24, 104];

/// Most bytes of all pictures together.
const ROOM: usize = 1_500_000;

/// Cells of a landscape, across and up.
const CELLS: (usize, usize) = (48, 15);

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    judged: JudgedArgs,
    /// The HTML file to write
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// A classifier that was trained with the transforms, to compare with: a point of the trade-off
    #[arg(long, value_name = "MODEL")]
    baseline: Option<PathBuf>,
    /// Also write the data of every figure, and a row for every input, into this folder
    #[arg(long, value_name = "FOLDER")]
    csv: Option<PathBuf>,
}

#[derive(Serialize)]
struct Written<'a> {
    report: String,
    bytes: usize,
    verdict: &'a str,
}

/// Studies the data and writes the page.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let judged = args.judged.open(common)?;
    let Judged { c, artifact, digest, upright, given } = &judged;
    let names = Names {
        model: args.judged.model.display().to_string(),
        artifact: format!("{} ({})", artifact.display(), &digest[..digest.len().min(16)]),
        data: args.judged.data.display().to_string(),
        transformed: args.judged.transformed.as_ref().map(|p| p.display().to_string()),
    };
    let baseline = args.baseline.as_ref().map(|path| baseline(path, c)).transpose()?;
    let page = make(c, &judged.inputs(common.seed), baseline.as_ref(), &names, common)?;
    for source in std::iter::once(upright).chain(given) {
        note(source, &errors_path(&args.out), common)?;
    }
    write(&page, &args.out, args.csv.as_deref())?;
    if common.json {
        let row = Written {
            report: args.out.display().to_string(),
            bytes: page.html.len(),
            verdict: &page.verdict,
        };
        let mut out = Sink::open(None)?;
        out.write((serde_json::to_string(&row).unwrap_or_default() + "\n").as_bytes())?;
        out.finish()?;
    } else if !common.quiet {
        eprintln!("verdict    {}", page.verdict);
        let size = page.html.len() as f64 / 1e6;
        eprintln!("wrote      {} ({size:.1} MB)", args.out.display());
    }
    Ok(())
}

/// What a run worked on.
pub struct Names {
    /// The model.
    pub model: String,
    /// The artifact and its fingerprint.
    pub artifact: String,
    /// The upright data.
    pub data: String,
    /// The transformed data, if they were given.
    pub transformed: Option<String>,
}

/// Writes the page and, if asked, the data of its figures.
pub fn write(page: &Page, path: &Path, csv: Option<&Path>) -> Result<()> {
    upright::internal::artifact::write_whole(path, page.html.as_bytes())?;
    csv.map_or(Ok(()), |folder| page.write_data(folder))
}

/// A classifier to compare with, fed as the fitted one is.
fn baseline(path: &Path, c: &Canonicalizer) -> Result<Model> {
    let own = c.model();
    let model = Model::load(path, &ModelOptions { taps: vec![], ..own.options() })?;
    if model.classes() == own.classes() {
        return Ok(model);
    }
    let (given, wanted) = (model.classes(), own.classes());
    Err(Failure::usage(
        format!("`{}` tells {given} classes apart, the model {wanted}", path.display()),
        "give a classifier of the same classes for `--baseline`",
    ))
}

/// Studies upright and transformed inputs and draws the page; `baseline` is a classifier to
/// compare with.
pub fn make(
    c: &Canonicalizer,
    inputs: &[Inputs; 2],
    baseline: Option<&Model>,
    names: &Names,
    common: &Common,
) -> Result<Page> {
    let [upright, transformed] = inputs;
    let retrained = match baseline {
        Some(model) => {
            Some([study::answered(model, c, upright)?, study::answered(model, c, transformed)?])
        }
        None => None,
    };
    let study = Study {
        retrained,
        upright: Side::study(c, upright, common)?,
        transformed: Side::study(c, transformed, common)?,
        transforms: if transformed.copies { Transforms::Synthetic } else { Transforms::Given },
    };
    let budgets = study::budgets(c, upright, transformed, common)?;
    let [a, b] = [upright, transformed].map(|inputs| Latency::measure(c, inputs, common.quiet));
    let latency = [a?, b?];
    let mut cells = Vec::new();
    let mut room = ROOM;
    for ((inputs, side), most) in inputs.iter().zip(study.sides()).zip(SHOWN) {
        for i in html::pick_cells(side, most) {
            let cell = cell(c, inputs, &side.outcomes[i])?;
            let Some(left) = room.checked_sub(cell.pictures.iter().map(String::len).sum()) else {
                break;
            };
            room = left;
            cells.push(cell);
        }
    }
    let material = Material {
        canonicalizer: c,
        landscapes: landscapes(c, transformed, &study.transformed)?,
        facts: facts(c, &study, names, common),
        study: &study,
        cells,
        budgets,
        latency,
    };
    let all = html::all_inputs(c, &study, |kind, row| inputs[kind].name(row));
    Ok(Page::new(&material, all))
}

fn cell(c: &Canonicalizer, inputs: &Inputs, outcome: &Outcome) -> Result<Cell> {
    let (batch, _) = inputs.read(c, &[outcome.row])?;
    Ok(Cell {
        kind: inputs.kind,
        name: inputs.name(outcome.row),
        pictures: pictures(c, &batch, outcome.prediction.map)?,
        outcome: outcome.clone(),
    })
}

/// An input and a view of it, as addresses that hold them.
pub fn pictures(c: &Canonicalizer, batch: &Batch, map: upright::Map) -> Result<[String; 2]> {
    let shown = c.shown(batch, &[upright::Map::IDENTITY, map].map(|map| View { item: 0, map }))?;
    Ok([0, 1].map(|i| html::picture(&figure::thumbnail(shown.signal(), shown.item(i)))))
}

/// Landscapes of the most telling inputs: one mended, one rejected, one that stays wrong.
fn landscapes(c: &Canonicalizer, inputs: &Inputs, side: &Side) -> Result<Vec<Drawn>> {
    let accepted = |o: &Outcome| o.prediction.verdict == Verdict::Accepted;
    let strongest = |want: &dyn Fn(&Outcome) -> bool| {
        let mut wanted: Vec<&Outcome> = side.outcomes.iter().filter(|o| want(o)).collect();
        wanted.sort_by(|a, b| b.gain.abs().total_cmp(&a.gain.abs()).then(a.row.cmp(&b.row)));
        wanted.first().copied()
    };
    let picks = [
        ("Mended", strongest(&|o| !o.before() && o.after())),
        ("Searched, but wrong", strongest(&|o| accepted(o) && !o.after())),
        ("Rejected", strongest(&|o| o.prediction.verdict == Verdict::Rejected)),
    ];
    let mut drawn = Vec::new();
    for (words, outcome) in picks {
        let Some(o) = outcome else { continue };
        let (batch, _) = inputs.read(c, &[o.row])?;
        let Some(trace) = c.trace(&batch)?.into_iter().next() else { continue };
        let pose = match c.read(&trace) {
            Some(answer) if accepted(o) => trace.seen[answer.view].pose.clone(),
            _ => trace.raw.pose.clone(),
        };
        let class = |label: u32| c.model().class_name(label);
        let heading = format!(
            "{words}: {}, true class {}, the model says {}, the answer is {}",
            inputs.name(o.row),
            class(o.truth),
            class(o.prediction.raw_label),
            class(o.prediction.label)
        );
        if let Some(landscape) = study::landscape(c, &batch, trace, &pose, CELLS)? {
            let pictures = pictures(c, &batch, o.prediction.map)?;
            drawn.push(Drawn { heading, truth: o.truth, pictures, landscape });
        }
    }
    Ok(drawn)
}

fn facts(
    c: &Canonicalizer,
    study: &Study,
    names: &Names,
    common: &Common,
) -> Vec<(&'static str, String)> {
    let config = c.config();
    let [up, tr] = study.sides().map(|s| format!("{:016x}", s.health.fingerprint));
    let axes: Vec<&str> = config.space.axes.iter().map(|a| a.axis.as_str()).collect();
    let start = |hash: &str| hash.chars().take(16).collect::<String>();
    vec![
        ("model", format!("{} ({})", names.model, start(c.model().fingerprint()))),
        ("artifact", names.artifact.clone()),
        ("data", format!("{} ({up}), {} inputs", names.data, study.upright.outcomes.len())),
        (
            "transforms",
            match &names.transformed {
                Some(data) => {
                    format!("given: {data} ({tr}), {} inputs", study.transformed.outcomes.len())
                }
                None => format!(
                    "synthetic: copies under random poses, {} inputs",
                    study.transformed.outcomes.len()
                ),
            },
        ),
        ("score", config.part(Role::Score).name.clone()),
        ("search", format!("{}, {} views", config.part(Role::Search).name, config.budget)),
        (
            "gate",
            format!(
                "{}, which searches above an energy of {}",
                config.part(Role::Gate).name,
                html::number(c.gate().tau().into())
            ),
        ),
        ("readout", config.part(Role::Readout).name.clone()),
        ("space", axes.join(", ")),
        ("bank", format!("{} samples", c.report().bank)),
        ("seed", common.seed.to_string()),
        ("version", concat!("upright ", env!("CARGO_PKG_VERSION")).into()),
        ("command", command_line(&common.typed)),
    ]
}

/// The command as it was typed.
fn command_line(typed: &[String]) -> String {
    let quoted = |word: &String| {
        let plain = |ch: char| ch.is_alphanumeric() || "-_./=:,+@%".contains(ch);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words = typed.iter().map(quoted);
    std::iter::once("upright".to_string()).chain(words).collect::<Vec<_>>().join(" ")
}
