//! Inputs that are quantised on the way, in steps of their own: they stay as
//! they are, and so do sums of their products with weights.

use std::collections::HashSet;

use super::Rewrite;
use crate::onnx::constant::{Constant, dequantised, stored_value};
use crate::onnx::graph::reads;
use crate::onnx::proto::{GraphProto, NodeProto, data_type};
use crate::onnx::write::{self, int};

impl Rewrite {
    /// Inputs that would be quantised in steps of their own stay as they are, in steps of 1.
    pub(super) fn leave_real(&mut self, node: &NodeProto) -> Option<()> {
        if !self.rounds_nothing {
            return None;
        }
        let x = node.arg(0)?.to_string();
        let [whole, scale, zero] = [0, 1, 2].map(|i| node.output.get(i).cloned());
        self.unrounded.insert(whole?, x);
        self.store(scale?, data_type::FLOAT, &[], 1.0f32.to_le_bytes().into());
        self.store(zero?, data_type::UINT8, &[], vec![0]);
        Some(())
    }

    /// Sums of products of whole numbers, in real ones.
    pub(super) fn whole_sums(&mut self, node: &NodeProto) -> Option<()> {
        let (x, w) = (self.factor(node, 0, 2)?, self.factor(node, 1, 3)?);
        let sum = self.fresh(node.out(), "sum");
        self.unrounded.insert(node.out().into(), sum.clone());
        let op = node.op().trim_end_matches("Integer");
        self.push(NodeProto {
            op_type: Some(op.into()),
            input: vec![x, w],
            output: vec![sum.clone()],
            ..node.clone()
        });
        let to = vec![int("to", i64::from(data_type::INT32))];
        self.push(write::node("Cast", &[&sum], node.out(), to));
        Some(())
    }

    /// A factor of products of whole numbers: as it is unrounded, or a weight less its zero
    /// point.
    fn factor(&mut self, node: &NodeProto, at: usize, zero: usize) -> Option<String> {
        let x = node.arg(at)?;
        if let Some(real) = self.unrounded.get(x) {
            return Some(real.clone());
        }
        let zero = match node.arg(zero) {
            Some(name) => Some(self.known.get(name)?),
            None => None,
        };
        let axis = if node.op() == "ConvInteger" { 0 } else { -1 };
        let value = dequantised(self.known.get(x)?, &[1.0], zero, axis)?;
        let name = self.fresh(x, "real");
        Some(self.store_real(name, &value))
    }

    /// Whole sums that are made real were real.
    pub(super) fn cast(&mut self, node: &NodeProto) -> Option<()> {
        if node.int("to", 0) != i64::from(data_type::FLOAT) {
            return None;
        }
        let real = self.unrounded.get(node.arg(0)?)?.clone();
        self.push(write::node("Identity", &[&real], node.out(), vec![]));
        Some(())
    }

    /// The product of two stored scales is stored.
    pub(super) fn joined_scales(&mut self, node: &NodeProto) -> Option<()> {
        let (a, b) = (self.constant(node.arg(0)?)?, self.constant(node.arg(1)?)?);
        let (one, many) = if a.data.len() == 1 { (a, b) } else { (b, a) };
        let &[by] = one.data.as_slice() else { return None };
        let data = many.data.iter().map(|v| v * by).collect();
        self.store_real(node.out().into(), &Constant { shape: many.shape, data });
        Some(())
    }
}

/// Whether all that is quantised on the way goes into sums of products, with weights or with each
/// other.
pub(super) fn only_summed(graph: &GraphProto) -> bool {
    let dynamic: HashSet<&str> = graph
        .node
        .iter()
        .filter(|n| n.op() == "DynamicQuantizeLinear")
        .map(NodeProto::out)
        .collect();
    let stored = |name: &str| {
        graph.initializer.iter().any(|t| t.name.as_deref() == Some(name))
            || graph.node.iter().any(|n| n.out() == name && stored_value(n).is_some())
    };
    let sums = |n: &NodeProto| {
        matches!(n.op(), "ConvInteger" | "MatMulInteger")
            && [0, 1].iter().all(|&i| n.arg(i).is_some_and(|x| dynamic.contains(x) || stored(x)))
            && n.arg(3).is_none_or(|zero| stored(zero) || dynamic.contains(n.arg(1).unwrap_or("")))
    };
    let given = graph.output.iter().filter_map(|v| v.name.as_deref());
    given.into_iter().all(|name| !dynamic.contains(name))
        && graph.node.iter().all(|n| sums(n) || !reads(n).iter().any(|x| dynamic.contains(x)))
}
