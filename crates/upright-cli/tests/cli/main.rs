//! The real binary, run in temporary folders.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod list;
mod score;
mod support;
