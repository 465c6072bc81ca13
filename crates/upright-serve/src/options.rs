//! What is chosen before a server starts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use upright::Canonicalizer;

/// How to serve.
#[derive(Debug, Clone)]
pub struct Options {
    /// What clients call the model.
    pub name: String,
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// What clients must send as `Authorization: Bearer ...`, if anything.
    pub token: Option<String>,
    /// Whether to answer with what the bare model says and only record what upright would.
    pub shadow: bool,
    /// Most work that may wait, in forward passes: an input counts one, a search its budget.
    pub queue: usize,
    /// Longest that a request may take; then the best view so far answers.
    pub timeout: Duration,
    /// Longest that a client may take to send a request's head, and its body.
    pub read_timeout: Duration,
    /// How long requests under way may take once the server is told to stop.
    pub drain: Duration,
    /// Largest body, in bytes.
    pub body: usize,
    /// Most memory that bodies and inputs may take together, in bytes.
    pub memory: usize,
    /// Most pixels that an image may have.
    pub pixels: u64,
    /// Most connections at a time.
    pub connections: usize,
    /// Threads that search and decode.
    pub threads: usize,
    /// Seed of everything random: which points of a cloud are drawn.
    pub seed: u64,
    /// Whether to leave EXIF orientations alone.
    pub ignore_exif: bool,
}

impl Options {
    /// The usual settings for a model: port 8000 of this machine alone, no token.
    pub fn new(name: impl Into<String>, canonicalizer: &Canonicalizer) -> Self {
        Options {
            name: name.into(),
            address: (IpAddr::V4(Ipv4Addr::LOCALHOST), 8000).into(),
            token: None,
            shadow: false,
            queue: Self::usual_queue(canonicalizer.config().budget),
            timeout: Duration::from_secs(30),
            read_timeout: Duration::from_secs(20),
            drain: Duration::from_secs(25),
            body: 16 << 20,
            memory: 512 << 20,
            pixels: 16_000_000,
            connections: 512,
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            seed: 0,
            ignore_exif: false,
        }
    }

    /// Room for 64 searches of some budget, and for at least 1024 inputs.
    pub fn usual_queue(budget: usize) -> usize {
        (64 * (budget + 1)).max(1024)
    }
}
