use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

use prost::Message;

use super::{build, check, check_at, ints, net, numbers, text, with};
use crate::onnx::build::{node, shape, weight};
use crate::onnx::proto::{NodeProto, TensorProto, data_type};
use crate::onnx::write::stored;

#[test]
fn activations_have_their_slopes() {
    for op in [
        "Relu",
        "Sigmoid",
        "HardSwish",
        "Tanh",
        "Erf",
        "Softplus",
        "Softsign",
        "Exp",
        "Neg",
        "Abs",
        "Sin",
        "Cos",
        "Elu",
        "Softmax",
        "LogSoftmax",
        "Identity",
        "Dropout",
    ] {
        check(op, &[2, 9], vec![node(op, &["x"], "y")], vec![]);
    }
    let y = |op: &str| node(op, &["x"], "y");
    check("LeakyRelu", &[2, 9], vec![y("LeakyRelu").with_real("alpha", 0.3)], vec![]);
    let hard = y("HardSigmoid").with_real("alpha", 0.7).with_real("beta", 0.4);
    check("HardSigmoid", &[2, 9], vec![hard], vec![]);
    check("Softmax 0", &[4, 5], vec![y("Softmax").with_int("axis", 0)], vec![]);
    check("LogSoftmax 1", &[2, 4, 5], vec![y("LogSoftmax").with_int("axis", 1)], vec![]);
    let cast = vec![y("Cast").with_int("to", 1)];
    check("Cast", &[2, 3], cast, vec![]);
}

/// Two steps of the quantisation apart, differences know nothing of the rounding.
#[test]
fn rounding_is_passed_straight_through() {
    let zero = |code: i32, byte: u8| stored("zero", code, &[], vec![byte]);
    let x: Vec<f32> = numbers(18, 1).iter().map(|v| v * 0.5 + 0.0012).collect();
    for zero in [zero(data_type::UINT8, 128), zero(data_type::INT8, 0)] {
        let nodes = vec![
            node("QuantizeLinear", &["x", "step", "zero"], "q"),
            node("DequantizeLinear", &["q", "step", "zero"], "r"),
            node("Sigmoid", &["r"], "y"),
        ];
        let weights = vec![weight("step", &[], &[super::STEP]), zero];
        check_at("rounding", &[2, 9], &net(&[2, 9], nodes, weights, 17), &x);
    }
}

#[test]
fn far_from_zero_flat_activations_are_flat() {
    let x: Vec<f32> = numbers(18, 1).iter().map(|v| v * 4.0).collect();
    for op in ["HardSwish", "HardSigmoid"] {
        check_at(op, &[2, 9], &net(&[2, 9], vec![node(op, &["x"], "y")], vec![], 17), &x);
    }
}

#[test]
fn both_kinds_of_gelu_have_their_slopes() {
    for how in ["none", "tanh"] {
        let gelu = with(node("Gelu", &["x"], "y"), vec![text("approximate", how)]);
        let m = net(&[2, 9], vec![gelu], vec![], 20);
        check_at(&format!("Gelu {how}"), &[2, 9], &m, &numbers(18, 3));
    }
}

/// Gelu as exporters write it: with Div or Mul, and with the half at the end or at `x`.
fn written_out(divide: bool, late: bool) -> (Vec<NodeProto>, Vec<TensorProto>) {
    let mut nodes = vec![
        node(if divide { "Div" } else { "Mul" }, &["x", "r"], "u"),
        node("Erf", &["u"], "e"),
        node("Add", &["e", "one"], "p"),
    ];
    nodes.extend(if late {
        [node("Mul", &["x", "p"], "q"), node("Mul", &["q", "h"], "y")]
    } else {
        [node("Mul", &["h", "x"], "q"), node("Mul", &["q", "p"], "y")]
    });
    let number = |name: &str, v: f32| weight(name, &[], &[v]);
    let r = if divide { SQRT_2 } else { FRAC_1_SQRT_2 };
    (nodes, vec![number("r", r), number("one", 1.0), number("h", 0.5)])
}

/// What the way back of a net keeps from the way there.
fn kept(nodes: Vec<NodeProto>, weights: Vec<TensorProto>, ends: &[&str]) -> Vec<String> {
    let m = net(&[2, 9], nodes, weights, 17);
    let graph = crate::onnx::Graph::from_bytes("test.onnx", &m.encode_to_vec()).unwrap();
    let ends: Vec<String> = ends.iter().map(ToString::to_string).collect();
    let sizes = |_: &crate::onnx::Graph, names: &[String]| Ok(vec![vec![2.0, 9.0]; names.len()]);
    build(&graph, "x", &[2, 9], &ends, &sizes).unwrap().backward().unwrap().1
}

#[test]
fn gelu_written_out_and_silu_have_their_slopes() {
    for (divide, late) in [(true, true), (true, false), (false, true), (false, false)] {
        let (nodes, weights) = written_out(divide, late);
        check(&format!("gelu {divide} {late}"), &[2, 9], nodes.clone(), weights.clone());
        assert_eq!(kept(nodes, weights, &["y"]), ["x"]);
    }
    let silu = vec![node("Sigmoid", &["x"], "s"), node("Mul", &["x", "s"], "y")];
    check("silu", &[2, 9], silu, vec![]);
}

#[test]
fn what_only_looks_like_a_gelu_is_left_as_it_is() {
    let (nodes, weights) = written_out(true, true);
    assert!(kept(nodes.clone(), weights.clone(), &["y", "p"]).len() > 1);
    let mut shared = nodes.clone();
    shared[4] = node("Mul", &["q", "h"], "g");
    shared.push(node("Add", &["g", "p"], "y"));
    check("shared", &[2, 9], shared, weights.clone());
    let mut other = weights.clone();
    other[2] = weight("h", &[], &[0.7]);
    check("another factor", &[2, 9], nodes.clone(), other);
    let mut turned = nodes;
    turned[0] = node("Div", &["r", "x"], "u");
    check("turned", &[2, 9], turned, weights);
}

#[test]
fn functions_of_positive_numbers_have_their_slopes() {
    let w = || weight("w", &[], &[2.0]);
    for op in ["Log", "Sqrt", "Reciprocal"] {
        let nodes = vec![node("Add", &["x", "w"], "z"), node(op, &["z"], "y")];
        check(op, &[2, 9], nodes, vec![w()]);
    }
    for p in [2.0, 3.0, -0.5] {
        let nodes = vec![node("Add", &["x", "w"], "z"), node("Pow", &["z", "p"], "y")];
        check(&format!("Pow {p}"), &[2, 9], nodes, vec![w(), weight("p", &[], &[p])]);
    }
    let nodes = vec![node("Add", &["x", "w"], "z"), node("Pow", &["z", "x"], "y")];
    check("Pow of both", &[2, 4], nodes, vec![w()]);
}

#[test]
fn clipped_numbers_do_not_move() {
    let bounds = vec![weight("low", &[], &[-0.4865]), weight("high", &[], &[0.6205])];
    check("Clip", &[2, 9], vec![node("Clip", &["x", "low", "high"], "y")], bounds);
    let bounds = vec![weight("high", &[], &[0.6205])];
    check("Clip above", &[2, 9], vec![node("Clip", &["x", "", "high"], "y")], bounds);
}

#[test]
fn operands_that_were_spread_collect_their_derivatives() {
    // One operand is x [2,3], the other its mean over rows or columns, or a weight.
    for op in ["Add", "Sub", "Mul", "Div", "Max", "Min"] {
        for (axis, keep) in [(0, 0), (0, 1), (1, 1)] {
            for swap in [false, true] {
                let mean = with(node("ReduceMean", &["x"], "r"), vec![ints("axes", &[axis])]);
                let mean = mean.with_int("keepdims", keep);
                let shift = node("Add", &["r", "w"], "z");
                let args = if swap { ["z", "x"] } else { ["x", "z"] };
                let m = net(
                    &[2, 3],
                    vec![mean, shift, node("Add", &["x", "v"], "u"), {
                        let args = args.map(|a| if a == "x" { "u" } else { a });
                        node(op, &args, "y")
                    }],
                    vec![weight("w", &[], &[2.5]), weight("v", &[], &[2.5])],
                    17,
                );
                let what = format!("{op} {axis} {keep} {swap}");
                check_at(&what, &[2, 3], &m, &[1.0, -0.2, 0.1, -0.9, 0.8, 0.33]);
            }
        }
        let w = weight("w", &[2, 1, 3], &[0.7, -0.6, 1.4, -1.1, 2.1, 0.3]);
        check(&format!("{op} weight"), &[2, 3], vec![node(op, &["x", "w"], "y")], vec![w]);
    }
    let nodes = vec![node("Sum", &["x", "x", "w"], "y")];
    check("Sum", &[2, 3], nodes, vec![weight("w", &[1, 1], &[1.0])]);
    let nodes = vec![node("Mean", &["x", "w"], "y")];
    check("Mean", &[2, 3], nodes, vec![weight("w", &[3], &[1.0, 2.0, 3.0])]);
    let nodes = vec![node("PRelu", &["x", "w"], "y")];
    check("PRelu", &[2, 3], nodes, vec![weight("w", &[3], &[0.1, 0.2, 0.3])]);
}

#[test]
fn normalisations_move_mean_and_deviation() {
    let w = || weight("w", &[5], &[1.0, -0.5, 2.0, 0.3, 1.5]);
    let b = || weight("b", &[5], &[0.1, 0.2, 0.3, 0.4, 0.5]);
    let layer = || node("LayerNormalization", &["x", "w", "b"], "y").with_int("axis", -1);
    check("LayerNormalization", &[2, 3, 5], vec![layer()], vec![w(), b()]);
    let both = node("LayerNormalization", &["x", "w"], "y").with_int("axis", 1);
    let w2 = weight("w", &[2, 5], &numbers(10, 2));
    check("LayerNormalization 1", &[3, 2, 5], vec![both.with_real("epsilon", 0.1)], vec![w2]);
    let mean = |from, to| {
        with(node("ReduceMean", &[from], to), vec![ints("axes", &[-1])]).with_int("keepdims", 1)
    };
    let written = vec![
        mean("x", "m"),
        node("Sub", &["x", "m"], "c"),
        node("Pow", &["c", "two"], "c2"),
        mean("c2", "v"),
        node("Add", &["v", "e"], "ve"),
        node("Sqrt", &["ve"], "s"),
        node("Div", &["c", "s"], "h"),
        node("Mul", &["h", "w"], "hw"),
        node("Add", &["hw", "b"], "y"),
    ];
    let all = vec![weight("two", &[], &[2.0]), weight("e", &[], &[1e-5]), w(), b()];
    let m = net(&[2, 3, 5], written, all, 17);
    check_at("layer norm written out", &[2, 3, 5], &m, &numbers(30, 3));
    let channels = |name: &str, at: usize| weight(name, &[3], &numbers(3, at));
    let instance = node("InstanceNormalization", &["x", "w", "b"], "y");
    let weights = vec![channels("w", 1), channels("b", 2)];
    check("InstanceNormalization", &[2, 3, 4, 2], vec![instance], weights);
    let batch = node("BatchNormalization", &["x", "w", "b", "m", "v"], "y");
    let var = weight("v", &[3], &[0.5, 1.0, 2.0]);
    let weights = vec![channels("w", 1), channels("b", 2), channels("m", 3), var];
    check("BatchNormalization", &[2, 3, 4], vec![batch.clone()], weights.clone());
    check("BatchNormalization flat", &[2, 3], vec![batch], weights);
}

#[test]
fn reductions_share_out_what_they_took() {
    for op in
        ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL2", "ReduceLogSumExp"]
    {
        for keep in [0, 1] {
            for axes in [&[1][..], &[-1, 0]] {
                let old = with(node(op, &["x"], "y"), vec![ints("axes", axes)]);
                let m = net(&[2, 3, 4], vec![old.with_int("keepdims", keep)], vec![], 17);
                check_at(&format!("{op} {axes:?} {keep} old"), &[2, 3, 4], &m, &numbers(24, 3));
                let new = node(op, &["x", "a"], "y").with_int("keepdims", keep);
                let m = net(&[2, 3, 4], vec![new], vec![shape("a", axes)], 18);
                check_at(&format!("{op} {axes:?} {keep} new"), &[2, 3, 4], &m, &numbers(24, 3));
            }
        }
        check(&format!("{op} all"), &[2, 3], vec![node(op, &["x"], "y")], vec![]);
    }
    let sum = node("ReduceSum", &["x", "a"], "y").with_int("keepdims", 0);
    check("ReduceSum", &[2, 3, 4], vec![sum], vec![shape("a", &[1])]);
    for op in ["GlobalAveragePool", "GlobalMaxPool"] {
        check(op, &[2, 3, 3, 4], vec![node(op, &["x"], "y")], vec![]);
    }
}
