//! Chains of nodes that are differentiated as one.
//!
//! Exporters write `gelu(x) = x (1 + erf(x / sqrt 2)) / 2` as five nodes. As
//! one node it needs nothing but `x` for its gradient, so that the way there
//! keeps one tensor instead of three and engines can still fuse the chain.

use std::borrow::Cow;
use std::collections::HashMap;
use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

use crate::onnx::Graph;
use crate::onnx::proto::NodeProto;

/// The nodes, with every chain that is a Gelu written as that one operator. Tensors that
/// others read too, or that are ends, are left alone.
pub(super) fn gelus<'a>(
    graph: &Graph,
    nodes: &[&'a NodeProto],
    ends: &[String],
) -> Vec<Cow<'a, NodeProto>> {
    let mut uses: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for input in super::reads(node) {
            uses.entry(input).or_default().push(i);
        }
    }
    let chains = Chains { graph, nodes, uses, ends };
    let mut whole: HashMap<usize, NodeProto> = HashMap::new();
    let mut inner: Vec<usize> = Vec::new();
    for chain in (0..nodes.len()).filter_map(|erf| chains.gelu(erf)) {
        let last = nodes[chain.last];
        let gelu = NodeProto {
            op_type: Some("Gelu".into()),
            name: last.name.clone(),
            input: vec![chain.x],
            output: vec![last.out().into()],
            ..Default::default()
        };
        whole.insert(chain.last, gelu);
        inner.extend(chain.inner);
    }
    let fused = |(i, node): (usize, &'a NodeProto)| match whole.remove(&i) {
        Some(gelu) => Some(Cow::Owned(gelu)),
        None => (!inner.contains(&i)).then_some(Cow::Borrowed(node)),
    };
    nodes.iter().copied().enumerate().filter_map(fused).collect()
}

struct Chain {
    x: String,
    inner: Vec<usize>,
    last: usize,
}

struct Chains<'a, 'b> {
    graph: &'b Graph,
    nodes: &'b [&'a NodeProto],
    uses: HashMap<&'a str, Vec<usize>>,
    ends: &'b [String],
}

impl Chains<'_, '_> {
    /// The chain around node `erf`.
    fn gelu(&self, erf: usize) -> Option<Chain> {
        let u = self.nodes[erf].arg(0).filter(|_| self.nodes[erf].op() == "Erf")?;
        let first = self.maker(u)?;
        let x = match self.nodes[first].op() {
            "Div" => self.times(first, SQRT_2).filter(|x| self.nodes[first].arg(0) == Some(x))?,
            "Mul" => self.times(first, FRAC_1_SQRT_2)?,
            _ => return None,
        };
        let raised = self.after(erf, "Add")?;
        self.times(raised, 1.0)?;
        let product = self.after(raised, "Mul")?;
        let other = self.beside(product, self.nodes[raised].out())?;
        let mut inner = vec![first, erf, raised];
        let last = if other == x {
            inner.push(product);
            let last = self.after(product, "Mul")?;
            self.times(last, 0.5)?;
            last
        } else {
            let half = self.maker(other).filter(|&i| self.nodes[i].op() == "Mul")?;
            self.times(half, 0.5).filter(|h| *h == x)?;
            inner.push(half);
            product
        };
        self.alone(first)?;
        inner.iter().all(|&i| self.alone(i).is_some()).then(|| Chain { x: x.into(), inner, last })
    }

    /// The node that makes a tensor.
    fn maker(&self, tensor: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.out() == tensor)
    }

    /// The only reader of a node's output, if it is that operator.
    fn after(&self, node: usize, op: &str) -> Option<usize> {
        self.alone(node).filter(|&next| self.nodes[next].op() == op)
    }

    /// The only reader of a node's output.
    fn alone(&self, node: usize) -> Option<usize> {
        let out = self.nodes[node].out();
        match self.uses.get(out)?.as_slice() {
            [one] if !self.ends.iter().any(|s| s == out) => Some(*one),
            _ => None,
        }
    }

    /// The other input of a node of two inputs.
    fn beside(&self, node: usize, input: &str) -> Option<&str> {
        match self.nodes[node].input.as_slice() {
            [a, b] if a == input => Some(b),
            [a, b] if b == input => Some(a),
            _ => None,
        }
    }

    /// The input of a node beside a single number of that value.
    fn times(&self, node: usize, value: f32) -> Option<&str> {
        let is = |name: &String| {
            let constant = self.graph.constant(name).filter(|c| c.data.len() == 1);
            constant.is_some_and(|c| (c.data[0] - value).abs() < 1e-5)
        };
        let [a, b] = self.nodes[node].input.as_slice() else { return None };
        if is(b) {
            Some(a)
        } else if is(a) {
            Some(b)
        } else {
            None
        }
    }
}
