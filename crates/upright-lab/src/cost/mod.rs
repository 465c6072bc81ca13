//! What canonicalization costs beside the network itself. Times are taken in
//! one interleaved run and reported as ratios.

use std::path::PathBuf;
use std::time::Instant;

use clap::Subcommand;
use upright::internal::canonicalizer::States;
use upright::{
    Canonicalizer, Config, FitReport, Model, ModelOptions, Part, Reduce, Role, State, Tap,
};

mod gradient;
mod overhead;
mod rslr;
mod scores;

/// What to measure.
#[derive(Subcommand)]
pub(crate) enum Cost {
    /// Warp, score and bookkeeping against the engine alone, for the same views.
    Overhead(overhead::Args),
    /// The whole search under every score, against the score `energy`.
    Scores(scores::Args),
    /// A forward pass with gradient against one without, on every engine.
    Gradient(gradient::Args),
    /// Random search with refinement, one search for each line of standard input: the side of
    /// upright in bench/rslr.py.
    Rslr(rslr::Args),
    /// Answers for transformed digits by the method that a line of standard input names: the side
    /// of upright in bench/rslr.py with --data.
    Answers(crate::experiments::AnswersArgs),
}

impl Cost {
    /// Measures and prints.
    pub(crate) fn run(self) -> Result<(), String> {
        match self {
            Cost::Overhead(args) => overhead::run(&args),
            Cost::Scores(args) => scores::run(&args),
            Cost::Gradient(args) => gradient::run(&args),
            Cost::Rslr(args) => rslr::run(&args),
            Cost::Answers(args) => return crate::experiments::answers(&args),
        }
        .map_err(|e| e.to_string())
    }
}

/// The network to measure with.
#[derive(clap::Args)]
struct Network {
    /// An ONNX file that takes 40 x 40 grey pictures [default: the paper's network, random weights]
    #[arg(long)]
    model: Option<PathBuf>,
    /// Width of the paper's network
    #[arg(long, default_value_t = 64)]
    width: usize,
    /// Engine [default: rten; `gradient` measures all]
    #[arg(long)]
    engine: Option<String>,
    /// Threads [default: all cores]
    #[arg(long)]
    threads: Option<usize>,
}

impl Network {
    /// Loads it with a tap reduced to at most `dim` features, or without any tap.
    fn load(&self, dim: Option<usize>) -> upright::Result<Model> {
        let taps = match dim {
            None => vec![],
            Some(dim) => vec![Tap { name: self.tap()?, reduce: Reduce::Pool { dim, seed: 0 } }],
        };
        let mut options = ModelOptions { taps, threads: self.threads, ..ModelOptions::default() };
        if let Some(engine) = &self.engine {
            options.engine.clone_from(engine);
        }
        self.open(&options)
    }

    fn open(&self, options: &ModelOptions) -> upright::Result<Model> {
        match &self.model {
            Some(path) => Model::load(path, options),
            None => Model::from_bytes("paper", &crate::model::paper(self.width, 10, 0), options),
        }
    }

    /// The last tensor with positions: what the global average is taken of.
    fn tap(&self) -> upright::Result<String> {
        let graph = match &self.model {
            Some(path) => upright::internal::onnx::Graph::load(path)?,
            None => upright::internal::onnx::Graph::from_bytes(
                "paper",
                &crate::model::paper(self.width, 10, 0),
            )?,
        };
        let output = graph.outputs().first().map(|o| o.name.clone()).unwrap_or_default();
        let flat = ["GlobalAveragePool", "ReduceMean", "Flatten", "Squeeze", "Reshape"];
        let spatial = graph
            .candidates(&output)
            .into_iter()
            .rfind(|c| !c.head && !flat.contains(&c.op.as_str()));
        Ok(spatial.map_or_else(|| "auto".into(), |c| c.name))
    }
}

/// A canonicalizer that always searches, put together from a fitted score.
fn always(
    model: Model,
    config: Config,
    bank: usize,
    score: &State,
) -> upright::Result<Canonicalizer> {
    let config = config.with(Role::Gate, Part::new("always"));
    let states = States::from([(Role::Score, score.clone())]);
    let report = FitReport { bank, ..FitReport::default() };
    Canonicalizer::restore(model, config, report, &states)
}

/// Bytes that a state holds.
pub(crate) fn bytes(state: &State) -> usize {
    use upright::internal::state::Data;
    state
        .tensors()
        .values()
        .map(|t| match &t.data {
            Data::F16(v) => 2 * v.len(),
            Data::F64(v) => 8 * v.len(),
            other => 4 * other.len(),
        })
        .sum()
}

/// Seconds that something takes.
fn timed<T>(work: impl FnOnce() -> upright::Result<T>) -> upright::Result<(f64, T)> {
    let start = Instant::now();
    let done = work()?;
    Ok((start.elapsed().as_secs_f64(), done))
}

/// The middle of some numbers.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len();
    if n == 0 { f64::NAN } else { f64::midpoint(numbers[(n - 1) / 2], numbers[n / 2]) }
}
