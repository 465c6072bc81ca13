//! A forward pass with gradient against one without.

use serde::Serialize;
use upright::{Batch, Cotangents, Matrix, Model, ModelOptions, engine, samples};

use super::{Network, median, timed};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    network: Network,
    /// Images at a time
    #[arg(long, default_value_t = 64)]
    images: usize,
    /// Interleaved repetitions
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// Items per micro-batch [default: what the engine likes]
    #[arg(long)]
    micro_batch: Option<usize>,
}

#[derive(Serialize)]
struct Line {
    engine: String,
    micro_batch: usize,
    runs: usize,
    /// Median over the runs of a pass with gradient relative to the mean of a pass without
    /// right before and one right after.
    ratio: f64,
    /// Milliseconds per image without gradient, the least of all runs.
    forward_ms: f64,
    /// Milliseconds per image with gradient, the least of all runs.
    gradient_ms: f64,
}

pub(crate) fn run(args: &Args) -> upright::Result<()> {
    let engines: Vec<String> = if let Some(engine) = &args.network.engine {
        vec![engine.clone()]
    } else {
        let ready = engine::TABLE.iter().filter(|row| (row.make.ready)().is_ok());
        ready.map(|row| row.name.into()).collect()
    };
    let load = |engine: &String| -> upright::Result<Model> {
        let model = args.network.open(&ModelOptions {
            engine: engine.clone(),
            threads: args.network.threads,
            micro_batch: args.micro_batch,
            ..ModelOptions::default()
        })?;
        model.differentiable()?;
        Ok(model)
    };
    let models: Vec<Model> = engines.iter().map(load).collect::<upright::Result<_>>()?;
    let batch = samples::digits(args.images, 2)?.batch().clone();
    let mut times: Vec<Vec<(f64, f64)>> = vec![Vec::new(); models.len()];
    for run in 0..=args.runs {
        for (model, times) in models.iter().zip(&mut times) {
            let (before, _) = timed(|| model.run(&batch))?;
            let (with, _) = timed(|| pulled(model, &batch))?;
            let (after, _) = timed(|| model.run(&batch))?;
            if run > 0 {
                times.push((f64::midpoint(before, after), with));
            }
        }
    }
    for (model, times) in models.iter().zip(times) {
        let least = |part: fn(&(f64, f64)) -> f64| {
            let least = times.iter().map(part).fold(f64::INFINITY, f64::min);
            1e3 * least / args.images as f64
        };
        let line = Line {
            engine: model.engine().into(),
            micro_batch: model.micro_batch(),
            runs: args.runs,
            ratio: median(times.iter().map(|(plain, with)| with / plain).collect()),
            forward_ms: least(|t| t.0),
            gradient_ms: least(|t| t.1),
        };
        eprintln!("{}", serde_json::to_string(&line).unwrap_or_default());
        println!(
            "{:5} a pass with gradient costs {:.2} forward passes ({:.2} and {:.2} ms per image at best)",
            line.engine, line.ratio, line.gradient_ms, line.forward_ms
        );
    }
    Ok(())
}

/// A pass with the gradient of the sum of all features.
fn pulled(model: &Model, batch: &Batch) -> upright::Result<Batch<'static>> {
    let ones = |m: &Matrix| Matrix::new(m.rows(), m.cols(), vec![1.0; m.data().len()]);
    let (_, gradient) = model.run_with_pullback(batch, |_, o| {
        let features =
            o.features.iter().map(|f| ones(f).map(Some)).collect::<upright::Result<_>>()?;
        Ok(Cotangents { logits: None, features })
    })?;
    Ok(gradient)
}
