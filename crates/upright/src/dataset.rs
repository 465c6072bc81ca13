//! [`Dataset`]: signals read on demand, so that a fit never holds more than it needs.

use crate::error::{Error, Result};
use crate::tensor::{Batch, Signal};

/// Rows read and worked on at a time, wherever there may be many: enough to keep all threads
/// busy, few enough to hold. No result depends on it.
pub const CHUNK: usize = 128;

/// Rows of such signals worked on at a time: fewer of large ones, which take their time.
pub fn chunk(signal: Signal) -> usize {
    if signal.large() { CHUNK / 4 } else { CHUNK }
}

/// Signals of one kind and size, with or without labels, read by row.
pub trait Dataset: Sync {
    /// What one item is, once prepared for the model.
    fn signal(&self) -> Signal;

    /// Number of rows, readable or not.
    fn len(&self) -> usize;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The true class of a row, if known.
    fn label(&self, row: usize) -> Option<u32>;

    /// Reads some rows. Rows that cannot be read are left out, and recorded by the
    /// data set itself; an error means that reading should stop altogether.
    fn read(&self, rows: &[usize]) -> Result<Loaded>;
}

/// Rows of a [`Dataset`] that could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Their signals.
    pub batch: Batch<'static>,
    /// Their row numbers, in the order asked for.
    pub rows: Vec<usize>,
}

/// A data set held in memory, owned or borrowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples<'a> {
    batch: Batch<'a>,
    labels: Option<Vec<u32>>,
}

impl<'a> Samples<'a> {
    /// Signals with one label each.
    pub fn labelled(batch: Batch<'a>, labels: Vec<u32>) -> Result<Self> {
        if labels.len() != batch.len() {
            return Err(Error::shape("labels", batch.len(), labels.len()));
        }
        Ok(Samples { batch, labels: Some(labels) })
    }

    /// Signals without labels.
    pub fn unlabelled(batch: Batch<'a>) -> Self {
        Samples { batch, labels: None }
    }

    /// The signals.
    pub fn batch(&self) -> &Batch<'a> {
        &self.batch
    }

    /// The labels, if there are any.
    pub fn labels(&self) -> Option<&[u32]> {
        self.labels.as_deref()
    }
}

impl Dataset for Samples<'_> {
    fn signal(&self) -> Signal {
        self.batch.signal()
    }

    fn len(&self) -> usize {
        self.batch.len()
    }

    fn label(&self, row: usize) -> Option<u32> {
        self.labels.as_ref().and_then(|l| l.get(row).copied())
    }

    fn read(&self, rows: &[usize]) -> Result<Loaded> {
        let rows: Vec<usize> = rows.iter().copied().filter(|&r| r < self.len()).collect();
        Ok(Loaded { batch: self.batch.select(&rows), rows })
    }
}
