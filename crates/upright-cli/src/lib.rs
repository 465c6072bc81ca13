//! What the binary `upright` is made of and others may use: the flags that say
//! how to read data, and saying what went wrong.
#![allow(unreachable_pub, reason = "pub says what a module shares with the others")]

pub mod data;
#[doc(hidden)]
pub mod hints;
pub mod report;
pub mod rows;
