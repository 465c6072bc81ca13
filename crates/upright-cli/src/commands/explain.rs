//! `upright explain`: one input in one picture.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use upright::canonicalizer::{Canonicalizer, Prediction, Verdict};
use upright::dataset::Dataset;
use upright::tensor::Batch;
use upright::trace::Trace;
use upright::warp::{View, warp};
use upright_data::Want;

use super::predict::OtherParts;
use super::report::pictures;
use super::setup::{artifact_path, load, note_gradient, open};
use crate::Common;
use crate::data::DataArgs;
use crate::figure;
use crate::html::{self, Explained, number};
use crate::report::{Failure, Result};
use crate::study::{self, Line};

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright explain model.onnx photo.png                 writes explain.svg
  upright explain model.onnx photo.png -o photo.html
  upright explain model.onnx digits.npz --row 17
  upright demo --explain demo.svg                      the same on a built-in digit";

/// Cells of the landscape, across and up, and points of the curve.
const CELLS: (usize, usize) = (60, 17);
const POINTS: usize = 120;

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// A picture, or anything else that holds inputs
    input: PathBuf,
    /// Which of several inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    row: usize,
    /// The artifact [default: the model's name with .upright]
    #[arg(long, short, value_name = "FILE")]
    artifact: Option<PathBuf>,
    /// The file to write, .svg or .html
    #[arg(long, short, value_name = "FILE", default_value = "explain.svg")]
    out: PathBuf,
    #[command(flatten)]
    other: OtherParts,
    #[command(flatten)]
    reading: DataArgs,
}

/// Explains and writes the picture.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    check(&args.out)?;
    let artifact = artifact_path(&args.model, args.artifact.as_ref());
    let mut c = load(&args.model, &artifact, common)?;
    args.other.apply(&mut c)?;
    note_gradient(&c, common)?;
    let path = std::slice::from_ref(&args.input);
    let source = open(path, &args.reading, Want::Inputs, c.model(), common)?;
    let loaded = source.read(&[args.row])?;
    if loaded.batch.is_empty() {
        let why = format!("it has no readable row {} of {}", args.row, source.len());
        return Err(Failure::data(&args.input, why, "choose another `--row`, counted from 0"));
    }
    write(&c, &loaded.batch, &source.name(args.row), &args.out)?;
    if !common.quiet && !common.json {
        eprintln!("wrote      {}", args.out.display());
    }
    Ok(())
}

/// Whether a file of this name can be written.
pub fn check(path: &Path) -> Result<()> {
    match ending(path).as_str() {
        "svg" | "html" | "htm" => Ok(()),
        _ => Err(Failure::usage(
            format!("`{}` is neither an .svg nor an .html file", path.display()),
            "write an .svg file; any browser shows it and prints it as PDF or PNG",
        )),
    }
}

fn ending(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// Explains the only item of a batch.
pub fn write(c: &Canonicalizer, batch: &Batch, name: &str, path: &Path) -> Result<()> {
    check(path)?;
    let Some(explained) = explain(c, batch, name)? else { return Ok(()) };
    let svg = html::draw_explained(c, &explained);
    let text = if ending(path) == "svg" {
        svg.standalone(name, &format!("{}{}", html::STYLE, html::EXPLAIN_STYLE))
    } else {
        html::explain_page(&svg, name)
    };
    Ok(upright::artifact::write_whole(path, text.as_bytes())?)
}

fn explain(c: &Canonicalizer, batch: &Batch, name: &str) -> Result<Option<Explained>> {
    let Some(trace) = c.trace(batch)?.into_iter().next() else { return Ok(None) };
    let prediction = c.decide(&trace);
    let found = c.read(&trace).map(|a| trace.seen[a.view].pose.clone());
    let through = match (prediction.verdict, found) {
        (Verdict::Accepted, Some(pose)) => pose,
        _ => trace.raw.pose.clone(),
    };
    let slice = match Line::of_space(c, &through, POINTS).into_iter().next() {
        Some(line) => {
            let (energies, labels) = study::slice(c, batch, &line, &through)?;
            Some((line, energies, labels))
        }
        None => None,
    };
    let view = warp(batch, &[View { item: 0, map: prediction.map }], &c.config().resample)?;
    let near = |b: &Batch| -> Result<_> {
        let (outputs, _) = c.raw(b)?;
        Ok(c.score().neighbours(&outputs).and_then(|mut n| n.pop()))
    };
    Ok(Some(Explained {
        name: name.into(),
        reasons: reasons(c, &trace, &prediction),
        pictures: pictures(c, batch, prediction.map)?,
        steps: steps(c, batch, &trace)?,
        landscape: study::landscape(c, batch, trace.clone(), &through, CELLS)?,
        neighbours: near(batch)?.zip(near(&view)?).map(|(a, b)| [a, b]),
        slice,
        trace,
        prediction,
    }))
}

/// The views that were the most familiar so far, the input first.
fn steps(c: &Canonicalizer, batch: &Batch, trace: &Trace) -> Result<Vec<(usize, f32, String)>> {
    let mut steps: Vec<(usize, &upright::search::Seen)> = vec![(0, &trace.raw)];
    for (i, seen) in trace.seen.iter().enumerate() {
        if steps.last().is_some_and(|(_, best)| seen.energy < best.energy) {
            steps.push((i + 1, seen));
        }
    }
    let views: Vec<View> =
        steps.iter().map(|(_, s)| View { item: 0, map: c.space().map(&s.pose) }).collect();
    let views = warp(batch, &views, &c.config().resample)?;
    let picture = |i: usize| html::picture(&figure::thumbnail(views.signal(), views.item(i)));
    Ok(steps.iter().enumerate().map(|(i, (order, s))| (*order, s.energy, picture(i))).collect())
}

/// Why the gate decided as it did, in sentences.
fn reasons(c: &Canonicalizer, trace: &Trace, p: &Prediction) -> Vec<String> {
    let class = |label: u32| c.model().class_name(label as usize);
    let state = c.gate().state();
    let own = state.read_f32("taus").unwrap_or_default().get(p.raw_label as usize).copied();
    let tau = own.unwrap_or(c.gate().tau());
    let raw = number(p.energy_before.into());
    let limit = number(tau.into());
    if p.verdict == Verdict::Kept {
        return vec![
            format!("Its energy {raw} does not exceed tau = {limit}: it looks familiar."),
            "It was not searched; the answer is the bare model's, bit for bit. What a search \
             would have seen is drawn for this picture only."
                .into(),
        ];
    }
    let mut reasons = vec![format!(
        "Its energy {raw} exceeds tau = {limit}, so the search `{}` looked at {} views.",
        c.config().search.name,
        trace.seen.len()
    )];
    if let Some(found) = c.read(trace) {
        let best = found.look.energy;
        let mut words = format!(
            "The view found has energy {} and says {}.",
            number(best.into()),
            class(found.look.label)
        );
        if let Some((share, asked)) = overtaken(&state, p.energy_before, best) {
            let _ = write!(
                words,
                " It overtakes {:.0} % of the calibration energies; {:.0} % are asked for.",
                100.0 * share,
                100.0 * asked
            );
        }
        reasons.push(words);
    }
    reasons.push(match p.verdict {
        Verdict::Accepted => format!("The gate `{}` accepts it.", c.config().gate.name),
        Verdict::Abstained => "The answer is left open: no view is familiar enough, or a view of \
             another class is nearly as familiar."
            .into(),
        _ => format!(
            "The gate `{}` rejects it: the bare model's answer stands.",
            c.config().gate.name
        ),
    });
    if let Some(rival) = p.rival {
        let others = std::iter::once(&trace.raw).chain(&trace.seen).filter(|s| s.label == rival);
        let lowest = others.map(|s| s.energy).fold(f32::INFINITY, f32::min);
        reasons.push(format!(
            "The most familiar view of another class says {}, at energy {}.",
            class(rival),
            number(lowest.into())
        ));
    }
    reasons
}

/// The share of calibration energies between two, and the share that the gate asks for, if
/// it measures improvements so.
fn overtaken(state: &upright::state::State, raw: f32, best: f32) -> Option<(f64, f64)> {
    let asked = *state.read_f32("margin").ok()?.first()?;
    let scale = state.read_f32("scale").ok()?;
    let between = scale.iter().filter(|&&e| best <= e && e < raw).count();
    (!scale.is_empty()).then(|| (between as f64 / scale.len() as f64, asked.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use upright::state::State;

    #[test]
    fn overtaken_energies_lie_from_the_best_up_to_the_raw_one() {
        let state = State::new().f32("margin", &[0.5]).f32("scale", &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(overtaken(&state, 4.0, 2.0), Some((0.5, 0.5)));
        assert_eq!(overtaken(&State::new(), 4.0, 2.0), None);
    }

    #[test]
    fn only_endings_that_can_be_written_are_taken() {
        assert!(check(Path::new("a.SVG")).is_ok() && check(Path::new("a.html")).is_ok());
        assert!(check(Path::new("a.png")).is_err() && check(Path::new("svg")).is_err());
    }
}
