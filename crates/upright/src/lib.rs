//! upright makes a pretrained classifier robust to rotation, scale and shear
//! at test time, without retraining it: an input that looks unfamiliar is
//! searched for the view that looks most familiar, and that view is
//! classified; familiar inputs pass through untouched.
#![forbid(unsafe_code)]

pub mod abstain;
pub mod artifact;
pub mod axes;
pub mod canonicalizer;
pub mod config;
pub mod copies;
pub mod dataset;
pub mod engine;
pub mod error;
pub mod gate;
mod hint;
pub mod linalg;
pub mod map;
pub mod model;
pub mod onnx;
pub mod outputs;
pub mod preprocess;
pub mod proposer;
pub mod readout;
pub mod reduce;
pub mod registry;
pub mod role;
mod rotation;
pub mod router;
pub mod samples;
pub mod score;
pub mod search;
pub mod seed;
pub mod space;
pub mod state;
pub mod stats;
pub mod tensor;
pub mod trace;
pub mod tune;
pub mod warp;

pub use error::{Error, Result};
pub use hint::Hint;

/// The README's Rust example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
