//! `upright serve` as clients meet it: the real process, real sockets on loopback.
#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(clippy::float_cmp, reason = "metrics count whole things")]

mod answers;
mod client;
mod faults;
mod files;
mod independent;
mod load;
mod others;
mod protocol;
mod server;
mod shadow;
mod soak;
