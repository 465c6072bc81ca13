//! Trains the classifiers of strokes and of clouds that upright carries for its demo: upright
//! samples only, so that transformed ones are foreign to them.

use std::time::Instant;

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use upright::internal::samples as facts;
use upright::internal::tensor::argmax;
use upright::{Dataset, Samples, samples};

use super::Settings;
use super::pooled_net::PooledNet;
use super::schedule::{rate, shuffle};
use crate::pooled::Rows;

const BATCH: usize = 64;
const HELD_OUT: usize = 2000;

/// What is trained on what.
pub(super) struct Task {
    name: &'static str,
    signal: &'static str,
    rows: Rows,
    data: fn(usize, u64) -> upright::Result<Samples<'static>>,
    names: &'static [&'static str],
    length: usize,
    widths: &'static [usize],
    kernel: usize,
    /// As the built-in model was trained.
    samples: u32,
    epochs: u32,
}

/// Digits as stroke sequences.
pub(super) const STROKES: Task = Task {
    name: "strokes",
    signal: "strokes",
    rows: Rows::Strokes,
    data: samples::strokes,
    names: facts::NAMES.split_at(10).0,
    length: facts::STROKE_LENGTH,
    widths: &[32, 48, 64],
    kernel: 5,
    samples: 12_000,
    epochs: 4,
};

/// Solids as point clouds.
pub(super) const SOLIDS: Task = Task {
    name: "solids",
    signal: "cloud",
    rows: Rows::Cloud,
    data: samples::solids,
    names: facts::SOLID_NAMES,
    length: facts::CLOUD_POINTS,
    widths: &[32, 64, 128],
    kernel: 1,
    samples: 6_000,
    epochs: 3,
};

/// Trains, reports the accuracy on samples of another seed after every epoch, writes the model.
pub(super) fn train(task: &Task, settings: &Settings) -> Result<(), String> {
    let count = settings.samples.unwrap_or(task.samples) as usize;
    let (epochs, seed) = (settings.epochs.unwrap_or(task.epochs), settings.seed);
    let data = (task.data)(count, seed).map_err(|e| e.to_string())?;
    let held_out = (task.data)(HELD_OUT, seed.wrapping_add(1)).map_err(|e| e.to_string())?;

    let device = Device::flex().autodiff();
    device.seed(seed);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut net = PooledNet::new(task.rows, task.widths, task.kernel, task.names.len(), &device);
    let mut optimizer = AdamWConfig::new().with_weight_decay(1e-2).init();
    let loss_of = CrossEntropyLossConfig::new().init(&device);
    let steps = count / BATCH;
    let total = steps * epochs as usize;
    let started = Instant::now();
    let mut order: Vec<usize> = (0..count).collect();
    let mut reached = 0.0;
    for epoch in 0..epochs as usize {
        shuffle(&mut order, &mut random);
        let mut sum = 0.0;
        for (step, rows) in order.chunks_exact(BATCH).enumerate() {
            let (input, labels) = tensors(task, &data, rows, &device);
            let loss = loss_of.forward(net.forward(task.rows, input), labels);
            let grads = GradientsParams::from_grads(loss.backward(), &net);
            sum += loss.into_scalar::<f64>();
            net = optimizer.step(rate(epoch * steps + step, total), net, grads);
        }
        reached = accuracy(task, &net.valid(), &held_out, &device.clone().without_autodiff())?;
        println!(
            "epoch {:>2}  loss {:.4}  held-out accuracy {:.2} %  {:.0} s",
            epoch + 1,
            sum / steps as f64,
            100.0 * reached,
            started.elapsed().as_secs_f32()
        );
    }

    let made_by = format!(
        "upright-lab train {} --samples {count} --epochs {epochs} --seed {seed}",
        task.name
    );
    let network = net.valid().fold(task.rows, task.length)?;
    let bytes = network.onnx(&[
        ("task", "classification"),
        ("signal", task.signal),
        ("names", &task.names.join(",")),
        ("made_by", &made_by),
        ("seed", &seed.to_string()),
        ("accuracy", &format!("{reached:.4} of {HELD_OUT} held-out samples")),
    ]);
    let out = settings.out(task.name);
    std::fs::write(&out, &bytes).map_err(|why| format!("{}: {why}", out.display()))?;
    println!("{}: {} parameters, {} bytes", out.display(), network.parameters(), bytes.len());
    Ok(())
}

fn tensors(
    task: &Task,
    data: &Samples,
    rows: &[usize],
    device: &Device,
) -> (Tensor<3>, Tensor<1, Int>) {
    let batch = data.batch().select(rows);
    let labels: Vec<i64> = rows.iter().map(|&r| data.label(r).map_or(-1, i64::from)).collect();
    let input = TensorData::new(batch.data().to_vec(), [rows.len(), task.length, 3]);
    let labels = TensorData::new(labels, [rows.len()]);
    (Tensor::from_data(input, device), Tensor::from_data(labels, device))
}

fn accuracy(task: &Task, net: &PooledNet, data: &Samples, device: &Device) -> Result<f64, String> {
    let mut right = 0;
    let rows: Vec<usize> = (0..data.len()).collect();
    for rows in rows.chunks(250) {
        let (input, _) = tensors(task, data, rows, device);
        let logits = net.forward(task.rows, input).into_data();
        let logits = logits.try_to_vec::<f32>().map_err(|why| format!("logits: {why:?}"))?;
        let hits = rows.iter().zip(logits.chunks_exact(task.names.len()));
        right += hits.filter(|(r, row)| data.label(**r) == Some(argmax(row) as u32)).count();
    }
    Ok(right as f64 / data.len() as f64)
}
