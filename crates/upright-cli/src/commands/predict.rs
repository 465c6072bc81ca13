//! `upright predict`: files or folders become labels.

use std::path::{Path, PathBuf};

use serde::Serialize;
use upright::internal::dataset::chunk;
use upright::{Batch, Canonicalizer, Dataset, Prediction, Verdict, View, warp};
use upright_data::{Source, Want};

use super::fit::{errors_path, note};
use super::roles::OtherRoleArgs;
use super::setup::{SizeArgs, artifact_path, load, note_gradient, open};
use crate::Common;
use crate::data::DataArgs;
use crate::progress::Progress;
use crate::report::{Failure, Result};
use crate::rows::{Format, Rows};
use crate::view;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright predict model.onnx photos/ > labels.csv
  upright predict model.onnx a.png b.png --json
  upright predict model.onnx photos/ --out labels.jsonl --views upright/
  upright predict model.onnx photos/ --gate never        the bare model, for comparison

Columns:
  path                  the file, with #row for a row of a file of many
  label, class          the answer: its number and name
  rival                 the class of the best view that says otherwise, if one was seen
  model_label           what the bare model says of the input as it is
  verdict               kept (familiar, not searched), accepted (another view answers), rejected
                        (searched, nothing better found), abstained, switched
  energy_before, _after how unfamiliar the input and the answering view look; lower = more familiar
  evaluations           forward passes spent
  m00 .. m12            the map of the answering view, row by row: from a point of the view to the
                        point of the input seen there; x right, y down, from the centre, in halves
                        of the longer side. Of clouds m00 .. m22, a rotation";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// Files or folders of what the model takes: images, sketches or clouds; or a list
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// The artifact [default: the model's name with .upright]
    #[arg(long, short, value_name = "FILE")]
    artifact: Option<PathBuf>,
    /// Where to write rows; .csv or .jsonl [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How to write rows [default: by the file's name, else csv; jsonl with --json]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Also write the view that was classified of every input into this folder: images as PNG,
    /// sketches as SVG, clouds as XYZ
    #[arg(long, value_name = "FOLDER")]
    views: Option<PathBuf>,
    /// Write the logits too (jsonl only)
    #[arg(long)]
    logits: bool,
    #[command(flatten)]
    other: OtherParts,
    #[command(flatten)]
    sizes: SizeArgs,
    #[command(flatten)]
    reading: DataArgs,
}

/// Parts to use instead of the fitted ones.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Parts")]
pub struct OtherParts {
    #[command(flatten)]
    roles: OtherRoleArgs,
    /// Another budget than the fitted one
    #[arg(long, value_name = "N")]
    budget: Option<usize>,
    /// The second classifier of an artifact that was fitted with one
    #[arg(long, value_name = "MODEL")]
    switch: Option<PathBuf>,
}

impl OtherParts {
    /// A fitted model with the parts that were asked for in place of the fitted ones, and the
    /// artifact's digest.
    pub fn load(
        &self,
        model: &Path,
        artifact: &Path,
        sizes: &SizeArgs,
        common: &Common,
    ) -> Result<(Canonicalizer, String)> {
        let (mut c, digest) = load(model, self.switch.as_ref(), artifact, sizes, common)?;
        for (role, part) in self.roles.changes(&c.config().parts)? {
            c = c.with_part(role, part)?;
        }
        if let Some(budget) = self.budget {
            c = c.with_budget(budget);
        }
        note_gradient(&c, common)?;
        Ok((c, digest))
    }
}

#[derive(Serialize)]
struct Row<'a> {
    path: String,
    label: u32,
    class: &'a str,
    rival: Option<u32>,
    model_label: u32,
    verdict: Verdict,
    energy_before: f32,
    energy_after: f32,
    evaluations: usize,
    m00: f32,
    m01: f32,
    m02: f32,
    m10: f32,
    m11: f32,
    m12: f32,
    /// The third row of a rotation in space.
    #[serde(skip_serializing_if = "Option::is_none")]
    m20: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    m21: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    m22: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logits: Option<&'a [f32]>,
}

/// Classifies and writes rows.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let artifact = artifact_path(&args.model, args.artifact.as_ref());
    let (c, _) = args.other.load(&args.model, &artifact, &args.sizes, common)?;
    let source = open(&args.inputs, &args.reading, Want::Inputs, c.model(), common)?;
    let by_name = args.out.as_deref().and_then(Format::of);
    let usual = if common.json { Format::Jsonl } else { Format::Csv };
    let format = args.format.or(by_name).unwrap_or(usual);
    let mut rows = Rows::open_growing(args.out.as_deref(), format)?;
    if let Some(folder) = &args.views {
        std::fs::create_dir_all(folder).map_err(|e| Failure::io(folder, e))?;
    }
    let bar = Progress::start("predict", source.len(), common.quiet);
    let all: Vec<usize> = (0..source.len()).collect();
    let (mut done, mut searched) = (0, 0);
    for chunk in all.chunks(chunk(c.model().signal())) {
        let loaded = source.read(chunk)?;
        let predictions = c.predict(&loaded.batch)?;
        for (i, (p, &row)) in predictions.iter().zip(&loaded.rows).enumerate() {
            write(&mut rows, &c, &source.name(row), p, args.logits)?;
            if let Some(folder) = &args.views {
                save_view(folder, &source, row, &c, &loaded.batch, i, p)?;
            }
        }
        rows.flush()?;
        done += predictions.len();
        searched += predictions.iter().filter(|p| p.searched()).count();
        bar.advance(chunk.len());
        bar.say(format!("{searched} searched, {} skipped", source.skipped_count()));
    }
    drop(bar);
    rows.finish()?;
    let errors = errors_path(args.out.as_deref().unwrap_or(&artifact));
    note(&source, &errors, common)?;
    match source.skipped_count() {
        0 => Ok(()),
        failed => Err(Failure::Partial {
            failed,
            total: done + failed,
            what: format!("{} have no row", c.model().signal().kind().plural()),
            help: format!("they are listed in `{}`", errors.display()),
        }),
    }
}

fn write(
    rows: &mut Rows,
    c: &Canonicalizer,
    path: &str,
    p: &Prediction,
    logits: bool,
) -> Result<()> {
    let m = p.map.entries();
    rows.write(&Row {
        path: path.into(),
        label: p.label,
        class: &c.model().class_name(p.label),
        rival: p.rival,
        model_label: p.raw_label,
        verdict: p.verdict,
        energy_before: p.energy_before,
        energy_after: p.energy_after,
        evaluations: p.evaluations,
        m00: m[0],
        m01: m[1],
        m02: m[2],
        m10: m[3],
        m11: m[4],
        m12: m[5],
        m20: m.get(6).copied(),
        m21: m.get(7).copied(),
        m22: m.get(8).copied(),
        logits: logits.then_some(&p.logits),
    })
}

/// Writes the classified view as `ROW-NAME`, or `ROW-NAME-KEY` from a file of many; the row
/// number keeps names apart.
fn save_view(
    folder: &Path,
    source: &Source,
    row: usize,
    c: &Canonicalizer,
    batch: &Batch,
    item: usize,
    p: &Prediction,
) -> Result<()> {
    let view = warp(batch, &[View { item, map: p.map }], &c.config().resample)?;
    let name = source.name(row);
    let (file, key) = name.rsplit_once('#').unwrap_or((&name, ""));
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let stem = if key.is_empty() { stem } else { format!("{stem}-{key}").into() };
    let safe: String =
        stem.chars().map(|ch| if ch.is_alphanumeric() || ch == '-' { ch } else { '_' }).collect();
    view::save(folder, &format!("{row:06}-{safe}"), view.signal(), view.item(0))
}
