//! `upright explain`: one input in one drawing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use upright::gate::Reason;
use upright::{Batch, Canonicalizer, Dataset, Prediction, Role, Trace, Verdict, View, warp};
use upright_data::Want;

use super::predict::OtherParts;
use super::report::pictures;
use super::setup::{SizeArgs, artifact_path, open};
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
    /// A file or folder that holds the input
    input: PathBuf,
    /// Which row, if it holds several, counted from 0
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
    sizes: SizeArgs,
    #[command(flatten)]
    reading: DataArgs,
}

/// Explains and writes the drawing.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    check(&args.out)?;
    let artifact = artifact_path(&args.model, args.artifact.as_ref());
    let (c, _) = args.other.load(&args.model, &artifact, &args.sizes, common)?;
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
    let Some(drawn) = draw(c, batch, name)? else { return Ok(()) };
    let text = if ending(path) == "svg" { drawn.svg } else { drawn.page };
    Ok(upright::internal::artifact::write_whole(path, text.as_bytes())?)
}

/// An explanation as a file of its own.
pub struct Explanation {
    /// As a drawing.
    pub svg: String,
    /// As a page that holds it.
    pub page: String,
    /// Why it was decided so, in sentences.
    pub reasons: Vec<String>,
}

/// Explains the only item of a batch; nothing if there is none.
pub fn draw(c: &Canonicalizer, batch: &Batch, name: &str) -> Result<Option<Explanation>> {
    let Some(explained) = explain(c, batch, name)? else { return Ok(None) };
    let svg = html::draw_explained(c, &explained);
    Ok(Some(Explanation {
        page: html::explain_page(&svg, name),
        svg: svg.standalone(name, &format!("{}{}", html::STYLE, html::EXPLAIN_STYLE)),
        reasons: explained.reasons,
    }))
}

fn explain(c: &Canonicalizer, batch: &Batch, name: &str) -> Result<Option<Explained>> {
    let Some(mut trace) = c.trace(batch)?.into_iter().next() else { return Ok(None) };
    let prediction = c.decide(&trace);
    let answer = c.read(&trace);
    let reason = c.gate().reason(trace.raw_look(), answer.as_ref().map(|a| a.look));
    let reasons = reasons(c, &trace, &prediction, &reason);
    let found = answer.map(|a| trace.seen[a.view].pose.clone());
    if c.switches() {
        // What a second model says is no view of the input, and has no energy.
        trace = Trace::new(trace.raw, trace.raw_logits);
    }
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
        reason,
        reasons,
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
    let views = c.shown(batch, &views)?;
    let picture = |i: usize| html::picture(&figure::thumbnail(views.signal(), views.item(i)));
    Ok(steps.iter().enumerate().map(|(i, (order, s))| (*order, s.energy, picture(i))).collect())
}

/// Why it was decided so, in sentences.
fn reasons(c: &Canonicalizer, trace: &Trace, p: &Prediction, reason: &Reason) -> Vec<String> {
    let class = |label: u32| c.model().class_name(label);
    let switch = c.switches();
    let raw = number(p.energy_before.into());
    let mut limit = format!("the gate's threshold, {}", number(reason.tau.into()));
    if let Some(label) = reason.class {
        let _ = write!(limit, " (of class {})", class(label));
    }
    if !reason.searched {
        let first = if p.energy_before.is_nan() {
            "Its energy is not a number; such inputs are left alone.".into()
        } else {
            format!("Its energy {raw} does not exceed {limit}: it looks familiar.")
        };
        let second = if switch {
            "The second model was not asked; the answer is the bare model's, bit for bit."
        } else {
            "It was not searched; the answer is the bare model's, bit for bit. What a search \
             would have seen is only drawn here."
        };
        return vec![first, second.into()];
    }
    let next = if switch {
        "the second model was asked".into()
    } else {
        format!(
            "the search `{}` looked at {} views",
            c.config().part(Role::Search).name,
            trace.seen.len()
        )
    };
    let mut reasons = vec![format!("Its energy {raw} exceeds {limit}, so {next}.")];
    reasons.extend(suggestions(c, trace));
    if let Some(found) = c.read(trace) {
        let (energy, label) = (number(found.look.energy.into()), class(found.look.label));
        reasons.push(if switch {
            format!("It says {label}.{}", clearness(reason, "The input lies above"))
        } else {
            let clear = clearness(reason, "It overtakes");
            format!("The view found has energy {energy} and says {label}.{clear}")
        });
    }
    let gate = &c.config().part(Role::Gate).name;
    reasons.push(match p.verdict {
        Verdict::Accepted => format!("The gate `{gate}` accepts it."),
        Verdict::Switched => format!("The gate `{gate}` switches: the second model answers."),
        Verdict::Abstained => "The answer is left open: no view is familiar enough, or a view of \
             another class is nearly as familiar."
            .into(),
        Verdict::Kept | Verdict::Rejected => {
            format!("The gate `{gate}` rejects it: the bare model's answer stands.")
        }
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

/// Suggestions that are named in words.
const NAMED: usize = 3;

/// What the proposer suggested, which of it was looked at and what the score made of it.
fn suggestions(c: &Canonicalizer, trace: &Trace) -> Vec<String> {
    let class = |label: u32| c.model().class_name(label);
    let named: Vec<_> = trace.proposals.iter().filter(|p| p.proposal.class.is_some()).collect();
    if named.is_empty() {
        return Vec::new();
    }
    let looked = |p: &&&upright::Proposed| {
        let seen = trace.seen.iter().find(|s| {
            s.follows.and_then(|n| trace.proposals.get(n)).is_some_and(|q| std::ptr::eq(q, **p))
        });
        let proposed = p.proposal.class.map(class).unwrap_or_default();
        let score = number(p.proposal.score.into());
        match seen {
            Some(s) => format!(
                "{proposed} (score {score}): seen, says {} at energy {}",
                class(s.label),
                number(s.energy.into())
            ),
            None => format!("{proposed} (score {score}): not looked at"),
        }
    };
    let first: Vec<String> = named.iter().take(NAMED).map(|p| looked(&p)).collect();
    let mut words = vec![format!(
        "`{}` suggested {} poses; the first: {}.",
        c.config().part(Role::Proposer).name,
        named.len(),
        first.join("; ")
    )];
    let best = trace.seen.iter().map(|s| s.energy).fold(f32::INFINITY, f32::min);
    if let Some(sure) = c.score().sure().filter(|sure| best <= *sure) {
        words.push(format!(
            "A view whose energy is below {} is taken to be surely right; nothing more is needed.",
            number(sure.into())
        ));
    }
    words
}

/// How clear an improvement is against what the gate asks for, if it asks.
fn clearness(reason: &Reason, verb: &str) -> String {
    let percent = |share: f32| format!("{:.0} %", 100.0 * f64::from(share));
    reason.overtaken.map_or_else(String::new, |o| {
        if o.plain {
            let (found, needed) = (number(o.found.into()), number(o.needed.into()));
            return format!(" Its energy is lower by {found}; {needed} is asked for.");
        }
        let (found, needed) = (percent(o.found), percent(o.needed));
        format!(" {verb} {found} of the calibration energies; {needed} are asked for.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endings_that_can_be_written_are_taken() {
        assert!(check(Path::new("a.SVG")).is_ok() && check(Path::new("a.html")).is_ok());
        assert!(check(Path::new("a.png")).is_err() && check(Path::new("svg")).is_err());
    }
}
