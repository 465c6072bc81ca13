//! Random search with refinement against a large bank, one search at a time.
//!
//! A folder holds what both sides of the comparison read: `model.onnx`, and
//! raw little-endian `f32` in `images`, `bank` and `reduction`, the matrix that
//! takes a tapped tensor to features. It is filled on first use.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use upright::score::{self, Bank};
use upright::{Batch, Config, Matrix, Model, Outputs, Part, Role, samples};

use super::{Network, always, timed};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    network: Network,
    /// Where the data lie
    #[arg(long, default_value = "rslr")]
    folder: PathBuf,
    /// Samples in the bank
    #[arg(long, default_value_t = 54_000)]
    bank: usize,
    /// Length of the features
    #[arg(long, default_value_t = 1024)]
    dim: usize,
    /// Images searched at a time
    #[arg(long, default_value_t = 128)]
    images: usize,
    /// Views an image
    #[arg(long, default_value_t = 60)]
    budget: usize,
}

/// Said once everything is ready.
#[derive(Serialize)]
struct Ready {
    engine: &'static str,
    micro_batch: usize,
    tap: String,
    features: usize,
}

/// Said after each search.
#[derive(Serialize)]
struct Searched {
    seconds: f64,
    /// What the searches cost an image, the image as it is included.
    evaluations: f64,
    /// The mean energy of the images as they are, and of the views found.
    raw: f64,
    best: f64,
}

pub(crate) fn run(args: &Args) -> upright::Result<()> {
    let model = args.network.load(Some(args.dim))?;
    prepare(args, &model)?;
    let features = read(&args.folder.join("bank"))?;
    let cols = model.taps()[0].features;
    let features = Matrix::new(features.len() / cols, cols, features)?;
    let (rows, logits) = (features.rows(), Matrix::zeros(features.rows(), model.classes()));
    let outputs = Outputs::new(logits, vec![features])?;
    let bank = Bank::of(&outputs, &[]);
    let config = Config { budget: args.budget, ..Config::default() }
        .with(Role::Score, Part::new("knn"))
        .with(Role::Search, Part::new("random-refine"));
    let state = score::fit(config.part(Role::Score), &bank)?.state();
    drop(outputs);
    let ready = Ready {
        engine: model.engine(),
        micro_batch: model.micro_batch(),
        tap: model.taps()[0].tensors.join(","),
        features: cols,
    };
    let c = always(model, config, rows, &state)?;
    let batch = Batch::new(c.model().signal(), read(&args.folder.join("images"))?)?;
    c.predict(&batch.select(&[0]))?;
    say(&ready);
    for _ in std::io::stdin().lock().lines() {
        let (seconds, found) = timed(|| c.predict(&batch))?;
        let mean = |part: fn(&upright::Prediction) -> f64| {
            found.iter().map(part).sum::<f64>() / found.len().max(1) as f64
        };
        say(&Searched {
            seconds,
            evaluations: mean(|p| p.evaluations as f64),
            raw: mean(|p| f64::from(p.energy_before)),
            best: mean(|p| f64::from(p.energy_after)),
        });
    }
    Ok(())
}

fn say(line: &impl Serialize) {
    println!("{}", serde_json::to_string(line).unwrap_or_default());
    std::io::stdout().flush().unwrap_or_default();
}

/// Fills the folder unless it is complete; `reduction` is written last.
fn prepare(args: &Args, model: &Model) -> upright::Result<()> {
    let at = |name: &str| args.folder.join(name);
    if at("reduction").exists() {
        return Ok(());
    }
    let io = |e| upright::Error::io(&args.folder, e);
    std::fs::create_dir_all(&args.folder).map_err(io)?;
    let onnx = match &args.network.model {
        Some(path) => std::fs::read(path).map_err(io)?,
        None => crate::model::paper(args.network.width, 10, 0),
    };
    std::fs::write(at("model.onnx"), onnx).map_err(io)?;
    write(&at("images"), samples::digits(args.images, 2)?.batch().data())?;
    eprintln!("features of {} samples ...", args.bank);
    let outputs = model.run(samples::digits(args.bank, 1)?.batch())?;
    write(&at("bank"), outputs.features[0].data())?;
    let cols = model.taps()[0].features;
    let mut identity = Matrix::zeros(cols, cols);
    (0..cols).for_each(|i| identity.row_mut(i)[i] = 1.0);
    write(&at("reduction"), model.taps()[0].reduction().pullback(&identity)?.data())
}

fn read(path: &Path) -> upright::Result<Vec<f32>> {
    let bytes = std::fs::read(path).map_err(|e| upright::Error::io(path, e))?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect())
}

fn write(path: &Path, data: &[f32]) -> upright::Result<()> {
    let bytes: Vec<u8> = data.iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(path, bytes).map_err(|e| upright::Error::io(path, e))
}
