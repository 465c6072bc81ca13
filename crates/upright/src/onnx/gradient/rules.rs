//! Which operators have a rule, which of their inputs it differentiates, and
//! which operators end a derivative.

use super::builder::{Builder, Step};
use super::{conv, elementwise, linear, norm, pool, reduce, shape};
use crate::onnx::proto::{NodeProto, data_type};

/// Why a node cannot be differentiated.
pub(super) type Back = fn(&mut Builder<'_>, &Step<'_>) -> Result<(), String>;

/// Inputs that carry derivatives.
#[derive(Debug, Clone, Copy)]
pub(super) enum Inputs {
    First,
    All,
    /// All but the first: what a condition chooses from.
    Choices,
}

impl Inputs {
    pub(super) fn of(self, node: &NodeProto) -> Vec<&str> {
        let all = node.input.iter().map(String::as_str);
        match self {
            Inputs::First => all.take(1).collect(),
            Inputs::All => all.collect(),
            Inputs::Choices => all.skip(1).collect(),
        }
    }
}

/// How to differentiate an operator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) inputs: Inputs,
    /// Inputs whose whole numbers must be known.
    pub(super) integers: &'static [usize],
    /// Whether outputs after the first may carry derivatives.
    pub(super) several: bool,
    pub(super) back: Back,
}

/// The rule of a node's operator.
pub(super) fn rule(node: &NodeProto) -> Option<Rule> {
    if !matches!(node.domain.as_deref(), None | Some("" | "ai.onnx")) {
        return None;
    }
    let first =
        |back: Back| Some(Rule { inputs: Inputs::First, integers: &[], several: false, back });
    let all = |back: Back| Some(Rule { inputs: Inputs::All, integers: &[], several: false, back });
    let sized = |integers: &'static [usize], back: Back| {
        Some(Rule { inputs: Inputs::First, integers, several: false, back })
    };
    match node.op() {
        "Conv" => all(conv::conv),
        "ConvTranspose" => all(conv::conv_transpose),
        "Gemm" => all(linear::gemm),
        "MatMul" => all(linear::matmul),
        "BatchNormalization" => all(norm::batch),
        "LayerNormalization" => all(norm::layer),
        "InstanceNormalization" => all(norm::instance),
        "Softmax" => first(norm::softmax),
        "LogSoftmax" => first(norm::log_softmax),
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Sum" | "Mean" | "Max" | "Min" | "PRelu" => {
            all(elementwise::joined)
        }
        "Clip" => all(elementwise::clip),
        op if elementwise::has(op) => first(elementwise::unary),
        "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceSumSquare" | "ReduceL2"
        | "ReduceLogSumExp" => sized(&[1], reduce::reduce),
        "GlobalAveragePool" | "GlobalMaxPool" => first(reduce::global),
        "AveragePool" => first(pool::average),
        "MaxPool" => first(pool::max),
        "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Identity" | "Dropout" => {
            first(shape::reshape)
        }
        "Cast" | "CastLike" => first(shape::cast),
        "QuantizeLinear" => first(elementwise::quantise),
        "DequantizeLinear" => first(elementwise::dequantise),
        "Transpose" => first(shape::transpose),
        "Expand" => first(shape::expand),
        "Tile" => first(shape::tile),
        "Concat" => all(shape::concat),
        "Split" => {
            Some(Rule { inputs: Inputs::First, integers: &[], several: true, back: shape::split })
        }
        "Slice" => sized(&[1, 2, 3, 4], shape::slice),
        "Gather" => sized(&[1], shape::gather),
        "GatherElements" => first(shape::gather_elements),
        "TopK" => first(shape::top_k),
        "Pad" => sized(&[1, 3], shape::pad),
        "Where" => Some(Rule {
            inputs: Inputs::Choices,
            integers: &[],
            several: false,
            back: shape::choose,
        }),
        _ => None,
    }
}

/// Whether a node's outputs do not change smoothly with its inputs: whole numbers, truth
/// values and steps.
pub(super) fn stops(node: &NodeProto) -> bool {
    match node.op() {
        "Cast" => {
            let to = i32::try_from(node.int("to", 1)).unwrap_or(0);
            let real =
                [data_type::FLOAT, data_type::FLOAT16, data_type::DOUBLE, data_type::BFLOAT16];
            !real.contains(&to)
        }
        "Shape" | "Size" | "ConstantOfShape" | "Equal" | "Greater" | "GreaterOrEqual" | "Less"
        | "LessOrEqual" | "And" | "Or" | "Not" | "Xor" | "IsNaN" | "IsInf" | "ArgMax"
        | "ArgMin" | "NonZero" | "Floor" | "Ceil" | "Round" | "Sign" | "Range" | "EyeLike"
        | "RandomNormalLike" | "RandomUniformLike" => true,
        _ => false,
    }
}
