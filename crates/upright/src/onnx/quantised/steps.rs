//! The steps between real and whole numbers: `QuantizeLinear`,
//! `DequantizeLinear`, and weights that are stored in whole numbers.

use super::{Rewrite, Scale, node_of};
use crate::onnx::constant::{Constant, dequantised, lowest};
use crate::onnx::proto::{NodeProto, data_type};

impl Rewrite {
    /// What cannot be below the lowest whole number, zero, is what a Relu makes: one is written
    /// out where a layer's own was left to the quantisation.
    pub(super) fn quantise(&mut self, node: &NodeProto) -> Option<()> {
        let (x, scale) = (node.arg(0)?, node.arg(1)?);
        let zero = match node.arg(2) {
            Some(zero) => zero.to_string(),
            None if node.attr("output_dtype").is_some() => return None,
            None => {
                let name = self.fresh(node.out(), "zero");
                self.store(name, data_type::UINT8, &[], vec![0])
            }
        };
        let mut input = x.to_string();
        if self.known.get(&zero).is_some_and(lowest) && self.is_layer(x) {
            input = self.fresh(x, "relu");
            self.push(node_of("Relu", &[x], &input));
        }
        let input = vec![input, scale.into(), zero.clone()];
        self.quantised.insert(node.out().into(), Scale { scale: scale.into(), zero });
        self.push(NodeProto { input, domain: None, ..node.clone() });
        Some(())
    }

    fn is_layer(&self, tensor: &str) -> bool {
        let maker = self.makers.get(tensor).map(String::as_str);
        matches!(maker, Some("Conv" | "ConvTranspose" | "Gemm" | "MatMul" | "Add"))
    }

    /// A stored weight becomes a stored real one.
    pub(super) fn dequantise(&mut self, node: &NodeProto) -> Option<()> {
        let [x, scale, zero] = [0, 1, 2].map(|i| node.arg(i));
        match self.weight(x?, scale?, zero, node.int("axis", 1)) {
            Some(value) => drop(self.store_real(node.out().into(), &value)),
            None => self.push(NodeProto { domain: None, ..node.clone() }),
        }
        Some(())
    }

    /// `(x - zero) scale` of stored numbers.
    pub(super) fn weight(
        &self,
        x: &str,
        scale: &str,
        zero: Option<&str>,
        axis: i64,
    ) -> Option<Constant> {
        let zero = match zero {
            Some(name) => Some(self.known.get(name)?),
            None => None,
        };
        dequantised(self.known.get(x)?, &self.constant(scale)?.data, zero, axis)
    }

    /// The real numbers behind operand `at` of a node, whose scales lie along an axis if it has
    /// several.
    pub(super) fn operand(&mut self, node: &NodeProto, at: usize, axis: i64) -> Option<String> {
        let (x, scale, zero) = (node.arg(at)?, node.arg(at + 1)?, node.arg(at + 2));
        let key = format!("{x} {scale} {}", zero.unwrap_or_default());
        if let Some(real) = self.reals.get(&key) {
            return Some(real.clone());
        }
        let real = if let Some(value) = self.weight(x, scale, zero, axis) {
            let name = self.fresh(x, "real");
            self.store_real(name, &value)
        } else {
            if self.constant(scale)?.data.len() != 1 {
                return None;
            }
            let real = self.fresh(x, "real");
            let inputs: Vec<&str> = [x, scale].into_iter().chain(zero).collect();
            self.push(node_of("DequantizeLinear", &inputs, &real));
            real
        };
        self.reals.insert(key, real.clone());
        Some(real)
    }
}
