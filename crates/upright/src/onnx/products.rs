//! Convolutions over few positions as matrix products.
//!
//! Engines slide a kernel over one item after the other and read all of its
//! weights each time, which over 3 x 3 positions takes longer than what is done
//! with them, and fills less than a third of a processor's vectors. One product of
//! the patches of a whole batch with the weights reads them once.

use std::collections::HashSet;

use super::facts::{Facts, Run};
use super::graph::reads;
use super::proto::{NodeProto, TensorProto, data_type};
use super::window::Window;
use super::write::{bytes, int, ints, node, stored, unused};
use super::{Constant, Graph};
use crate::error::Result;

/// Most positions that are few: beyond 4 x 4, products gain nothing on either engine.
const FEW: usize = 16;

/// Kernels with fewer weights are read fast enough.
const LARGE: usize = 1 << 12;

/// The first version of the standard operator set that has all that is written here.
const OPSET: i64 = 11;

/// A convolution as a product of patches with weights.
#[derive(Debug)]
pub(super) struct Product {
    /// For each position and each place of the kernel the cell that it sees; the one behind
    /// the last stands for all outside.
    cells: Vec<i64>,
    outside: bool,
    /// Kernel places by input channels in rows, output channels in columns.
    weight: Constant,
    channels: usize,
    /// Spatial sizes of the result.
    to: Vec<usize>,
}

impl Product {
    /// A convolution of items of spatial sizes `from` to ones of sizes `to`, if it is better
    /// as a product.
    pub(super) fn of(
        weight: &Constant,
        groups: usize,
        window: &Window,
        from: &[usize],
        to: &[usize],
    ) -> Option<Self> {
        let rank = window.kernel.len();
        let places: usize = window.kernel.iter().product();
        let positions: usize = to.iter().product();
        let fits = weight.shape.len() == 2 + rank && weight.shape[2..] == window.kernel;
        let few = (1..=FEW).contains(&positions);
        if !fits || groups != 1 || places == 1 || !few || weight.data.len() < LARGE {
            return None;
        }
        let (outer, inner) = (weight.shape[0], weight.shape[1]);
        let count: usize = from.iter().product();
        let mut cells = Vec::with_capacity(positions * places);
        for position in 0..positions {
            for place in 0..places {
                let seen = window.cell(&at(position, to), &at(place, &window.kernel), from);
                cells.push(seen.unwrap_or(count) as i64);
            }
        }
        let perm: Vec<usize> = (2..2 + rank).chain([1, 0]).collect();
        let data = weight.transposed(&perm)?.data;
        Some(Product {
            outside: cells.contains(&(count as i64)),
            cells,
            weight: Constant { shape: vec![places * inner, outer], data },
            channels: inner,
            to: to.to_vec(),
        })
    }

    /// The nodes that make `output` out of `x`, and their constants, whose names begin with
    /// `prefix`.
    pub(super) fn write(
        &self,
        x: &str,
        bias: Option<&str>,
        output: &str,
        prefix: &str,
    ) -> (Vec<NodeProto>, Vec<TensorProto>) {
        let mut nodes = Vec::new();
        let mut constants = Vec::new();
        let name = |part: &str| format!("{prefix}{part}");
        let mut op = |op: &str, inputs: &[&str], part: &str, attributes| {
            let output = if part.is_empty() { output.to_string() } else { name(part) };
            nodes.push(node(op, inputs, &output, attributes));
            output
        };
        let mut whole = |part: &str, v: &[i64]| {
            let raw = bytes(v, i64::to_le_bytes);
            constants.push(stored(&name(part), data_type::INT64, &[v.len()], raw));
            name(part)
        };
        let turn = || vec![ints("perm", [0, 2, 1])];
        let [rows, outer] = [self.weight.shape[0], self.weight.shape[1]].map(|v| v as i64);
        let positions: usize = self.to.iter().product();
        let flat =
            op("Reshape", &[x, &whole("flat?", &[0, self.channels as i64, -1])], "flat", vec![]);
        let mut seen = op("Transpose", &[&flat], "cells", turn());
        if self.outside {
            let pads = whole("padded?", &[0, 0, 0, 0, 1, 0]);
            seen = op("Pad", &[&seen, &pads], "padded", vec![]);
        }
        let patches =
            op("Gather", &[&seen, &whole("seen?", &self.cells)], "seen", vec![int("axis", 1)]);
        let patches =
            op("Reshape", &[&patches, &whole("patches?", &[-1, rows])], "patches", vec![]);
        let weight = name("weight");
        let product = match bias {
            Some(bias) => op("Gemm", &[&patches, &weight, bias], "product", vec![]),
            None => op("Gemm", &[&patches, &weight], "product", vec![]),
        };
        let shape = whole("positions?", &[-1, positions as i64, outer]);
        let product = op("Reshape", &[&product, &shape], "positions", vec![]);
        let product = op("Transpose", &[&product], "channels", turn());
        let mut shape = vec![0, outer];
        shape.extend(self.to.iter().map(|d| *d as i64));
        op("Reshape", &[&product, &whole("shape?", &shape)], "", vec![]);
        let raw = bytes(&self.weight.data, f32::to_le_bytes);
        constants.push(stored(&weight, data_type::FLOAT, &self.weight.shape, raw));
        (nodes, constants)
    }
}

/// The coordinates of a cell, counted row by row.
fn at(mut cell: usize, sizes: &[usize]) -> Vec<usize> {
    let mut at = vec![0; sizes.len()];
    for (at, size) in at.iter_mut().zip(sizes).rev() {
        (*at, cell) = (cell % size, cell / size);
    }
    at
}

/// The sizes that decide what [`rewritten`] writes, for inputs of one shape. Runs the graph
/// once if it has large kernels.
pub(crate) fn learn(graph: &Graph, input: &str, shape: &[usize], run: Run<'_>) -> Result<Facts> {
    let large = graph.graph().node.iter().filter(|n| kernel(graph, n).is_some());
    let touched = large.flat_map(|n| n.input.iter().chain(&n.output));
    let touched: Vec<&str> = touched.map(String::as_str).collect();
    Facts::learn(graph, input, shape, touched.into_iter(), std::iter::empty(), run)
}

/// The large kernel of more than one place of a convolution of single-precision numbers.
fn kernel<'a>(graph: &'a Graph, node: &NodeProto) -> Option<&'a TensorProto> {
    let standard = matches!(node.domain.as_deref(), None | Some("" | "ai.onnx"));
    if node.op() != "Conv" || !standard || graph.opset() < OPSET {
        return None;
    }
    let t = graph.raw_initializer(node.arg(1)?)?;
    let size = |dims: &[i64]| dims.iter().fold(1i64, |a, d| a.saturating_mul(*d));
    let large = size(&t.dims) >= LARGE as i64 && size(t.dims.get(2..)?) > 1;
    (t.data_type == Some(data_type::FLOAT) && large).then_some(t)
}

/// The graph with every convolution that is better as a product written as one, under the
/// same names; `None` if there is none.
pub(crate) fn rewritten(graph: &Graph, facts: &Facts) -> Result<Option<Graph>> {
    let prefix = unused(graph, "product:");
    let mut nodes = Vec::with_capacity(graph.graph().node.len());
    let mut constants = Vec::new();
    let mut kernels = HashSet::new();
    for node in &graph.graph().node {
        let Some((product, x)) = product(graph, facts, node) else {
            nodes.push(node.clone());
            continue;
        };
        let prefix = format!("{prefix}{}:", node.out());
        let (new, weights) = product.write(x, node.arg(2), node.out(), &prefix);
        nodes.extend(new);
        constants.extend(weights);
        kernels.extend(node.arg(1));
    }
    if constants.is_empty() {
        return Ok(None);
    }
    let mut model = graph.model().clone();
    if let Some(g) = model.graph.as_mut() {
        g.node = nodes;
        let outputs = g.output.iter().filter_map(|v| v.name.as_deref());
        let read: HashSet<&str> = g.node.iter().flat_map(reads).chain(outputs).collect();
        let replaced = |name: Option<&str>| {
            name.is_some_and(|name| kernels.contains(name) && !read.contains(name))
        };
        g.initializer.retain(|t| !replaced(t.name.as_deref()));
        g.input.retain(|v| !replaced(v.name.as_deref()));
        g.initializer.extend(constants);
    }
    graph.derived(model).map(Some)
}

fn product<'a>(graph: &Graph, facts: &Facts, node: &'a NodeProto) -> Option<(Product, &'a str)> {
    let weight = Constant::read(kernel(graph, node)?)?;
    let x = node.arg(0)?;
    let (from, to) = (facts.shape(x)?.get(2..)?, facts.shape(node.out())?.get(2..)?);
    let window = Window::read(node, weight.shape.get(2..)?.to_vec(), from, to).ok()?;
    let groups = usize::try_from(node.int("group", 1)).ok()?;
    Some((Product::of(&weight, groups, &window, from, to)?, x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{self, Input};
    use crate::onnx::build::{graph, model, node as bare, value, weight};
    use crate::onnx::proto::AttributeProto;
    use crate::onnx::write::text;

    fn numbers(count: usize, salt: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 37 + salt * 11) % 97) as f32 * 0.027 - 1.283).collect()
    }

    /// Relu behind a convolution of two items with a kernel `w` and a bias, which also reads
    /// the kernel's weights elsewhere if they are `shared`.
    fn net(x: &[i64], w: &[i64], attributes: Vec<AttributeProto>, shared: bool) -> Graph {
        let outer = w[0];
        let kernel = numbers(w.iter().product::<i64>() as usize, 7);
        let mut conv = bare("Conv", &["x", "w", "b"], "c");
        conv.attribute = attributes;
        let mut nodes = vec![conv, bare("Relu", &["c"], "y")];
        if shared {
            nodes.push(bare("Neg", &["w"], "other"));
        }
        let weights =
            vec![weight("w", w, &kernel), weight("b", &[outer], &numbers(outer as usize, 2))];
        let mut m = model(x, nodes, weights);
        let g = m.graph.as_mut().unwrap();
        g.output = vec![value("y", &[])];
        g.output[0].r#type = None;
        graph(&m)
    }

    fn learnt(engine: &str, graph: &Graph, shape: &[usize]) -> Facts {
        let zeros = vec![0.0; shape.iter().product()];
        let run = |graph: &Graph, names: &[String]| {
            let all: Vec<usize> = (0..names.len()).collect();
            let fed = Input { name: "x", shape, data: &zeros };
            let values = engine::load(engine, graph, names, Some(1))?.run(&[fed], &all)?;
            Ok(values.into_iter().map(|v| v.data.into()).collect())
        };
        learn(graph, "x", shape, &run).unwrap()
    }

    /// The convolution's own numbers, for other batches than the one that sizes were learnt
    /// with, on every engine.
    fn check(what: &str, x: &[i64], w: &[i64], attributes: Vec<AttributeProto>) {
        let shape = |n: usize| -> Vec<usize> {
            [n].into_iter().chain(x[1..].iter().map(|d| *d as usize)).collect()
        };
        let plain = net(x, w, attributes, false);
        for engine in engine::tests::ready() {
            let fast = rewritten(&plain, &learnt(engine, &plain, &shape(1))).unwrap();
            let fast = fast.unwrap_or_else(|| panic!("{what}: not rewritten"));
            assert!(fast.operators().iter().all(|o| o.name != "Conv"), "{what}");
            assert!(!fast.initializers().contains(&"w"), "{what}: the old kernel is still there");
            for n in [1, 3] {
                let shape = shape(n);
                let data = numbers(shape.iter().product(), n);
                let tensors = ["y".to_string(), "c".to_string()];
                let [slow, fast] = [&plain, &fast].map(|graph| {
                    let fed = Input { name: "x", shape: &shape, data: &data };
                    let engine = engine::load(engine, graph, &tensors, Some(1)).unwrap();
                    engine.run(&[fed], &[0, 1]).unwrap()
                });
                for (slow, fast) in slow.iter().zip(&fast) {
                    assert_eq!(slow.shape, fast.shape, "{what} on {engine}");
                    for (a, b) in slow.data.iter().zip(fast.data.iter()) {
                        let close = (a - b).abs() <= 1e-4 * a.abs().max(1.0);
                        assert!(close, "{what} on {engine}: {b} is not {a}");
                    }
                }
            }
        }
    }

    #[test]
    fn products_give_what_convolutions_give() {
        let pads = |p: [i64; 4]| ints("pads", p);
        let kernel = |k: &[i64]| ints("kernel_shape", k.iter().copied());
        let three = || kernel(&[3, 3]);
        check("inside", &[0, 64, 5, 6], &[480, 64, 3, 3], vec![three()]);
        check("padded", &[0, 64, 3, 3], &[480, 64, 3, 3], vec![three(), pads([1, 1, 1, 1])]);
        let strided = vec![three(), pads([1, 0, 2, 1]), ints("strides", [2, 1])];
        check("strided", &[0, 64, 5, 4], &[480, 64, 3, 3], strided);
        let dilated = vec![kernel(&[2, 3]), ints("dilations", [3, 1]), pads([0, 1, 0, 1])];
        check("dilated", &[0, 64, 5, 4], &[700, 64, 2, 3], dilated);
        let same = vec![three(), text("auto_pad", "SAME_UPPER"), ints("strides", [2, 2])];
        check("same", &[0, 64, 6, 5], &[480, 64, 3, 3], same);
        check("in line", &[0, 128, 9], &[700, 128, 3], vec![kernel(&[3]), ints("pads", [1, 1])]);
    }

    #[test]
    fn a_kernel_read_elsewhere_stays() {
        let graph = net(&[0, 64, 3, 3], &[480, 64, 3, 3], vec![], true);
        let facts = learnt("rten", &graph, &[1, 64, 3, 3]);
        let fast = rewritten(&graph, &facts).unwrap().unwrap();
        assert!(fast.initializers().contains(&"w"));
    }

    #[test]
    fn convolutions_that_engines_run_well_are_left_alone() {
        for (x, w, attributes) in [
            ([0, 64, 7, 7], [480, 64, 3, 3], vec![]),
            ([0, 8, 3, 3], [8, 8, 3, 3], vec![]),
            ([0, 600, 3, 3], [480, 600, 1, 1], vec![]),
            ([0, 128, 3, 3], [480, 64, 3, 3], vec![int("group", 2)]),
        ] {
            let graph = net(&x, &w, attributes, false);
            let shape: Vec<usize> = x.iter().map(|d| (*d).max(1) as usize).collect();
            assert!(rewritten(&graph, &learnt("rten", &graph, &shape)).unwrap().is_none(), "{w:?}");
        }
    }
}
