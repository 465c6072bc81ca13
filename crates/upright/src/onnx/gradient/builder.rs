//! What rules write with: gradient nodes, constants and shapes.

use std::collections::{HashMap, HashSet};

use crate::onnx::facts::Facts;
use crate::onnx::products::Product;
use crate::onnx::proto::{AttributeProto, NodeProto, TensorProto, data_type};
use crate::onnx::write::{bytes, int, ints, node, stored, unused};
use crate::onnx::{Constant, Graph};

/// Starts the names of everything a gradient adds.
const PREFIX: &str = "d:";

/// One node to be differentiated.
pub(super) struct Step<'a> {
    pub(super) node: &'a NodeProto,
    d: Vec<Option<String>>,
}

impl<'a> Step<'a> {
    pub(super) fn new(node: &'a NodeProto, d: Vec<Option<String>>) -> Self {
        Step { node, d }
    }

    /// Whether an output after the first has a derivative.
    pub(super) fn several(&self) -> bool {
        self.d.iter().skip(1).any(Option::is_some)
    }

    /// The derivative with respect to the first output.
    pub(super) fn d(&self) -> Result<&str, String> {
        self.outputs().first().and_then(|d| d.as_deref()).ok_or_else(|| "without output".into())
    }

    /// The derivative with respect to each output.
    pub(super) fn outputs(&self) -> &[Option<String>] {
        &self.d
    }

    /// Input `i`.
    pub(super) fn input(&self, i: usize) -> Result<&'a str, String> {
        self.node.arg(i).ok_or_else(|| format!("without input {i}"))
    }
}

/// Writes the nodes of a gradient.
pub(super) struct Builder<'a> {
    graph: &'a Graph,
    facts: &'a Facts,
    active: HashSet<String>,
    prefix: String,
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
    known: HashMap<String, String>,
    given: HashMap<String, Vec<String>>,
    count: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(graph: &'a Graph, facts: &'a Facts, active: HashSet<String>) -> Self {
        Builder {
            graph,
            facts,
            active,
            prefix: unused(graph, PREFIX),
            nodes: Vec::new(),
            weights: Vec::new(),
            known: HashMap::new(),
            given: HashMap::new(),
            count: 0,
        }
    }

    /// The nodes in order, their constants, and the tensors that derivatives were for.
    pub(super) fn finish(self) -> (Vec<NodeProto>, Vec<TensorProto>, HashSet<String>) {
        (self.nodes, self.weights, self.active)
    }

    /// Version of the standard operator set.
    pub(super) fn opset(&self) -> i64 {
        self.graph.opset()
    }

    /// The name of the derivative with respect to a tensor.
    pub(super) fn named(&self, tensor: &str) -> String {
        format!("{}{tensor}", self.prefix)
    }

    /// Whether a derivative with respect to a tensor is of use.
    pub(super) fn wants(&self, tensor: &str) -> bool {
        self.active.contains(tensor)
    }

    /// Adds to the derivative with respect to a tensor.
    pub(super) fn give(&mut self, tensor: &str, d: String) {
        self.given.entry(tensor.into()).or_default().push(d);
    }

    /// The sum of what was given for a tensor.
    pub(super) fn total(&mut self, tensor: &str) -> Option<String> {
        let mut parts = self.given.remove(tensor)?.into_iter();
        let first = parts.next()?;
        Some(parts.fold(first, |sum, d| self.op("Add", &[&sum, &d])))
    }

    /// The dimensions of a tensor of the model.
    pub(super) fn shape(&self, tensor: &str) -> Result<Vec<usize>, String> {
        let shape = self.facts.shape(tensor);
        shape.map(<[usize]>::to_vec).ok_or_else(|| format!("size of `{tensor}` is unknown"))
    }

    /// The whole numbers of a tensor of the model.
    pub(super) fn integers(&self, tensor: &str) -> Result<Vec<i64>, String> {
        let numbers = self.graph.integers(tensor).or_else(|| self.facts.integers(tensor));
        numbers.ok_or_else(|| format!("`{tensor}` is computed"))
    }

    /// A constant of the model in its own shape.
    pub(super) fn constant(&self, tensor: &str) -> Option<Constant> {
        let value = self.graph.constant(tensor)?;
        (Some(value.shape.as_slice()) == self.facts.shape(tensor)).then_some(value)
    }

    /// Writes a node and returns its output.
    pub(super) fn op(&mut self, op: &str, inputs: &[&str]) -> String {
        self.op_with(op, inputs, vec![])
    }

    /// Writes a node with attributes and returns its output.
    pub(super) fn op_with(
        &mut self,
        op: &str,
        inputs: &[&str],
        attribute: Vec<AttributeProto>,
    ) -> String {
        let output = self.fresh();
        self.nodes.push(node(op, inputs, &output, attribute));
        output
    }

    /// Writes a convolution as a product and returns its output.
    pub(super) fn product(&mut self, product: &Product, d: &str) -> String {
        let output = self.fresh();
        let (nodes, weights) = product.write(d, None, &output, &format!("{output}:"));
        self.nodes.extend(nodes);
        self.weights.extend(weights);
        output
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("{}:{}", self.prefix, self.count)
    }

    pub(super) fn add(&mut self, a: &str, b: &str) -> String {
        self.op("Add", &[a, b])
    }

    pub(super) fn sub(&mut self, a: &str, b: &str) -> String {
        self.op("Sub", &[a, b])
    }

    pub(super) fn mul(&mut self, a: &str, b: &str) -> String {
        self.op("Mul", &[a, b])
    }

    pub(super) fn div(&mut self, a: &str, b: &str) -> String {
        self.op("Div", &[a, b])
    }

    /// A tensor times a number.
    pub(super) fn scaled(&mut self, a: &str, by: f32) -> String {
        let by = self.scalar(by);
        self.mul(a, &by)
    }

    /// One number.
    pub(super) fn scalar(&mut self, v: f32) -> String {
        self.floats(&[], &[v])
    }

    /// Constants, each stored once.
    pub(super) fn floats(&mut self, shape: &[usize], data: &[f32]) -> String {
        self.stored(data_type::FLOAT, shape, bytes(data, f32::to_le_bytes))
    }

    /// Constant whole numbers.
    pub(super) fn ints(&mut self, v: &[i64]) -> String {
        self.stored(data_type::INT64, &[v.len()], bytes(v, i64::to_le_bytes))
    }

    fn stored(&mut self, code: i32, shape: &[usize], raw: Vec<u8>) -> String {
        let key = format!("{code} {shape:?} {}", blake3::hash(&raw).to_hex());
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let name = self.fresh();
        self.known.insert(key, name.clone());
        self.weights.push(stored(&name, code, shape, raw));
        name
    }

    /// Zeros of a shape.
    pub(super) fn zeros(&mut self, shape: &[usize]) -> String {
        let zero = self.scalar(0.0);
        self.expand(&zero, shape)
    }

    pub(super) fn expand(&mut self, d: &str, shape: &[usize]) -> String {
        let to = self.dims(shape);
        self.op("Expand", &[d, &to])
    }

    pub(super) fn reshape(&mut self, d: &str, shape: &[usize]) -> String {
        let to = self.dims(shape);
        self.op("Reshape", &[d, &to])
    }

    fn dims(&mut self, shape: &[usize]) -> String {
        self.ints(&shape.iter().map(|d| *d as i64).collect::<Vec<_>>())
    }

    pub(super) fn transpose(&mut self, d: &str, perm: &[usize]) -> String {
        self.op_with("Transpose", &[d], vec![ints("perm", perm.iter().map(|p| *p as i64))])
    }

    /// Sums over axes, which stay with size 1.
    pub(super) fn sum(&mut self, d: &str, axes: &[usize]) -> String {
        self.reduced("ReduceSum", 13, d, axes)
    }

    /// Means over axes, which stay with size 1.
    pub(super) fn mean(&mut self, d: &str, axes: &[usize]) -> String {
        self.reduced("ReduceMean", 18, d, axes)
    }

    /// From version `since` on, a reduction takes its axes as an input.
    fn reduced(&mut self, op: &str, since: i64, d: &str, axes: &[usize]) -> String {
        let axes: Vec<i64> = axes.iter().map(|a| *a as i64).collect();
        if self.opset() >= since {
            let axes = self.ints(&axes);
            return self.op_with(op, &[d, &axes], vec![int("keepdims", 1)]);
        }
        self.op_with(op, &[d], vec![int("keepdims", 1), ints("axes", axes)])
    }

    /// Sums a derivative over the dimensions along which an operand was spread.
    pub(super) fn unspread(&mut self, d: String, from: &[usize], to: &[usize]) -> String {
        if from == to {
            return d;
        }
        let extra = from.len().saturating_sub(to.len());
        let spread = |&i: &usize| i < extra || (to[i - extra] == 1 && from[i] != 1);
        let axes: Vec<usize> = (0..from.len()).filter(spread).collect();
        let d = if axes.is_empty() { d } else { self.sum(&d, &axes) };
        if extra == 0 { d } else { self.reshape(&d, to) }
    }

    /// Part of a tensor along one axis.
    pub(super) fn cut(&mut self, d: &str, axis: usize, start: i64, end: i64, step: i64) -> String {
        let [start, end, axis, step] = [start, end, axis as i64, step].map(|v| self.ints(&[v]));
        self.op("Slice", &[d, &start, &end, &axis, &step])
    }

    /// Pads with a number; negative amounts cut.
    pub(super) fn padded(&mut self, d: &str, before: &[i64], after: &[i64], value: f32) -> String {
        let pads = self.ints(&[before, after].concat());
        let value = self.scalar(value);
        self.op("Pad", &[d, &pads, &value])
    }

    /// Puts slice `i` of a tensor along an axis at position `at[i]` of `size`, adding up what
    /// meets; the rest is zero.
    pub(super) fn place(
        &mut self,
        d: &str,
        shape: &[usize],
        axis: usize,
        at: &[usize],
        size: usize,
    ) -> String {
        let rank = shape.len();
        if at.windows(2).all(|w| w[1] == w[0] + 1) && !at.is_empty() {
            if at.len() == size {
                return d.into();
            }
            let (mut before, mut after) = (vec![0; rank], vec![0; rank]);
            before[axis] = at[0] as i64;
            after[axis] = (size - at[0] - at.len()) as i64;
            return self.padded(d, &before, &after, 0.0);
        }
        let mut choice = vec![0.0; at.len() * size];
        for (i, &to) in at.iter().enumerate() {
            choice[i * size + to] = 1.0;
        }
        let choice = self.floats(&[at.len(), size], &choice);
        if axis + 1 == rank {
            return self.op("MatMul", &[d, &choice]);
        }
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(axis, rank - 1);
        let last = self.transpose(d, &perm);
        let placed = self.op("MatMul", &[&last, &choice]);
        self.transpose(&placed, &perm)
    }

    /// `d` where a tensor equals another, else 0.
    pub(super) fn where_equal(&mut self, a: &str, b: &str, d: &str) -> String {
        let same = self.op("Equal", &[a, b]);
        let zero = self.scalar(0.0);
        self.op("Where", &[&same, d, &zero])
    }
}

/// An axis that may count from the end.
pub(super) fn axis(at: i64, rank: usize) -> Result<usize, String> {
    let at = if at < 0 { at + rank as i64 } else { at };
    usize::try_from(at).ok().filter(|a| *a < rank).ok_or_else(|| format!("axis {at} of {rank}"))
}
