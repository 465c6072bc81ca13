//! Tensors worth tapping: where a block of the network ends.

use std::collections::{HashMap, HashSet};

use crate::onnx::graph::{Dim, Graph};
use crate::onnx::proto::NodeProto;

/// A tensor worth tapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The tensor.
    pub name: String,
    /// The operator that makes it; `Gelu` and `Silu` also when the graph spells them out.
    pub op: String,
    /// Its dimensions, if the file declares them.
    pub dims: Option<Vec<Dim>>,
    /// Whether the last linear layer reads it: what `auto` taps.
    pub head: bool,
}

impl Graph {
    /// The tensors on the way from the input to an output that end a block: activations,
    /// pools, flattenings, sums of two branches, layer norms, and what the last linear
    /// layer reads. In graph order.
    pub fn candidates(&self, output: &str) -> Vec<Candidate> {
        let ending = self.ending(output);
        let before = self.ancestors(&ending.logits);
        let live = self.live();
        let readers = self.readers();
        let nodes = &self.graph().node;
        let mut spelt: HashMap<&str, &str> = HashMap::new();
        for node in nodes {
            if node.op() == "Erf"
                && let Some(end) = self.gelu_end(node, &readers)
            {
                spelt.insert(end, "Gelu");
            }
        }
        let mut found = Vec::new();
        for (i, node) in nodes.iter().enumerate() {
            let name = node.out();
            if !before.contains(&i) || !live.contains(name) || name == ending.logits {
                continue;
            }
            let head = ending.features.iter().any(|f| f == name);
            let op = match spelt.get(name) {
                Some(op) => op,
                None if self.is_silu(node) => "Silu",
                None if head || ends_block(node.op()) => node.op(),
                None if node.op() == "Add"
                    && node.input.iter().all(|i| live.contains(i.as_str())) =>
                {
                    "Add"
                }
                None => continue,
            };
            found.push(Candidate { name: name.into(), op: op.into(), dims: self.dims(name), head });
        }
        found
    }

    /// Tensors that depend on what is fed.
    fn live(&self) -> HashSet<&str> {
        let graph = self.graph();
        let weights: HashSet<&str> = self.initializers().into_iter().collect();
        let inputs = graph.input.iter().filter_map(|v| v.name.as_deref());
        let mut live: HashSet<&str> = inputs.filter(|n| !weights.contains(n)).collect();
        for node in &graph.node {
            if node.op() != "Shape" && node.input.iter().any(|i| live.contains(i.as_str())) {
                live.extend(node.output.iter().map(String::as_str));
            }
        }
        live
    }

    fn readers(&self) -> HashMap<&str, Vec<&NodeProto>> {
        let mut readers: HashMap<&str, Vec<&NodeProto>> = HashMap::new();
        for node in &self.graph().node {
            for input in &node.input {
                readers.entry(input).or_default().push(node);
            }
        }
        readers
    }

    /// The last tensor of `x/2 (1 + erf(..))` in whatever order its products are written.
    fn gelu_end<'a>(
        &'a self,
        erf: &'a NodeProto,
        readers: &HashMap<&'a str, Vec<&'a NodeProto>>,
    ) -> Option<&'a str> {
        let only = |tensor: &str| match readers.get(tensor).map(Vec::as_slice) {
            Some([one]) => Some(*one),
            _ => None,
        };
        let plus = only(erf.out()).filter(|n| n.op() == "Add")?;
        let mut end = only(plus.out()).filter(|n| n.op() == "Mul")?;
        if let Some(next) = only(end.out()).filter(|n| n.op() == "Mul")
            && next.input.iter().any(|i| self.constant(i).is_some_and(|c| c.data.len() == 1))
        {
            end = next;
        }
        Some(end.out())
    }

    /// Whether a node is `x sigmoid(x)`, or the same with a hard sigmoid.
    fn is_silu(&self, node: &NodeProto) -> bool {
        let gate = |x: &str, y: &str| {
            self.node(y)
                .is_some_and(|n| matches!(n.op(), "Sigmoid" | "HardSigmoid") && n.arg(0) == Some(x))
        };
        match node.input.as_slice() {
            [a, b] if node.op() == "Mul" => gate(a, b) || gate(b, a),
            _ => false,
        }
    }
}

fn ends_block(op: &str) -> bool {
    matches!(
        op,
        "Relu"
            | "LeakyRelu"
            | "PRelu"
            | "ThresholdedRelu"
            | "Elu"
            | "Celu"
            | "Selu"
            | "Gelu"
            | "Swish"
            | "Mish"
            | "HardSwish"
            | "Clip"
            | "Tanh"
            | "Softplus"
            | "Softsign"
            | "MaxPool"
            | "AveragePool"
            | "LpPool"
            | "GlobalAveragePool"
            | "GlobalMaxPool"
            | "GlobalLpPool"
            | "ReduceMean"
            | "ReduceMax"
            | "Flatten"
            | "LayerNormalization"
            | "RMSNormalization"
            | "GroupNormalization"
            | "SimplifiedLayerNormalization"
            | "SkipLayerNormalization"
    )
}
