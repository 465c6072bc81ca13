//! The contracts: what every axis, search, gate and score must do, looped
//! over the tables, so that a new row is tested by existing.
#![allow(clippy::unwrap_used, reason = "tests")]

mod axes;
mod combos;
mod gates;
mod scores;
mod searches;
mod signals;
