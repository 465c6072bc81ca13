//! Gradients of every export of every small network equal those of torch within
//! 2e-5 of the largest, and do not depend on batches or threads, on every engine.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::PathBuf;

use safetensors::SafeTensors;
use support::on_every_engine;
use upright::{Batch, Cotangents, Matrix, Model, ModelOptions, Reduce, Tap};

const NETWORKS: [&str; 5] = ["resnet", "efficientnet", "vit", "deit", "pointnet"];
const EXPORTS: [&str; 4] = ["script-fixed", "script-dynamic", "dynamo-fixed", "dynamo-dynamic"];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/exports").join(name)
}

fn tensor(file: &str, name: &str) -> Matrix {
    let bytes = std::fs::read(path(file)).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = file.tensor(name).unwrap();
    let data = tensor.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let rows = tensor.shape()[0];
    Matrix::new(rows, tensor.shape()[1..].iter().product(), data).unwrap()
}

fn input(model: &Model, network: &str) -> Batch<'static> {
    let data = tensor(&format!("{network}.safetensors"), "input").data().to_vec();
    Batch::new(model.signal(), data).unwrap()
}

fn of_logits(d: Matrix) -> Cotangents {
    Cotangents { logits: Some(d), features: vec![] }
}

fn of_features(d: Matrix) -> Cotangents {
    Cotangents { logits: None, features: vec![Some(d)] }
}

fn assert_close(what: &str, got: &Batch, want: &Matrix) {
    assert_eq!(got.data().len(), want.data().len(), "{what}");
    let top = want.data().iter().fold(0.0f32, |a, v| a.max(v.abs()));
    for (i, (a, b)) in got.data().iter().zip(want.data()).enumerate() {
        assert!((a - b).abs() <= 2e-5 * top, "{what} at {i}: {a} is not {b}, largest {top}");
    }
}

#[test]
fn the_gradient_of_every_export_is_that_of_pytorch() {
    for network in NETWORKS {
        let file = format!("{network}.gradient.safetensors");
        let get = |name: &str| tensor(&file, name);
        for (export, options) in EXPORTS.into_iter().flat_map(|e| {
            on_every_engine(&ModelOptions::default()).into_iter().map(move |o| (e, o))
        }) {
            let file = format!("{network}-{export}.onnx");
            let name = format!("{file} on {}", options.engine);
            let model = Model::load(path(&file), &options).unwrap();
            let batch = input(&model, network);
            let back = |d: Cotangents| {
                model.pullback(&batch, &d).unwrap_or_else(|e| panic!("{name}: {e}"))
            };
            assert_close(&name, &back(of_logits(get("d_logits"))), &get("through_logits"));
            assert_close(&name, &back(of_features(get("d_features"))), &get("through_features"));
            let mut both = get("through_logits");
            let other = get("through_features");
            both.data_mut().iter_mut().zip(other.data()).for_each(|(a, b)| *a += b);
            let d = Cotangents {
                logits: Some(get("d_logits")),
                features: vec![Some(get("d_features"))],
            };
            assert_close(&name, &back(d), &both);
        }
    }
}

#[test]
fn a_network_without_gradient_says_which_operator_lacks_one() {
    for export in EXPORTS {
        let name = format!("lstm-{export}.onnx");
        let model = Model::load(path(&name), &ModelOptions::default()).unwrap();
        let e = model.differentiable().unwrap_err();
        assert!(e.to_string().ends_with("no gradient rule for: LSTM"), "{e}");
        assert_eq!(e.code(), "onnx::gradient");
    }
}

#[test]
fn gradients_do_not_depend_on_batches_or_threads() {
    for (network, options) in ["resnet", "vit"]
        .into_iter()
        .flat_map(|n| on_every_engine(&ModelOptions::default()).into_iter().map(move |o| (n, o)))
    {
        let file = format!("{network}.gradient.safetensors");
        let d = tensor(&file, "d_logits");
        let load = |threads| {
            let options = ModelOptions { threads: Some(threads), ..options.clone() };
            Model::load(path(&format!("{network}-script-dynamic.onnx")), &options).unwrap()
        };
        let model = load(1);
        let three = input(&model, network);
        let want = model.pullback(&three, &of_logits(d.clone())).unwrap();
        let rows: Vec<usize> = (0..21).map(|i| i % 3).collect();
        for threads in [1, 3] {
            let model = load(threads);
            let many = model.pullback(&three.select(&rows), &of_logits(d.select(&rows))).unwrap();
            let what = format!("{network} on {} x {threads}", options.engine);
            assert_eq!(many.data(), want.select(&rows).data(), "{what}");
        }
    }
}

#[test]
fn reductions_and_preprocessing_are_pulled_back_too() {
    // Differences of <c, features> along single raw pixels.
    let mut options = ModelOptions {
        taps: vec![
            Tap::auto(),
            Tap::new("/layer2/relu/Relu_output_0").reduced(Reduce::Pool { dim: 20, seed: 1 }),
        ],
        ..ModelOptions::default()
    };
    options.preprocess.set("mean", "0.4,0.5,0.6").unwrap();
    options.preprocess.set("std", "0.2,0.3,0.25").unwrap();
    options.preprocess.set("channels", "bgr").unwrap();
    let model = Model::load(path("resnet-script-dynamic.onnx"), &options).unwrap();
    let batch = input(&model, "resnet").select(&[0]);
    let wave = |n: usize| -> Vec<f32> { (0..n).map(|i| (i as f32 * 0.7).sin()).collect() };
    let rows = |n: usize| Matrix::new(1, n, wave(n)).unwrap();
    let (outputs, gradient) = model
        .run_with_pullback(&batch, |_, o| {
            let features = o.features.iter().map(|f| Some(rows(f.cols()))).collect();
            Ok(Cotangents { logits: Some(rows(o.logits.cols())), features })
        })
        .unwrap();
    let scalar = |o: &upright::Outputs| -> f64 {
        let parts = std::iter::once(&o.logits).chain(&o.features);
        let dot = |m: &Matrix| -> f64 {
            m.data().iter().zip(wave(m.cols())).map(|(a, b)| f64::from(a * b)).sum()
        };
        parts.map(dot).sum()
    };
    assert!((scalar(&outputs) - scalar(&model.run(&batch).unwrap())).abs() < 1e-4);
    let along: Vec<f32> = gradient.data().to_vec();
    let norm: f32 = along.iter().map(|v| v * v).sum();
    let step = 1e-3 / norm.sqrt();
    let moved = |sign: f32| {
        let data = batch.data().iter().zip(&along).map(|(x, g)| x + sign * step * g).collect();
        scalar(&model.run(&Batch::new(model.signal(), data).unwrap()).unwrap())
    };
    let slope = (moved(1.0) - moved(-1.0)) / (2.0 * f64::from(step));
    assert!((slope / f64::from(norm) - 1.0).abs() < 1e-2, "{slope} is not {norm}");
}
