//! `upright eval`: accuracy of the bare model and behind the gate, on upright
//! and on transformed data.

use std::fmt::Write as _;

use serde::Serialize;
use upright::internal::canonicalizer::Answered;
use upright::{Canonicalizer, Share, Verdict};

use super::check;
use super::fit::{errors_path, note};
use super::judged::JudgedArgs;
use crate::Common;
use crate::progress::Progress;
use crate::report::Result;
use crate::rows::Sink;
use crate::study::{Inputs, Latency, PARTS, Percentiles};

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright eval model.onnx test/                          upright, and copies under random poses
  upright eval model.onnx test/ --transformed rotated/   really transformed pictures instead
  upright eval model.onnx mnist/ --split test --limit 1000 --json";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    judged: JudgedArgs,
}

/// What was counted on one kind of data.
#[derive(Debug, Default, Serialize)]
pub struct Tally {
    /// Right answers of the bare model.
    pub model: Share,
    /// Right answers behind the gate.
    pub gated: Share,
    /// Inputs searched.
    pub searched: Share,
    /// Searched inputs whose best view was accepted.
    pub accepted: Share,
    /// Right answers that became wrong.
    pub harmed: usize,
    /// Wrong answers that became right.
    pub mended: usize,
    /// Model evaluations of all inputs.
    pub evaluations: usize,
    /// Time spent answering, in seconds, decoding left out.
    pub seconds: f64,
}

impl Tally {
    /// Adds the answers of some inputs.
    pub fn add(&mut self, some: &Answered) {
        for (p, label) in some.predictions.iter().zip(some.labels) {
            let Some(label) = *label else { continue };
            let (before, after) = (p.raw_label == label, p.label == label);
            count(&mut self.model, before);
            count(&mut self.gated, after);
            count(&mut self.searched, p.searched());
            if p.searched() {
                count(&mut self.accepted, p.verdict == Verdict::Accepted);
            }
            self.harmed += usize::from(before && !after);
            self.mended += usize::from(!before && after);
            self.evaluations += p.evaluations;
        }
        self.seconds += some.time.as_secs_f64();
    }

    /// Milliseconds per input.
    pub fn ms(&self) -> f64 {
        1000.0 * self.seconds / self.model.of.max(1) as f64
    }

    /// Evaluations per input.
    pub fn views(&self) -> f64 {
        self.evaluations as f64 / self.model.of.max(1) as f64
    }
}

fn count(share: &mut Share, hit: bool) {
    share.of += 1;
    share.hits += usize::from(hit);
}

/// What was measured.
#[derive(Serialize)]
pub struct Report {
    transforms: &'static str,
    seed: u64,
    upright: Tally,
    transformed: Tally,
    /// Of the parts of a decision and of the whole; none of fewer than 100 decisions.
    latency: Vec<Percentiles>,
    /// Mean times of the parts of a decision in milliseconds, and how many were timed: of kept
    /// inputs, of searched ones.
    means: [([f64; 5], usize); 2],
    timed: usize,
}

/// Measures and prints.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let judged = args.judged.open(common)?;
    check::warn(judged.c.model(), &judged.upright, common)?;
    let report = judge(&judged.c, &judged.inputs(common.seed), common)?;
    for source in std::iter::once(&judged.upright).chain(&judged.given) {
        note(source, &errors_path(&judged.artifact), common)?;
    }
    let text = if common.json {
        serde_json::to_string(&report).unwrap_or_default() + "\n"
    } else {
        table(&report)
    };
    let mut out = Sink::open(None)?;
    out.write(text.as_bytes())?;
    out.finish()
}

/// Times and answers upright and transformed inputs.
pub fn judge(c: &Canonicalizer, inputs: &[Inputs; 2], common: &Common) -> Result<Report> {
    let [upright, transformed] = inputs;
    let [a, b] = [upright, transformed].map(|inputs| Latency::measure(c, inputs, common.quiet));
    let latency = a?.with(&b?);
    Ok(Report {
        transforms: if transformed.copies { "synthetic" } else { "given" },
        seed: upright.seed,
        upright: measure(c, upright, common)?,
        transformed: measure(c, transformed, common)?,
        latency: latency.percentiles(),
        means: [false, true].map(|searched| latency.means(searched)),
        timed: latency.splits.len(),
    })
}

fn measure(c: &Canonicalizer, inputs: &Inputs, common: &Common) -> Result<Tally> {
    let bar = Progress::start(inputs.kind, inputs.data.len(), common.quiet);
    let mut tally = Tally::default();
    let all: Vec<usize> = (0..inputs.data.len()).collect();
    c.measure(&inputs.posed(), &all, &mut |some| {
        tally.add(some);
        bar.advance(some.asked);
        bar.say(format!("{} right", tally.gated));
    })?;
    Ok(tally)
}

/// The report as people read it.
pub fn table(report: &Report) -> String {
    let Report { upright: up, transformed: tr, .. } = report;
    let accuracy = |share: &Share| {
        let (low, high) = share.interval();
        format!("{share} ({low:.1}..{high:.1})")
    };
    let mut out = String::new();
    let kind = format!("transformed ({})", report.transforms);
    let _ = writeln!(out, "{:18} {:>24} {:>24}", "", "upright", kind);
    let mut line = |name: &str, a: String, b: String| {
        let _ = writeln!(out, "{name:18} {a:>24} {b:>24}");
    };
    line("inputs", up.model.of.to_string(), tr.model.of.to_string());
    line("model alone", accuracy(&up.model), accuracy(&tr.model));
    line("gated", accuracy(&up.gated), accuracy(&tr.gated));
    line("wrong -> right", up.mended.to_string(), tr.mended.to_string());
    line("right -> wrong", up.harmed.to_string(), tr.harmed.to_string());
    line("searched", up.searched.to_string(), tr.searched.to_string());
    line("accepted of these", part(&up.accepted), part(&tr.accepted));
    line("views per input", format!("{:.1}", up.views()), format!("{:.1}", tr.views()));
    line("ms per input", format!("{:.2}", up.ms()), format!("{:.2}", tr.ms()));
    let [(kept, n), (searched, m)] = &report.means;
    let heads = [format!("kept ({n})"), format!("searched ({m})")];
    let _ = write!(out, "\n{:24} {:>12} {:>14}", "ms per decision, mean", heads[0], heads[1]);
    let many = !report.latency.is_empty();
    let _ = writeln!(out, "{}", if many { "   all: p50      p95      p99" } else { "" });
    for (i, part) in PARTS.into_iter().chain(["total"]).enumerate() {
        let mean = |(parts, n): (&[f64; 5], usize)| match n {
            0 => "-".to_string(),
            _ => format!("{:.2}", parts.get(i).copied().unwrap_or_else(|| parts.iter().sum())),
        };
        let (a, b) = (mean((kept, *n)), mean((searched, *m)));
        let _ = write!(out, "  {part:22} {a:>12} {b:>14}");
        let _ = match report.latency.get(i) {
            Some(p) => writeln!(out, "  {:>9.2} {:>8.2} {:>8.2}", p.p50, p.p95, p.p99),
            None => writeln!(out),
        };
    }
    let _ = writeln!(
        out,
        "  {} inputs of both kinds answered one by one; warp, model and score timed again on their \
         views in one batch, search is the rest\n",
        report.timed
    );
    let _ = writeln!(out, "intervals: Wilson, 95 %; seed {}", report.seed);
    out
}

fn part(share: &Share) -> String {
    if share.of == 0 { "-".into() } else { share.to_string() }
}
