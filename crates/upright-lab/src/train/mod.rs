//! `upright-lab train`: the embedded classifiers, trained on data that we make ourselves, and
//! what the paper compares with, trained on real data: a learned energy, classifiers that
//! have seen the transforms, and of two widths some that have not.

#[cfg(feature = "train")]
mod augmented;
#[cfg(feature = "train")]
mod course;
#[cfg(feature = "train")]
mod energy;
#[cfg(feature = "train")]
mod equivariant;
#[cfg(feature = "train")]
mod examples;
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
#[cfg(feature = "train")]
mod stn;
#[cfg(feature = "train")]
mod wide;

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
    /// The paper's learned energy: where the classifier of a data set is wrong.
    Energy(RealSettings),
    /// The classifier's network, trained with the transforms.
    #[command(visible_alias = "augm")]
    Augmented(RealSettings),
    /// The same with a spatial transformer in front.
    Stn(RealSettings),
    /// A network that turns with its input, trained with the transforms.
    Equivariant(RealSettings),
    /// The classifier's network at the paper's width, without the transforms; images only.
    ///
    /// Where others take a sample and its copy, it takes two samples: each of --epochs is two
    /// passes.
    Wide(RealSettings),
    /// The same at the classifier's own width, to compare with the wide one.
    Narrow(RealSettings),
}

/// Settings of a training on real data.
#[derive(Args)]
#[cfg_attr(not(feature = "train"), allow(dead_code))] // read by the trainers only
pub(crate) struct RealSettings {
    /// The data set: mnist, emnist or modelnet10
    #[arg(long)]
    data: String,
    /// Folder of data sets
    #[arg(long, default_value = "data")]
    folder: PathBuf,
    /// Folder of classifiers; what is trained goes there, too, unless --out names a file
    #[arg(long, default_value = "models")]
    models: PathBuf,
    /// Where to write the model [default: in --models as DATA-NAME.onnx, where experiments look]
    #[arg(long)]
    out: Option<PathBuf>,
    /// An energy of a quarter of the paper's width, for four times the views
    #[arg(long)]
    small: bool,
    /// Most samples to train on [default: all]
    #[arg(long)]
    samples: Option<usize>,
    /// Passes over them, each with as many transformed copies
    #[arg(long, default_value_t = 12)]
    epochs: usize,
    /// Minutes that the training may take: fewer passes are made to keep within, which is said
    #[arg(long, default_value_t = 110.0)]
    minutes: f64,
    /// Seed of weights, order and poses
    #[arg(long, default_value_t = 1)]
    seed: u64,
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
            Train::Energy(settings) => energy::train(settings),
            Train::Augmented(settings) => augmented::train(settings),
            Train::Stn(settings) => stn::train(settings),
            Train::Equivariant(settings) => equivariant::train(settings),
            Train::Wide(settings) => wide::train(settings),
            Train::Narrow(settings) => wide::narrow(settings),
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

#[cfg(feature = "train")]
impl RealSettings {
    fn out(&self, name: &str) -> PathBuf {
        let own = || self.models.join(format!("{}-{name}.onnx", self.data));
        self.out.clone().unwrap_or_else(own)
    }

    /// The steps that fit into the time, of those that are wanted, if one takes so many seconds.
    fn cut(&self, wanted: usize, seconds: f64) -> usize {
        let able = (60.0 * self.minutes / seconds.max(1e-9)).floor();
        wanted.min((able as usize).max(1)).max(1)
    }
}
