//! How a classifier ends: which tensor holds the logits, and the linear layer
//! that makes them out of features.

use std::collections::HashSet;

use crate::onnx::constant::Constant;
use crate::onnx::graph::Graph;
use crate::onnx::proto::NodeProto;
use crate::outputs::Head;
use crate::tensor::Matrix;

/// Longest chain of nodes between the output and the logits.
const DEPTH: usize = 32;

/// Most nodes that are looked at for linear layers; sums branch.
const NODES: usize = 64;

/// The end of a classifier's graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// The tensor of logits: the output, or what its final softmax reads.
    pub logits: String,
    /// The operator that turns the logits into the output, if the model ends in one:
    /// `Softmax`, `LogSoftmax` or `Sigmoid`.
    pub activation: Option<String>,
    /// The tensors that the last linear layer reads; side by side they are its features.
    /// More than one if the logits are a sum of linear layers; empty if there is none.
    pub features: Vec<String>,
    /// The last linear layer, if the logits are exactly that layer of the features.
    pub head: Option<Head>,
    /// How far the logits may be off it by rounding: half a step of their quantisation.
    pub rounding: f32,
}

/// Logits as a sum of weights times tensors, plus a bias.
struct Linear {
    terms: Vec<(String, Matrix)>,
    bias: Vec<f32>,
}

impl Graph {
    /// Follows an output back to the last linear layer.
    pub fn ending(&self, output: &str) -> Ending {
        let (mut logits, mut at, mut activation) = (output, output, None);
        let mut rounding = 0.0;
        for _ in 0..DEPTH {
            let Some(node) = self.node(at) else { break };
            let Some(input) = node.arg(0) else { break };
            if node.op() == "QuantizeLinear" {
                let step = node.arg(1).and_then(|s| self.constant(s)?.data.first().copied());
                rounding += step.unwrap_or(0.0).abs() / 2.0;
            }
            match node.op() {
                "Softmax" | "LogSoftmax" | "Sigmoid" => {
                    activation = Some(node.op().to_string());
                    (logits, at) = (input, input);
                    rounding = 0.0;
                }
                op if passes(op) => at = input,
                _ => break,
            }
        }
        let linear = self.linear(at, &mut { NODES });
        let (features, head) = match linear {
            Some(l) => {
                let names = l.terms.iter().map(|(name, _)| name.clone()).collect();
                (names, join(&l))
            }
            None => (self.last_linear_input(at).into_iter().collect(), None),
        };
        Ending { logits: logits.into(), activation, features, head, rounding }
    }

    /// `left` counts the nodes that may still be looked at.
    fn linear(&self, tensor: &str, left: &mut usize) -> Option<Linear> {
        let node = self.node(tensor)?;
        *left = left.checked_sub(1)?;
        match node.op() {
            op if passes(op) => self.linear(node.arg(0)?, left),
            "Gemm" => self.gemm(node),
            "MatMul" => {
                let weight = transposed(&self.constant(node.arg(1)?)?)?;
                let bias = vec![0.0; weight.rows()];
                Some(Linear { terms: vec![(node.arg(0)?.into(), weight)], bias })
            }
            "Conv" => self.pointwise(node),
            "Add" | "Sub" | "Mul" | "Div" => self.affine(node, left),
            _ => None,
        }
    }

    fn gemm(&self, node: &NodeProto) -> Option<Linear> {
        if node.int("transA", 0) != 0 {
            return None;
        }
        let (alpha, beta) = (node.real("alpha", 1.0), node.real("beta", 1.0));
        let weight = self.constant(node.arg(1)?)?;
        let mut weight =
            if node.int("transB", 0) == 0 { transposed(&weight)? } else { matrix(weight)? };
        weight.data_mut().iter_mut().for_each(|w| *w *= alpha);
        let bias = match node.arg(2) {
            Some(name) => {
                let bias = spread(&self.constant(name)?, weight.rows())?;
                bias.into_iter().map(|b| b * beta).collect()
            }
            None => vec![0.0; weight.rows()],
        };
        Some(Linear { terms: vec![(node.arg(0)?.into(), weight)], bias })
    }

    /// A convolution with a kernel of size 1: a linear layer if its input has one position.
    fn pointwise(&self, node: &NodeProto) -> Option<Linear> {
        let plain = |name: &str| node.attr(name).is_none_or(|a| a.ints.iter().all(|p| *p == 0));
        if node.int("group", 1) != 1 || !plain("pads") {
            return None;
        }
        let weight = self.constant(node.arg(1)?)?;
        let (&[classes, width], kernel) = weight.shape.split_first_chunk::<2>()?;
        if kernel.iter().any(|k| *k != 1) {
            return None;
        }
        let weight = Matrix::new(classes, width, weight.data).ok()?;
        let bias = match node.arg(2) {
            Some(name) => spread(&self.constant(name)?, classes)?,
            None => vec![0.0; classes],
        };
        Some(Linear { terms: vec![(node.arg(0)?.into(), weight)], bias })
    }

    /// A linear layer plus, minus, times or over a constant, or the sum or difference of two.
    fn affine(&self, node: &NodeProto, left: &mut usize) -> Option<Linear> {
        let (a, b) = (node.arg(0)?, node.arg(1)?);
        let op = node.op();
        let (variable, constant) = match (self.constant(a), self.constant(b)) {
            (None, Some(c)) => (a, c),
            (Some(c), None) if op == "Add" || op == "Mul" => (b, c),
            (None, None) if op == "Add" || op == "Sub" => {
                let (mut x, y) = (self.linear(a, left)?, self.linear(b, left)?);
                let y = if op == "Sub" { scaled(y, &[-1.0])? } else { y };
                if x.bias.len() != y.bias.len() {
                    return None;
                }
                x.bias.iter_mut().zip(&y.bias).for_each(|(x, y)| *x += y);
                x.terms.extend(y.terms);
                return Some(x);
            }
            _ => return None,
        };
        let mut linear = self.linear(variable, left)?;
        let c = spread(&constant, linear.bias.len())?;
        match op {
            "Add" => linear.bias.iter_mut().zip(c).for_each(|(b, c)| *b += c),
            "Sub" => linear.bias.iter_mut().zip(c).for_each(|(b, c)| *b -= c),
            "Mul" => linear = scaled(linear, &c)?,
            _ => linear = scaled(linear, &c.iter().map(|c| 1.0 / c).collect::<Vec<_>>())?,
        }
        Some(linear)
    }

    /// What the last Gemm or `MatMul` with weights reads, on the way to a tensor.
    fn last_linear_input(&self, tensor: &str) -> Option<String> {
        let nodes = &self.graph().node;
        let before = self.ancestors(tensor);
        let mut at: Vec<usize> = before.into_iter().collect();
        at.sort_unstable();
        at.iter().rev().map(|i| &nodes[*i]).find_map(|node| {
            if !matches!(node.op(), "Gemm" | "MatMul") {
                return None;
            }
            let (a, b) = (node.arg(0)?, node.arg(1)?);
            match (self.constant(a), self.constant(b)) {
                (None, Some(_)) => Some(a.to_string()),
                (Some(_), None) => Some(b.to_string()),
                _ => None,
            }
        })
    }

    /// Positions of the nodes a tensor is made by.
    pub(super) fn ancestors(&self, tensor: &str) -> HashSet<usize> {
        let mut seen = HashSet::new();
        let mut open: Vec<usize> = self.position(tensor).into_iter().collect();
        while let Some(i) = open.pop() {
            if seen.insert(i) {
                let inputs = &self.graph().node[i].input;
                open.extend(inputs.iter().filter_map(|name| self.position(name)));
            }
        }
        seen
    }
}

/// Operators that hand on their first input's numbers in their order.
fn passes(op: &str) -> bool {
    matches!(
        op,
        "Identity"
            | "Cast"
            | "Reshape"
            | "Flatten"
            | "Squeeze"
            | "Unsqueeze"
            | "Dropout"
            | "QuantizeLinear"
            | "DequantizeLinear"
    )
}

fn matrix(c: Constant) -> Option<Matrix> {
    let &[rows, cols] = c.shape.as_slice() else { return None };
    Matrix::new(rows, cols, c.data).ok()
}

fn transposed(c: &Constant) -> Option<Matrix> {
    let &[rows, cols] = c.shape.as_slice() else { return None };
    let data = (0..rows * cols).map(|i| c.data[i % rows * cols + i / rows]).collect();
    Matrix::new(cols, rows, data).ok()
}

/// A constant as one number per class.
fn spread(c: &Constant, classes: usize) -> Option<Vec<f32>> {
    match c.data.as_slice() {
        [one] => Some(vec![*one; classes]),
        all if all.len() == classes && c.shape.last() == Some(&classes) => Some(all.to_vec()),
        _ => None,
    }
}

fn scaled(mut linear: Linear, by: &[f32]) -> Option<Linear> {
    let of = |i: usize| by.get(i).or(by.first()).copied();
    for (i, b) in linear.bias.iter_mut().enumerate() {
        *b *= of(i)?;
    }
    for (_, weight) in &mut linear.terms {
        for i in 0..weight.rows() {
            let by = of(i)?;
            weight.row_mut(i).iter_mut().for_each(|w| *w *= by);
        }
    }
    Some(linear)
}

/// The weights of all terms side by side.
fn join(linear: &Linear) -> Option<Head> {
    let classes = linear.bias.len();
    let width = linear.terms.iter().map(|(_, w)| w.cols()).sum();
    let mut data = Vec::with_capacity(classes * width);
    for i in 0..classes {
        for (_, weight) in &linear.terms {
            if weight.rows() != classes {
                return None;
            }
            data.extend_from_slice(weight.row(i));
        }
    }
    Head::new(Matrix::new(classes, width, data).ok()?, linear.bias.clone()).ok()
}
