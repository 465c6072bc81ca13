//! What happened to each row so far.

use std::collections::BTreeMap;

/// The state of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Not read yet.
    Not,
    /// Read; upright as stored.
    Plain,
    /// Read; its file asks to be turned.
    Turned,
    /// Read; some of its strokes are left out, as they do not fit the model.
    Thinned,
    /// Read; some of its points are repeated, as the model takes more.
    Repeated,
    /// Could not be read.
    Broken,
}

/// Every row's state, and the reasons of the broken ones. Reading a row again
/// changes nothing.
#[derive(Debug)]
pub struct Ledger {
    seen: Vec<Seen>,
    reasons: BTreeMap<usize, String>,
}

impl Ledger {
    /// Nothing read yet.
    pub fn new(rows: usize) -> Self {
        Ledger { seen: vec![Seen::Not; rows], reasons: BTreeMap::new() }
    }

    /// Records how a row was read.
    pub fn read(&mut self, row: usize, seen: Seen) {
        self.seen[row] = seen;
    }

    /// Records a row that could not be read.
    pub fn broken(&mut self, row: usize, reason: String) {
        self.seen[row] = Seen::Broken;
        self.reasons.insert(row, reason);
    }

    /// How many rows are in a state.
    pub fn count(&self, state: Seen) -> usize {
        self.seen.iter().filter(|&&s| s == state).count()
    }

    /// How many rows were read.
    pub fn readable(&self) -> usize {
        self.seen.len() - self.count(Seen::Not) - self.count(Seen::Broken)
    }

    /// The broken rows in order, with their reasons.
    pub fn reasons(&self) -> &BTreeMap<usize, String> {
        &self.reasons
    }
}
