//! `upright-lab proposals`: what the proposer is worth. How often the model is
//! right on the first, second, ... suggestion and on any of them, and what the
//! score chooses after so many views, on inputs as they are and on copies.

use std::path::PathBuf;

use serde::Serialize;
use upright::Trace;
use upright::{Batch, Canonicalizer, Part, Role, Share};

use crate::orbit::load;
use crate::searches::{Inputs, read_inputs};
use upright_cli::data::DataArgs;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// Labelled, upright data, as `upright eval` reads them
    data: PathBuf,
    /// The artifact fitted on the model [default: the model's name with .upright]
    #[arg(long)]
    artifact: Option<PathBuf>,
    /// Suggestions to look at
    #[arg(long, default_value_t = 8)]
    most: usize,
    /// Inputs, if the data have so many
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// Seed of the poses
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Writes a JSON line per input: energies and labels of all its views
    #[arg(long)]
    cases: Option<PathBuf>,
    #[command(flatten)]
    reading: DataArgs,
}

#[derive(Serialize)]
struct Line {
    kind: &'static str,
    suggestion: usize,
    /// Right on this suggestion; its class is right; right on any so far; the score's choice
    /// among them; the same with the input as it is.
    right: Share,
    class: Share,
    any: Share,
    chosen: Share,
    with_raw: Share,
}

/// Measures and prints a line for every suggestion.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let c = load(&args.model, args.artifact.as_deref()).map_err(|e| e.to_string())?;
    let c = c
        .with_part(
            Role::Search,
            Part::new("follow").flag("early", false).number("most", 1.0 + args.most as f64),
        )
        .map_err(|e| e.to_string())?
        .with_budget(1 + args.most);
    let reading = DataArgs { limit: Some(args.count), ..args.reading.clone() };
    let Inputs { upright, transformed, labels } = read_inputs(&args.data, &reading, args.seed, &c)?;
    let mut cases = String::new();
    println!("suggestion      right   class     any  chosen  with the input as it is");
    for (kind, batch) in [("upright", &upright), ("transformed", &transformed)] {
        let traces = traces(&c, batch).map_err(|e| e.to_string())?;
        for (trace, truth) in traces.iter().zip(&labels) {
            let view = |s: &upright::search::Seen| (s.energy, s.label);
            let seen: Vec<_> = trace.seen.iter().map(view).collect();
            let case = serde_json::json!({
                "kind": kind, "truth": truth, "raw": view(&trace.raw), "seen": seen,
            });
            cases.push_str(&case.to_string());
            cases.push('\n');
        }
        for line in measure(kind, &traces, &labels, args.most) {
            let Line { kind, suggestion, right, class, any, chosen, with_raw } = &line;
            println!(
                "{kind:<12} {suggestion:>2} {:>6.1} {:>7.1} {:>7.1} {:>7.1} {:>7.1}",
                right.percent(),
                class.percent(),
                any.percent(),
                chosen.percent(),
                with_raw.percent()
            );
            eprintln!("{}", serde_json::to_string(&line).unwrap_or_default());
        }
    }
    println!("{} inputs, seed {}", labels.len(), args.seed);
    match &args.cases {
        Some(path) => std::fs::write(path, cases).map_err(|e| format!("{}: {e}", path.display())),
        None => Ok(()),
    }
}

fn traces(c: &Canonicalizer, batch: &Batch) -> upright::Result<Vec<Trace>> {
    let mut traces = Vec::new();
    for start in (0..batch.len()).step_by(256) {
        traces.extend(
            c.trace(&batch.select(&(start..batch.len().min(start + 256)).collect::<Vec<_>>()))?,
        );
    }
    Ok(traces)
}

fn measure(kind: &'static str, traces: &[Trace], labels: &[u32], most: usize) -> Vec<Line> {
    let none = || vec![Share::default(); most];
    let (mut right, mut class, mut any) = (none(), none(), none());
    let (mut chosen, mut with_raw) = (none(), none());
    for (trace, &truth) in traces.iter().zip(labels) {
        let named = |n: usize| trace.proposals.get(n).and_then(|p| p.proposal.class);
        let followed: Vec<_> =
            trace.seen.iter().filter_map(|s| Some((s, named(s.follows?)?))).take(most).collect();
        let add = |share: &mut Share, hit: bool| {
            share.of += 1;
            share.hits += usize::from(hit);
        };
        let mut best: Option<(f32, u32)> = None;
        let mut seen = false;
        for k in 0..most {
            if let Some((s, proposed)) = followed.get(k) {
                seen |= s.label == truth;
                if best.is_none_or(|(e, _)| s.energy < e) {
                    best = Some((s.energy, s.label));
                }
                add(&mut right[k], s.label == truth);
                add(&mut class[k], *proposed == truth);
            }
            add(&mut any[k], seen);
            add(&mut chosen[k], best.is_some_and(|(_, l)| l == truth));
            let raw = (trace.raw.energy, trace.raw.label);
            let answer = best.filter(|b| b.0 < raw.0).unwrap_or(raw);
            add(&mut with_raw[k], answer.1 == truth);
        }
    }
    (0..most)
        .map(|k| Line {
            kind,
            suggestion: k + 1,
            right: right[k],
            class: class[k],
            any: any[k],
            chosen: chosen[k],
            with_raw: with_raw[k],
        })
        .collect()
}
