//! What is known about a graph's tensors for inputs of one shape.

use std::collections::{HashMap, HashSet};

use super::Graph;
use super::proto::{NodeProto, ValueInfoProto, data_type};
use super::write::{int, node, port};
use crate::error::Result;

/// Starts the names of tensors that only tell facts.
const PREFIX: &str = "fact:";

/// Runs a graph on some input of the agreed shape and hands back the named tensors, which
/// all hold real numbers.
pub type Run<'a> = &'a dyn Fn(&Graph, &[String]) -> Result<Vec<Vec<f32>>>;

/// Shapes and whole numbers.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    shapes: HashMap<String, Vec<usize>>,
    integers: HashMap<String, Vec<i64>>,
}

impl Facts {
    /// Runs the graph once, unless the file tells all, to see the shape of each of `touched`
    /// and what is in each of `numbers`; `shape` is that of the input.
    pub(super) fn learn<'a>(
        graph: &Graph,
        input: &str,
        shape: &[usize],
        touched: impl Iterator<Item = &'a str>,
        numbers: impl Iterator<Item = &'a str>,
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
        for name in touched.filter(|n| !n.is_empty()) {
            if !facts.shapes.contains_key(name) && asked.insert(name.to_string()) {
                let (dims, fact) =
                    (format!("{PREFIX}dims:{name}"), format!("{PREFIX}shape:{name}"));
                g.node.push(node("Shape", &[name], &dims, vec![]));
                g.node.push(cast(&dims, &fact));
                names.push((name.to_string(), true, fact));
            }
        }
        for name in numbers {
            let fact = format!("{PREFIX}value:{name}");
            if graph.integers(name).is_none() && asked.insert(fact.clone()) {
                g.node.push(cast(name, &fact));
                names.push((name.to_string(), false, fact));
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
        let asking = graph.derived(proto)?;
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

fn cast(input: &str, output: &str) -> NodeProto {
    node("Cast", &[input], output, vec![int("to", i64::from(data_type::FLOAT))])
}
