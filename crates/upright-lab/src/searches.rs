//! `upright-lab searches`: every search on the same transformed inputs, with
//! the same score and budget: energy reached, accuracy, evaluations, time; on
//! demand also on the inputs as they are, and both behind a gate.

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use upright::gate::{self, Calibration, Case, Look};
use upright::internal::canonicalizer::transformed_copies;
use upright::internal::dataset::CHUNK;
use upright::{Batch, Canonicalizer, Dataset, Part, Role, Share, search};
use upright_cli::data::DataArgs;
use upright_data::{Prepare, Want};

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
    /// Views that a search may evaluate
    #[arg(long, default_value_t = 60)]
    budget: usize,
    /// Inputs, if the data have so many
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// Only these searches; a setting is added as in `rivals:proposals=false`
    #[arg(long, value_delimiter = ',')]
    searches: Vec<String>,
    /// Seed of the poses
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Search the inputs as they are, too, and show both kinds behind a gate, as in
    /// `best-mix:drop=1`: fitted on half of the inputs, judged on the other, both ways
    #[arg(long)]
    gate: Option<String>,
    #[command(flatten)]
    reading: DataArgs,
}

/// Right answers on inputs of both kinds.
#[derive(Clone, Copy, Default, Serialize)]
struct Both {
    upright: Share,
    transformed: Share,
}

#[derive(Serialize)]
struct Gated {
    alone: Both,
    always: Both,
    behind: Both,
    /// Inputs that the gate lets search.
    searched: Both,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    gated: Option<Gated>,
}

/// Measures and prints a line for every search.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let c = load(&args.model, args.artifact.as_deref()).map_err(|e| e.to_string())?;
    let inputs = inputs(args, &c)?;
    let names = if args.searches.is_empty() {
        search::TABLE.iter().map(|row| row.name.to_string()).collect()
    } else {
        args.searches.clone()
    };
    println!(
        "{:<28} {:>10} {:>9} {:>15} {:>7} {:>8}{}",
        "search",
        "energy",
        "accuracy",
        "(95 %)",
        "views",
        "ms",
        if args.gate.is_some() { "   upright / transformed" } else { "" }
    );
    for name in names {
        let line = measure(args, &c, &name, &inputs).map_err(|e| e.to_string())?;
        let (low, high) = line.interval;
        print!(
            "{:<28} {:>10.5} {:>9} {:>15} {:>7.1} {:>8.1}",
            line.search,
            line.energy,
            line.accuracy.to_string(),
            format!("({low:.1}..{high:.1})"),
            line.evaluations,
            line.ms
        );
        if let Some(gated) = &line.gated {
            let pair = |both: &Both| format!("{} / {}", both.upright, both.transformed);
            print!(
                "   alone {}, always {}, gated {}, searched {}",
                pair(&gated.alone),
                pair(&gated.always),
                pair(&gated.behind),
                pair(&gated.searched)
            );
        }
        println!();
        eprintln!("{}", serde_json::to_string(&line).unwrap_or_default());
    }
    println!("{} inputs, budget {}, seed {}", inputs.labels.len(), args.budget, args.seed);
    Ok(())
}

/// Inputs as they are, their transformed copies, and their classes.
pub(crate) struct Inputs {
    pub(crate) upright: Batch<'static>,
    pub(crate) transformed: Batch<'static>,
    pub(crate) labels: Vec<u32>,
}

fn inputs(args: &Args, c: &Canonicalizer) -> Result<Inputs, String> {
    let reading = DataArgs { limit: Some(args.count), ..args.reading.clone() };
    read_inputs(&args.data, &reading, args.seed, c)
}

/// Labelled inputs, and copies of them under random poses.
pub(crate) fn read_inputs(
    data: &PathBuf,
    reading: &DataArgs,
    seed: u64,
    c: &Canonicalizer,
) -> Result<Inputs, String> {
    let signal = c.model().signal();
    let options = reading.options(Want::Labelled, signal, Some(c.model().classes()), seed);
    let source = upright_data::open(
        std::slice::from_ref(data),
        &options,
        Prepare::for_model(c.model(), seed),
    )
    .map_err(|e| e.to_string())?;
    let rows: Vec<usize> = (0..source.len()).collect();
    let loaded = source.read(&rows).map_err(|e| e.to_string())?;
    let labels: Vec<u32> = loaded.rows.iter().filter_map(|&r| source.label(r)).collect();
    let copies = transformed_copies(&loaded.batch, c.space(), &c.config().resample, seed);
    let transformed = copies.map_err(|e| e.to_string())?;
    Ok(Inputs { upright: loaded.batch, transformed, labels })
}

/// The search that a word such as `rivals:proposals=false:first=0.5` names.
fn part(word: &str) -> Part {
    let mut words = word.split(':');
    let start = Part::new(words.next().unwrap_or_default());
    words
        .filter_map(|setting| setting.split_once('='))
        .fold(start, |part, (name, value)| part.with(name, upright::Value::parse(value)))
}

fn measure(args: &Args, c: &Canonicalizer, name: &str, inputs: &Inputs) -> upright::Result<Line> {
    let c = &c.with_part(Role::Search, part(name))?.with_budget(args.budget);
    let start = Instant::now();
    let found = searched(c, &inputs.transformed, &inputs.labels)?;
    let seconds = start.elapsed().as_secs_f64();
    let answers = found.cases.iter().map(answer);
    let accuracy =
        Share::count(found.cases.iter().map(|case| Some(answer(case).label) == case.truth));
    let n = found.cases.len().max(1) as f64;
    let energy = answers.map(|a| f64::from(a.energy)).sum::<f64>() / n;
    let gated = match &args.gate {
        Some(gate) => {
            let upright = searched(c, &inputs.upright, &inputs.labels)?;
            Some(behind(&part(gate), &upright.cases, &found.cases)?)
        }
        None => None,
    };
    Ok(Line {
        search: name.into(),
        inputs: found.cases.len(),
        budget: args.budget,
        seed: args.seed,
        energy,
        interval: accuracy.interval(),
        accuracy,
        evaluations: found.evaluations as f64 / n,
        ms: 1000.0 * seconds / n,
        gated,
    })
}

/// What searches of some inputs found, and what they cost together.
struct Found {
    cases: Vec<Case>,
    evaluations: usize,
}

fn searched(c: &Canonicalizer, batch: &Batch, labels: &[u32]) -> upright::Result<Found> {
    let mut found = Found { cases: Vec::new(), evaluations: 0 };
    let all: Vec<usize> = (0..batch.len()).collect();
    for rows in all.chunks(CHUNK) {
        for (trace, &row) in c.trace(&batch.select(rows))?.iter().zip(rows) {
            let best = c.read(trace).map(|a| a.look);
            found.cases.push(Case { raw: trace.raw_look(), best, truth: Some(labels[row]) });
            found.evaluations += trace.cost;
        }
    }
    Ok(found)
}

/// The view found if its energy is lower, else the input as it is.
fn answer(case: &Case) -> Look {
    case.best.filter(|b| b.energy < case.raw.energy).unwrap_or(case.raw)
}

/// Both kinds behind a gate that was fitted on the other half of the inputs.
fn behind(gate: &Part, upright: &[Case], transformed: &[Case]) -> upright::Result<Gated> {
    let right = |look: Look, case: &Case| Some(look.label) == case.truth;
    let mut gated = Gated {
        alone: both(upright, transformed, |case| right(case.raw, case)),
        always: both(upright, transformed, |case| right(answer(case), case)),
        behind: Both::default(),
        searched: Both::default(),
    };
    let half = |cases: &[Case], odd: usize| -> Vec<Case> {
        cases.iter().copied().skip(odd).step_by(2).collect()
    };
    for odd in [0, 1] {
        let fitted = gate::fit(
            gate,
            &Calibration {
                upright: &half(upright, 1 - odd),
                transformed: &half(transformed, 1 - odd),
            },
        )?;
        let (upright, transformed) = (half(upright, odd), half(transformed, odd));
        let open = |case: &Case| fitted.search(case.raw);
        gated.searched.add(both(&upright, &transformed, open));
        gated.behind.add(both(&upright, &transformed, |case| {
            let best = case.best.filter(|&b| open(case) && fitted.accept(case.raw, b));
            right(best.unwrap_or(case.raw), case)
        }));
    }
    Ok(gated)
}

fn both(upright: &[Case], transformed: &[Case], hit: impl Fn(&Case) -> bool) -> Both {
    Both {
        upright: Share::count(upright.iter().map(&hit)),
        transformed: Share::count(transformed.iter().map(&hit)),
    }
}

impl Both {
    fn add(&mut self, more: Both) {
        for (sum, more) in
            [(&mut self.upright, more.upright), (&mut self.transformed, more.transformed)]
        {
            sum.hits += more.hits;
            sum.of += more.of;
        }
    }
}
