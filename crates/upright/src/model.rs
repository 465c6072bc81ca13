//! [`Model`]: a frozen classifier. One forward pass gives logits and tapped,
//! reduced features.
//!
//! Inputs run in micro-batches of one fixed size, and what is left over in small
//! ones that give the same bits, filled up by repeating their last item: results
//! do not depend on how a caller batches. Several micro-batches run at a time.

use std::path::Path;
use std::sync::OnceLock;

use crate::engine::{Engine, Input, Lane, Value};
use crate::error::{Error, Result};
use crate::onnx::facts::Facts;
use crate::onnx::{Ending, Graph};
use crate::outputs::{Head, Outputs};
use crate::preprocess::{Overrides, Picture, Preprocess};
use crate::reduce::{Reduce, Reduction};
use crate::tensor::{Batch, Matrix, Signal};

mod describe;
mod load;
mod options;
mod pieces;
mod pullback;
#[cfg(test)]
mod tests;

pub use options::{AUTO, Options, Tap};
use pieces::joined;

/// Most numbers that are pooled before they are projected together: 64 MiB.
const POOLED: usize = 16 << 20;

/// A tap of a loaded model.
#[derive(Debug, Clone)]
pub struct Tapped {
    name: String,
    tensors: Vec<String>,
    wanted: Vec<usize>,
    /// Numbers one input has in each of the tensors.
    widths: Vec<usize>,
    reduce: Reduce,
    reduction: Reduction,
}

impl Tapped {
    /// The name it was asked for by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tensors it reads; several are laid side by side.
    pub fn tensors(&self) -> &[String] {
        &self.tensors
    }

    /// How it is reduced.
    pub fn reduce(&self) -> Reduce {
        self.reduce
    }

    /// The shape of one input's tensor, without the batch.
    pub fn shape(&self) -> &[usize] {
        self.reduction.shape()
    }

    /// The fitted reduction.
    pub fn reduction(&self) -> &Reduction {
        &self.reduction
    }

    /// Length of one input's features.
    pub fn len(&self) -> usize {
        self.reduction.len()
    }

    /// Whether there are no features; never the case.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A frozen classifier, ready to run.
#[derive(Debug)]
pub struct Model {
    graph: Graph,
    /// What decides which convolutions run as products.
    sizes: Facts,
    engine: Box<dyn Engine>,
    input: String,
    output: String,
    signal: Signal,
    preprocess: Preprocess,
    ending: Ending,
    taps: Vec<Tapped>,
    micro_batch: usize,
    /// Sizes of smaller micro-batches, for what is left over, in falling order.
    smaller: Vec<usize>,
    /// Whether lone micro-batches must do with one thread, too.
    lane_matters: bool,
    classes: usize,
    head: Option<Head>,
    class_names: Option<Vec<String>>,
    options: Options,
    backward: OnceLock<pullback::Backward>,
}

impl Model {
    /// Loads a model file, with preprocessing from the options, then `MODEL.onnx.toml` or
    /// `MODEL.toml` beside it, then its own metadata, then its input's shape.
    pub fn load(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let graph = Graph::load(path.as_ref())?;
        let beside = Overrides::beside(path.as_ref())?;
        Self::new(graph, beside, options)
    }

    /// Loads a model from memory; `name` stands for it in messages.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8], options: &Options) -> Result<Self> {
        Self::new(Graph::from_bytes(name, bytes)?, Overrides::default(), options)
    }

    /// Makes a graph that was already read ready to run.
    pub fn from_graph(graph: Graph, options: &Options) -> Result<Self> {
        Self::new(graph, Overrides::default(), options)
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What one prepared item is: raw, before normalisation.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// Number of classes: the length of a row of logits.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Names of the classes, if the model carries them.
    pub fn class_names(&self) -> Option<&[String]> {
        self.class_names.as_deref()
    }

    /// Identifies the model; see [`Graph::fingerprint`].
    pub fn fingerprint(&self) -> &str {
        self.graph.fingerprint()
    }

    /// The linear layer between the first tap's features and the logits, if there is
    /// exactly that between them.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The taps, in the order of [`Outputs::features`].
    pub fn taps(&self) -> &[Tapped] {
        &self.taps
    }

    /// How pictures are prepared and normalised.
    pub fn preprocess(&self) -> &Preprocess {
        &self.preprocess
    }

    /// The output whose logits are used.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// How the graph ends. If [`Ending::activation`] is set, the output holds probabilities
    /// and the logits are taken before it.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Items that always run together.
    pub fn micro_batch(&self) -> usize {
        self.micro_batch
    }

    /// The engine's name.
    pub fn engine(&self) -> &'static str {
        self.engine.name()
    }

    /// A picture as one raw item for this model.
    pub fn prepare(&self, picture: &Picture) -> Result<Vec<f32>> {
        self.preprocess.prepare(picture, self.signal)
    }

    /// The name of a class; its number if nothing names it.
    pub fn class_name(&self, class: usize) -> String {
        let names = self.class_names.as_deref().unwrap_or_default();
        names.get(class).cloned().unwrap_or_else(|| class.to_string())
    }

    /// Names the classes, in the order of the logits.
    pub fn set_class_names(&mut self, names: Vec<String>) {
        self.class_names = Some(names);
    }

    /// Options that load the same model the same way, whatever lies beside its file.
    pub fn options(&self) -> Options {
        Options {
            preprocess: Overrides::default(),
            exact: Some(self.preprocess.clone()),
            output: Some(self.output.clone()),
            signal: Some(self.signal),
            micro_batch: Some(self.micro_batch),
            ..self.options.clone()
        }
    }

    /// Logits and features of raw items, row by row. A row does not depend on the others.
    pub fn run(&self, batch: &Batch) -> Result<Outputs> {
        self.check_signal(batch)?;
        let mut all = self.no_outputs()?;
        for stretch in (0..batch.len()).step_by(self.stretch()) {
            let end = batch.len().min(stretch + self.stretch());
            let pieces = self.pieces(stretch..end);
            let pooled = self.share(&pieces, |lane, _, piece| {
                let values = self.forward(lane, &batch.select(&piece.items))?;
                self.pooled(&values, piece.items.len(), piece.count)
            })?;
            if let Some(pooled) = joined(pooled)? {
                all.append(&self.projected(pooled))?;
            }
        }
        Ok(all)
    }

    fn check_signal(&self, batch: &Batch) -> Result<()> {
        if batch.signal() == self.signal {
            return Ok(());
        }
        let what = format!("input `{}`", self.input);
        Err(Error::shape(what, self.signal.shape(), batch.signal().shape()))
    }

    /// Items whose features are projected together, in whole micro-batches.
    fn stretch(&self) -> usize {
        let pooled: usize = self.taps.iter().map(|t| t.reduction.pooled()).sum();
        (POOLED / (pooled + self.classes).max(1) / self.micro_batch).max(1) * self.micro_batch
    }

    fn no_outputs(&self) -> Result<Outputs> {
        Outputs::new(
            Matrix::zeros(0, self.classes),
            self.taps.iter().map(|t| Matrix::zeros(0, t.len())).collect(),
        )
    }

    /// One micro-batch through the engine: logits, then the tapped tensors.
    fn forward(&self, lane: Lane, batch: &Batch) -> Result<Vec<Value>> {
        let mut shape = vec![batch.len()];
        shape.extend(self.signal.shape());
        let data = self.preprocess.normalise(batch);
        let last = self.taps.iter().flat_map(|t| &t.wanted).max().copied().unwrap_or(0);
        let wanted: Vec<usize> = (0..=last).collect();
        let input = Input { name: &self.input, shape: &shape, data: &data };
        self.engine.run_on(lane, &[input], &wanted)
    }

    /// The first `count` rows of what a micro-batch of `items` gave.
    fn read(&self, values: &[Value], items: usize, count: usize) -> Result<Outputs> {
        Ok(self.projected(self.pooled(values, items, count)?))
    }

    /// Pooled features to reduced ones.
    fn projected(&self, pooled: Outputs) -> Outputs {
        let features = self.taps.iter().zip(pooled.features);
        Outputs {
            logits: pooled.logits,
            features: features.map(|(tap, f)| tap.reduction.project(f)).collect(),
        }
    }

    /// As [`Model::read`], with features pooled but not yet projected.
    fn pooled(&self, values: &[Value], items: usize, count: usize) -> Result<Outputs> {
        let logits = first_rows(&values[0], items, self.classes, count)?.to_vec();
        let logits = Matrix::new(count, self.classes, logits)?;
        let mut features = Vec::with_capacity(self.taps.len());
        for tap in &self.taps {
            let parts: Vec<(&[f32], usize)> = tap
                .wanted
                .iter()
                .map(|&i| {
                    let cols = values[i].data.len() / items;
                    Ok((first_rows(&values[i], items, cols, count)?, cols))
                })
                .collect::<Result<_>>()?;
            let mut joined = Vec::with_capacity(count * tap.reduction.size());
            for i in 0..count {
                for (data, cols) in &parts {
                    joined.extend_from_slice(&data[i * cols..(i + 1) * cols]);
                }
            }
            let raw = Matrix::new(count, tap.reduction.size(), joined)?;
            features.push(tap.reduction.pool(raw)?);
        }
        Outputs::new(logits, features)
    }
}

/// The first `count` of a tensor's `items` rows, which must be `cols` long.
fn first_rows(value: &Value, items: usize, cols: usize, count: usize) -> Result<&[f32]> {
    if value.data.len() != items * cols {
        return Err(Error::shape("tensor from the engine", (items, cols), &value.shape));
    }
    Ok(&value.data[..count * cols])
}
