//! The side of the square pictures that a network takes, where its file leaves
//! it open but a linear layer behind a flattening fixes it.

use std::collections::HashMap;

use super::Graph;
use super::proto::NodeProto;

/// Sides of pictures that networks are trained with.
const COMMON: [usize; 30] = [
    8, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 200, 224, 240, 256, 260,
    288, 299, 300, 320, 331, 384, 448, 512,
];

/// What is known of a tensor: channels and side of maps, or the length of rows.
#[derive(Debug, Clone, Copy)]
enum Known {
    Maps(usize, usize),
    Rows(usize),
}

impl Graph {
    /// The first common side that fits what the layers behind a flattening expect; `None` if
    /// there is none, or any would do.
    pub(crate) fn side(&self, input: &str, channels: usize) -> Option<usize> {
        COMMON.into_iter().find(|&side| self.fits(input, channels, side) == Some(true))
    }

    /// Whether a linear layer gets rows of the length that its weights have; `None` if none is
    /// reached.
    fn fits(&self, input: &str, channels: usize, side: usize) -> Option<bool> {
        let mut known = HashMap::from([(input, Known::Maps(channels, side))]);
        for node in &self.graph().node {
            let Some(first) = node.input.iter().find_map(|i| known.get(i.as_str()).copied()) else {
                continue;
            };
            let made = match (node.op(), first) {
                ("Gemm" | "MatMul", Known::Rows(length)) => {
                    let dims = &self.raw_initializer(node.arg(1)?)?.dims;
                    let wanted = dims.get(usize::from(node.int("transB", 0) != 0))?;
                    return Some(i64::try_from(length).ok()? == *wanted);
                }
                ("Conv", Known::Maps(_, side)) => {
                    let dims = &self.raw_initializer(node.arg(1)?)?.dims;
                    let kernel = usize::try_from(*dims.get(2)?).ok()?;
                    let outer = usize::try_from(*dims.first()?).ok()?;
                    Known::Maps(outer, slid(node, side, kernel)?)
                }
                ("MaxPool" | "AveragePool", Known::Maps(channels, side)) => {
                    let kernel = *node.attr("kernel_shape")?.ints.first()?;
                    Known::Maps(channels, slid(node, side, usize::try_from(kernel).ok()?)?)
                }
                ("Flatten" | "Reshape", Known::Maps(channels, side)) => {
                    Known::Rows(channels.checked_mul(side)?.checked_mul(side)?)
                }
                (
                    "Relu" | "LeakyRelu" | "Clip" | "Sigmoid" | "Tanh" | "HardSwish" | "Add"
                    | "Mul" | "BatchNormalization" | "Dropout" | "Identity" | "Cast" | "Elu"
                    | "PRelu" | "QuantizeLinear" | "DequantizeLinear",
                    same,
                ) => same,
                _ => continue,
            };
            known.insert(node.out(), made);
        }
        None
    }
}

/// The side after a window slid along one of `side`.
fn slid(node: &NodeProto, side: usize, kernel: usize) -> Option<usize> {
    let of =
        |name: &str, i: usize, default: usize| match node.attr(name).and_then(|a| a.ints.get(i)) {
            Some(v) => usize::try_from(*v).ok().filter(|v| *v <= 1 << 20),
            None => Some(default),
        };
    let stride = of("strides", 0, 1)?.max(1);
    let auto = node.attr("auto_pad").and_then(|a| a.s.as_deref()).unwrap_or_default();
    if auto.starts_with(b"SAME") {
        return Some(side.div_ceil(stride));
    }
    let padded = side + of("pads", 0, 0)? + of("pads", 2, 0)?;
    let room =
        padded.checked_sub(of("dilations", 0, 1)?.checked_mul(kernel.checked_sub(1)?)? + 1)?;
    let steps = if node.int("ceil_mode", 0) == 0 { room / stride } else { room.div_ceil(stride) };
    Some(steps + 1)
}

#[cfg(test)]
mod tests {
    use crate::onnx::build::{graph, model, node, weight};
    use crate::onnx::write::ints;

    /// 28 -> 26 by a kernel of 3, 13 by a pool of 2; 2 * 13 * 13 = 338.
    #[test]
    fn a_flattening_before_a_linear_layer_fixes_the_side() {
        let mut pool = node("MaxPool", &["r"], "p");
        pool.attribute = vec![ints("kernel_shape", [2, 2]), ints("strides", [2, 2])];
        let nodes = vec![
            node("Conv", &["x", "k"], "c"),
            node("Relu", &["c"], "r"),
            pool,
            node("Flatten", &["p"], "f"),
            node("Gemm", &["f", "w"], "y").with_int("transB", 1),
        ];
        let weights =
            vec![weight("k", &[2, 1, 3, 3], &[0.0; 18]), weight("w", &[3, 338], &[0.0; 1014])];
        let g = graph(&model(&[0, 1, 0, 0], nodes.clone(), weights));
        assert_eq!(g.side("x", 1), Some(28));
        let weights =
            vec![weight("k", &[2, 1, 3, 3], &[0.0; 18]), weight("w", &[3, 7], &[0.0; 21])];
        assert_eq!(graph(&model(&[0, 1, 0, 0], nodes, weights)).side("x", 1), None);
    }
}
