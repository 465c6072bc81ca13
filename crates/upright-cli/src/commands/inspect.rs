//! `upright inspect`: what is in a model.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;
use upright::Model;
use upright::internal::onnx::{Dim, Graph};

use super::setup::ModelArgs;
use crate::Common;
use crate::report::{Failure, Result};
use crate::rows::Sink;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright inspect model.onnx                    inputs, outputs, preprocessing, the automatic tap
  upright inspect model.onnx --all              every tensor that can be tapped
  upright inspect model.onnx --tap /layer4/Relu_output_0 --reduce mean";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// List every tap candidate, not only the last ones
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    loading: ModelArgs,
}

/// What is in a model.
#[derive(Serialize)]
pub struct Report {
    model: String,
    fingerprint: String,
    producer: String,
    opset: i64,
    inputs: Vec<String>,
    outputs: Vec<String>,
    classes: usize,
    class_names: Option<Vec<String>>,
    logits: String,
    preprocessing: String,
    operators: Vec<Count>,
    taps: Vec<TapRow>,
    head: Option<[usize; 2]>,
    candidates: Vec<CandidateRow>,
    engine: &'static str,
    micro_batch: usize,
}

#[derive(Serialize)]
struct Count {
    operator: String,
    count: usize,
}

#[derive(Serialize)]
struct TapRow {
    asked: String,
    tensors: Vec<String>,
    shape: Vec<usize>,
    features: usize,
}

#[derive(Serialize)]
struct CandidateRow {
    tensor: String,
    operator: String,
    auto: bool,
}

/// Prints what is in the model.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let text = match look(args, common) {
        Ok(report) if common.json => {
            serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
        }
        Ok(report) => shown(&report, args.all),
        Err(Failure::Library(why)) if !common.json && lacks_size(&why) => {
            let graph = Graph::load(&args.model)?;
            if sized(&graph) {
                return Err(why.into());
            }
            unsized_model(&graph, &why, args.all)
        }
        Err(other) => return Err(other),
    };
    let mut out = Sink::open(None)?;
    out.write(text.as_bytes())?;
    out.finish()
}

/// Looks into the model.
pub fn look(args: &Args, common: &Common) -> Result<Report> {
    let mut options = args.loading.options(common)?;
    let graph = Graph::load(&args.model)?;
    let auto_only = args.loading.tap.iter().all(|name| name == "auto");
    let model = match Model::load(&args.model, &options) {
        Err(upright::Error::NoTap { .. }) if auto_only => {
            options.taps.clear();
            Model::load(&args.model, &options)?
        }
        other => other?,
    };
    Ok(report(&graph, &model))
}

fn report(graph: &Graph, model: &Model) -> Report {
    let features = &model.ending().features;
    Report {
        model: graph.name().into(),
        fingerprint: model.fingerprint().into(),
        producer: graph.producer(),
        opset: graph.opset(),
        inputs: graph.inputs().iter().map(ToString::to_string).collect(),
        outputs: graph.outputs().iter().map(ToString::to_string).collect(),
        classes: model.classes(),
        class_names: model.class_names().map(<[String]>::to_vec),
        logits: model.ending().logits.clone(),
        preprocessing: model.preprocess().to_string(),
        operators: graph
            .operators()
            .into_iter()
            .map(|o| Count { operator: o.name, count: o.count })
            .collect(),
        taps: model
            .taps()
            .iter()
            .map(|t| TapRow {
                asked: t.name.clone(),
                tensors: t.tensors.clone(),
                shape: t.shape.clone(),
                features: t.features,
            })
            .collect(),
        head: model.head().map(|h| [h.weight.rows(), h.weight.cols()]),
        candidates: graph
            .candidates(model.output())
            .into_iter()
            .map(|c| CandidateRow {
                auto: features.contains(&c.name),
                tensor: c.name,
                operator: c.op,
            })
            .collect(),
        engine: model.engine(),
        micro_batch: model.micro_batch(),
    }
}

/// Whether a model cannot be run as it is, perhaps because a size is missing.
fn lacks_size(why: &upright::Error) -> bool {
    matches!(why, upright::Error::Preprocess { .. } | upright::Error::OpenInput { .. })
}

/// Whether the file says every size of its input but that of a batch.
fn sized(graph: &Graph) -> bool {
    let fixed = |d: &Dim| matches!(d, Dim::Fixed(_));
    graph.inputs().iter().all(|i| i.dims.iter().all(|d| d.iter().skip(1).all(fixed)))
}

/// What a graph tells that cannot be run, as the size of its input is open.
fn unsized_model(graph: &Graph, why: &upright::Error, all: bool) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<14} {text}");
    };
    line("model", format!("{} ({}, opset {})", graph.name(), graph.producer(), graph.opset()));
    line("fingerprint", graph.fingerprint().into());
    graph.inputs().iter().for_each(|i| line("input", i.to_string()));
    graph.outputs().iter().for_each(|o| line("output", o.to_string()));
    let operators: Vec<String> =
        graph.operators().iter().map(|o| format!("{} {}", o.count, o.name)).collect();
    line("operators", operators.join(", "));
    if let Some(output) = graph.outputs().first() {
        let ending = graph.ending(&output.name);
        line("logits", ending.logits.clone());
        line("tap", format!("auto = {}", ending.features.join(" + ")));
        if let Some(head) = &ending.head {
            line("head", format!("{} x {} weights", head.weight.rows(), head.weight.cols()));
        }
        let candidates = graph.candidates(&output.name);
        let skip = if all { 0 } else { candidates.len().saturating_sub(SHOWN) };
        for c in &candidates[skip..] {
            line("candidate", format!("{} {}", c.name, c.op));
        }
    }
    line("not shown", format!("classes, sizes and preprocessing: {why}"));
    if let Some(hint) = why.hint() {
        line("help", crate::hints::library(&hint));
    }
    out
}

/// Tap candidates shown unless all are asked for.
const SHOWN: usize = 8;

fn shown(r: &Report, all: bool) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<14} {text}");
    };
    line("model", format!("{} ({}, opset {})", r.model, r.producer, r.opset));
    line("fingerprint", r.fingerprint.clone());
    for input in &r.inputs {
        line("input", input.clone());
    }
    for output in &r.outputs {
        line("output", output.clone());
    }
    let names = r.class_names.as_ref().map_or(String::new(), |n| {
        let few: Vec<&str> = n.iter().take(10).map(String::as_str).collect();
        format!(": {}{}", few.join(", "), if n.len() > 10 { ", ..." } else { "" })
    });
    line("classes", format!("{}{names}", r.classes));
    line("logits", r.logits.clone());
    line("preprocessing", r.preprocessing.clone());
    let operators: Vec<String> =
        r.operators.iter().map(|o| format!("{} {}", o.count, o.operator)).collect();
    line("operators", operators.join(", "));
    line("engine", format!("{}, micro-batches of {}", r.engine, r.micro_batch));
    for tap in &r.taps {
        let tensors = tap.tensors.join(" + ");
        line(
            "tap",
            format!("{} = {tensors} {:?} -> {} features", tap.asked, tap.shape, tap.features),
        );
    }
    if r.taps.is_empty() {
        line("tap", "none found; logits-only scores such as energy work".into());
    }
    line(
        "head",
        r.head.map_or("not found; scores that need its weights do not work".into(), |[c, d]| {
            format!("{c} x {d} weights found")
        }),
    );
    let skip = if all { 0 } else { r.candidates.len().saturating_sub(SHOWN) };
    if skip > 0 {
        line(
            "candidates",
            format!("the last {SHOWN} of {}; --all shows every one", r.candidates.len()),
        );
    } else {
        line("candidates", String::new());
    }
    for c in &r.candidates[skip..] {
        let _ = writeln!(
            out,
            "  {:50} {}{}",
            c.tensor,
            c.operator,
            if c.auto { "   <- auto" } else { "" }
        );
    }
    out
}
