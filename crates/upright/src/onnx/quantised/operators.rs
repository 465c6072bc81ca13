//! Operators on whole numbers: what each reads, and the operator on real ones
//! between a reading and a rounding that it becomes.

use super::{Rewrite, Scale, node_of};
use crate::onnx::constant::dequantised;
use crate::onnx::proto::{NodeProto, data_type};

/// What a quantised operator reads, by position: operands are a tensor, its scale and its zero
/// point each.
pub(super) struct Form {
    op: &'static str,
    operands: Vec<usize>,
    bias: Option<usize>,
    /// The result's scale and zero point.
    result: usize,
}

pub(super) fn form(node: &NodeProto) -> Option<Form> {
    if !matches!(node.domain.as_deref(), None | Some("" | "ai.onnx" | "com.microsoft")) {
        return None;
    }
    let one = |op| Some(Form { op, operands: vec![0], bias: None, result: 3 });
    let two = |op| Some(Form { op, operands: vec![0, 3], bias: None, result: 6 });
    match node.op() {
        "QLinearConv" => Some(Form { bias: Some(8), ..two("Conv")? }),
        "QGemm" => Some(Form { bias: Some(6), result: 7, ..two("Gemm")? }),
        "QLinearMatMul" => two("MatMul"),
        "QLinearAdd" => two("Add"),
        "QLinearMul" => two("Mul"),
        "QLinearSigmoid" => one("Sigmoid"),
        "QLinearLeakyRelu" => one("LeakyRelu"),
        "QLinearSoftmax" => one("Softmax"),
        "QLinearAveragePool" => one("AveragePool"),
        "QLinearGlobalAveragePool" => one("GlobalAveragePool"),
        "QLinearConcat" => {
            let operands = (2..node.input.len()).step_by(3).collect();
            Some(Form { op: "Concat", operands, bias: None, result: 0 })
        }
        _ => None,
    }
}

/// Operators that hand on numbers of their first input unchanged.
pub(super) fn moves(op: &str) -> bool {
    matches!(
        op,
        "MaxPool"
            | "Reshape"
            | "Flatten"
            | "Transpose"
            | "Squeeze"
            | "Unsqueeze"
            | "Identity"
            | "Slice"
            | "Split"
            | "Gather"
            | "Pad"
            | "Resize"
    )
}

impl Rewrite {
    /// An operator with a form.
    pub(super) fn computed(&mut self, node: &NodeProto, form: &Form) -> Option<()> {
        if node.int("channels_last", 0) != 0 {
            return None;
        }
        // Scales by channel: a kernel's lie along its first axis, a matrix's along its columns.
        let columns = if node.int("transB", 0) == 0 { -1 } else { 0 };
        let axis = if form.op == "Conv" { 0 } else { columns };
        let mut inputs = Vec::with_capacity(form.operands.len() + 1);
        for &at in &form.operands {
            inputs.push(self.operand(node, at, axis)?);
        }
        if let Some(bias) = form.bias.and_then(|at| node.arg(at)) {
            inputs.push(self.bias(node, bias)?);
        }
        let mut attribute = node.attribute.clone();
        attribute.retain(|a| !matches!(a.name.as_deref(), Some("channels_last" | "opset")));
        let real = NodeProto {
            op_type: Some(form.op.into()),
            domain: None,
            input: inputs,
            attribute,
            ..node.clone()
        };
        let Some(scale) = node.arg(form.result) else {
            self.push(real);
            return Some(());
        };
        let zero = self.zero(node, form)?;
        self.requantised(real, &Scale { scale: scale.into(), zero });
        Some(())
    }

    /// The result's zero point; where none is written, zero in the type of the first operand's.
    fn zero(&mut self, node: &NodeProto, form: &Form) -> Option<String> {
        if let Some(zero) = node.arg(form.result + 1) {
            return Some(zero.into());
        }
        let code = match node.arg(form.operands.first()? + 2) {
            Some(zero) => self.known.get(zero)?.data_type?,
            None => data_type::UINT8,
        };
        let name = self.fresh(node.out(), "zero");
        Some(self.store(name, code, &[], vec![0]))
    }

    /// A stored bias, in steps of the products of both scales.
    fn bias(&mut self, node: &NodeProto, bias: &str) -> Option<String> {
        let [first, second] = [1, 4].map(|i| node.arg(i).and_then(|s| self.constant(s)));
        let &[first] = first?.data.as_slice() else { return None };
        let first = first * node.real("alpha", 1.0);
        let scale: Vec<f32> = second?.data.iter().map(|s| s * first).collect();
        let value = dequantised(self.known.get(bias)?, &scale, None, 0)?;
        let name = self.fresh(bias, "real");
        Some(self.store_real(name, &value))
    }

    /// A node on real numbers whose results are quantised under the names that they had.
    fn requantised(&mut self, mut node: NodeProto, to: &Scale) {
        let whole = node.output.clone();
        for name in node.output.iter_mut().filter(|n| !n.is_empty()) {
            *name = self.fresh(name, "sum");
        }
        let real = node.output.clone();
        self.push(node);
        for (whole, real) in whole.into_iter().zip(real).filter(|(whole, _)| !whole.is_empty()) {
            let inputs = [real.as_str(), &to.scale, &to.zero];
            let _ = self.quantise(&node_of("QuantizeLinear", &inputs, &whole));
        }
    }

    /// An operator that moves whole numbers moves real ones instead.
    pub(super) fn moved(&mut self, node: &NodeProto) -> Option<()> {
        let to = self.quantised.get(node.arg(0)?)?.clone();
        let mut node = node.clone();
        let filled = node.op() == "Pad" && node.arg(2).is_some();
        for at in std::iter::once(0).chain(filled.then_some(2)) {
            let inputs = [node.input[at].as_str(), &to.scale, &to.zero];
            let read = node_of("DequantizeLinear", &inputs, "");
            node.input[at] = self.operand(&read, 0, 0)?;
        }
        self.requantised(node, &to);
        Some(())
    }
}
