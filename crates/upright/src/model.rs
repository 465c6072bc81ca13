//! [`Model`]: a frozen classifier. One forward pass gives logits and tapped,
//! reduced features.
//!
//! Inputs run in micro-batches of one fixed size, and what is left over in small
//! ones that give the same bits, filled up by repeating their last item: results
//! do not depend on how a caller batches. Several micro-batches run at a time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::Result;
use crate::onnx::{Ending, Graph};
use crate::outputs::{Head, Outputs};
use crate::preprocess::{Overrides, Picture, Preprocess, cut, framed};
use crate::tensor::{Batch, Signal};

mod batching;
mod describe;
mod description;
mod external;
mod gradient;
mod load;
mod network;
mod options;
mod own;
mod taps;
#[cfg(test)]
mod tests;

use batching::{Batching, joined};
use description::Description;
use external::External;
use gradient::Gradient;
use network::Network;
pub(crate) use options::{AUTO, LATE, MIDDLE};
pub use options::{Options, Tap};
pub use own::ModelInfo;
pub use taps::Tapped;

/// A frozen classifier, ready to run. Clones share everything.
#[derive(Debug, Clone)]
pub struct Model {
    network: Arc<Network>,
    batching: Arc<Batching>,
    description: Arc<Description>,
    gradient: Arc<Gradient>,
    external: Option<Arc<External>>,
}

const _: () = {
    const fn shared<T: Clone + Send + Sync>() {}
    shared::<Model>();
};

impl Model {
    /// Loads a model file, with preprocessing from the options, then `MODEL.onnx.toml` or
    /// `MODEL.toml` beside it, then its own metadata, then its input's shape.
    pub fn load(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let graph = Graph::load(path.as_ref())?;
        let beside = Overrides::beside(path.as_ref())?;
        load::graph(graph, beside, options)
    }

    /// Loads a model from memory; `name` stands for it in messages.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8], options: &Options) -> Result<Self> {
        load::graph(Graph::from_bytes(name, bytes)?, Overrides::default(), options)
    }

    /// The graph; none if the model runs on an engine of one's own.
    pub(crate) fn graph(&self) -> Option<&Graph> {
        self.network.graph.as_ref()
    }

    /// What one prepared item is: raw, before normalisation. An image keeps what the crop of
    /// its preprocessing would cut off, so that views can show it; the network is fed with the
    /// centre.
    pub fn signal(&self) -> Signal {
        self.description.signal
    }

    /// What the network is fed with, of one item.
    #[doc(hidden)]
    pub fn fed(&self) -> Signal {
        self.description.fed
    }

    /// A batch of [`Model::fed`] as one of [`Model::signal`], with nothing known around its
    /// items; others as they are.
    #[doc(hidden)]
    pub fn whole<'b>(&self, batch: Batch<'b>) -> Result<Batch<'b>> {
        if batch.signal() != self.fed() || self.fed() == self.signal() {
            return Ok(batch);
        }
        framed(&batch, self.signal(), self.preprocess().fill)
    }

    /// What the network sees of items: the centre of larger images.
    #[doc(hidden)]
    pub fn centre(&self, batch: Batch<'static>) -> Result<Batch<'static>> {
        cut(batch, self.fed())
    }

    /// Number of classes: the length of a row of logits.
    pub fn classes(&self) -> usize {
        self.network.classes
    }

    /// Names of the classes, if the model carries them.
    pub fn class_names(&self) -> Option<&[String]> {
        self.description.class_names.as_deref()
    }

    /// Identifies the model; see [`Graph::fingerprint`] and [`ModelInfo::fingerprint`].
    #[doc(hidden)]
    pub fn fingerprint(&self) -> &str {
        &self.description.fingerprint
    }

    /// The linear layer between the first tap's features and the logits, if there is
    /// exactly that between them.
    #[doc(hidden)]
    pub fn head(&self) -> Option<&Head> {
        self.network.head.as_ref()
    }

    /// The taps, in the order of [`Outputs::features`].
    pub fn taps(&self) -> &[Tapped] {
        self.external.as_ref().map_or(&self.network.taps, |external| &external.taps)
    }

    /// The position of the tap of a name, or of a name with `@` and the tap's reduction:
    /// `auto`, `auto@mean`.
    pub(crate) fn tap_index(&self, name: &str) -> Result<usize> {
        taps::index(self.taps(), name)
    }

    /// How pictures are prepared and normalised.
    #[doc(hidden)]
    pub fn preprocess(&self) -> &Preprocess {
        &self.description.preprocess
    }

    /// What the model calls its input.
    #[doc(hidden)]
    pub fn input(&self) -> &str {
        &self.network.input
    }

    /// The output whose logits are used.
    #[doc(hidden)]
    pub fn output(&self) -> &str {
        &self.description.output
    }

    /// How the graph ends. If [`Ending::activation`] is set, the output holds probabilities
    /// and the logits are taken before it.
    #[doc(hidden)]
    pub fn ending(&self) -> &Ending {
        &self.description.ending
    }

    /// Items that always run together.
    #[doc(hidden)]
    pub fn micro_batch(&self) -> usize {
        self.batching.micro_batch
    }

    /// The engine's name.
    #[doc(hidden)]
    pub fn engine(&self) -> &'static str {
        self.network.engine.name()
    }

    /// A picture as one raw item for this model.
    pub fn prepare(&self, picture: &Picture) -> Result<Vec<f32>> {
        self.preprocess().prepare(picture, self.signal())
    }

    /// The name of a class; its number if nothing names it.
    pub fn class_name(&self, class: u32) -> String {
        let names = self.class_names().unwrap_or_default();
        names.get(class as usize).cloned().unwrap_or_else(|| class.to_string())
    }

    /// The same model with other names of its classes, in the order of the logits.
    #[must_use]
    pub fn with_class_names(mut self, names: Vec<String>) -> Self {
        Arc::make_mut(&mut self.description).class_names = Some(names);
        self
    }

    /// The same model with pixels normalised in another way: other channels, scale, mean or
    /// deviation. What is prepared of a picture stays the same.
    #[doc(hidden)]
    #[must_use]
    pub fn normalising(&self, as_in: &Preprocess) -> Self {
        let mut other = self.clone();
        let own = &mut Arc::make_mut(&mut other.description).preprocess;
        own.channels = as_in.channels;
        own.scale = as_in.scale;
        own.mean.clone_from(&as_in.mean);
        own.std.clone_from(&as_in.std);
        other
    }

    /// The same model, which runs nothing more once `stop` is set: what needs it then fails
    /// after the micro-batch in hand.
    #[doc(hidden)]
    #[must_use]
    pub fn stopped_by(mut self, stop: &Arc<AtomicBool>) -> Self {
        Arc::make_mut(&mut self.batching).stop = Some(stop.clone());
        self.external = self.external.map(|external| external.stopped_by(stop).into());
        self
    }

    /// Options that load the same model the same way, whatever lies beside its file.
    #[doc(hidden)]
    pub fn options(&self) -> Options {
        self.description.exact(self.micro_batch())
    }

    /// Logits and features of raw items, row by row. A row does not depend on the others.
    pub fn run(&self, batch: &Batch<'_>) -> Result<Outputs> {
        let seen = self.run_alone(batch)?;
        match &self.external {
            Some(external) => external.beside(seen, batch),
            None => Ok(seen),
        }
    }

    /// The same without an energy network beside it.
    fn run_alone(&self, batch: &Batch<'_>) -> Result<Outputs> {
        let (network, batching) = (&self.network, &self.batching);
        self.description.check(&network.input, batch)?;
        let mut all = network.no_outputs()?;
        let block = batching.block(network.width());
        for from in (0..batch.len()).step_by(block) {
            let pieces = batching.pieces(from..batch.len().min(from + block));
            let engine = network.engine.as_ref();
            let pooled =
                batching.each(engine, batching.lane_matters, &pieces, |lane, _, piece| {
                    let values = network.forward(&self.description, lane, &piece.of(batch))?;
                    network.pooled(&values, piece.items.len(), piece.count)
                })?;
            if let Some(pooled) = joined(pooled)? {
                all.append(&network.projected(pooled))?;
            }
        }
        Ok(all)
    }
}
