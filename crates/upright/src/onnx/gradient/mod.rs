//! The gradient of a graph, as a graph.
//!
//! Reverse-mode differentiation is done on the file format itself: every node
//! between the input and the tensors whose derivatives are given adds the
//! standard operators that pull a derivative back through it. Any engine that
//! runs the model's own operators runs the result. Sizes are fixed: the result
//! holds for inputs of one shape, whose inner sizes are learnt by running the
//! graph once.

use std::collections::{BTreeSet, HashSet};

use prost::Message;

use crate::error::{Error, Result};
use crate::onnx::Graph;
use crate::onnx::proto::{
    DimensionProto, DimensionValue, GraphProto, NodeProto, TensorShapeProto, TensorTypeProto,
    TypeProto, TypeValue, ValueInfoProto, data_type,
};

mod builder;
mod conv;
mod elementwise;
mod facts;
mod linear;
mod norm;
mod pool;
mod reduce;
mod rules;
mod shape;
#[cfg(test)]
mod tests;

use builder::{Builder, Step};
use facts::Facts;
use rules::{rule, stops};

/// A graph that computes the gradient of `sum over seeds <seed tensor, derivative>` with
/// respect to its input.
#[derive(Debug, Clone)]
pub struct Gradient {
    /// The graph. Its inputs are the model's input and one derivative for each seed; its
    /// outputs are the tensors asked for and the gradient.
    pub graph: Graph,
    /// For each seed, the input that takes the derivative with respect to it.
    pub seeds: Vec<String>,
    /// For each seed, its shape.
    pub shapes: Vec<Vec<usize>>,
    /// The output that holds the gradient.
    pub output: String,
}

/// Runs a graph on some input of the agreed shape and hands back the named tensors, which
/// all hold real numbers.
pub type Run<'a> = &'a dyn Fn(&Graph, &[String]) -> Result<Vec<Vec<f32>>>;

/// Differentiates a graph with respect to `input`, of the given shape, seeded by the
/// derivatives of some scalar with respect to the tensors `seeds`. The result also computes
/// the tensors `wanted`. `run` is called once, to learn sizes. Operators that cannot be
/// differentiated are an error that lists all of them.
pub fn build(
    graph: &Graph,
    input: &str,
    shape: &[usize],
    seeds: &[String],
    wanted: &[String],
    run: Run<'_>,
) -> Result<Gradient> {
    let refused = |all: BTreeSet<String>| Error::Gradient {
        path: graph.name().into(),
        all: all.into_iter().collect::<Vec<_>>().join(", "),
    };
    let active = active(graph, input);
    let nodes = between(graph, &active, seeds);
    let lacking: BTreeSet<String> =
        nodes.iter().filter(|n| rule(n).is_none()).map(|n| called(n)).collect();
    if !lacking.is_empty() {
        return Err(refused(lacking));
    }
    let facts = Facts::learn(graph, input, shape, &nodes, seeds, run)?;
    let mut builder = Builder::new(graph, &facts, active);
    let mut seed_names = Vec::new();
    let mut seed_shapes = Vec::new();
    for seed in seeds {
        let name = builder.named(seed);
        builder.give(seed, name.clone());
        seed_names.push(name);
        seed_shapes.push(builder.shape(seed).map_err(|why| refused([why].into()))?);
    }
    let mut failed = BTreeSet::new();
    for node in nodes.iter().rev() {
        let d: Vec<Option<String>> = node.output.iter().map(|o| builder.total(o)).collect();
        let Some(rule) = rule(node).filter(|_| d.iter().any(Option::is_some)) else { continue };
        let step = Step::new(node, d);
        let done = if !rule.several && step.several() {
            Err("with several outputs".into())
        } else {
            (rule.back)(&mut builder, &step)
        };
        if let Err(why) = done {
            failed.insert(format!("{} ({why})", called(node)));
        }
    }
    if !failed.is_empty() {
        return Err(refused(failed));
    }
    let gradient = match builder.total(input) {
        Some(d) => builder.op("Identity", &[&d]),
        None => builder.zeros(shape),
    };
    let mut proto = graph.model().clone();
    let ports = seed_names.iter().zip(&seed_shapes).map(|(n, s)| port(n, s));
    let (new_nodes, weights) = builder.finish();
    if let Some(g) = proto.graph.as_mut() {
        g.node.extend(new_nodes);
        g.initializer.extend(weights);
        g.input.retain(|v| v.name.as_deref() != Some(input));
        g.input.insert(0, port(input, shape));
        g.input.extend(ports);
        g.value_info.clear();
        g.output = wanted.iter().filter_map(|w| Some(port(w, facts.shape(w)?))).collect();
        g.output.push(port(&gradient, shape));
        prune(g);
    }
    let graph = Graph::from_bytes(graph.name(), &proto.encode_to_vec())?;
    Ok(Gradient { graph, seeds: seed_names, shapes: seed_shapes, output: gradient })
}

/// The operator, with its domain if that is not the standard one.
fn called(node: &NodeProto) -> String {
    match node.domain.as_deref() {
        None | Some("" | "ai.onnx") => node.op().to_string(),
        Some(domain) => format!("{domain}.{}", node.op()),
    }
}

/// Tensors whose numbers change smoothly with the input's.
fn active(graph: &Graph, input: &str) -> HashSet<String> {
    let mut active = HashSet::from([input.to_string()]);
    for node in &graph.graph().node {
        if stops(node) {
            continue;
        }
        let mut reads: Vec<&str> = match rule(node) {
            Some(rule) => rule.inputs.of(node),
            None => node.input.iter().map(String::as_str).collect(),
        };
        for a in &node.attribute {
            a.g.iter().chain(&a.graphs).for_each(|g| captured(g, &mut reads));
        }
        if reads.iter().any(|r| active.contains(*r)) {
            active.extend(node.output.iter().filter(|o| !o.is_empty()).cloned());
        }
    }
    active
}

/// Every tensor that a nested graph reads.
fn captured<'a>(graph: &'a GraphProto, reads: &mut Vec<&'a str>) {
    reads.extend(graph.output.iter().filter_map(|v| v.name.as_deref()));
    for node in &graph.node {
        reads.extend(node.input.iter().map(String::as_str));
        for a in &node.attribute {
            a.g.iter().chain(&a.graphs).for_each(|g| captured(g, reads));
        }
    }
}

/// The nodes on the way from the input to the seeds, in graph order.
fn between<'a>(graph: &'a Graph, active: &HashSet<String>, seeds: &[String]) -> Vec<&'a NodeProto> {
    let mut needed: HashSet<&str> = seeds.iter().map(String::as_str).collect();
    let mut nodes = Vec::new();
    for node in graph.graph().node.iter().rev() {
        let used = |o: &String| needed.contains(o.as_str()) && active.contains(o);
        if node.output.iter().any(used) {
            let mut reads = Vec::new();
            for a in &node.attribute {
                a.g.iter().chain(&a.graphs).for_each(|g| captured(g, &mut reads));
            }
            needed.extend(reads);
            needed.extend(node.input.iter().map(String::as_str));
            nodes.push(node);
        }
    }
    nodes.reverse();
    nodes
}

/// Drops nodes and weights that no output needs.
fn prune(graph: &mut GraphProto) {
    let mut needed: HashSet<String> = graph.output.iter().filter_map(|v| v.name.clone()).collect();
    let mut kept = Vec::with_capacity(graph.node.len());
    for node in std::mem::take(&mut graph.node).into_iter().rev() {
        if node.output.iter().any(|o| needed.contains(o)) {
            let mut reads: Vec<&str> = node.input.iter().map(String::as_str).collect();
            for a in &node.attribute {
                a.g.iter().chain(&a.graphs).for_each(|g| captured(g, &mut reads));
            }
            needed.extend(reads.into_iter().map(String::from));
            kept.push(node);
        }
    }
    kept.reverse();
    graph.node = kept;
    let used = |name: &Option<String>| name.as_ref().is_some_and(|n| needed.contains(n));
    graph.initializer.retain(|t| used(&t.name));
    let weights: HashSet<&String> =
        graph.initializer.iter().filter_map(|t| t.name.as_ref()).collect();
    graph.input.retain(|v| !v.name.as_ref().is_some_and(|n| weights.contains(n)));
}

/// A tensor of real numbers with fixed dimensions.
fn port(name: &str, shape: &[usize]) -> ValueInfoProto {
    let dim = |d: &usize| DimensionProto {
        value: Some(DimensionValue::Fixed(*d as i64)),
        denotation: None,
    };
    let shape = TensorShapeProto { dim: shape.iter().map(dim).collect() };
    let tensor = TensorTypeProto { elem_type: Some(data_type::FLOAT), shape: Some(shape) };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)), denotation: None }),
        ..Default::default()
    }
}
