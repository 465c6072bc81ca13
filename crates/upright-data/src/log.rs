//! What happened to each row so far.

use std::collections::BTreeMap;

use crate::item::Change;
use crate::skip::Unusable;

/// Every row's fate, and why some were skipped. Reading a row again changes nothing.
#[derive(Debug)]
pub(crate) struct Log {
    read: Vec<Option<Change>>,
    skipped: BTreeMap<usize, Unusable>,
}

impl Log {
    /// Nothing read yet.
    pub(crate) fn new(rows: usize) -> Self {
        Log { read: vec![None; rows], skipped: BTreeMap::new() }
    }

    /// Records how a row was read.
    pub(crate) fn read(&mut self, row: usize, change: Change) {
        self.read[row] = Some(change);
    }

    /// Records a row that could not be read.
    pub(crate) fn skip(&mut self, row: usize, why: Unusable) {
        self.skipped.insert(row, why);
    }

    /// How many rows were read.
    pub(crate) fn readable(&self) -> usize {
        self.read.iter().flatten().count()
    }

    /// How many rows were read with a change.
    pub(crate) fn changed(&self, change: Change) -> usize {
        self.read.iter().flatten().filter(|&&c| c == change).count()
    }

    /// The skipped rows in order, and why.
    pub(crate) fn skipped(&self) -> &BTreeMap<usize, Unusable> {
        &self.skipped
    }
}
