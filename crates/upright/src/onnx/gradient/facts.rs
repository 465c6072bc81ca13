//! What is known about a graph's tensors for inputs of one shape.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use prost::Message;

use super::rules::rule;
use super::{Run, port};
use crate::error::Result;
use crate::onnx::Graph;
use crate::onnx::proto::{NodeProto, ValueInfoProto, data_type};

/// Starts the names of tensors that only tell facts.
const PREFIX: &str = "fact:";

/// Shapes and whole numbers.
#[derive(Debug, Default)]
pub(super) struct Facts {
    shapes: HashMap<String, Vec<usize>>,
    integers: HashMap<String, Vec<i64>>,
}

impl Facts {
    /// Runs the graph once, to see the shape of every tensor that the nodes touch and the
    /// whole numbers that their rules need.
    pub(super) fn learn(
        graph: &Graph,
        input: &str,
        shape: &[usize],
        nodes: &[Cow<'_, NodeProto>],
        seeds: &[String],
        run: Run<'_>,
    ) -> Result<Facts> {
        let mut facts = Facts::default();
        facts.shapes.insert(input.into(), shape.to_vec());
        let mut proto = graph.model().clone();
        let Some(g) = proto.graph.as_mut() else { return Ok(facts) };
        for t in &g.initializer {
            let dims = t.dims.iter().map(|d| *d as usize).collect();
            facts.shapes.insert(t.name.clone().unwrap_or_default(), dims);
        }
        let mut asked = HashSet::new();
        let mut names = Vec::new();
        let touched = nodes.iter().flat_map(|n| n.input.iter().chain(&n.output)).chain(seeds);
        for name in touched.filter(|n| !n.is_empty()) {
            if !facts.shapes.contains_key(name) && asked.insert(name.clone()) {
                let dims = format!("{PREFIX}dims:{name}");
                g.node.push(plain("Shape", name, &dims));
                g.node.push(cast(&dims, &format!("{PREFIX}shape:{name}")));
                names.push((name.clone(), true, format!("{PREFIX}shape:{name}")));
            }
        }
        for node in nodes {
            let positions = rule(node).map_or(&[][..], |r| r.integers);
            for name in positions.iter().filter_map(|&i| node.arg(i)) {
                let fact = format!("{PREFIX}value:{name}");
                if graph.integers(name).is_none() && asked.insert(fact.clone()) {
                    g.node.push(cast(name, &fact));
                    names.push((name.to_string(), false, fact));
                }
            }
        }
        if names.is_empty() {
            return Ok(facts);
        }
        let wanted: Vec<String> = names.iter().map(|(_, _, fact)| fact.clone()).collect();
        g.input.retain(|v| v.name.as_deref() != Some(input));
        g.input.insert(0, port(input, Some(shape)));
        let bare = |n: &String| ValueInfoProto { name: Some(n.clone()), ..Default::default() };
        g.output = wanted.iter().map(bare).collect();
        g.value_info.clear();
        let asking = Graph::from_bytes(graph.name(), &proto.encode_to_vec())?;
        for ((name, is_shape, _), value) in names.into_iter().zip(run(&asking, &wanted)?) {
            if is_shape {
                facts.shapes.insert(name, value.iter().map(|v| *v as usize).collect());
            } else {
                facts.integers.insert(name, value.iter().map(|v| *v as i64).collect());
            }
        }
        Ok(facts)
    }

    pub(super) fn shape(&self, tensor: &str) -> Option<&[usize]> {
        self.shapes.get(tensor).map(Vec::as_slice)
    }

    pub(super) fn integers(&self, tensor: &str) -> Option<Vec<i64>> {
        self.integers.get(tensor).cloned()
    }
}

fn plain(op: &str, input: &str, output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(op.into()),
        name: Some(output.into()),
        input: vec![input.into()],
        output: vec![output.into()],
        ..Default::default()
    }
}

fn cast(input: &str, output: &str) -> NodeProto {
    let mut node = plain("Cast", input, output);
    node.attribute.push(super::builder::int("to", i64::from(data_type::FLOAT)));
    node
}
