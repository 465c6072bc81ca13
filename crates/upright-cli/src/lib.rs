//! What the binary `upright` is made of and others may use: reading data as
//! users have it, and saying what went wrong.
#![allow(unreachable_pub, reason = "pub says what a module shares with the others")]

pub mod data;
pub mod report;
pub mod rows;
