//! The lab: training and experiments behind upright.
#![allow(clippy::print_stdout)] // a command-line tool reports on standard output

mod cost;
mod fuzz;
mod model;
mod onnx_write;
#[cfg(feature = "train")]
mod pooled;
mod resnet;
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
