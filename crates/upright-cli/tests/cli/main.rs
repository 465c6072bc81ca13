//! The real binary, run in temporary folders.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod contact;
mod demo;
mod errors;
mod explain;
mod job;
mod list;
mod models;
mod report;
mod score;
mod signals;
mod support;
mod told;
mod warp;
mod workflow;
