//! Quantised operators as operators on real numbers between quantisations,
//! so that engines, taps, heads and gradients need to know only those.
//!
//! `QLinearConv` and its kin (standard or of the domain `com.microsoft`, as
//! onnxruntime's quantiser writes them) become `DequantizeLinear`, the operator
//! on real numbers, `QuantizeLinear`: the same numbers but for a step of the
//! quantisation where a sum lies between two. Weights are dequantised once.
//! Where only weights are stored in whole numbers and inputs are quantised on
//! the way (`DynamicQuantizeLinear`), inputs stay as they are: what is left out
//! is the rounding, whose steps would depend on what shares a batch.

use std::collections::{HashMap, HashSet};

use super::constant::{Constant, stored_value};
use super::proto::{GraphProto, NodeProto, TensorProto, TypeProto, TypeValue, data_type};
use super::write::{bytes, node, stored};

mod on_the_way;
mod operators;
mod steps;
#[cfg(test)]
mod tests;

use on_the_way::only_summed;
use operators::{form, moves};

/// Rewrites every quantised operator of an ordered graph. One that is written in another way
/// than described stays as it is.
pub(super) fn real(graph: &mut GraphProto) {
    let whole = |n: &NodeProto| form(n).is_some() || n.op().contains("uantize");
    if !graph.node.iter().any(|n| whole(n) || n.op().ends_with("Integer")) {
        return;
    }
    let mut rewrite = Rewrite::of(graph);
    for node in std::mem::take(&mut graph.node) {
        rewrite.node(node);
    }
    rewrite.outputs(graph);
    graph.node = rewrite.nodes;
    graph.initializer.extend(rewrite.added);
}

/// How a tensor of whole numbers is read.
#[derive(Clone)]
struct Scale {
    scale: String,
    zero: String,
}

struct Rewrite {
    /// Stored tensors that an operator may read as constants.
    known: HashMap<String, TensorProto>,
    names: HashSet<String>,
    quantised: HashMap<String, Scale>,
    /// Tensors of whole numbers that are there as real ones, by name, scale and zero point.
    reals: HashMap<String, String>,
    /// Tensors that are quantised on the way and sums of their products, as they are unrounded.
    unrounded: HashMap<String, String>,
    /// Whether whatever is quantised on the way can stay unrounded.
    rounds_nothing: bool,
    /// Operators that make tensors.
    makers: HashMap<String, String>,
    nodes: Vec<NodeProto>,
    added: Vec<TensorProto>,
}

impl Rewrite {
    fn of(graph: &GraphProto) -> Self {
        let mut known: HashMap<String, TensorProto> = HashMap::new();
        known.extend(graph.initializer.iter().filter_map(|t| Some((t.name.clone()?, t.clone()))));
        for node in &graph.node {
            known.extend(stored_value(node).map(|t| (node.out().to_string(), t.clone())));
        }
        let values = graph.input.iter().chain(&graph.output).filter_map(|v| v.name.clone());
        let made = graph.node.iter().flat_map(|n| n.output.iter().chain(&n.input).cloned());
        let names = values.chain(made).chain(known.keys().cloned()).collect();
        Rewrite {
            known,
            names,
            quantised: HashMap::new(),
            reals: HashMap::new(),
            unrounded: HashMap::new(),
            rounds_nothing: only_summed(graph),
            makers: HashMap::new(),
            nodes: Vec::new(),
            added: Vec::new(),
        }
    }

    /// A name that is not in use.
    fn fresh(&mut self, of: &str, word: &str) -> String {
        let mut name = format!("{of}:{word}");
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    fn push(&mut self, node: NodeProto) {
        self.makers.extend(node.output.iter().map(|o| (o.clone(), node.op().to_string())));
        self.nodes.push(node);
    }

    fn store(&mut self, name: String, code: i32, shape: &[usize], raw: Vec<u8>) -> String {
        let tensor = stored(&name, code, shape, raw);
        self.known.insert(name.clone(), tensor.clone());
        self.added.push(tensor);
        name
    }

    fn store_real(&mut self, name: String, value: &Constant) -> String {
        let raw = bytes(&value.data, f32::to_le_bytes);
        self.store(name, data_type::FLOAT, &value.shape, raw)
    }

    fn constant(&self, name: &str) -> Option<Constant> {
        Constant::read(self.known.get(name)?)
    }

    fn node(&mut self, node: NodeProto) {
        let done = match node.op() {
            "QuantizeLinear" => self.quantise(&node),
            "DequantizeLinear" => self.dequantise(&node),
            "DynamicQuantizeLinear" => self.leave_real(&node),
            "ConvInteger" | "MatMulInteger" => self.whole_sums(&node),
            "Cast" => self.cast(&node),
            "Mul" => self.joined_scales(&node),
            op if moves(op) && self.quantised.contains_key(node.arg(0).unwrap_or_default()) => {
                self.moved(&node)
            }
            _ => form(&node).and_then(|form| self.computed(&node, &form)),
        };
        if done.is_none() {
            self.push(node);
        }
    }

    /// Outputs of whole numbers are given as real ones.
    fn outputs(&mut self, graph: &mut GraphProto) {
        for output in &mut graph.output {
            let name = output.name.clone().unwrap_or_default();
            let Some(Scale { scale, zero }) = self.quantised.get(&name).cloned() else { continue };
            let whole = self.fresh(&name, "whole");
            for node in &mut self.nodes {
                for tensor in node.output.iter_mut().chain(&mut node.input) {
                    if *tensor == name {
                        tensor.clone_from(&whole);
                    }
                }
            }
            self.push(node_of("DequantizeLinear", &[&whole, &scale, &zero], &name));
            if let Some(TypeProto { value: Some(TypeValue::Tensor(t)), .. }) = &mut output.r#type {
                t.elem_type = Some(data_type::FLOAT);
            }
        }
    }
}

fn node_of(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    node(op, inputs, output, vec![])
}
