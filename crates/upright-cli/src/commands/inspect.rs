//! `upright inspect`: what is in a model.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;
use upright::model::Model;
use upright::onnx::Graph;

use super::setup::ModelArgs;
use crate::Common;
use crate::report::Result;
use crate::rows::Sink;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright inspect model.onnx                    inputs, outputs, preprocessing, the automatic tap
  upright inspect model.onnx --all              every tensor that can be tapped
  upright inspect model.onnx --tap /layer4/Relu_output_0 --reduce mean";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// List every tap candidate, not only the last ones
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    model_args: ModelArgs,
}
