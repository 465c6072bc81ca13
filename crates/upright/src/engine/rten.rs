//! The built-in engine: the `rten` crate.
//!
//! rten fuses nodes, so an inner tensor may no longer exist after loading.
//! The tensors asked for are therefore made outputs of the graph before rten
//! sees it, which every fusion respects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use prost::Message;
use rten::{LoadError, LoadErrorKind, Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::prelude::*;

use crate::engine::{Engine, Input, Lane, Value, lanes, with_outputs};
use crate::error::{Error, Result};
use crate::onnx::Graph;
use crate::onnx::proto::{
    AttributeProto, EXTERNAL, GraphProto, ModelProto, NodeProto, StringStringEntryProto,
    TensorProto, data_type,
};

/// Its name in the table.
pub(super) const NAME: &str = "rten";

/// One by one is as fast as any.
pub(super) const MICRO_BATCH: usize = 1;

struct Rten {
    model: Model,
    inputs: BTreeMap<String, NodeId>,
    tensors: Vec<NodeId>,
    whole: OnceLock<Arc<ThreadPool>>,
    /// At least one.
    lanes: Vec<OnceLock<Arc<ThreadPool>>>,
}

impl fmt::Debug for Rten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rten").field("inputs", &self.inputs.keys()).finish_non_exhaustive()
    }
}

/// Prepares a graph; see [`crate::engine::Load`].
pub(super) fn load(
    graph: &Graph,
    tensors: &[String],
    threads: Option<usize>,
) -> Result<Box<dyn Engine>> {
    let failed = |why: String| Error::Model { path: graph.name().into(), why };
    let mut proto = with_outputs(graph, tensors);
    if let Some(node) = proto.graph.as_mut().and_then(adapt) {
        return Err(failed(format!(
            "node `{node}` pads with SAME_LOWER, which the rten engine does not do; export it \
             with explicit pads"
        )));
    }
    let weights = taken_out(&mut proto);
    let model = match open(proto.encode_to_vec(), weights, true) {
        Ok(model) => model,
        Err(Refused::Operator(why)) => return Err(operators(graph, &proto).unwrap_or(failed(why))),
        Err(Refused::Other(why)) => return Err(failed(why)),
    };
    let node = |name: &String| {
        model.find_node(name).ok_or_else(|| Error::NoTap {
            name: name.clone(),
            candidates: graph.tensors().join(", "),
        })
    };
    let tensors = tensors.iter().map(node).collect::<Result<_>>()?;
    let inputs = graph.inputs().into_iter().filter_map(|p| {
        let id = model.find_node(&p.name)?;
        Some((p.name, id))
    });
    let inputs = inputs.collect();
    let lanes = (0..lanes::threads(threads)).map(|_| OnceLock::new()).collect();
    Ok(Box::new(Rten { model, inputs, tensors, whole: OnceLock::new(), lanes }))
}

impl Rten {
    /// The threads of a lane, started on first use.
    fn pool(&self, lane: Lane) -> Arc<ThreadPool> {
        let (place, threads) = match lane {
            Lane::Whole => (&self.whole, self.lanes.len()),
            Lane::One(lane) => (&self.lanes[lane % self.lanes.len()], 1),
        };
        Arc::clone(place.get_or_init(|| Arc::new(ThreadPool::with_num_threads(threads))))
    }
}

impl Engine for Rten {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn run_on(&self, lane: Lane, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>> {
        let failed = |why: String| Error::Engine { engine: NAME, why, source: None };
        let mut fed = Vec::with_capacity(inputs.len());
        for input in inputs {
            let id = *self
                .inputs
                .get(input.name)
                .ok_or_else(|| failed(format!("the graph has no input `{}`", input.name)))?;
            let view = rten::ValueView::from_shape(input.shape, input.data)
                .map_err(|e| failed(format!("input `{}`: {e}", input.name)))?;
            fed.push((id, view.into()));
        }
        let ids: Vec<NodeId> =
            wanted.iter().filter_map(|&i| self.tensors.get(i).copied()).collect();
        if ids.len() != wanted.len() {
            return Err(failed("a tensor was asked for that was not named at loading".into()));
        }
        let mut unique: Vec<NodeId> = Vec::new();
        for id in &ids {
            if !unique.contains(id) {
                unique.push(*id);
            }
        }
        let options = RunOptions::default().with_thread_pool(Some(self.pool(lane)));
        let values =
            self.model.run(fed, &unique, Some(options)).map_err(|e| failed(e.to_string()))?;
        let values = values.into_iter().map(|v| read(v).map_err(failed));
        let mut values: Vec<Option<Value>> = values.map(|v| v.map(Some)).collect::<Result<_>>()?;
        let last = |n: usize| ids[n + 1..].iter().all(|id| *id != ids[n]);
        let give = |(n, id): (usize, &NodeId)| {
            let value = &mut values[unique.iter().position(|u| u == id)?];
            if last(n) { value.take() } else { value.clone() }
        };
        Ok(ids.iter().enumerate().filter_map(give).collect())
    }
}

fn read(value: rten::Value) -> std::result::Result<Value, String> {
    match value {
        rten::Value::FloatTensor(t) => {
            Ok(Value { shape: t.shape().to_vec(), data: t.into_data().into() })
        }
        other => Err(format!("a tensor of type {} was asked for", other.dtype())),
    }
}

/// Why a model was not loaded.
enum Refused {
    Operator(String),
    Other(String),
}

/// What rten calls the weights that lie apart.
const APART: &str = "weights.data";

/// Weights of more bytes lie apart.
const LARGE: usize = 1 << 12;

/// Takes large weights out of a model and lays them one after the other, so that they exist
/// once: rten computes on them where they lie, if they are aligned.
fn taken_out(model: &mut ModelProto) -> Vec<u8> {
    let tensors = || model.graph.iter().flat_map(|g| &g.initializer);
    let sizes = tensors().filter(|t| apart(t)).filter_map(|t| t.raw_data.as_ref());
    let total = sizes.map(|raw| raw.len().next_multiple_of(ALIGNED)).sum();
    let mut all: Vec<u8> = Vec::with_capacity(total);
    if all.as_ptr().align_offset(align_of::<f32>()) != 0 {
        return vec![];
    }
    for t in model.graph.iter_mut().flat_map(|g| &mut g.initializer).filter(|t| apart(t)) {
        let Some(raw) = t.raw_data.take() else { continue };
        let entry = |key: &str, value: String| StringStringEntryProto {
            key: Some(key.into()),
            value: Some(value),
        };
        t.external_data = vec![
            entry("location", APART.into()),
            entry("offset", all.len().to_string()),
            entry("length", raw.len().to_string()),
        ];
        t.data_location = Some(EXTERNAL);
        all.extend_from_slice(&raw);
        all.resize(all.len().next_multiple_of(ALIGNED), 0);
    }
    all
}

/// Bytes at whose multiples weights start.
const ALIGNED: usize = 64;

fn apart(t: &TensorProto) -> bool {
    t.data_type == Some(data_type::FLOAT) && t.raw_data.as_ref().is_some_and(|r| r.len() > LARGE)
}

/// Most bytes of weights that are also held packed, as products read them. Larger ones are packed
/// anew by every run, which costs little beside what they are multiplied with.
const PACKED: usize = 1 << 26;

fn open(bytes: Vec<u8>, weights: Vec<u8>, optimize: bool) -> std::result::Result<Model, Refused> {
    let packed = optimize && weights.len() <= PACKED;
    let mut options = ModelOptions::with_all_ops();
    if !weights.is_empty() {
        options.external_data(APART, weights);
    }
    options.enable_optimization(optimize).prepack_weights(packed);
    match options.load(bytes) {
        Ok(model) => Ok(model),
        Err(e) if is_operator(&e) => Err(Refused::Operator(e.to_string())),
        Err(e) => Err(Refused::Other(e.to_string())),
    }
}

fn is_operator(e: &LoadError) -> bool {
    e.kind() == LoadErrorKind::OperatorInvalid
}

/// Every operator that rten refuses: each is tried alone, with the attributes of its nodes.
fn operators(graph: &Graph, proto: &ModelProto) -> Option<Error> {
    let mut tried = BTreeSet::new();
    let mut first = None;
    let mut all = BTreeSet::new();
    let mut nodes = Vec::new();
    collect(proto.graph.as_ref()?, &mut nodes);
    for node in nodes {
        let nested = node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty());
        let alone = NodeProto {
            name: None,
            attribute: if nested { vec![] } else { node.attribute.clone() },
            ..node.clone()
        };
        let kind = format!("{:?} {} {:?}", node.domain, node.op(), alone.attribute);
        if node.op() == "Constant" || !tried.insert(kind) {
            continue;
        }
        let model = ModelProto {
            ir_version: proto.ir_version,
            opset_import: proto.opset_import.clone(),
            graph: Some(GraphProto { node: vec![alone], ..Default::default() }),
            ..Default::default()
        };
        let Err(Refused::Operator(why)) = open(model.encode_to_vec(), vec![], false) else {
            continue;
        };
        if nested && !why.contains("not supported") {
            continue;
        }
        let named = node.name.clone().filter(|n| !n.is_empty());
        first.get_or_insert((named.unwrap_or_else(|| node.out().into()), node.op().to_string()));
        all.insert(match node.domain.as_deref() {
            None | Some("" | "ai.onnx") => node.op().to_string(),
            Some(domain) => format!("{domain}.{}", node.op()),
        });
    }
    let (node, first) = first?;
    Some(Error::Operators {
        path: graph.name().into(),
        engine: NAME,
        node,
        first: format!("{first} (opset {})", graph.opset()),
        all: all.into_iter().collect::<Vec<_>>().join(", "),
    })
}

fn collect<'a>(graph: &'a GraphProto, nodes: &mut Vec<&'a NodeProto>) {
    for node in &graph.node {
        nodes.push(node);
        for a in &node.attribute {
            a.g.iter().chain(&a.graphs).for_each(|g| collect(g, nodes));
        }
    }
}

/// Writes out what rten does not do by itself: Dropout, which does nothing when a model is
/// used, becomes Identity; kernels and strides that the standard lets a file leave out are
/// filled in. Returns a node that rten would run in another way than the standard says.
fn adapt(graph: &mut GraphProto) -> Option<String> {
    let kernels: BTreeMap<&str, &[i64]> = graph
        .initializer
        .iter()
        .filter_map(|t| Some((t.name.as_deref()?, t.dims.get(2..)?)))
        .collect();
    let mut wrong = None;
    for node in &mut graph.node {
        match node.op() {
            "Dropout" if node.output.iter().skip(1).all(String::is_empty) => {
                node.op_type = Some("Identity".into());
                node.input.truncate(1);
                node.output.truncate(1);
                node.attribute.clear();
            }
            "Conv" | "ConvTranspose" | "ConvInteger" if node.attr("kernel_shape").is_none() => {
                if let Some(kernel) = node.arg(1).and_then(|w| kernels.get(w)) {
                    node.attribute.push(ints("kernel_shape", kernel.to_vec()));
                }
            }
            "MaxPool" | "AveragePool" if node.attr("strides").is_none() => {
                let rank = node.attr("kernel_shape").map_or(0, |a| a.ints.len());
                node.attribute.push(ints("strides", vec![1; rank]));
            }
            _ => {}
        }
        if node.attr("auto_pad").is_some_and(|a| a.s.as_deref() == Some(b"SAME_LOWER")) {
            wrong.get_or_insert_with(|| node.name.clone().unwrap_or_default());
        }
    }
    wrong
}

fn ints(name: &str, ints: Vec<i64>) -> AttributeProto {
    const INTS: i32 = 7;
    AttributeProto { name: Some(name.into()), r#type: Some(INTS), ints, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::build::{graph, model, node, weight};

    #[test]
    fn every_unsupported_operator_is_named_at_once() {
        let nodes = vec![
            node("Relu", &["x"], "a"),
            node("Unique", &["a"], "b"),
            node("Relu", &["b"], "c"),
            node("Bernoulli", &["c"], "y"),
        ];
        let e = load(&graph(&model(&[0, 2], nodes, vec![])), &["y".into()], None).unwrap_err();
        assert_eq!(
            e.to_string(),
            "test.onnx: node `/b` uses operator Unique (opset 17), which the rten engine does \
             not have; all unsupported operators: Bernoulli, Unique"
        );
    }

    #[test]
    fn padding_that_rten_would_do_differently_is_refused() {
        let mut conv = node("Conv", &["x", "w"], "y");
        let how = Some(b"SAME_LOWER".to_vec());
        let name = Some("auto_pad".into());
        conv.attribute.push(AttributeProto { name, s: how, r#type: Some(3), ..Default::default() });
        let g = graph(&model(&[0, 1, 3, 2], vec![conv], vec![weight("w", &[1, 1, 1, 1], &[1.0])]));
        let e = load(&g, &["y".into()], None).unwrap_err().to_string();
        assert!(e.contains("node `/y` pads with SAME_LOWER"), "{e}");
    }
}
