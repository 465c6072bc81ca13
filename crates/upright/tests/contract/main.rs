//! The contracts: what every axis, search, gate, readout and score must do, looped
//! over the tables, so that a new row is tested by existing.
#![allow(clippy::unwrap_used, reason = "tests")]

mod axes;
mod choices;
mod combos;
#[path = "../support/energy.rs"]
mod energy;
mod gates;
mod learned;
mod params;
mod readouts;
mod risk;
mod roles;
mod scores;
mod searches;
mod session;
mod signals;

/// Parts that search and need no copies, over the space of a signal.
fn searching(signal: upright::Signal) -> upright::Config {
    upright::Preset::of("search").unwrap().config(signal)
}
