//! An inference server in front of a fitted [`upright::Canonicalizer`].
//!
//! It speaks the Open Inference Protocol v2 over HTTP (tensors as JSON or by
//! the binary-data extension, encoded files as BYTES), takes plain files at
//! `/v1/predict`, and shows what it does at `/metrics`. [`Server::bind`] opens
//! the port, [`Server::run`] serves until it is told to stop.
//!
//! Two threads run the model: one looks at every input as it is and answers
//! those for which the gate stays closed, the other advances the searches of
//! all others in step. The threads that serve connections never wait for either.
#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "pub says what a module shares with the others")]

mod app;
mod body;
mod deadline;
mod health;
mod metrics;
mod net;
mod openapi;
mod options;
mod prepare;
mod refusal;
mod routes;
mod runner;
mod site;
mod v1;
mod v2;
mod view;
mod watch;

pub use net::{Error, Server};
pub use options::Options;
