//! `upright-lab model`: networks with random weights, for measuring costs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::resnet::Network;

/// The networks that can be written.
#[derive(Subcommand)]
pub(crate) enum Model {
    /// The paper's residual network for 40 x 40 gray images, untrained: its cost is real, its
    /// answers are not.
    Paper(Paper),
}

/// Settings of [`Model::Paper`].
#[derive(Args)]
pub(crate) struct Paper {
    /// Channels of the first stage; each further stage has twice as many.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=512))]
    width: u32,
    /// Number of classes.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    classes: u32,
    /// Seed of the random weights.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to write the model.
    #[arg(long, default_value = "paper.onnx")]
    out: PathBuf,
}

impl Model {
    /// Writes the model.
    pub(crate) fn run(&self) -> Result<(), String> {
        let Model::Paper(args) = self;
        let bytes = paper(args.width as usize, args.classes as usize, args.seed);
        std::fs::write(&args.out, &bytes)
            .map_err(|why| format!("{}: {why}", args.out.display()))?;
        println!("{}: {} bytes", args.out.display(), bytes.len());
        Ok(())
    }
}

/// The paper's network with random weights, as an ONNX file.
pub(crate) fn paper(width: usize, classes: usize, seed: u64) -> Vec<u8> {
    let widths = [width, 2 * width, 4 * width, 8 * width];
    let made_by =
        format!("upright-lab model paper --width {width} --classes {classes} --seed {seed}");
    Network::random(&widths, classes, seed).onnx(&[
        ("task", "classification"),
        ("channels", "gray"),
        ("scale", "1/255"),
        ("mean", "0"),
        ("std", "1"),
        ("weights", "random"),
        ("made_by", &made_by),
    ])
}
