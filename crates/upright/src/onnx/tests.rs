use std::path::Path;

use proptest::prelude::*;
use prost::Message;

use super::build::{graph, model, node, shape, weight};
use super::proto::{ModelProto, StringStringEntryProto, TensorProto, data_type};
use super::{Dim, Ending, Graph};

/// Weights [2,3] and their transpose [3,2].
const W: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const WT: [f32; 6] = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];

fn linear() -> ModelProto {
    let gemm = node("Gemm", &["x", "w", "b"], "y").with_int("transB", 1);
    model(&[0, 3], vec![gemm], vec![weight("w", &[2, 3], &W), weight("b", &[2], &[7.0, 8.0])])
}

fn refusal(m: &ModelProto) -> String {
    Graph::from_bytes("m.onnx", &m.encode_to_vec()).unwrap_err().to_string()
}

fn assert_head(ending: &Ending, weight: &[f32], bias: &[f32]) {
    let head = ending.head.as_ref().expect("a head");
    assert_eq!((head.weight.data(), head.bias.as_slice()), (weight, bias));
    assert_eq!(ending.features, ["x"]);
}

#[test]
fn a_graph_tells_what_is_in_it() {
    let mut m = linear();
    m.producer_name = Some("hand".into());
    m.producer_version = Some("1".into());
    super::build::remark(&mut m, "scale", "1/255");
    let g = graph(&m);
    let dims = vec![Dim::Symbol("n".into()), Dim::Fixed(3)];
    assert_eq!((g.inputs()[0].name.as_str(), g.inputs()[0].dims.as_ref()), ("x", Some(&dims)));
    assert_eq!(g.inputs()[0].to_string(), "x float [n,3]");
    assert_eq!(g.outputs()[0].to_string(), "y float [n,2]");
    assert_eq!((g.operators()[0].name.as_str(), g.operators()[0].count), ("Gemm", 1));
    assert_eq!((g.opset(), g.producer().as_str()), (17, "hand 1"));
    assert_eq!(g.metadata()["scale"], "1/255");
    assert_eq!(g.initializer("w").unwrap().data, W);
    assert_eq!(g.fingerprint(), blake3::hash(&m.encode_to_vec()).to_hex().as_str());
}

#[test]
fn weights_are_read_in_every_real_type_and_storage() {
    let values = [1.5f32, -2.0];
    let stored = |code: i32, raw: Vec<u8>| TensorProto {
        dims: vec![2],
        data_type: Some(code),
        raw_data: Some(raw.into()),
        ..Default::default()
    };
    let half = values.map(half::f16::from_f32);
    for t in [
        weight("w", &[2], &values),
        stored(data_type::FLOAT, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        stored(
            data_type::DOUBLE,
            values.iter().flat_map(|v| f64::from(*v).to_le_bytes()).collect(),
        ),
        stored(data_type::FLOAT16, half.iter().flat_map(|v| v.to_le_bytes()).collect()),
        TensorProto {
            dims: vec![2],
            data_type: Some(data_type::FLOAT16),
            int32_data: half.iter().map(|v| i32::from(v.to_bits())).collect(),
            ..Default::default()
        },
        TensorProto {
            dims: vec![2],
            data_type: Some(data_type::DOUBLE),
            double_data: vec![1.5, -2.0],
            ..Default::default()
        },
    ] {
        assert_eq!(super::Constant::read(&t).unwrap().data, values, "{t:?}");
    }
}

#[test]
fn the_head_is_found_however_it_is_written() {
    let b = || weight("b", &[2], &[7.0, 8.0]);
    let wt = || weight("w", &[3, 2], &WT);
    let mm = || node("MatMul", &["x", "w"], "z");
    let cases = [
        (vec![mm(), node("Add", &["z", "b"], "y")], vec![wt(), b()]),
        (vec![mm(), node("Add", &["b", "z"], "y")], vec![wt(), weight("b", &[1, 2], &[7.0, 8.0])]),
        (vec![node("Gemm", &["x", "w", "b"], "y")], vec![wt(), b()]),
        (
            vec![
                node("Identity", &["v"], "v1"),
                node("Cast", &["v1"], "v2").with_int("to", 1),
                node("Transpose", &["v2"], "w"),
                mm(),
                node("Identity", &["z"], "z1"),
                node("Add", &["z1", "b"], "z2"),
                node("Reshape", &["z2", "s"], "y"),
            ],
            vec![weight("v", &[2, 3], &W), b(), shape("s", &[-1, 2])],
        ),
    ];
    for (nodes, weights) in cases {
        assert_head(&graph(&model(&[0, 3], nodes, weights)).ending("y"), &W, &[7.0, 8.0]);
    }
    let bare = model(&[0, 3], vec![node("MatMul", &["x", "w"], "y")], vec![wt()]);
    assert_head(&graph(&bare).ending("y"), &W, &[0.0, 0.0]);
}

#[test]
fn factors_around_the_head_are_part_of_it() {
    let gemm = node("Gemm", &["x", "w", "b"], "z").with_int("transB", 1);
    let gemm = gemm.with_real("alpha", 2.0).with_real("beta", 0.5);
    let weights =
        vec![weight("w", &[2, 3], &W), weight("b", &[2], &[7.0, 8.0]), weight("t", &[], &[4.0])];
    let m = model(&[0, 3], vec![gemm, node("Div", &["z", "t"], "y")], weights);
    let half = W.map(|w| w * 0.5);
    assert_head(&graph(&m).ending("y"), &half, &[0.875, 1.0]);
}

#[test]
fn a_sum_of_two_linear_layers_is_one_head_of_joined_features() {
    let nodes = vec![
        node("Relu", &["x"], "r"),
        node("MatMul", &["x", "w"], "p"),
        node("MatMul", &["r", "w"], "q"),
        node("Add", &["p", "q"], "y"),
    ];
    let ending = graph(&model(&[0, 3], nodes, vec![weight("w", &[3, 2], &WT)])).ending("y");
    assert_eq!(ending.features, ["x", "r"]);
    let head = ending.head.unwrap();
    assert_eq!(head.weight.row(0), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
}

#[test]
fn logits_are_taken_before_a_final_softmax() {
    let nodes = vec![
        node("MatMul", &["x", "w"], "z"),
        node("Softmax", &["z"], "p"),
        node("Cast", &["p"], "y"),
    ];
    let ending = graph(&model(&[0, 3], nodes, vec![weight("w", &[3, 2], &WT)])).ending("y");
    assert_eq!((ending.logits.as_str(), ending.activation.as_deref()), ("z", Some("Softmax")));
}

#[test]
fn without_an_exact_head_the_last_linear_layer_is_tapped() {
    let nodes = vec![node("MatMul", &["x", "w"], "z"), node("Relu", &["z"], "y")];
    let ending = graph(&model(&[0, 3], nodes, vec![weight("w", &[3, 2], &WT)])).ending("y");
    assert_eq!((ending.features, ending.head), (vec!["x".to_string()], None));
}

#[test]
fn damaged_models_are_refused_with_a_reason() {
    let whole = linear().encode_to_vec();
    let open = |bytes: &[u8]| Graph::from_bytes("m.onnx", bytes).unwrap_err().to_string();
    assert_eq!(open(&[]), "m.onnx: not a usable ONNX model: it is empty");
    assert!(open(&whole[..whole.len() / 2]).contains("damaged or not ONNX"));
    assert!(open(b"not a model at all").contains("not a usable ONNX model"));

    let edit = |f: &dyn Fn(&mut super::proto::GraphProto)| {
        let mut m = linear();
        f(m.graph.as_mut().unwrap());
        refusal(&m)
    };
    let mut none = linear();
    none.graph = None;
    assert!(refusal(&none).contains("no graph"));
    assert!(edit(&|g| g.node[0].input[0] = "ghost".into()).contains("`ghost`, which nothing"));
    assert!(edit(&|g| g.node[0].input[0] = "y".into()).contains("`y`, which nothing"));
    assert!(edit(&|g| g.node.push(g.node[0].clone())).contains("`y` is made twice"));
    assert!(edit(&|g| g.node.clear()).contains("output `y` is made by nothing"));
    assert!(edit(&|g| g.initializer[0].dims = vec![1 << 40, 3]).contains("there are 6"));
    assert!(edit(&|g| g.initializer[0].dims = vec![1 << 40, 1 << 40]).contains("impossible"));
    assert!(edit(&|g| g.initializer[0].dims = vec![-2, -3]).contains("impossible dimensions"));
    assert!(edit(&|g| g.initializer[0].raw_data = Some(vec![0; 5].into())).contains("24 bytes"));
    assert!(edit(&|g| g.node[0].op_type = None).contains("has no operator"));
}

proptest! {
    #[test]
    fn no_bytes_make_reading_panic(
        cut in 0usize..200, at in 0usize..200, byte: u8, noise in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut bytes = linear().encode_to_vec();
        let n = bytes.len();
        bytes[at % n] = byte;
        bytes.truncate(n - cut % n);
        bytes.extend(noise);
        if let Ok(g) = Graph::from_bytes("m", &bytes) {
            let _ = (g.candidates("y"), g.inputs(), g.operators());
        }
    }
}

fn outside(folder: &Path, location: &str) -> Result<Graph, crate::Error> {
    let mut m = linear();
    let w = &mut m.graph.as_mut().unwrap().initializer[0];
    w.float_data.clear();
    w.data_location = Some(super::proto::EXTERNAL);
    let entry =
        |k: &str, v: &str| StringStringEntryProto { key: Some(k.into()), value: Some(v.into()) };
    w.external_data =
        vec![entry("location", location), entry("offset", "4"), entry("length", "24")];
    let path = folder.join("m.onnx");
    std::fs::write(&path, m.encode_to_vec()).unwrap();
    Graph::load(path)
}

#[test]
fn external_weights_are_read_from_plain_files_beside_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = vec![0; 4];
    bytes.extend(W.iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(dir.path().join("w.bin"), &bytes).unwrap();
    let g = outside(dir.path(), "w.bin").unwrap();
    assert_eq!(g.initializer("w").unwrap().data, W);
    bytes[0] = 1;
    std::fs::write(dir.path().join("w.bin"), &bytes).unwrap();
    let changed = outside(dir.path(), "w.bin").unwrap();
    assert_ne!(g.fingerprint(), changed.fingerprint());
}

#[test]
fn external_weights_from_elsewhere_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("models");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    let secret = dir.path().join("secret.bin");
    std::fs::write(&secret, [0; 64]).unwrap();
    for location in ["../secret.bin", "sub/../../secret.bin", secret.to_str().unwrap(), "", "sub"] {
        assert!(outside(&folder, location).is_err(), "{location}");
    }
    std::fs::write(folder.join("short.bin"), [0; 20]).unwrap();
    let why = outside(&folder, "short.bin").unwrap_err().to_string();
    assert!(why.contains("beyond the end"), "{why}");
}

#[cfg(unix)]
#[test]
fn external_weights_behind_links_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("models");
    let other = dir.path().join("other");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("w.bin"), [0; 64]).unwrap();
    std::os::unix::fs::symlink(other.join("w.bin"), folder.join("soft.bin")).unwrap();
    std::os::unix::fs::symlink(&other, folder.join("dir")).unwrap();
    std::fs::hard_link(other.join("w.bin"), folder.join("hard.bin")).unwrap();
    for location in ["soft.bin", "dir/w.bin", "hard.bin"] {
        let why = outside(&folder, location).unwrap_err().to_string();
        assert!(why.contains("it is a link"), "{location}: {why}");
    }
}
