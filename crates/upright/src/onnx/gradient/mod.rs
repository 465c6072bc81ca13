//! The gradient of a graph, as a graph.
//!
//! Reverse-mode differentiation is done on the file format itself: every node
//! between the input and the tensors whose derivatives are given adds the
//! standard operators that pull a derivative back through it. Any engine that
//! runs the model's own operators runs the result. Sizes are fixed: the result
//! holds for inputs of one shape, whose inner sizes are learnt by running the
//! graph once.

use std::collections::{BTreeSet, HashSet};

use crate::error::{Error, Result};
use crate::onnx::facts::Facts;
use crate::onnx::graph::{captured, reads};
use crate::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto};
use crate::onnx::write::port;
use crate::onnx::{Graph, Run};

mod builder;
mod conv;
mod elementwise;
mod fuse;
mod linear;
mod norm;
mod pool;
mod reduce;
mod rules;
mod shape;
#[cfg(test)]
mod tests;

use builder::{Builder, Step};
use rules::{rule, stops};

/// The gradient of `sum over ends <tensor, derivative>` with respect to a graph's
/// input, for inputs of one shape.
#[derive(Debug)]
pub struct Gradient<'a> {
    /// For each end, the input that takes the derivative with respect to it.
    pub ends: Vec<String>,
    /// For each end, its shape.
    pub shapes: Vec<Vec<usize>>,
    /// The tensor that holds the gradient.
    pub output: String,
    graph: &'a Graph,
    input: String,
    facts: Facts,
    active: HashSet<String>,
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
}

/// Differentiates a graph with respect to `input`, of the given shape, from the
/// derivatives of some scalar with respect to the tensors `ends`. `run` is called once, to
/// learn sizes. Operators that cannot be differentiated are an error that lists all of them.
pub fn build<'a>(
    graph: &'a Graph,
    input: &str,
    shape: &[usize],
    ends: &[String],
    run: Run<'_>,
) -> Result<Gradient<'a>> {
    let refused = |all: BTreeSet<String>| Error::Gradient {
        path: graph.name().into(),
        all: all.into_iter().collect::<Vec<_>>().join(", "),
    };
    let active = active(graph, input);
    let nodes = fuse::gelus(graph, &between(graph, &active, ends), ends);
    let lacking: BTreeSet<String> =
        nodes.iter().filter(|n| rule(n).is_none()).map(|n| called(n)).collect();
    if !lacking.is_empty() {
        return Err(refused(lacking));
    }
    let touched = nodes.iter().flat_map(|n| n.input.iter().chain(&n.output)).chain(ends);
    let numbers = nodes.iter().flat_map(|n| {
        let positions = rule(n).map_or(&[][..], |r| r.integers);
        positions.iter().filter_map(|&i| n.arg(i))
    });
    let facts = Facts::learn(graph, input, shape, touched.map(String::as_str), numbers, run)?;
    let mut builder = Builder::new(graph, &facts, active);
    let mut end_names = Vec::new();
    let mut end_shapes = Vec::new();
    for end in ends {
        let name = builder.named(end);
        builder.give(end, name.clone());
        end_names.push(name);
        end_shapes.push(builder.shape(end).map_err(|why| refused([why].into()))?);
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
    let (nodes, weights, active) = builder.finish();
    Ok(Gradient {
        ends: end_names,
        shapes: end_shapes,
        output: gradient,
        graph,
        input: input.into(),
        facts,
        active,
        nodes,
        weights,
    })
}

impl Gradient<'_> {
    /// One graph for both ways: it takes the model's input and the derivatives, and gives
    /// the tensors `wanted` and the gradient.
    pub fn joined(&self, wanted: &[String]) -> Result<Graph> {
        let mut nodes = self.graph.graph().node.clone();
        nodes.extend(self.nodes.iter().cloned());
        self.assemble(nodes, std::slice::from_ref(&self.input), wanted)
    }

    /// The way back alone, with the tensors of the model that it reads besides the
    /// derivatives and that must therefore be kept from the way there.
    pub fn backward(&self) -> Result<(Graph, Vec<String>)> {
        let mut open: Vec<&str> = self.nodes.iter().flat_map(reads).collect();
        let mut kept: BTreeSet<&str> = BTreeSet::new();
        let mut again: BTreeSet<usize> = BTreeSet::new();
        while let Some(name) = open.pop() {
            if self.active.contains(name) {
                kept.insert(name);
            } else if let Some(at) = self.graph.position(name)
                && again.insert(at)
            {
                open.extend(reads(&self.graph.graph().node[at]));
            }
        }
        kept.retain(|name| self.graph.position(name).is_none_or(|at| !again.contains(&at)));
        let all = &self.graph.graph().node;
        let mut nodes: Vec<NodeProto> = again.iter().map(|&i| all[i].clone()).collect();
        nodes.extend(self.nodes.iter().cloned());
        let kept: Vec<String> = kept.into_iter().map(String::from).collect();
        Ok((self.assemble(nodes, &kept, &[])?, kept))
    }

    fn assemble(&self, node: Vec<NodeProto>, from: &[String], to: &[String]) -> Result<Graph> {
        let known = |name: &String| port(name, self.facts.shape(name));
        let ends = self.ends.iter().zip(&self.shapes).map(|(n, s)| port(n, Some(s)));
        let shape = self.facts.shape(&self.input);
        let old = self.graph.graph();
        let mut graph = GraphProto {
            name: old.name.clone(),
            node,
            input: from.iter().map(known).chain(ends).collect(),
            output: to.iter().map(known).chain([port(&self.output, shape)]).collect(),
            sparse_initializer: old.sparse_initializer.clone(),
            ..Default::default()
        };
        let needed = prune(&mut graph);
        let used = |t: &&TensorProto| t.name.as_ref().is_some_and(|n| needed.contains(n));
        graph.initializer =
            old.initializer.iter().chain(&self.weights).filter(used).cloned().collect();
        let model = self.graph.model();
        let proto = ModelProto {
            ir_version: model.ir_version,
            opset_import: model.opset_import.clone(),
            functions: model.functions.clone(),
            graph: Some(graph),
            ..Default::default()
        };
        self.graph.derived(proto)
    }
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
            let smooth = if node.op() == "TopK" { 1 } else { node.output.len() };
            active.extend(node.output.iter().take(smooth).filter(|o| !o.is_empty()).cloned());
        }
    }
    active
}

/// The nodes on the way from the input to the ends, in graph order.
fn between<'a>(graph: &'a Graph, active: &HashSet<String>, ends: &[String]) -> Vec<&'a NodeProto> {
    let mut needed: HashSet<&str> = ends.iter().map(String::as_str).collect();
    let mut nodes = Vec::new();
    for node in graph.graph().node.iter().rev() {
        let used = |o: &String| needed.contains(o.as_str()) && active.contains(o);
        if node.output.iter().any(used) {
            needed.extend(reads(node));
            nodes.push(node);
        }
    }
    nodes.reverse();
    nodes
}

/// Drops nodes that no output needs, and returns the tensors that are needed.
fn prune(graph: &mut GraphProto) -> HashSet<String> {
    let mut needed: HashSet<String> = graph.output.iter().filter_map(|v| v.name.clone()).collect();
    let mut kept = Vec::with_capacity(graph.node.len());
    for node in std::mem::take(&mut graph.node).into_iter().rev() {
        if node.output.iter().any(|o| needed.contains(o)) {
            needed.extend(reads(&node).into_iter().map(String::from));
            kept.push(node);
        }
    }
    kept.reverse();
    graph.node = kept;
    needed
}
