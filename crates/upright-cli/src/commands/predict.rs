//! `upright predict`: files or folders become labels, in one file or in the parts of a job.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use upright::internal::dataset::chunk;
use upright::{Batch, Canonicalizer, Dataset, Hint, Prediction, View};
use upright_data::{Allowance, Source, Want};
use upright_job::{Row, Table};

use super::fit::{errors_path, note};
use super::job::{self, JobArgs};
use super::roles::OtherRoleArgs;
use super::setup::{Beside, SizeArgs, artifact_path, load, note_gradient, open};
use crate::Common;
use crate::data::DataArgs;
use crate::hints;
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
  upright predict model.onnx data.parquet --out rows/    a job: parts in a folder; run it again to
                                                         go on after whatever ended it
  upright predict model.onnx train-*.tar --out rows/ --shard 3/64    one machine of 64

Columns:
  path                  the file, with #row for a row of a file of many; in a job `id`
  label, class          the answer: its number and name
  rival                 the class of the best view that says otherwise, if one was seen
  model_label           what the bare model says of the input as it is
  verdict               kept (familiar, not searched), accepted (another view answers), rejected
                        (searched, nothing better found), abstained, switched
  energy_before, _after how unfamiliar the input and the answering view look; lower = more familiar
  evaluations           forward passes spent
  m00 .. m12            the map of the answering view, row by row: from a point of the view to the
                        point of the input seen there; x right, y down, from the centre, in halves
                        of the longer side. Of clouds m00 .. m22, a rotation
  logits                with --logits: what the model computed of the answering view, by class
  error                 in a job, why a row has no answer";

/// Inputs that are answered before the first rows appear.
const FIRST: usize = 4;
/// Inputs that are answered in less are joined by more, up to a whole chunk: what shares one
/// changes no answer.
const WAIT: Duration = Duration::from_millis(500);

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    pub(super) model: PathBuf,
    /// Files or folders of what the model takes: images, sketches or clouds; or a list
    #[arg(required = true)]
    pub(super) inputs: Vec<PathBuf>,
    /// The artifact [default: the model's name with .upright]
    #[arg(long, short, value_name = "FILE")]
    artifact: Option<PathBuf>,
    /// Where to write rows: a .csv or .jsonl file, or a folder for a job that survives a crash
    /// [default: standard output]
    #[arg(long, short, value_name = "FILE|FOLDER")]
    out: Option<PathBuf>,
    /// How to write rows [default: by the file's name, else csv; jsonl with --json; parquet in a
    /// job]
    #[arg(long, value_parser = job::format())]
    pub(super) format: Option<upright_job::Format>,
    /// Also write the view that was classified of every input into this folder: images as PNG,
    /// sketches as SVG, clouds as XYZ
    #[arg(long, value_name = "FOLDER")]
    views: Option<PathBuf>,
    /// Write the logits too (jsonl, parquet)
    #[arg(long)]
    pub(super) logits: bool,
    #[command(flatten)]
    pub(super) job: JobArgs,
    #[command(flatten)]
    other: OtherParts,
    #[command(flatten)]
    sizes: SizeArgs,
    #[command(flatten)]
    pub(super) reading: DataArgs,
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
    pub switch: Option<PathBuf>,
    /// The energy network of an artifact that was fitted with one
    #[arg(long, value_name = "ENERGY")]
    pub external: Option<PathBuf>,
}

/// How a fitted model is loaded and what of it is changed.
#[derive(Debug, Clone, clap::Args)]
pub struct Loading {
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it")]
    pub other: OtherParts,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it")]
    pub sizes: SizeArgs,
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
        let (c, digest) = load(model, &self.beside(), artifact, sizes, common)?;
        let c = self.change(c)?;
        note_gradient(&c, common)?;
        Ok((c, digest))
    }

    /// The networks beside the classifier.
    pub fn beside(&self) -> Beside {
        Beside { second: self.switch.clone(), external: self.external.clone() }
    }

    /// A fitted model with the parts and the budget that were asked for.
    pub fn change(&self, mut c: Canonicalizer) -> Result<Canonicalizer> {
        for (role, part) in self.roles.changes(&c.config().parts)? {
            c = c.with_part(role, part)?;
        }
        if let Some(budget) = self.budget {
            c = c.with_budget(budget);
        }
        Ok(c)
    }
}

/// Classifies and writes rows.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let artifact = artifact_path(&args.model, args.artifact.as_ref());
    let folder = args.job.folder(args.out.as_deref(), args.views.is_some())?;
    let format = if folder.is_none() { file_format(args, common)? } else { Format::Csv };
    let (c, digest) = args.other.load(&args.model, &artifact, &args.sizes, common)?;
    if let Some(folder) = folder {
        return job::run(args, &c, digest, folder, common);
    }
    // What cannot be read is a row less, unless told otherwise never the end of the others.
    let tolerated = args.reading.max_errors.unwrap_or(Allowance::Percent(100.0));
    let reading = DataArgs { max_errors: Some(tolerated), ..args.reading.clone() };
    let source = open(&args.inputs, &reading, Want::Inputs, c.model(), common)?;
    let table =
        Table { id: "path", error: false, ..Table::of(source.signal().kind(), args.logits) };
    let mut rows = Rows::open_growing(args.out.as_deref(), format)?;
    if let Some(folder) = &args.views {
        std::fs::create_dir_all(folder).map_err(|e| Failure::io(folder, e))?;
    }
    let bar = Progress::start("predict", source.len(), common.quiet);
    let all: Vec<usize> = (0..source.len()).collect();
    let most = chunk(c.model().signal());
    let (mut done, mut searched) = (0, 0);
    let (mut rest, mut size) = (&all[..], FIRST);
    while !rest.is_empty() {
        let start = Instant::now();
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        let loaded = source.read(chunk)?;
        let predictions = c.predict(&loaded.batch)?;
        for (i, (p, &row)) in predictions.iter().zip(&loaded.rows).enumerate() {
            rows.write(&table.record(&Row::answered(source.name(row), &c, p)))?;
            if let Some(folder) = &args.views {
                save_view(folder, &source, row, &c, &loaded.batch, i, p)?;
            }
        }
        rows.flush()?;
        done += predictions.len();
        searched += predictions.iter().filter(|p| p.searched()).count();
        bar.advance(chunk.len());
        bar.say(format!("{searched} searched, {} skipped", source.skipped_count()));
        if start.elapsed() < WAIT {
            size = (2 * size).min(most);
        }
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
            help: format!("they are listed in `{}`{}", errors.display(), to_their_size(&source)),
        }),
    }
}

/// What brings pictures of another size to the model's, if any were skipped for theirs.
fn to_their_size(source: &Source) -> String {
    let skipped = source.skipped();
    let hint = skipped.iter().find_map(|s| s.why.hint()).map(|hint| match hint {
        // The order of channels is as it was fitted.
        &Hint::Resize { height, width, .. } => Hint::Resize { height, width, rgb: false },
        other => other.clone(),
    });
    hint.map_or(String::new(), |hint| {
        format!("; for those of another size {}", hints::library(&hint))
    })
}

/// How a file or standard output is written.
fn file_format(args: &Args, common: &Common) -> Result<Format> {
    let by_name = args.out.as_deref().and_then(Format::of);
    let usual = if common.json { Format::Jsonl } else { Format::Csv };
    match args.format {
        None => Ok(by_name.unwrap_or(usual)),
        Some(upright_job::Format::Csv) => Ok(Format::Csv),
        Some(upright_job::Format::Jsonl) => Ok(Format::Jsonl),
        Some(upright_job::Format::Parquet) => Err(Failure::usage(
            "parquet is written by jobs, into a folder",
            "name a folder with `--out rows/`",
        )),
    }
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
    let view = c.shown(batch, &[View { item, map: p.map }])?;
    let name = source.name(row);
    let (file, key) = name.rsplit_once('#').unwrap_or((&name, ""));
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let stem = if key.is_empty() { stem } else { format!("{stem}-{key}").into() };
    let safe: String =
        stem.chars().map(|ch| if ch.is_alphanumeric() || ch == '-' { ch } else { '_' }).collect();
    view::save(folder, &format!("{row:06}-{safe}"), view.signal(), view.item(0))
}
