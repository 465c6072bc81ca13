//! [`Description`]: what a model takes and gives, and how it was loaded.

use super::Options;
use crate::error::{Error, Result};
use crate::onnx::Ending;
use crate::preprocess::{Overrides, Preprocess};
use crate::tensor::{Batch, Signal};

/// What is known about a model besides the numbers in it.
#[derive(Debug, Clone)]
pub(super) struct Description {
    /// Stands for it in messages.
    pub(super) name: String,
    pub(super) fingerprint: String,
    /// What one item is.
    pub(super) signal: Signal,
    /// What the network is fed with: the centre of an image, where items are larger.
    pub(super) fed: Signal,
    pub(super) preprocess: Preprocess,
    pub(super) output: String,
    pub(super) ending: Ending,
    pub(super) class_names: Option<Vec<String>>,
    /// As given, with the engine's name.
    pub(super) options: Options,
}

impl Description {
    /// The shape of a micro-batch as the network is fed with it.
    pub(super) fn shape(&self, items: usize) -> Vec<usize> {
        let mut shape = vec![items];
        shape.extend(self.fed.shape());
        shape
    }

    /// Whether a batch holds what the model takes at its `input`.
    pub(super) fn check(&self, input: &str, batch: &Batch<'_>) -> Result<()> {
        if batch.signal() == self.signal || batch.signal() == self.fed {
            return Ok(());
        }
        let what = format!("input `{input}`");
        Err(Error::shape(what, self.signal.shape(), batch.signal().shape()))
    }

    /// Options that load the same model the same way, whatever lies beside its file.
    pub(super) fn exact(&self, micro_batch: usize) -> Options {
        Options {
            preprocess: Overrides::default(),
            exact: Some(self.preprocess.clone()),
            output: Some(self.output.clone()),
            signal: Some(self.fed),
            micro_batch: Some(micro_batch),
            ..self.options.clone()
        }
    }
}
