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
        let Model::Paper(paper) = self;
        let width = paper.width as usize;
        let widths = [width, 2 * width, 4 * width, 8 * width];
        let network = Network::random(&widths, paper.classes as usize, paper.seed);
        let made_by = format!(
            "upright-lab model paper --width {} --classes {} --seed {}",
            paper.width, paper.classes, paper.seed
        );
        let bytes = network.onnx(&[
            ("task", "classification"),
            ("channels", "gray"),
            ("scale", "1/255"),
            ("mean", "0"),
            ("std", "1"),
            ("weights", "random"),
            ("made_by", &made_by),
        ]);
        std::fs::write(&paper.out, &bytes)
            .map_err(|why| format!("{}: {why}", paper.out.display()))?;
        println!("{}: {} parameters", paper.out.display(), network.parameters());
        Ok(())
    }
}
