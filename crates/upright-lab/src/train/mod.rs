//! `upright-lab train`: models trained on data that we make ourselves.

#[cfg(feature = "train")]
mod glyphs;
#[cfg(feature = "train")]
mod net;
#[cfg(feature = "train")]
mod pooled;
#[cfg(feature = "train")]
mod pooled_net;
#[cfg(feature = "train")]
mod schedule;

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The models that can be trained.
#[derive(Subcommand)]
#[cfg_attr(not(feature = "train"), allow(dead_code))] // read by the trainers only
pub(crate) enum Train {
    /// The classifier of digits as images built into upright.
    Glyphs(Settings),
    /// The classifier of digits as strokes built into upright.
    Strokes(Settings),
    /// The classifier of solids as point clouds built into upright.
    Solids(Settings),
}

/// Settings of a training; without any it makes the built-in model.
#[derive(Args)]
#[cfg_attr(not(feature = "train"), allow(dead_code))] // read by the trainers only
pub(crate) struct Settings {
    /// Where to write the model [default: its name, with the ending .onnx]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Number of samples to train on [default: as the built-in model]
    #[arg(long, value_parser = clap::value_parser!(u32).range(64..))]
    samples: Option<u32>,
    /// Passes over them [default: as the built-in model]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    epochs: Option<u32>,
    /// Seed of the samples, of the initial weights and of the order of training.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Train {
    /// Trains and writes the model.
    #[cfg(feature = "train")]
    pub(crate) fn run(&self) -> Result<(), String> {
        match self {
            Train::Glyphs(settings) => glyphs::train(settings),
            Train::Strokes(settings) => pooled::train(&pooled::STROKES, settings),
            Train::Solids(settings) => pooled::train(&pooled::SOLIDS, settings),
        }
    }

    /// Says how to get a lab that can train.
    #[cfg(not(feature = "train"))]
    #[allow(clippy::unused_self)] // the other build reads it
    pub(crate) fn run(&self) -> Result<(), String> {
        Err("this lab was built without training; build it with \
             `cargo run --release -p upright-lab --features train -- train ...`"
            .into())
    }
}

#[cfg(feature = "train")]
impl Settings {
    fn out(&self, name: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| format!("{name}.onnx").into())
    }
}
