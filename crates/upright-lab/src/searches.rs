//! `upright-lab searches`: every search on the same transformed inputs, with
//! the same score and budget: energy reached, accuracy, evaluations, time.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use upright::canonicalizer::{Canonicalizer, transformed_copies};
use upright::config::Part;
use upright::dataset::Dataset;
use upright::search;
use upright::stats::Share;
use upright::tensor::Batch;
use upright_cli::data::{self, DataArgs, Prepare, Want};

use crate::orbit::load;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// Labelled, upright data, as `upright eval` reads them
    data: PathBuf,
    /// The artifact fitted on the model [default: the model's name with .upright]
    #[arg(long)]
    artifact: Option<PathBuf>,
    /// Views a search may look at
    #[arg(long, default_value_t = 60)]
    budget: usize,
    /// Inputs, if the data have so many
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// Only these searches; a setting is added as in `rivals:moments=false`
    #[arg(long, value_delimiter = ',')]
    searches: Vec<String>,
    /// Seed of the poses
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    reading: DataArgs,
}

#[derive(Serialize)]
struct Line {
    search: String,
    inputs: usize,
    budget: usize,
    seed: u64,
    /// Mean over inputs of the lowest energy, the input as it is among the views.
    energy: f64,
    accuracy: Share,
    interval: (f64, f64),
    evaluations: f64,
    ms: f64,
}

/// Inputs searched at a time.
const CHUNK: usize = 128;

/// Measures and prints a line for every search.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let mut c = load(&args.model, args.artifact.as_deref()).map_err(|e| e.to_string())?;
    let (batch, labels) = inputs(args, &c)?;
    let names = if args.searches.is_empty() {
        search::TABLE.iter().map(|row| row.name.to_string()).collect()
    } else {
        args.searches.clone()
    };
    println!(
        "{:<28} {:>10} {:>9} {:>15} {:>7} {:>8}",
        "search", "energy", "accuracy", "(95 %)", "views", "ms"
    );
    for name in names {
        let line = measure(args, &mut c, &name, &batch, &labels).map_err(|e| e.to_string())?;
        let (low, high) = line.interval;
        println!(
            "{:<28} {:>10.5} {:>9} {:>15} {:>7.1} {:>8.1}",
            line.search,
            line.energy,
            line.accuracy.to_string(),
            format!("({low:.1}..{high:.1})"),
            line.evaluations,
            line.ms
        );
        eprintln!("{}", serde_json::to_string(&line).unwrap_or_default());
    }
    println!("{} inputs, budget {}, seed {}", labels.len(), args.budget, args.seed);
    Ok(())
}

/// Transformed copies and their classes.
fn inputs(args: &Args, c: &Canonicalizer) -> Result<(Batch, Vec<u32>), String> {
    let reading = DataArgs { limit: Some(args.count), ..args.reading.clone() };
    let signal = c.model().signal();
    let options = reading.options(Want::Labelled, signal, Some(c.model().classes()), args.seed);
    let source = data::open(
        std::slice::from_ref(&args.data),
        &options,
        Prepare::for_model(c.model(), args.seed),
    )
    .map_err(|e| e.to_string())?;
    let rows: Vec<usize> = (0..source.len()).collect();
    let loaded = source.read(&rows).map_err(|e| e.to_string())?;
    let labels: Vec<u32> = loaded.rows.iter().filter_map(|&r| source.label(r)).collect();
    let copies = transformed_copies(&loaded.batch, c.space(), &c.config().resample, args.seed);
    Ok((copies.map_err(|e| e.to_string())?, labels))
}

/// The search that a word such as `rivals:moments=false:share=0.5` names.
fn part(word: &str) -> Part {
    let mut words = word.split(':');
    let start = Part::new(words.next().unwrap_or_default());
    words
        .filter_map(|setting| setting.split_once('='))
        .fold(start, |part, (name, value)| part.with(name, upright::config::Value::parse(value)))
}

fn measure(
    args: &Args,
    c: &mut Canonicalizer,
    name: &str,
    batch: &Batch,
    labels: &[u32],
) -> upright::Result<Line> {
    c.set_search(part(name), args.budget)?;
    let (mut energy, mut evaluations) = (0.0, 0);
    let mut accuracy = Share::default();
    let start = Instant::now();
    let all: Vec<usize> = (0..batch.len()).collect();
    for rows in all.chunks(CHUNK) {
        for (trace, &row) in c.trace(&batch.select(rows))?.iter().zip(rows) {
            let best = c.read(trace).map(|a| a.look).filter(|b| b.energy < trace.raw.energy);
            let best = best.unwrap_or_else(|| trace.raw_look());
            energy += f64::from(best.energy);
            evaluations += trace.cost;
            accuracy.of += 1;
            accuracy.hits += usize::from(best.label == labels[row]);
        }
    }
    let n = batch.len().max(1) as f64;
    Ok(Line {
        search: name.into(),
        inputs: batch.len(),
        budget: args.budget,
        seed: args.seed,
        energy: energy / n,
        interval: accuracy.interval(),
        accuracy,
        evaluations: evaluations as f64 / n,
        ms: 1000.0 * start.elapsed().as_secs_f64() / n,
    })
}
