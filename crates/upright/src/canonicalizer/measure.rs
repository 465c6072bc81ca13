//! Measuring: the answers for labelled inputs, as they come or as copies
//! under random poses.

use std::time::{Duration, Instant};

use super::{Canonicalizer, Prediction, transformed_copies};
use crate::dataset::{Dataset, Loaded, chunk};
use crate::error::Result;
use crate::tensor::Batch;

/// The inputs of a data set, as they are or as copies under random poses.
#[derive(Clone, Copy)]
pub struct Posed<'a> {
    /// The inputs.
    pub data: &'a dyn Dataset,
    /// Seed of the poses of copies that stand for the inputs; `None` leaves them as they are.
    pub copies: Option<u64>,
}

impl std::fmt::Debug for Posed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Posed({} rows, copies {:?})", self.data.len(), self.copies)
    }
}

impl Posed<'_> {
    /// Some rows, without those that cannot be read.
    pub fn read(&self, c: &Canonicalizer, rows: &[usize]) -> Result<Loaded> {
        let Loaded { batch, rows } = self.data.read(rows)?;
        Ok(Loaded { batch: self.pose(c, batch)?, rows })
    }

    /// Inputs that were read from the data, posed.
    pub fn pose(&self, c: &Canonicalizer, batch: Batch<'static>) -> Result<Batch<'static>> {
        match self.copies {
            Some(seed) => transformed_copies(&batch, &c.space, &c.config.resample, seed),
            None => Ok(batch),
        }
    }

    /// The classes of rows, where they are known.
    pub fn labels(&self, rows: &[usize]) -> Vec<Option<u32>> {
        rows.iter().map(|&row| self.data.label(row)).collect()
    }
}

/// Some inputs and their answers.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// How many rows were asked for, readable or not.
    pub asked: usize,
    /// The classes of those that could be read, where they are known.
    pub labels: &'a [Option<u32>],
    /// Their answers.
    pub predictions: &'a [Prediction],
    /// Time spent answering, reading and posing left out.
    pub time: Duration,
}

impl Canonicalizer {
    /// Answers some rows, a chunk at a time, and tells of each chunk.
    #[doc(hidden)]
    pub fn measure(
        &self,
        inputs: &Posed,
        rows: &[usize],
        tell: &mut dyn FnMut(&Answered),
    ) -> Result<()> {
        for chunk in rows.chunks(chunk(self.model.signal())) {
            let loaded = inputs.read(self, chunk)?;
            let start = Instant::now();
            let predictions = self.predict(&loaded.batch)?;
            let time = start.elapsed();
            let labels = inputs.labels(&loaded.rows);
            let asked = chunk.len();
            tell(&Answered { asked, labels: &labels, predictions: &predictions, time });
        }
        Ok(())
    }
}
