//! `upright-lab cost answers`: transformed digits answered by ours and by the
//! paper's recipe, one pass over all of them for each line of standard input.
//!
//! A folder holds what another program needs to do the same: `model.onnx`, and raw
//! little-endian `images` and `bank` (`f32`) and `labels` (`u32`).

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;
use upright::{Config, Part, Role, Tap};

use super::Lab;
use super::fits::Filled;
use super::main::paper_config;
use super::measure::{gated, searched};
use super::scale::Scale;
use super::tasks::{Folders, Task};

/// Arguments of `upright-lab cost answers`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of data sets
    #[arg(long)]
    data: PathBuf,
    /// Folder of classifiers
    #[arg(long)]
    models: PathBuf,
    /// Where the other program's data are written
    #[arg(long, default_value = "rslr")]
    folder: PathBuf,
    /// What runs classifiers: rten or ort
    #[arg(long, default_value = "rten")]
    engine: String,
    /// quick or full
    #[arg(long, default_value = "full")]
    scale: String,
}

/// Answers until standard input ends.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let folders = Folders {
        data: args.data.clone(),
        models: args.models.clone(),
        trained: args.models.clone(),
        engine: args.engine.clone(),
    };
    let scale = Scale::of(&args.scale, false)?;
    let lab = Lab::new("speed", scale, &folders, &args.folder)?;
    let task = Task::open("mnist", &folders, scale)?;
    answer(&lab, &task, &args.folder, &args.models.join("mnist.onnx")).map_err(|e| e.to_string())
}

fn answer(lab: &Lab, task: &Task, folder: &Path, file: &Path) -> upright::Result<()> {
    let model = task.model(&[Tap::auto()])?;
    let filled = Filled::of(task, &model, lab.scale.bank)?;
    let test = task.test()?;
    super::folder(folder)?;
    let io = |e| upright::Error::io(folder, e);
    std::fs::copy(file, folder.join("model.onnx")).map_err(io)?;
    write(&folder.join("images"), test.transformed.data().iter().map(|v| v.to_le_bytes()))?;
    write(&folder.join("labels"), test.labels.iter().map(|v| v.to_le_bytes()))?;
    let features = &filled.outputs.features[0];
    write(&folder.join("bank"), features.data().iter().map(|v| v.to_le_bytes()))?;
    let config: Config =
        paper_config(lab, task, &model)?.with(Role::Score, Part::new("knn").number("k", 3.0));
    let paper = filled.searching(&model, config)?;
    let ours = lab.ours(task)?.c;
    say(&json!({
        "engine": model.engine(),
        "bank": features.rows(),
        "features": features.cols(),
        "inputs": test.labels.len(),
    }));
    for line in std::io::stdin().lock().lines() {
        let method = line.map_err(io)?;
        let start = Instant::now();
        let answers = match method.trim() {
            "gated" => gated(&ours, &test.transformed)?,
            "always" => searched(&ours, &test.transformed)?[1].clone(),
            _ => searched(&paper, &test.transformed)?[0].clone(),
        };
        let seconds = start.elapsed().as_secs_f64();
        let right = answers.right(&test.labels).iter().filter(|r| **r).count();
        say(&json!({
            "seconds": seconds,
            "right": 100.0 * right as f64 / test.labels.len().max(1) as f64,
            "evaluations": answers.mean(),
        }));
    }
    Ok(())
}

fn say(line: &serde_json::Value) {
    println!("{line}");
    std::io::stdout().flush().unwrap_or_default();
}

fn write(path: &Path, numbers: impl Iterator<Item = [u8; 4]>) -> upright::Result<()> {
    let bytes: Vec<u8> = numbers.flatten().collect();
    std::fs::write(path, bytes).map_err(|e| upright::Error::io(path, e))
}
