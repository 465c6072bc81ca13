//! Trains the digit classifier that upright carries for its demo: upright
//! digits only, so that rotated, sheared and scaled ones are foreign to it.

use std::time::Instant;

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use upright::internal::samples::{NAMES, SIZE};
use upright::internal::tensor::argmax;
use upright::samples::digits;
use upright::{Dataset, Samples};

use super::Settings;
use super::net::Net;
use super::schedule::{rate, shuffle};

/// As the built-in model was trained.
const SAMPLES: u32 = 12_000;
const EPOCHS: u32 = 8;
const WIDTHS: [usize; 4] = [8, 16, 32, 64];
const CLASSES: usize = 10;
const BATCH: usize = 64;
const HELD_OUT: usize = 2000;

/// Trains, reports the accuracy on digits of another seed after every epoch, writes the model.
pub(super) fn train(settings: &Settings) -> Result<(), String> {
    let count = settings.samples.unwrap_or(SAMPLES) as usize;
    let (epochs, seed) = (settings.epochs.unwrap_or(EPOCHS), settings.seed);
    let data = digits(count, seed).map_err(|e| e.to_string())?;
    let held_out = digits(HELD_OUT, seed.wrapping_add(1)).map_err(|e| e.to_string())?;

    let device = Device::flex().autodiff();
    device.seed(seed);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut net = Net::new(&WIDTHS, CLASSES, &device);
    let mut optimizer = AdamWConfig::new().with_weight_decay(1e-2).init();
    let loss_of = CrossEntropyLossConfig::new().init(&device);
    let steps = count / BATCH;
    let total = steps * epochs as usize;
    let started = Instant::now();
    let mut order: Vec<usize> = (0..count).collect();
    for epoch in 0..epochs as usize {
        shuffle(&mut order, &mut random);
        let mut sum = 0.0;
        for (step, rows) in order.chunks_exact(BATCH).enumerate() {
            let (images, labels) = tensors(&data, rows, &device);
            let loss = loss_of.forward(net.forward(images), labels);
            let grads = GradientsParams::from_grads(loss.backward(), &net);
            sum += loss.into_scalar::<f64>();
            net = optimizer.step(rate(epoch * steps + step, total), net, grads);
        }
        let accuracy = accuracy(&net.valid(), &held_out, &device.clone().without_autodiff())?;
        println!(
            "epoch {:>2}  loss {:.4}  held-out accuracy {:.2} %  {:.0} s",
            epoch + 1,
            sum / steps as f64,
            100.0 * accuracy,
            started.elapsed().as_secs_f32()
        );
    }

    let made_by =
        format!("upright-lab train glyphs --samples {count} --epochs {epochs} --seed {seed}");
    let network = net.valid().fold()?;
    let bytes = network.onnx(&[
        ("task", "classification"),
        ("channels", "gray"),
        ("scale", "1/255"),
        ("mean", "0"),
        ("std", "1"),
        ("names", &NAMES[..CLASSES].join(",")),
        ("made_by", &made_by),
        ("seed", &seed.to_string()),
    ]);
    let out = settings.out("glyphs");
    std::fs::write(&out, &bytes).map_err(|why| format!("{}: {why}", out.display()))?;
    println!("{}: {} parameters, {} bytes", out.display(), network.parameters(), bytes.len());
    Ok(())
}

fn tensors(data: &Samples, rows: &[usize], device: &Device) -> (Tensor<4>, Tensor<1, Int>) {
    let batch = data.batch().select(rows);
    let labels: Vec<i64> = rows.iter().map(|&r| data.label(r).map_or(-1, i64::from)).collect();
    let images = TensorData::new(batch.data().to_vec(), [rows.len(), 1, SIZE, SIZE]);
    let labels = TensorData::new(labels, [rows.len()]);
    (Tensor::from_data(images, device), Tensor::from_data(labels, device))
}

fn accuracy(net: &Net, data: &Samples, device: &Device) -> Result<f64, String> {
    let mut right = 0;
    let rows: Vec<usize> = (0..data.len()).collect();
    for rows in rows.chunks(250) {
        let (images, _) = tensors(data, rows, device);
        let logits = net.forward(images).into_data();
        let logits = logits.try_to_vec::<f32>().map_err(|why| format!("logits: {why:?}"))?;
        let hits = rows.iter().zip(logits.chunks_exact(CLASSES));
        right += hits.filter(|(r, row)| data.label(**r) == Some(argmax(row) as u32)).count();
    }
    Ok(right as f64 / data.len() as f64)
}
