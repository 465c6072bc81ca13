//! The ONNX graph as data: reading a file, what is in it, and where its
//! features can be tapped.

mod adapt;
mod constant;
pub(crate) mod depth;
mod external;
pub(crate) mod facts;
pub mod gradient;
mod graph;
mod head;
mod limits;
pub(crate) mod products;
pub(crate) mod proto;
mod quantised;
mod scaler;
mod side;
mod taps;
mod window;
mod write;

pub use constant::Constant;
pub use facts::Run;
pub(crate) use graph::reads;
pub use graph::{Dim, Graph, Operator, Port};
pub use head::Ending;
pub use taps::Candidate;

#[cfg(test)]
pub(crate) mod build;
#[cfg(test)]
mod tests;
