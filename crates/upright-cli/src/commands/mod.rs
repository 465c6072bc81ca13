//! One file per command.

pub mod check;
mod demo;
pub mod eval;
pub mod explain;
pub mod fit;
pub mod inspect;
mod job;
mod judged;
pub mod list;
pub mod predict;
pub mod report;
mod roles;
mod score;
mod serve;
pub mod setup;
pub mod tune;
mod warp;

use crate::Common;
use crate::report::Result;

/// What can be asked for.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Built-in digits in less than a minute: a table and a before/after sheet
    #[command(after_long_help = demo::EXAMPLES)]
    Demo(demo::Args),
    /// What is in a model: inputs, classes, preprocessing, feature taps
    #[command(after_long_help = inspect::EXAMPLES)]
    Inspect(inspect::Args),
    /// Whether model and labelled data go together: preprocessing, channels, order of classes
    #[command(after_long_help = check::EXAMPLES)]
    Check(check::Args),
    /// Build the artifact: bank, score, gate; ends with a verdict
    #[command(after_long_help = fit::EXAMPLES)]
    Fit(Box<fit::Args>),
    /// Files or folders to labels, maps and verdicts
    #[command(after_long_help = predict::EXAMPLES)]
    Predict(predict::Args),
    /// Answer over HTTP: Open Inference Protocol v2, plain files, metrics, a page
    #[command(after_long_help = serve::EXAMPLES)]
    Serve(Box<serve::Args>),
    /// Accuracy on upright and transformed data, before and after
    #[command(after_long_help = eval::EXAMPLES)]
    Eval(eval::Args),
    /// Accuracy, trade-off, examples and times in one HTML file
    #[command(after_long_help = report::EXAMPLES)]
    Report(report::Args),
    /// One input in one drawing: its views, the landscape, the search, the gate's reason
    #[command(after_long_help = explain::EXAMPLES)]
    Explain(explain::Args),
    /// Show the parts there are, with what they need and take
    #[command(after_long_help = list::EXAMPLES)]
    List(list::Args),
    /// Fit a score on arrays and print the energies of others
    #[command(after_long_help = score::EXAMPLES)]
    Score(score::Args),
    /// Transform one image by a pose or a matrix
    #[command(after_long_help = warp::EXAMPLES)]
    Warp(warp::Args),
}

impl Command {
    /// Does it.
    pub fn run(&self, common: &Common) -> Result<()> {
        match self {
            Command::Demo(args) => demo::run(args, common),
            Command::Inspect(args) => inspect::run(args, common),
            Command::Check(args) => check::run(args, common),
            Command::Fit(args) => fit::run(args, common),
            Command::Predict(args) => predict::run(args, common),
            Command::Serve(args) => serve::run(args, common),
            Command::Eval(args) => eval::run(args, common),
            Command::Report(args) => report::run(args, common),
            Command::Explain(args) => explain::run(args, common),
            Command::List(args) => list::run(args, common),
            Command::Score(args) => score::run(args, common),
            Command::Warp(args) => warp::run(args, common),
        }
    }
}
