//! One small network as onnxruntime's quantiser writes it in every way that it
//! has: it answers as onnxruntime does, and its taps, its head and its gradient
//! are those of the network as it was, within what rounding is worth.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::PathBuf;

use safetensors::SafeTensors;
use support::on_every_engine;
use upright::internal::onnx::Graph;
use upright::{Batch, Cotangents, Matrix, Model, ModelOptions, Outputs};

/// Quantised before anything is run.
const STATIC: [&str; 6] = [
    "operators",
    "operators-signed",
    "operators-unsigned",
    "operators-channels",
    "pairs",
    "pairs-channels",
];

/// Inputs quantised on the way.
const DYNAMIC: [&str; 2] = ["on-the-way", "on-the-way-channels"];

/// A step of the quantised logits, which span about 17.
const STEP: f32 = 0.08;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/quantised").join(name)
}

/// Stored numbers.
fn stored(name: &str) -> Vec<f32> {
    let bytes = std::fs::read(path("outputs.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let data = file.tensor(name).unwrap().data().to_vec();
    data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn load(name: &str, options: &ModelOptions) -> Model {
    Model::load(path(&format!("{name}.onnx")), options).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn pictures(model: &Model) -> Batch<'static> {
    Batch::new(model.signal(), stored("input")).unwrap()
}

fn furthest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

#[test]
fn quantised_networks_answer_as_onnxruntime_does() {
    for options in on_every_engine(&ModelOptions::default()) {
        for name in STATIC.into_iter().chain(DYNAMIC) {
            let model = load(name, &options);
            let got = model.run(&pictures(&model)).unwrap().logits;
            // On the way nothing is rounded here, which is worth more than a step there.
            let allowed = if DYNAMIC.contains(&name) { 3.0 * STEP } else { 1.01 * STEP };
            let off = furthest(got.data(), &stored(name));
            eprintln!("{name:20} on {:5} at most {off:.4} off", options.engine);
            assert!(off <= allowed, "{name} on {}: {off} off", options.engine);
        }
    }
}

#[test]
fn taps_and_heads_are_found_through_every_quantisation() {
    for name in STATIC.into_iter().chain(DYNAMIC) {
        let model = load(name, &ModelOptions::default());
        assert_eq!((model.taps()[0].features, model.classes()), (8, 5), "{name}");
        let head = model.head().unwrap_or_else(|| panic!("{name} has no head"));
        assert_eq!((head.weight.rows(), head.weight.cols()), (5, 8), "{name}");
        let graph = Graph::load(path(&format!("{name}.onnx"))).unwrap();
        let ends: Vec<String> = graph.candidates("logits").into_iter().map(|c| c.op).collect();
        let count = |op: &str| ends.iter().filter(|e| *e == op).count();
        // After the stem, the sum, the last convolution and the inner layer.
        assert_eq!(count("Relu"), 4, "{name}: {ends:?}");
        for op in ["MaxPool", "LeakyRelu", "AveragePool", "GlobalAveragePool", "Flatten"] {
            assert_eq!(count(op), 1, "{name}: {op} in {ends:?}");
        }
    }
}

/// The derivative of the first class's logit with respect to every pixel.
fn gradient(name: &str) -> Batch<'static> {
    let model = load(name, &ModelOptions::default());
    let first = |_, outputs: &Outputs| {
        let mut logits = Matrix::zeros(outputs.logits.rows(), outputs.logits.cols());
        (0..logits.rows()).for_each(|i| logits.row_mut(i)[0] = 1.0);
        Ok(Cotangents { logits: Some(logits), features: vec![None] })
    };
    let (_, d) = model.run_with_pullback(&pictures(&model), first).unwrap();
    d
}

/// Equal whole numbers share the derivative of a maximum, so that both differ somewhat.
#[test]
fn gradients_are_about_those_of_the_network_as_it_was() {
    let plain = gradient("plain");
    for name in STATIC.into_iter().chain(DYNAMIC) {
        let got = gradient(name);
        for i in 0..got.len() {
            let (a, b) = (got.item(i), plain.item(i));
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
            let longer = (dot(a, a) / dot(b, b)).sqrt();
            assert!(cosine > 0.85 && (0.7..1.4).contains(&longer), "{name}: {cosine} {longer}");
        }
    }
}

/// Steps that a batch has in common would make an answer depend on its neighbours.
#[test]
fn what_shares_a_batch_changes_nothing() {
    for name in ["operators", DYNAMIC[0]] {
        let model = load(name, &ModelOptions::default());
        let all = pictures(&model);
        let together = model.run(&all).unwrap().logits;
        for i in 0..all.len() {
            let alone = model.run(&all.select(&[i])).unwrap().logits;
            assert_eq!(alone.row(0), together.row(i), "{name}");
        }
    }
}
