//! The real binary, run in temporary folders.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod contact;
mod demo;
#[path = "../../../upright/tests/support/energy.rs"]
mod energy;
mod errors;
mod explain;
mod external;
mod job;
mod list;
mod models;
mod report;
mod score;
mod signals;
mod support;
mod warp;
mod workflow;
