//! `upright inspect`: what is in a model.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;
use upright::Model;
use upright::internal::model::Tapped;
use upright::internal::onnx::{Ending, Graph};

use super::setup::{ModelArgs, alike};
use crate::Common;
use crate::report::Result;
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
    operators: Vec<Count>,
    logits: String,
    taps: Vec<TapRow>,
    head: Option<[usize; 2]>,
    candidates: Vec<CandidateRow>,
    /// What running it shows; left out where the size of its input is open.
    #[serde(flatten)]
    ran: Option<Ran>,
    /// Why it could not be run, and what would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<Open>,
}

#[derive(Serialize)]
struct Ran {
    classes: usize,
    class_names: Option<Vec<String>>,
    preprocessing: String,
    engine: &'static str,
    micro_batch: usize,
}

#[derive(Serialize)]
struct Open {
    why: String,
    help: String,
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
    /// Of one item, and how many features that makes; known where the model was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<usize>,
}

#[derive(Serialize)]
struct CandidateRow {
    tensor: String,
    operator: String,
    auto: bool,
}

/// Prints what is in the model.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let report = look(args, common)?;
    let text = if common.json {
        serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
    } else {
        shown(&report, args.all)
    };
    let mut out = Sink::open(None)?;
    out.write(text.as_bytes())?;
    out.finish()
}

/// Looks into the model; where the size of its input is open, at its graph alone.
pub fn look(args: &Args, common: &Common) -> Result<Report> {
    let mut options = args.loading.options(common)?;
    let graph = Graph::load(&args.model)?;
    let auto_only = args.loading.tap.iter().all(|name| name == "auto");
    let model = match Model::load(&args.model, &options) {
        Err(upright::Error::NoTap { .. }) if auto_only => {
            options.taps.clear();
            Model::load(&args.model, &options)
        }
        other => other,
    };
    match model {
        Ok(model) => Ok(of_model(&graph, &model)),
        Err(why @ upright::Error::OpenInput { .. }) => {
            let first = graph.outputs().into_iter().next().map(|o| o.name);
            Ok(of_graph(&graph, &why, &options.output.or(first).unwrap_or_default()))
        }
        Err(why) => Err(why.into()),
    }
}

fn of_model(graph: &Graph, model: &Model) -> Report {
    let ran = Ran {
        classes: model.classes(),
        class_names: model.class_names().map(<[String]>::to_vec),
        preprocessing: model.preprocess().to_string(),
        engine: model.engine(),
        micro_batch: model.micro_batch(),
    };
    let tap = |t: &Tapped| TapRow {
        asked: t.name.clone(),
        tensors: t.tensors.clone(),
        shape: Some(t.shape.clone()),
        features: Some(t.features),
    };
    Report {
        taps: model.taps().iter().map(tap).collect(),
        head: model.head().map(|h| [h.weight.rows(), h.weight.cols()]),
        ran: Some(ran),
        ..report(graph, model.output(), model.ending())
    }
}

fn of_graph(graph: &Graph, why: &upright::Error, output: &str) -> Report {
    let ending = graph.ending(output);
    let auto = TapRow {
        asked: "auto".into(),
        tensors: ending.features.clone(),
        shape: None,
        features: None,
    };
    let help = why.hint().as_ref().map(crate::hints::library).unwrap_or_default();
    Report {
        taps: if ending.features.is_empty() { vec![] } else { vec![auto] },
        head: ending.head.as_ref().map(|h| [h.weight.rows(), h.weight.cols()]),
        open: Some(Open { why: why.to_string(), help }),
        ..report(graph, output, &ending)
    }
}

/// What a graph alone tells.
fn report(graph: &Graph, output: &str, ending: &Ending) -> Report {
    let operators = graph.operators().into_iter();
    let candidates = graph.candidates(output).into_iter();
    Report {
        model: graph.name().into(),
        fingerprint: graph.fingerprint().into(),
        producer: graph.producer(),
        opset: graph.opset(),
        inputs: graph.inputs().iter().map(ToString::to_string).collect(),
        outputs: graph.outputs().iter().map(ToString::to_string).collect(),
        operators: operators.map(|o| Count { operator: o.name, count: o.count }).collect(),
        logits: ending.logits.clone(),
        taps: vec![],
        head: None,
        candidates: candidates
            .map(|c| CandidateRow {
                auto: ending.features.contains(&c.name),
                tensor: c.name,
                operator: c.op,
            })
            .collect(),
        ran: None,
        open: None,
    }
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
    if let Some(ran) = &r.ran {
        let names = ran.class_names.as_ref().map_or(String::new(), |n| {
            let few: Vec<&str> = n.iter().take(10).map(String::as_str).collect();
            format!(": {}{}", few.join(", "), if n.len() > 10 { ", ..." } else { "" })
        });
        line("classes", format!("{}{names}", ran.classes));
    }
    line("logits", r.logits.clone());
    if let Some(ran) = &r.ran {
        line("preprocessing", ran.preprocessing.clone());
    }
    let operators: Vec<String> =
        r.operators.iter().map(|o| format!("{} {}", o.count, o.operator)).collect();
    line("operators", operators.join(", "));
    if let Some(ran) = &r.ran {
        line("engine", format!("{}, micro-batches of {}", ran.engine, ran.micro_batch));
    }
    for group in alike(&r.taps, |tap| (&tap.tensors, &tap.shape, tap.features)) {
        let asked: Vec<&str> = group.iter().map(|tap| tap.asked.as_str()).collect();
        let tap = group[0];
        let size = match (&tap.shape, tap.features) {
            (Some(shape), Some(features)) => format!(" {shape:?} -> {features} features"),
            _ => String::new(),
        };
        line("tap", format!("{} = {}{size}", asked.join(", "), tap.tensors.join(" + ")));
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
    if let Some(open) = &r.open {
        line("not shown", format!("classes, sizes and preprocessing: {}", open.why));
        line("help", open.help.clone());
    }
    let skip = if all { 0 } else { r.candidates.len().saturating_sub(SHOWN) };
    if skip > 0 {
        line(
            "candidates",
            format!("the last {SHOWN} of {}; --all shows every one", r.candidates.len()),
        );
    } else {
        line("candidates", String::new());
    }
    let widest = r.candidates[skip..].iter().map(|c| c.tensor.chars().count()).max();
    let width = widest.unwrap_or(0).clamp(50, 100);
    for c in &r.candidates[skip..] {
        let _ = writeln!(
            out,
            "  {:width$} {}{}",
            c.tensor,
            c.operator,
            if c.auto { "   <- auto" } else { "" }
        );
    }
    out
}
