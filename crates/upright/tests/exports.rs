//! Every export of every small network: the tap found in the graph holds what
//! torch feeds its last linear layer, the logits are those of torch, and the head
//! makes them out of the features; all this on every engine, within 1e-4.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::PathBuf;

use safetensors::SafeTensors;
use support::on_every_engine;
use upright::{Batch, Matrix, Model, ModelOptions, Signal, Tap};

const NETWORKS: [&str; 6] = ["resnet", "efficientnet", "vit", "deit", "lstm", "pointnet"];
const EXPORTS: [&str; 4] = ["script-fixed", "script-dynamic", "dynamo-fixed", "dynamo-dynamic"];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/exports").join(name)
}

struct Truth {
    input: Vec<f32>,
    output: Matrix,
    logits: Matrix,
    features: Matrix,
}

fn truth(network: &str) -> Truth {
    let bytes = std::fs::read(path(&format!("{network}.safetensors"))).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let numbers = |name: &str| -> Vec<f32> {
        let data = file.tensor(name).unwrap().data().to_vec();
        data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    };
    let matrix = |name: &str| {
        let shape = file.tensor(name).unwrap().shape().to_vec();
        Matrix::new(shape[0], shape[1], numbers(name)).unwrap()
    };
    Truth {
        input: numbers("input"),
        output: matrix("output"),
        logits: matrix("logits"),
        features: matrix("features"),
    }
}

/// Nothing tapped.
fn bare() -> ModelOptions {
    ModelOptions { taps: vec![], ..ModelOptions::default() }
}

fn exports() -> impl Iterator<Item = (&'static str, String)> {
    NETWORKS.iter().flat_map(|n| EXPORTS.iter().map(move |e| (*n, format!("{n}-{e}.onnx"))))
}

fn assert_close(what: &str, got: &Matrix, want: &Matrix) {
    assert_eq!((got.rows(), got.cols()), (want.rows(), want.cols()), "{what}");
    for (i, (a, b)) in got.data().iter().zip(want.data()).enumerate() {
        assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{what} at {i}: {a} is not {b}");
    }
}

#[test]
fn the_tap_found_in_every_export_holds_the_features_of_pytorch() {
    for (network, file) in exports() {
        let truth = truth(network);
        for options in on_every_engine(&ModelOptions::default()) {
            let what = format!("{file} on {}", options.engine);
            let model =
                Model::load(path(&file), &options).unwrap_or_else(|e| panic!("{what}: {e}"));
            let batch = Batch::new(model.signal(), truth.input.clone()).unwrap();
            let out = model.run(&batch).unwrap();
            assert_close(&format!("{what} logits"), &out.logits, &truth.logits);
            assert_close(&format!("{what} features"), &out.features[0], &truth.features);
        }
    }
}

#[test]
fn the_head_of_every_export_makes_the_logits_out_of_the_features() {
    for (network, file) in exports() {
        let truth = truth(network);
        let model = Model::load(path(&file), &ModelOptions::default()).unwrap();
        let head = model.head().unwrap_or_else(|| panic!("{file} has no head"));
        let mut logits = Matrix::zeros(truth.features.rows(), head.bias.len());
        for (i, f) in truth.features.iter().enumerate() {
            for (c, z) in logits.row_mut(i).iter_mut().enumerate() {
                let sum: f32 = head.weight.row(c).iter().zip(f).map(|(w, f)| w * f).sum();
                *z = sum + head.bias[c];
            }
        }
        assert_close(&format!("{file} head"), &logits, &truth.logits);
    }
}

#[test]
fn a_final_softmax_is_noticed_and_left_out() {
    let truth = truth("pointnet");
    for export in EXPORTS {
        let file = format!("pointnet-{export}.onnx");
        let model = Model::load(path(&file), &ModelOptions::default()).unwrap();
        assert_eq!(model.ending().activation.as_deref(), Some("Softmax"), "{file}");
        let tapped = ModelOptions { taps: vec![Tap::new("output")], ..ModelOptions::default() };
        let model = Model::load(path(&file), &tapped).unwrap();
        let out = model.run(&Batch::new(model.signal(), truth.input.clone()).unwrap()).unwrap();
        assert_close(&file, &out.features[0], &truth.output);
    }
}

#[test]
fn fixed_batches_are_honoured_and_signals_recognised() {
    for (network, file) in exports() {
        let model = Model::load(path(&file), &bare()).unwrap();
        assert_eq!(model.micro_batch(), if file.contains("fixed") { 1 } else { 8 }, "{file}");
        let kind = match model.signal() {
            Signal::Image { .. } => "image",
            Signal::Strokes { length: 10 } => "strokes",
            Signal::Cloud { points: 20 } => "cloud",
            other => panic!("{file}: {other:?}"),
        };
        let want = match network {
            "lstm" => "strokes",
            "pointnet" => "cloud",
            _ => "image",
        };
        assert_eq!(kind, want, "{file}");
    }
}

#[test]
fn every_candidate_of_every_export_can_be_tapped() {
    for (network, file) in exports() {
        let graph = upright::internal::onnx::Graph::load(path(&file)).unwrap();
        let candidates = graph.candidates("output");
        assert!(candidates.iter().any(|c| c.head), "{file}");
        let taps = candidates.iter().map(|c| Tap::new(&c.name)).collect();
        let bare = Model::load(path(&file), &bare()).unwrap();
        let batch = Batch::new(bare.signal(), truth(network).input).unwrap();
        let bare = bare.run(&batch).unwrap();
        for options in on_every_engine(&ModelOptions { taps, ..ModelOptions::default() }) {
            let what = format!("{file} with all taps on {}", options.engine);
            let model =
                Model::load(path(&file), &options).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_close(&what, &model.run(&batch).unwrap().logits, &bare.logits);
        }
    }
}

#[test]
fn results_do_not_depend_on_batches_or_threads() {
    for (network, options) in ["resnet", "vit", "lstm"]
        .into_iter()
        .flat_map(|n| on_every_engine(&ModelOptions::default()).into_iter().map(move |o| (n, o)))
    {
        let file = path(&format!("{network}-script-dynamic.onnx"));
        let input = truth(network).input;
        let load = |threads| {
            Model::load(&file, &ModelOptions { threads: Some(threads), ..options.clone() }).unwrap()
        };
        let model = load(1);
        let three = Batch::new(model.signal(), input).unwrap();
        let many = three.select(&(0..41).map(|i| i % 3).collect::<Vec<_>>());
        let want = model.run(&three).unwrap();
        for threads in [1, 2, 7] {
            let all = load(threads).run(&many).unwrap();
            for i in 0..41 {
                let what = format!("{network} on {} x {threads}, item {i}", options.engine);
                assert_eq!(all.logits.row(i), want.logits.row(i % 3), "{what}");
                assert_eq!(all.features[0].row(i), want.features[0].row(i % 3), "{what}");
            }
        }
    }
}
