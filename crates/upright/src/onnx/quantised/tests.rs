use super::*;
use crate::engine::{self, Input};
use crate::onnx::Graph;
use crate::onnx::build::{self, weight};

fn whole(name: &str, code: i32, dims: &[i64], data: &[i32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(code),
        int32_data: data.to_vec(),
        ..Default::default()
    }
}

/// Zero points 0 of both kinds, 128 of unsigned bytes, a step of 0.5 and one of 1.
fn common() -> Vec<TensorProto> {
    vec![
        whole("u0", data_type::UINT8, &[], &[0]),
        whole("u128", data_type::UINT8, &[], &[128]),
        whole("i0", data_type::INT8, &[], &[0]),
        weight("half", &[], &[0.5]),
        weight("one", &[], &[1.0]),
    ]
}

fn of(input: &[i64], nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> Graph {
    build::graph(&build::model(input, nodes, [common(), weights].concat()))
}

fn microsoft(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto { domain: Some("com.microsoft".into()), ..build::node(op, inputs, output) }
}

/// What a graph gives for `x`, on every engine.
fn given(graph: &Graph, shape: &[usize], x: &[f32], want: &[f32]) {
    for engine in engine::tests::ready() {
        let y = engine::load(engine, graph, &["y".into()], Some(1)).unwrap();
        let y = y.run(&[Input { name: "x", shape, data: x }], &[0]).unwrap();
        assert_eq!(&y[0].data[..], want, "{engine}");
    }
}

fn quantised_x() -> NodeProto {
    build::node("QuantizeLinear", &["x", "half", "u128"], "q")
}

fn read(scale: &str, zero: &str) -> NodeProto {
    build::node("DequantizeLinear", &["r", scale, zero], "y")
}

/// x = (1, -2): 1 * 1 - 2 * 0 + 3 = 4, 1 * -2 - 2 * 4 - 1 = -11, in steps of 1.
#[test]
fn a_product_has_weights_biases_and_a_head_in_real_numbers() {
    let nodes = vec![
        quantised_x(),
        microsoft("QGemm", &["q", "half", "u128", "w", "s", "z", "b", "one", "u128"], "r")
            .with_int("transB", 1),
        read("one", "u128"),
    ];
    // Scales by row: (w - z) s = (1, 0), (-2, 4); biases in steps of half of them.
    let weights = vec![
        whole("w", data_type::INT8, &[2, 2], &[5, 3, -2, 4]),
        weight("s", &[2], &[0.5, 1.0]),
        whole("z", data_type::INT8, &[2], &[3, 0]),
        whole("b", data_type::INT32, &[2], &[12, -2]),
    ];
    let graph = of(&[0, 2], nodes, weights);
    given(&graph, &[1, 2], &[1.0, -2.0], &[4.0, -11.0]);
    let ending = graph.ending("y");
    let head = ending.head.unwrap();
    assert_eq!(head.weight.data(), [1.0, 0.0, -2.0, 4.0]);
    assert_eq!((head.bias.as_slice(), ending.rounding), (&[3.0, -1.0][..], 0.5));
    assert_eq!(ending.features, ["q:real"]);
    let file: Vec<String> = graph.operators().into_iter().map(|o| o.name).collect();
    assert_eq!(file, ["DequantizeLinear", "QGemm", "QuantizeLinear"]);
}

/// Half steps there, whole steps back: 1.5 + 1 = 2.5 is rounded to even, 0.5 * 4 = 2.
#[test]
fn sums_products_and_pictures_are_rounded_where_they_were() {
    let both = ["q", "half", "u128", "q", "half", "u128", "one", "u128"];
    let one = ["q", "half", "u128", "one", "u128"];
    let chained = ["one", "u128", "q", "half", "u128", "q", "half", "u128"];
    let window = |node: NodeProto| node.with_ints("kernel_shape", &[1, 2]);
    let shape = [1, 1, 1, 2];
    let x = [1.5, -2.0];
    for (node, want) in [
        (microsoft("QLinearAdd", &both, "r"), vec![3.0, -4.0]),
        (microsoft("QLinearMul", &both, "r"), vec![2.0, 4.0]),
        (microsoft("QLinearLeakyRelu", &one, "r").with_real("alpha", 0.5), vec![2.0, -1.0]),
        (microsoft("QLinearSigmoid", &one, "r"), vec![1.0, 0.0]),
        (microsoft("QLinearGlobalAveragePool", &one, "r"), vec![-0.0]),
        (window(microsoft("QLinearAveragePool", &one, "r")), vec![-0.0]),
        (microsoft("QLinearConcat", &chained, "r").with_int("axis", 2), vec![2.0, -2.0, 2.0, -2.0]),
    ] {
        let graph = of(&[1, 1, 1, 2], vec![quantised_x(), node, read("one", "u128")], vec![]);
        given(&graph, &shape, &x, &want);
    }
}

/// 2 * (1.5, -2) = (3, -4), of which nothing below zero is stored: what a Relu makes.
#[test]
fn an_activation_left_to_the_quantisation_is_written_out() {
    let conv = ["q", "half", "u128", "w", "one", "i0", "one", "u0"];
    let mut pool = build::node("MaxPool", &["c"], "p").with_ints("kernel_shape", &[1, 2]);
    pool.output = vec!["p".into()];
    let nodes = vec![
        quantised_x(),
        build::node("QLinearConv", &conv, "c"),
        pool,
        build::node("Flatten", &["p"], "r"),
        read("one", "u0"),
    ];
    let w = whole("w", data_type::INT8, &[2, 1, 1, 1], &[2, -1]);
    let graph = of(&[1, 1, 1, 2], nodes, vec![w]);
    given(&graph, &[1, 1, 1, 2], &[1.5, -2.0], &[3.0, 2.0]);
    let ends: Vec<String> = graph.candidates("y").into_iter().map(|c| c.op).collect();
    assert_eq!(ends, ["Relu", "MaxPool", "Flatten"]);
}

/// Weights less 1: 0.3 * 2 - 0.7 * 3 = -1.5, times 0.5, without rounding 0.3 and 0.7.
#[test]
fn what_would_be_quantised_on_the_way_is_not() {
    let mut on_the_way = build::node("DynamicQuantizeLinear", &["x"], "q");
    on_the_way.output = ["q", "qs", "qz"].map(String::from).into();
    let product = ["q", "w", "qz", "one8"];
    let nodes = vec![
        on_the_way,
        build::node("MatMulInteger", &product, "sum"),
        build::node("Cast", &["sum"], "real").with_int("to", 1),
        build::node("Mul", &["qs", "half"], "steps"),
        build::node("Mul", &["real", "steps"], "y"),
    ];
    let weights = vec![
        whole("w", data_type::INT8, &[2, 1], &[3, 4]),
        whole("one8", data_type::INT8, &[], &[1]),
    ];
    let graph = of(&[1, 2], nodes.clone(), weights.clone());
    given(&graph, &[1, 2], &[0.3, -0.7], &[-0.75]);
    assert_eq!(graph.ending("y").head.unwrap().weight.data(), [1.0, 1.5]);
    // Whatever else reads the whole numbers has them.
    let mut nodes = nodes;
    nodes.push(build::node("DequantizeLinear", &["q", "qs", "qz"], "other"));
    let graph = of(&[1, 2], nodes, weights);
    assert_eq!(graph.ending("y").head, None);
}

#[test]
fn an_output_of_bytes_is_given_in_real_numbers() {
    let mut model = build::model(
        &[1, 2],
        vec![NodeProto { output: vec!["y".into()], ..quantised_x() }],
        common(),
    );
    let output = &mut model.graph.as_mut().unwrap().output[0];
    if let Some(TypeValue::Tensor(t)) = &mut output.r#type.as_mut().unwrap().value {
        t.elem_type = Some(data_type::UINT8);
    }
    let graph = build::graph(&model);
    assert_eq!(graph.outputs()[0].element, "float");
    given(&graph, &[1, 2], &[1.7, -100.0], &[1.5, -64.0]);
}
