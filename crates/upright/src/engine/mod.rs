//! Engines run a graph. Nothing else in the library knows one.

use crate::config::Param;
use crate::error::Result;
use crate::onnx::Graph;
use crate::registry::{Kind, find};

mod rten;

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
    pub data: Vec<f32>,
}

/// A graph ready to run.
pub trait Engine: Send + Sync + std::fmt::Debug {
    /// The engine's name in [`TABLE`].
    fn name(&self) -> &'static str;

    /// Feeds the inputs and computes some of the tensors named at loading, given by their
    /// positions in that list, in the order asked for.
    fn run(&self, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>>;
}

/// Prepares a graph to compute the named tensors, which may lie anywhere in it, on so many
/// threads; by default one a core.
pub type Load = fn(&Graph, &[String], Option<usize>) -> Result<Box<dyn Engine>>;

/// How to make an engine.
#[derive(Debug)]
pub struct Make {
    /// Prepares a graph.
    pub load: Load,
}

const NO_PARAMS: &[Param] = &[];

/// Every engine.
pub const TABLE: &[Kind<Make>] = &[Kind {
    name: rten::NAME,
    about: "built in, pure Rust, on the processor",
    params: NO_PARAMS,
    make: Make { load: rten::load },
}];

/// Prepares a graph on the named engine; see [`Load`].
pub fn load(
    engine: &str,
    graph: &Graph,
    tensors: &[String],
    threads: Option<usize>,
) -> Result<Box<dyn Engine>> {
    (find("engine", TABLE, engine)?.make.load)(graph, tensors, threads)
}
