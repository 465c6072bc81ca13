//! Engines run a network. Nothing else in the library knows one.
//!
//! [`Engine`] is the trait behind a model of one's own; see
//! [`crate::Model::from_engine`].

use std::collections::HashSet;

use crate::config::Param;
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::onnx::proto::{GraphProto, ModelProto, ValueInfoProto};
use crate::onnx::{Graph, reads};
use crate::registry::{Kind, Requires, find};

pub(crate) mod guard;
mod lanes;
mod numbers;
#[cfg(feature = "ort")]
mod ort;
mod rten;
#[cfg(test)]
pub(crate) mod tests;

pub use lanes::Lane;
pub(crate) use lanes::{Lanes, apart};
pub use numbers::Numbers;

/// A tensor fed to an engine.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The graph input it goes to.
    pub name: &'a str,
    /// Its dimensions, outermost first.
    pub shape: &'a [usize],
    /// Its numbers, row-major.
    pub data: &'a [f32],
}

/// A tensor computed by an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Its dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Its numbers, row-major.
    pub data: Numbers,
}

/// A network ready to run: a graph on one of the built-in engines, or whatever somebody
/// else runs (see [`crate::model::Model::from_engine`]).
pub trait Engine: Send + Sync + std::fmt::Debug {
    /// The engine's name.
    fn name(&self) -> &'static str;

    /// Runs that may go on at the same time, each on a lane of its own; at least 1.
    fn lanes(&self) -> usize;

    /// Feeds the inputs and computes some of the tensors named at loading, given by their
    /// positions in that list, in the order asked for. The same inputs always give the same
    /// numbers on every lane.
    fn run_on(&self, lane: Lane, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>>;

    /// Whether [`Engine::pullback_on`] gives derivatives. Engines that run a graph need not:
    /// its gradient is a graph, too.
    fn has_pullback(&self) -> bool {
        false
    }

    /// The derivative of a scalar with respect to the numbers of the one input, given its
    /// derivatives `d` with respect to each of the tensors named at loading; `None` is zero.
    fn pullback_on(&self, lane: Lane, input: Input<'_>, d: &[Option<Value>]) -> Result<Vec<f32>> {
        let _ = (lane, input, d);
        Err(Error::Engine { engine: self.name(), why: "it has no gradient".into(), source: None })
    }

    /// As [`Engine::run_on`], on all threads.
    fn run(&self, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>> {
        self.run_on(Lane::Whole, inputs, wanted)
    }
}

/// Prepares a graph to compute the named tensors, which may lie anywhere in it, on so many
/// threads; by default one per core.
pub(crate) type Load = fn(&Graph, &[String], Option<usize>) -> Result<Box<dyn Engine>>;

/// How to make an engine.
#[derive(Debug)]
#[doc(hidden)]
pub struct Make {
    /// Prepares a graph.
    pub load: Load,
    /// Whether the engine can run on this machine; if not, why not and what to do.
    pub ready: fn() -> Result<()>,
    /// Items that it likes to run together; a whole number of twos, or 1.
    pub micro_batch: usize,
}

const NO_PARAMS: &[Param] = &[];

impl Requires for Make {}

/// Every engine of this build.
#[doc(hidden)]
pub const TABLE: &[Kind<Make>] = &[
    Kind {
        name: rten::NAME,
        about: "built in, pure Rust, on the processor",
        params: NO_PARAMS,
        make: Make { load: rten::load, ready: || Ok(()), micro_batch: rten::MICRO_BATCH },
    },
    #[cfg(feature = "ort")]
    Kind {
        name: ort::NAME,
        about: "ONNX Runtime, from the shared library that ORT_DYLIB_PATH names",
        params: NO_PARAMS,
        make: Make { load: ort::load, ready: ort::ready, micro_batch: ort::MICRO_BATCH },
    },
];

/// Stands for the fastest engine that is ready.
#[doc(hidden)]
pub const AUTO: &str = "auto";

/// The first version of the file format in which weights need not be inputs.
const WEIGHTS_ONLY: i64 = 4;

/// An engine that a build may lack.
const OPTIONAL: &str = "ort";

/// The row of an engine that is ready to load graphs. [`AUTO`] is the last one in the table
/// that is.
#[doc(hidden)]
pub fn row(name: &str) -> Result<&'static Kind<Make>> {
    if name == AUTO {
        let ready = TABLE.iter().rfind(|row| (row.make.ready)().is_ok());
        return Ok(ready.unwrap_or(&TABLE[0]));
    }
    let found = find("engine", TABLE, name);
    if found.is_err() && name == OPTIONAL {
        return Err(Error::NoEngine {
            engine: OPTIONAL,
            why: "this build was made without it".into(),
            hint: Some(Hint::BuildEngine { engine: OPTIONAL, other: rten::NAME }),
        });
    }
    let row = found?;
    (row.make.ready)()?;
    Ok(row)
}

/// Prepares a graph on the named engine; see [`Load`].
pub(crate) fn load(
    engine: &str,
    graph: &Graph,
    tensors: &[String],
    threads: Option<usize>,
) -> Result<Box<dyn Engine>> {
    let row = row(engine)?;
    let model = graph.name();
    let load = || (row.make.load)(graph, tensors, threads);
    let engine = guard::guarded(row.name, model, load)?;
    Ok(Box::new(guard::Guarded { engine, model: model.into() }))
}

/// The model with other outputs: the named tensors, each once. Weights that the file also
/// lists as inputs are weights only, as engines do not prepare what might be fed.
fn with_outputs(graph: &Graph, tensors: &[String]) -> ModelProto {
    let mut proto = graph.model().clone();
    proto.ir_version = proto.ir_version.map(|v| v.max(WEIGHTS_ONLY));
    let Some(g) = proto.graph.as_mut() else { return proto };
    let fed = graph.inputs();
    g.input.retain(|v| fed.iter().any(|f| Some(&f.name) == v.name.as_ref()));
    let old = std::mem::take(&mut g.output);
    for (i, name) in tensors.iter().enumerate() {
        if tensors[..i].contains(name) {
            continue;
        }
        let known = old.iter().chain(&g.value_info).find(|v| v.name.as_ref() == Some(name));
        let bare = ValueInfoProto { name: Some(name.clone()), ..Default::default() };
        g.output.push(known.cloned().unwrap_or(bare));
    }
    prune(g);
    proto
}

/// Leaves out nodes that no output needs, e.g. those that name the label.
fn prune(graph: &mut GraphProto) {
    let mut needed: HashSet<String> = graph.output.iter().filter_map(|v| v.name.clone()).collect();
    let mut kept = vec![false; graph.node.len()];
    for (i, node) in graph.node.iter().enumerate().rev() {
        kept[i] = node.output.iter().any(|o| needed.contains(o));
        if kept[i] {
            needed.extend(reads(node).into_iter().map(String::from));
        }
    }
    if !kept.contains(&true) {
        // Engines refuse a graph without nodes, whose outputs are given.
        return;
    }
    let mut kept = kept.into_iter();
    graph.node.retain(|_| kept.next().unwrap_or(true));
}
