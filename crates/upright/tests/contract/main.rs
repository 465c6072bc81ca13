//! What every component must do, asked of every row of every table.
#![allow(clippy::unwrap_used, reason = "tests")]

mod scores;
