//! How deep in a network a tensor lies: the share of all multiplications that
//! come before it.

use super::facts::{Facts, Run};
use super::proto::NodeProto;
use super::{Dim, Graph};
use crate::error::Result;

/// A block of the network and how much of the work lies before its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Depth {
    /// The tensor that ends the block.
    pub(crate) name: String,
    /// Share of the multiplications, 0..1.
    pub(crate) share: f64,
}

/// The ends of blocks on the way to an output, in graph order; only those of maps or vectors
/// whose first dimension is the batch. `shape` is that of the input, with two items or more.
pub(crate) fn depths(
    graph: &Graph,
    output: &str,
    input: &str,
    shape: &[usize],
    run: Run<'_>,
) -> Result<Vec<Depth>> {
    let nodes = &graph.graph().node;
    let heavy =
        |node: &&NodeProto| matches!(node.op(), "Conv" | "Gemm" | "MatMul" | "LSTM" | "GRU");
    let candidates = graph.candidates(output);
    let names = candidates.iter().map(|c| c.name.as_str());
    let touched = nodes.iter().filter(heavy).flat_map(|n| [n.arg(0), n.arg(1), Some(n.out())]);
    let facts =
        Facts::learn(graph, input, shape, touched.flatten().chain(names), std::iter::empty(), run)?;
    let mut total = 0.0;
    let mut before = Vec::with_capacity(nodes.len());
    for node in nodes {
        total += work(node, &facts).unwrap_or(0.0);
        before.push(total);
    }
    let whole = |c: &&super::Candidate| {
        let batch = facts.shape(&c.name).is_some_and(|s| s.len() > 1 && s[0] == shape[0]);
        batch && !matches!(c.dims.as_deref(), Some([Dim::Fixed(n), ..]) if *n != shape[0])
    };
    Ok(candidates
        .iter()
        .filter(whole)
        .filter_map(|c| {
            let share = before[graph.position(&c.name)?] / total.max(1.0);
            Some(Depth { name: c.name.clone(), share })
        })
        .collect())
}

/// Multiplications of a node.
fn work(node: &NodeProto, facts: &Facts) -> Option<f64> {
    let count = |s: &[usize]| s.iter().product::<usize>() as f64;
    let out = facts.shape(node.out());
    let depth = match node.op() {
        "Conv" => facts.shape(node.arg(1)?)?[1..].iter().product::<usize>(),
        "Gemm" => *facts.shape(node.arg(0)?)?.get(usize::from(node.int("transA", 0) == 0))?,
        "MatMul" => *facts.shape(node.arg(0)?)?.last()?,
        "LSTM" | "GRU" => {
            let (x, w) = (facts.shape(node.arg(0)?)?, facts.shape(node.arg(1)?)?);
            let hidden = w[1] / if node.op() == "GRU" { 3 } else { 4 };
            return Some((x[0] * x[1] * w[0] * w[1] * (w[2] + hidden)) as f64);
        }
        _ => return None,
    };
    Some(count(out?) * depth as f64)
}
