//! The paper's table of detector run times: the whole search under every
//! score, relative to `energy`.

use serde::Serialize;
use upright::score::{self, Bank};
use upright::{Canonicalizer, Config, Dataset, Part, Role, State, samples};

use super::{Network, bytes, median, timed};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    network: Network,
    /// Samples in the bank
    #[arg(long, default_value_t = 54_000)]
    bank: usize,
    /// Length of the features
    #[arg(long, default_value_t = 1024)]
    dim: usize,
    /// Images searched at a time
    #[arg(long, default_value_t = 16)]
    images: usize,
    /// Views an image
    #[arg(long, default_value_t = 60)]
    budget: usize,
    /// Interleaved repetitions
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Only these scores [default: all]
    #[arg(long)]
    score: Vec<String>,
}

#[derive(Serialize)]
struct Line {
    score: &'static str,
    /// Median over the runs of the search's time relative to the mean of a search under
    /// `energy` right before and one right after.
    relative: f64,
    lowest: f64,
    highest: f64,
    /// Megabytes that the fitted score stores.
    stored: f64,
}

pub(crate) fn run(args: &Args) -> upright::Result<()> {
    let model = args.network.load(Some(args.dim))?;
    eprintln!("features of {} samples ...", args.bank);
    let training = samples::digits(args.bank, 1)?;
    let outputs = model.run(training.batch())?;
    let labels: Vec<u32> = (0..training.len()).filter_map(|i| training.label(i)).collect();
    drop(training);
    let head = head(&outputs, 10)?;
    let bank = Bank { head: Some(&head), ..Bank::of(&outputs, &labels) };
    let able =
        |name: &str| score::needs(&Part::new(name)).is_ok_and(|n| n.lessons == 0 && !n.external);
    let asked = |name: &str| {
        name == "energy" || args.score.is_empty() || args.score.iter().any(|s| s == name)
    };
    let rows: Vec<&'static str> =
        score::TABLE.iter().map(|r| r.name).filter(|name| asked(name) && able(name)).collect();
    let mut states: Vec<State> = Vec::new();
    for name in &rows {
        let (seconds, fitted) = timed(|| score::fit(&Part::new(*name), &bank))?;
        eprintln!("fitted {name} in {seconds:.1} s");
        states.push(fitted.state());
    }
    let stored: Vec<f64> = states.iter().map(bytes).map(|b| b as f64 / 1e6).collect();
    let batch = samples::digits(args.images, 2)?.batch().clone();
    let energy = canonicalizer(args, "energy", &State::new())?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
    for _ in 0..args.runs {
        for (i, name) in rows.iter().enumerate() {
            let c = canonicalizer(args, name, &states[i])?;
            c.predict(&batch.select(&[0]))?;
            let (before, _) = timed(|| energy.predict(&batch))?;
            let (own, _) = timed(|| c.predict(&batch))?;
            let (after, _) = timed(|| energy.predict(&batch))?;
            times[i].push(2.0 * own / (before + after));
        }
    }
    println!(
        "{:22} {:>9} {:>17} {:>10}   {} runs of {} views, bank {} x {}",
        "score",
        "relative",
        "lowest..highest",
        "stored MB",
        args.runs,
        args.images * (args.budget + 1),
        outputs.len(),
        outputs.features[0].cols()
    );
    for (i, score) in rows.iter().copied().enumerate() {
        let ratios = times[i].clone();
        let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = ratios.iter().copied().fold(0.0, f64::max);
        let line = Line { score, relative: median(ratios), lowest, highest, stored: stored[i] };
        println!(
            "{:22} {:>9.3} {:>17} {:>10.1}",
            line.score,
            line.relative,
            format!("{:.3}..{:.3}", line.lowest, line.highest),
            line.stored
        );
        eprintln!("{}", serde_json::to_string(&line).unwrap_or_default());
    }
    Ok(())
}

/// A head of the features' width, so that scores that need one have the paper's cost.
fn head(outputs: &upright::Outputs, classes: usize) -> upright::Result<upright::Head> {
    let width = outputs.features[0].cols();
    let mut rng = upright::internal::seed::stream(7);
    let scale = 1.0 / (width as f32).sqrt();
    let weight = (0..classes * width)
        .map(|_| (upright::internal::seed::unit(&mut rng) - 0.5) * scale)
        .collect();
    upright::Head::new(upright::Matrix::new(classes, width, weight)?, vec![0.0; classes])
}

/// A canonicalizer that always searches, with the given score.
fn canonicalizer(args: &Args, name: &str, state: &State) -> upright::Result<Canonicalizer> {
    let config =
        Config { budget: args.budget, ..Config::default() }.with(Role::Score, Part::new(name));
    super::always(args.network.load(Some(args.dim))?, config, args.bank, state)
}
