//! The lab: training and experiments behind upright.
#![allow(clippy::print_stdout)] // a command-line tool reports on standard output

mod cost;
mod experiments;
mod fuzz;
mod job;
mod load;
mod model;
mod onnx_write;
mod orbit;
#[cfg(feature = "train")]
mod pooled;
mod proposals;
mod resnet;
mod searches;
mod train;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Training and experiments behind upright.
#[derive(Parser)]
#[command(name = "upright-lab", version)]
struct Lab {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure what canonicalization costs.
    #[command(subcommand)]
    Cost(cost::Cost),
    /// Feed damaged files to the readers.
    Fuzz(fuzz::Args),
    /// Run a job of very many rows and measure what it holds in memory.
    Job(job::Args),
    /// Run experiments; what is finished is kept as a line and not measured again.
    Run(experiments::Args),
    /// Make RESULTS.md and its drawings from stored lines.
    Report(experiments::ReportArgs),
    /// Measure how fast a server answers.
    #[command(subcommand)]
    Load(load::Load),
    /// Measure how often transformed copies of one input get the same class.
    Orbit(orbit::Args),
    /// Compare every search on the same transformed inputs.
    Searches(Box<searches::Args>),
    /// What the proposer is worth: right answers on its first, second, ... suggestion
    Proposals(Box<proposals::Args>),
    /// Train a model on data that we make ourselves.
    #[command(subcommand)]
    Train(train::Train),
    /// Write a model without training it.
    #[command(subcommand)]
    Model(model::Model),
}

fn main() -> ExitCode {
    let done = match Lab::parse().command {
        Command::Cost(cost) => cost.run(),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Job(args) => job::run(&args),
        Command::Run(args) => experiments::run(&args),
        Command::Report(args) => experiments::report(&args),
        Command::Load(load) => load.run(),
        Command::Orbit(args) => orbit::run(&args),
        Command::Searches(args) => searches::run(&args),
        Command::Proposals(args) => proposals::run(&args),
        Command::Train(train) => train.run(),
        Command::Model(model) => model.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
