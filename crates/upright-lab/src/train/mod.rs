//! `upright-lab train`: models trained on data that we make ourselves.

#[cfg(feature = "train")]
mod glyphs;
#[cfg(feature = "train")]
mod net;

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The models that can be trained.
#[derive(Subcommand)]
pub(crate) enum Train {
    /// The digit classifier built into upright.
    Glyphs(Glyphs),
}

/// Settings of [`Train::Glyphs`].
#[derive(Args)]
#[cfg_attr(not(feature = "train"), allow(dead_code))] // read by the trainer only
pub(crate) struct Glyphs {
    /// Where to write the model.
    #[arg(long, default_value = "glyphs.onnx")]
    out: PathBuf,
    /// Number of drawn digits to train on.
    #[arg(long, default_value_t = 12_000, value_parser = clap::value_parser!(u32).range(64..))]
    samples: u32,
    /// Passes over them.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,
    /// Seed of the digits, of the initial weights and of the order of training.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Train {
    /// Trains and writes the model.
    #[cfg(feature = "train")]
    pub(crate) fn run(&self) -> Result<(), String> {
        let Train::Glyphs(settings) = self;
        glyphs::train(settings)
    }

    /// Says how to get a lab that can train.
    #[cfg(not(feature = "train"))]
    pub(crate) fn run(&self) -> Result<(), String> {
        let Train::Glyphs(_) = self;
        Err("this lab was built without training; build it with \
             `cargo run --release -p upright-lab --features train -- train glyphs`"
            .into())
    }
}
