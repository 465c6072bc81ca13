//! Everything around the network against the engine alone.

use serde::Serialize;
use upright::internal::seed::sobol;
use upright::{Batch, Config, FitData, Part, Resample, Role, Silent, View, samples, warp};

use super::{Network, median, timed};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    network: Network,
    /// The score
    #[arg(long, default_value = "knn")]
    score: String,
    /// Samples to fit on
    #[arg(long, default_value_t = 2000)]
    bank: usize,
    /// Images searched at a time
    #[arg(long, default_value_t = 32)]
    images: usize,
    /// Views an image
    #[arg(long, default_value_t = 60)]
    budget: usize,
    /// Interleaved repetitions
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Length of the features
    #[arg(long, default_value_t = 1024)]
    dim: usize,
}

#[derive(Serialize)]
struct Report {
    score: String,
    views: usize,
    runs: usize,
    /// Median over the runs of (search - engine) / engine.
    overhead: f64,
    /// The share of the warp alone.
    warp: f64,
}

pub(crate) fn run(args: &Args) -> upright::Result<()> {
    let config = Config { budget: args.budget, calibration: 100, ..Config::default() }
        .with(Role::Score, Part::new(&args.score))
        .with(Role::Gate, Part::new("always"));
    let training = samples::digits(args.bank, 1)?;
    let c =
        config.fit(args.network.load(Some(args.dim))?, &FitData::new(&training), &mut Silent)?;
    let bare = args.network.load(None)?;
    let batch = samples::digits(args.images, 2)?.batch().clone();
    let views = views(&batch, args.budget, c.space());
    let seen = warp(&batch, &views, &Resample::default())?;

    let (mut overhead, mut share) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let (engine, _) = timed(|| {
            bare.run(&batch)?;
            bare.run(&seen)
        })?;
        let (whole, _) = timed(|| c.predict(&batch))?;
        let (warping, _) = timed(|| warp(&batch, &views, &Resample::default()))?;
        overhead.push((whole - engine) / engine);
        share.push(warping / engine);
    }
    let report = Report {
        score: args.score.clone(),
        views: args.images * (args.budget + 1),
        runs: args.runs,
        overhead: median(overhead),
        warp: median(share),
    };
    println!("{}", serde_json::to_string(&report).unwrap_or_default());
    println!(
        "everything around the network costs {:.1} % of the engine's time, the warp {:.1} %",
        100.0 * report.overhead,
        100.0 * report.warp
    );
    Ok(())
}

fn views(batch: &Batch, budget: usize, space: &upright::Space) -> Vec<View> {
    let pose = |i: usize, seed: usize| space.draw(&sobol(i as u32, space.cube(), seed as u64));
    (0..batch.len())
        .flat_map(|item| (0..budget).map(move |i| View { item, map: space.map(&pose(i, item)) }))
        .collect()
}
