//! Models and the file beside them, each a little further: the graph alone,
//! the model ready to run, its gradient.

use std::path::Path;
use std::time::Duration;

use upright::internal::onnx::Graph;
use upright::{Batch, Cotangents, Model, ModelOptions, Outputs, Signal, SignalKind};

use super::readers::{MB, Reader};
use super::wire;
use crate::onnx_write::{Attribute, Graph as Written};

/// Small networks as exporters write them.
const EXPORTS: [&[u8]; 7] = [
    include_bytes!("../../../upright/tests/fixtures/exports/resnet-script-dynamic.onnx"),
    include_bytes!("../../../upright/tests/fixtures/exports/efficientnet-dynamo-fixed.onnx"),
    include_bytes!("../../../upright/tests/fixtures/exports/vit-dynamo-dynamic.onnx"),
    include_bytes!("../../../upright/tests/fixtures/exports/deit-script-dynamic.onnx"),
    include_bytes!("../../../upright/tests/fixtures/exports/lstm-script-fixed.onnx"),
    include_bytes!("../../../upright/tests/fixtures/exports/pointnet-script-fixed.onnx"),
    include_bytes!("../../../upright/tests/fixtures/exports/pointnet-dynamo-dynamic.onnx"),
];

/// A network as onnxruntime quantises it.
const QUANTISED: [&[u8]; 4] = [
    include_bytes!("../../../upright/tests/fixtures/quantised/operators.onnx"),
    include_bytes!("../../../upright/tests/fixtures/quantised/operators-channels.onnx"),
    include_bytes!("../../../upright/tests/fixtures/quantised/pairs.onnx"),
    include_bytes!("../../../upright/tests/fixtures/quantised/on-the-way.onnx"),
];

/// Operators and attributes.
const WORDS: &[&str] = &[
    "Conv",
    "Gemm",
    "MatMul",
    "Add",
    "Mul",
    "Div",
    "Sub",
    "Relu",
    "Softmax",
    "Reshape",
    "Flatten",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Concat",
    "Split",
    "Slice",
    "Gather",
    "Pad",
    "Expand",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "ReduceMean",
    "ReduceMax",
    "ReduceSum",
    "LayerNormalization",
    "BatchNormalization",
    "LSTM",
    "GRU",
    "Identity",
    "Cast",
    "Constant",
    "ConstantOfShape",
    "DequantizeLinear",
    "QuantizeLinear",
    "DynamicQuantizeLinear",
    "QLinearConv",
    "QLinearMatMul",
    "QLinearAdd",
    "QLinearConcat",
    "QLinearAveragePool",
    "QGemm",
    "ConvInteger",
    "MatMulInteger",
    "com.microsoft",
    "Scaler",
    "ai.onnx.ml",
    "Loop",
    "Scan",
    "If",
    "Erf",
    "Sigmoid",
    "Clip",
    "TopK",
    "Resize",
    "Tile",
    "Where",
    "CumSum",
    "axis",
    "axes",
    "perm",
    "pads",
    "group",
    "keepdims",
    "kernel_shape",
    "strides",
    "dilations",
    "transA",
    "transB",
    "auto_pad",
    "SAME_UPPER",
    "",
    "n",
    "signal",
    "strokes",
    "cloud",
    "mean",
    "resize",
    "scale",
    "names",
];

/// Time that loading a model and a few runs of it may take: damage may ask for large inputs.
const PATIENCE: Duration = Duration::from_mins(1);

/// Valid models, at most 64 kB each.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = EXPORTS.iter().chain(&QUANTISED).map(|e| e.to_vec()).collect();
    all.extend([channels_last(), bytes(), rows(), rounds()]);
    all
}

fn weights(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 37 % 97) as f32 / 97.0 - 0.5).collect()
}

/// A convolution over pictures with channels last, and a linear layer.
fn ending(graph: &mut Written, x: &str) {
    graph.node("Transpose", &[x], "first", &[("perm", Attribute::Ints(&[0, 3, 1, 2]))]);
    graph.weights("k", &[4, 3, 3, 3], &weights(108));
    graph.node("Conv", &["first", "k"], "c", &[("kernel_shape", Attribute::Ints(&[3, 3]))]);
    graph.node("Relu", &["c"], "r", &[]);
    graph.node("GlobalAveragePool", &["r"], "g", &[]);
    graph.node("Flatten", &["g"], "f", &[]);
    graph.weights("w", &[5, 4], &weights(20));
    graph.node("Gemm", &["f", "w"], "y", &[("transB", Attribute::Int(1))]);
    graph.output("y", &[5]);
}

fn channels_last() -> Vec<u8> {
    let mut graph = Written::new("last");
    graph.input("x", &[8, 8, 3]);
    ending(&mut graph, "x");
    graph.file(&[("names", "a,b,c,d,e"), ("resize", "8")])
}

fn bytes() -> Vec<u8> {
    let mut graph = Written::new("bytes");
    graph.input_of_bytes("x", &[8, 8, 3]);
    graph.node("Cast", &["x"], "real", &[("to", Attribute::Int(1))]);
    ending(&mut graph, "real");
    graph.file(&[])
}

pub(super) fn rows() -> Vec<u8> {
    let mut graph = Written::new("rows");
    graph.input("x", &[64]);
    graph.weights("a", &[64, 6], &weights(384));
    graph.node("MatMul", &["x", "a"], "h", &[]);
    graph.node("Tanh", &["h"], "t", &[]);
    graph.weights("w", &[5, 6], &weights(30));
    graph.node("Gemm", &["t", "w"], "logits", &[("transB", Attribute::Int(1))]);
    graph.node("Softmax", &["logits"], "y", &[]);
    graph.output("y", &[5]);
    graph.file(&[])
}

/// A loop of three rounds before a linear layer.
fn rounds() -> Vec<u8> {
    let mut body = Written::new("body");
    body.ports(&["round", "goes", "v"], &["on", "w"]);
    body.node("Identity", &["goes"], "on", &[]);
    body.node("Mul", &["v", "half"], "w", &[]);
    let mut graph = Written::new("rounds");
    graph.input("x", &[64]);
    graph.integer("three", 3);
    graph.weights("half", &[1], &[0.5]);
    graph.node("Loop", &["three", "", "x"], "l", &[("body", Attribute::Graph(&body))]);
    graph.weights("a", &[5, 64], &weights(320));
    graph.node("Gemm", &["l", "a"], "y", &[("transB", Attribute::Int(1))]);
    graph.output("y", &[5]);
    graph.file(&[])
}

/// A kernel so large that it runs as a product.
fn large_kernel() -> Vec<u8> {
    let mut graph = Written::new("large");
    graph.input("x", &[64, 3, 3]);
    graph.weights("k", &[456, 64, 3, 3], &weights(456 * 64 * 9));
    let attributes =
        [("kernel_shape", Attribute::Ints(&[3, 3])), ("pads", Attribute::Ints(&[1, 1, 1, 1]))];
    graph.node("Conv", &["x", "k"], "c", &attributes);
    graph.node("GlobalAveragePool", &["c"], "g", &[]);
    graph.node("Flatten", &["g"], "f", &[]);
    graph.weights("w", &[5, 456], &weights(5 * 456));
    graph.node("Gemm", &["f", "w"], "y", &[("transB", Attribute::Int(1))]);
    graph.output("y", &[5]);
    graph.file(&[])
}

/// Every reader of models.
pub(super) fn readers() -> Vec<Reader> {
    let model = |name: &str, seeds: Vec<Vec<u8>>, cap: usize, read: fn(&Path) -> bool| Reader {
        name: name.into(),
        file: "m.onnx".into(),
        words: WORDS,
        packed: false,
        seeds,
        cap,
        patience: PATIENCE,
        inner: Some(wire::damaged),
        read: Box::new(read),
    };
    let settings = Reader {
        name: "model-toml".into(),
        file: "m.toml".into(),
        words: &[
            "resize", "filter", "crop", "pad", "fill", "channels", "scale", "mean", "std", "=",
            "[", "]", "\"", "nan", "inf", "gray", "bgr", "rgb", "imagenet",
        ],
        packed: false,
        seeds: tomls(),
        cap: 64 * MB,
        patience: PATIENCE,
        inner: None,
        read: Box::new(beside),
    };
    vec![
        model("onnx", seeds(), 64 * MB, graph),
        model("model", seeds(), 4096 * MB, |path| load(path).is_some_and(|m| runs(&m))),
        model("gradient", seeds(), 4096 * MB, gradient),
        model("products", vec![large_kernel()], 4096 * MB, gradient),
        settings,
    ]
}

/// Everything that a graph tells without being run.
fn graph(path: &Path) -> bool {
    let Ok(graph) = Graph::load(path) else { return false };
    let _ = (graph.inputs(), graph.operators(), graph.producer(), graph.metadata());
    for output in graph.outputs() {
        let _ = (graph.ending(&output.name), graph.candidates(&output.name));
    }
    for name in graph.initializers().into_iter().chain(graph.tensors()) {
        let _ = (graph.constant(name), graph.dims(name));
    }
    true
}

/// The model of one thread; what takes three columns is taken for a cloud.
fn load(path: &Path) -> Option<Model> {
    let mut options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
    Model::load(path, &options)
        .or_else(|_| {
            options.kind = Some(SignalKind::Cloud);
            options.rows = Some(16);
            Model::load(path, &options)
        })
        .ok()
}

/// A few items that differ.
fn some(signal: Signal, items: usize) -> Option<Batch<'static>> {
    let data = (0..items * signal.size()).map(|i| (i * 31 % 101) as f32 / 101.0).collect();
    Batch::new(signal, data).ok()
}

fn runs(model: &Model) -> bool {
    let Some(batch) = some(model.signal(), 3) else { return false };
    let _ = (model.taps(), model.head(), model.class_names(), model.options());
    model.run(&batch).is_ok_and(|o| o.logits.rows() == 3)
}

fn gradient(path: &Path) -> bool {
    let Some(model) = load(path) else { return false };
    let Some(batch) = some(model.signal(), 3) else { return false };
    let of = |_, outputs: &Outputs| {
        let features = outputs.features.iter().cloned().map(Some).collect();
        Ok(Cotangents { logits: Some(outputs.logits.clone()), features })
    };
    let ran = model.run_with_pullback(&batch, of);
    // Operators without a derivative are no damage.
    ran.is_ok() || model.run(&batch).is_ok()
}

/// Files that say how pictures are prepared.
fn tomls() -> Vec<Vec<u8>> {
    let texts = [
        "resize = \"8\"\nfilter = \"bilinear\"\nchannels = \"rgb\"\nscale = 0.00392\n",
        "mean = [0.5, 0.4, 0.3]\nstd = [0.2, 0.2, 0.3]\ncrop = \"8x8\"\n",
        "resize = \"8x8\"\npad = \"8\"\nfill = 0.5\nchannels = \"bgr\"\n",
    ];
    texts.map(|t| t.as_bytes().to_vec()).into()
}

/// A model that lies beside the file, and a picture prepared for it.
fn beside(path: &Path) -> bool {
    let model = path.with_extension("onnx");
    if !model.exists() && std::fs::write(&model, channels_last()).is_err() {
        return false;
    }
    let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
    let Ok(model) = Model::load(&model, &options) else { return false };
    let Ok(picture) = upright::Picture::new(9, 11, 3, vec![0.5; 297]) else { return false };
    let Ok(item) = model.prepare(&picture) else { return false };
    let Ok(batch) = Batch::new(model.signal(), item) else { return false };
    model.run(&batch).is_ok()
}
