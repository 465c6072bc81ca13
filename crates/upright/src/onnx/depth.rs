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
    /// Numbers per position.
    pub(crate) width: usize,
}

/// How far from the wanted share a much narrower block is preferred: blocks that widen in their
/// middle say no more there, and pooled to the same length they lose their positions.
const NEAR: f64 = 0.08;

/// The block nearest to a share of the multiplications.
pub(crate) fn nearest(depths: &[Depth], share: f64) -> Option<&Depth> {
    let off = |d: &&Depth| (d.share - share).abs();
    let by_distance = |a: &&Depth, b: &&Depth| off(a).total_cmp(&off(b));
    let first = depths.iter().min_by(by_distance)?;
    let narrow = |d: &&Depth| off(d) <= NEAR && 2 * d.width <= first.width;
    Some(depths.iter().filter(narrow).min_by(by_distance).unwrap_or(first))
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
            let width = match facts.shape(&c.name)? {
                [_, channels, _, _] => *channels,
                [.., last] => *last,
                [] => 1,
            };
            Some(Depth { name: c.name.clone(), share, width })
        })
        .collect())
}

/// Multiplications of a node.
fn work(node: &NodeProto, facts: &Facts) -> Option<f64> {
    let count = |s: &[usize]| s.iter().map(|d| *d as f64).product::<f64>();
    let out = facts.shape(node.out());
    let depth = match node.op() {
        "Conv" => facts.shape(node.arg(1)?)?.get(1..)?.iter().product::<usize>(),
        "Gemm" => *facts.shape(node.arg(0)?)?.get(usize::from(node.int("transA", 0) == 0))?,
        "MatMul" => *facts.shape(node.arg(0)?)?.last()?,
        "LSTM" | "GRU" => {
            let (x, w) = (facts.shape(node.arg(0)?)?, facts.shape(node.arg(1)?)?);
            let (&[steps, items, _], &[directions, gates, inputs]) = (x, w) else { return None };
            let hidden = gates / if node.op() == "GRU" { 3 } else { 4 };
            return Some(count(&[steps, items, directions, gates]) * (inputs + hidden) as f64);
        }
        _ => return None,
    };
    Some(count(out?) * depth as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_much_narrower_block_nearby_is_preferred() {
        let depth = |name: &str, share, width| Depth { name: name.into(), share, width };
        let all = [
            depth("far", 0.7, 16),
            depth("narrow", 0.85, 192),
            depth("wide", 0.9, 1152),
            depth("end", 0.99, 1280),
        ];
        assert_eq!(nearest(&all, 0.9).unwrap().name, "narrow");
        assert_eq!(nearest(&all, 0.99).unwrap().name, "end");
        assert_eq!(nearest(&all[2..], 0.9).unwrap().name, "wide");
        assert_eq!(nearest(&[], 0.9), None);
    }
}
