//! Every rule against central differences of the graph it differentiates.

use prost::Message;

use super::build;
use crate::engine::{self, Input};
use crate::error::Result;
use crate::onnx::Graph;
use crate::onnx::build::{model, node, shape, value, weight};
use crate::onnx::proto::{AttributeProto, ModelProto, NodeProto, TensorProto};
use crate::onnx::write::text;

mod elementwise;
mod shapes;
mod windows;

const STEP: f32 = 1e-2;
const TOLERANCE: f64 = 4e-3;

/// Numbers between -1.3 and 1.3, all distinct by more than two steps for up to 97 of them,
/// and never near 0.
pub(super) fn numbers(count: usize, salt: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 37 + salt * 11) % 97) as f32 * 0.027 - 1.283).collect()
}

pub(super) fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    crate::onnx::write::ints(name, ints.iter().copied())
}

pub(super) fn with(mut node: NodeProto, attributes: Vec<AttributeProto>) -> NodeProto {
    node.attribute.extend(attributes);
    node
}

/// A model from `x` of a shape to `y`.
pub(super) fn net(
    input: &[usize],
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
    opset: i64,
) -> ModelProto {
    let dims: Vec<i64> = input.iter().map(|d| *d as i64).collect();
    let mut m = model(&dims, nodes, weights);
    m.opset_import[0].version = Some(opset);
    let g = m.graph.as_mut().unwrap();
    g.output = vec![value("y", &[])];
    g.output[0].r#type = None;
    m
}

fn run_on(
    engine: &str,
    graph: &Graph,
    names: &[String],
    inputs: &[Input<'_>],
) -> Result<Vec<engine::Value>> {
    let all: Vec<usize> = (0..names.len()).collect();
    engine::load(engine, graph, names, Some(1))?.run(inputs, &all)
}

fn fed<'a>(shape: &'a [usize], data: &'a [f32]) -> Input<'a> {
    Input { name: "x", shape, data }
}

/// Compares the gradient of `sum c y` with differences at some input, on every engine.
pub(super) fn check_at(what: &str, shape: &[usize], m: &ModelProto, x: &[f32]) {
    for engine in engine::tests::ready() {
        check_on(engine, &format!("{what} on {engine}"), shape, m, x);
    }
}

fn check_on(engine: &str, what: &str, shape: &[usize], m: &ModelProto, x: &[f32]) {
    let run = |g: &Graph, names: &[String], inputs: &[Input<'_>]| run_on(engine, g, names, inputs);
    let graph = Graph::from_bytes("test.onnx", &m.encode_to_vec()).unwrap();
    let y = ["y".to_string()];
    let learn = |g: &Graph, names: &[String]| {
        Ok(run(g, names, &[fed(shape, x)])?.into_iter().map(|v| v.data.into()).collect())
    };
    let built = build(&graph, "x", shape, &y, &learn).unwrap_or_else(|e| panic!("{what}: {e}"));
    let forward = engine::load(engine, &graph, &y, Some(1)).unwrap();
    let value = |x: &[f32]| forward.run(&[fed(shape, x)], &[0]).unwrap().remove(0);
    let out = value(x);
    let c = numbers(out.data.len(), 5);
    let given = Input { name: &built.ends[0], shape: &out.shape, data: &c };
    let names = ["y".to_string(), built.output.clone()];
    let joined = built.joined(&y).unwrap();
    let got =
        run(&joined, &names, &[fed(shape, x), given]).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(got[0].shape, out.shape, "{what}");
    for (a, b) in got[0].data.iter().zip(out.data.iter()) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{what}: {a} is not {b}");
    }
    assert_eq!(got[1].shape, shape, "{what}");
    let (back, kept) = built.backward().unwrap();
    let values = run(&graph, &kept, &[fed(shape, x)]).unwrap();
    let mut inputs = vec![given];
    for (name, v) in kept.iter().zip(&values) {
        inputs.push(Input { name, shape: &v.shape, data: &v.data });
    }
    let alone = run(&back, &names[1..], &inputs).unwrap_or_else(|e| panic!("{what}: {e}"));
    for (a, b) in alone[0].data.iter().zip(got[1].data.iter()) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{what}: {a} is not {b}");
    }
    let scalar = |x: &[f32]| -> f64 {
        value(x).data.iter().zip(&c).map(|(y, c)| f64::from(*y) * f64::from(*c)).sum()
    };
    let mut moved = x.to_vec();
    for (i, g) in got[1].data.iter().enumerate() {
        let (up, down) = (x[i] + STEP, x[i] - STEP);
        moved[i] = up;
        let high = scalar(&moved);
        moved[i] = down;
        let want = (high - scalar(&moved)) / f64::from(up - down);
        moved[i] = x[i];
        let off = (f64::from(*g) - want).abs();
        assert!(off <= TOLERANCE * want.abs().max(1.0), "{what} at {i}: {g} is not {want}");
    }
    if let Some(dir) = std::env::var_os("UPRIGHT_GRADIENTS") {
        let file = format!("{}.onnx", what.replace([' ', '/'], "_"));
        std::fs::write(std::path::Path::new(&dir).join(file), joined.model().encode_to_vec())
            .unwrap();
    }
}

#[allow(clippy::needless_pass_by_value)]
pub(super) fn check(what: &str, shape: &[usize], nodes: Vec<NodeProto>, weights: Vec<TensorProto>) {
    for opset in [17, 18] {
        let m = net(shape, nodes.clone(), weights.clone(), opset);
        let x = numbers(shape.iter().product(), 3);
        check_at(&format!("{what} opset {opset}"), shape, &m, &x);
    }
}

fn refusal(nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> String {
    let graph = Graph::from_bytes("test.onnx", &net(&[2, 3], nodes, weights, 17).encode_to_vec());
    let none = |_: &Graph, names: &[String]| Ok(vec![vec![2.0, 3.0]; names.len()]);
    build(&graph.unwrap(), "x", &[2, 3], &["y".into()], &none).unwrap_err().to_string()
}

#[test]
fn every_operator_without_a_rule_is_named_at_once() {
    let nodes = vec![
        node("Relu", &["x"], "a"),
        node("Det", &["a"], "b"),
        node("Relu", &["b"], "c"),
        node("CumSum", &["c", "s"], "y"),
    ];
    let e = refusal(nodes, vec![shape("s", &[1])]);
    assert_eq!(e, "test.onnx: no gradient rule for: CumSum, Det");
}

#[test]
fn operators_aside_from_the_way_to_the_ends_do_not_matter() {
    let nodes = vec![
        node("CumSum", &["x", "s"], "aside"),
        node("Shape", &["x"], "dims"),
        node("Reshape", &["x", "dims"], "same"),
        node("Mul", &["same", "same"], "y"),
    ];
    check("aside", &[2, 3], nodes, vec![shape("s", &[1])]);
}

#[test]
fn an_end_that_does_not_depend_on_the_input_gives_zeros() {
    let nodes = vec![node("Shape", &["x"], "dims"), node("Expand", &["w", "dims"], "y")];
    check("constant", &[2, 3], nodes, vec![weight("w", &[1], &[2.0])]);
}

#[test]
fn ends_inside_the_graph_add_up() {
    // y = 3 x^2 with derivatives given for y and for x^2: 1 * 6 x + 10 * 2 x.
    let nodes = vec![node("Mul", &["x", "x"], "s"), node("Mul", &["s", "w"], "y")];
    let m = net(&[1, 2], nodes, vec![weight("w", &[], &[3.0])], 17);
    let graph = Graph::from_bytes("test.onnx", &m.encode_to_vec()).unwrap();
    let x = Input { name: "x", shape: &[1, 2], data: &[1.0, -2.0] };
    let learn = |g: &Graph, names: &[String]| {
        Ok(run_on("rten", g, names, &[x])?.into_iter().map(|v| v.data.into()).collect())
    };
    let built = build(&graph, "x", &[1, 2], &["y".into(), "s".into()], &learn).unwrap();
    let ones = Input { name: &built.ends[0], shape: &[1, 2], data: &[1.0, 1.0] };
    let tens = Input { name: &built.ends[1], shape: &[1, 2], data: &[10.0, 10.0] };
    let joined = built.joined(&[]).unwrap();
    let output = std::slice::from_ref(&built.output);
    let got = run_on("rten", &joined, output, &[x, ones, tens]).unwrap();
    assert_eq!(*got[0].data, [26.0, -52.0]);
}
