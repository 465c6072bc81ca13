//! [`Source`]: rows of any format as an [`upright::Dataset`].

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use upright::{Batch, Dataset, Loaded, Signal};

use crate::choice::{draw, kept};
use crate::error::{Error, Result};
use crate::item::{Change, Decoded, Fetched, Items, Set};
use crate::labels::{self, Labels};
use crate::log::Log;
use crate::note::Note;
use crate::options::{Allowance, Options, Want};
use crate::prepare::{Prepare, Prepared};
use crate::skip::{Skipped, Unusable};

#[cfg(test)]
mod tests;

/// Rows that are decoded when asked for. Unreadable ones are skipped and recorded;
/// once there are more of them than allowed, reading stops.
pub struct Source {
    items: Box<dyn Items>,
    bytes: u64,
    rows: Vec<usize>,
    labels: Option<Vec<u32>>,
    classes: Vec<String>,
    prepare: Prepare,
    allowance: Allowance,
    ignore_exif: bool,
    transpose: bool,
    notes: Vec<Note>,
    log: Mutex<Log>,
}

/// Rows that were asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// The signals of those that could be read.
    pub batch: Batch<'static>,
    /// Their row numbers, in the order asked for.
    pub rows: Vec<usize>,
    /// Those that could not be read.
    pub skipped: Vec<Skipped>,
}

impl Source {
    /// Joins what was found with how to read it.
    pub(crate) fn new(
        origin: &Path,
        set: Set,
        options: &Options,
        prepare: Prepare,
    ) -> Result<Self> {
        let Set { items, labels, notes, bytes } = set;
        if options.want == Want::Labelled && matches!(labels, Labels::None) {
            return Err(Error::NoLabels { path: origin.into() });
        }
        let (labels, classes) = labels::resolve(origin, labels, options)?;
        let kept = kept(origin, &*items, options)?;
        let drawn = draw(kept.len(), options.limit, options.seed);
        let rows: Vec<usize> = drawn.into_iter().map(|r| kept[r]).collect();
        let labels = labels.map(|l| rows.iter().map(|&r| l[r]).collect());
        let log = Mutex::new(Log::new(rows.len()));
        Ok(Source {
            items,
            bytes,
            rows,
            labels,
            classes,
            prepare,
            allowance: options.allowance,
            ignore_exif: options.ignore_exif,
            transpose: options.transpose,
            notes,
            log,
        })
    }

    /// The class names by model output; empty if nothing names them.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The file of a row, or file and number inside it.
    pub fn name(&self, row: usize) -> String {
        self.items.name(self.rows[row])
    }

    /// Every row skipped so far, in order.
    pub fn skipped(&self) -> Vec<Skipped> {
        self.log().skipped().iter().map(|(&row, why)| self.skip(row, why)).collect()
    }

    /// How many rows were skipped so far.
    pub fn skipped_count(&self) -> usize {
        self.log().skipped().len()
    }

    /// What is worth saying about the data, as far as they were read.
    pub fn notes(&self) -> Vec<Note> {
        let log = self.log();
        let read = log.readable();
        let mut notes = self.notes.clone();
        let counted = |change| Some(log.changed(change)).filter(|&count| count > 0);
        let applied = !self.ignore_exif;
        notes.extend(counted(Change::Turned).map(|count| Note::Exif { count, read, applied }));
        notes.extend(counted(Change::Repeated).map(|count| Note::FewPoints { count, read }));
        notes.extend(counted(Change::Thinned).map(|count| Note::ManyStrokes { count, read }));
        let (kind, total) = (self.prepare.signal.kind(), self.rows.len());
        notes.extend(self.first_skipped(&log).map(|(count, first)| Note::Skipped {
            kind,
            count,
            total,
            first,
        }));
        notes
    }

    /// Reads some rows; those that do not exist are left out. It is an error if, all in all,
    /// more rows were skipped than allowed, or items do not suit the model.
    pub fn load(&self, rows: &[usize]) -> Result<Rows> {
        let out = self.load_each(rows)?;
        let mut log = self.log();
        for skipped in &out.skipped {
            log.skip(skipped.row, skipped.why.clone());
        }
        let total = self.rows.len();
        match self.first_skipped(&log) {
            Some((count, first)) if count > self.allowance.of(total) => {
                Err(Error::Skipped { kind: self.prepare.signal.kind(), count, total, first })
            }
            _ => Ok(out),
        }
    }

    /// Reads some rows, however many of them have to be skipped: those are handed out, and
    /// neither counted nor kept.
    pub fn load_each(&self, rows: &[usize]) -> Result<Rows> {
        let rows: Vec<usize> = rows.iter().copied().filter(|&r| r < self.rows.len()).collect();
        let places: Vec<usize> = rows.iter().map(|&row| self.rows[row]).collect();
        let fetched = self.items.fetch(&places);
        let prepared: Vec<upright::Result<Prepared>> =
            fetched.into_par_iter().map(|item| self.prepare(item)).collect();
        let mut log = self.log();
        let room = Vec::with_capacity(rows.len() * self.prepare.signal.size());
        let mut out = Rows {
            batch: Batch::new(self.prepare.signal, room)?,
            rows: Vec::with_capacity(rows.len()),
            skipped: Vec::new(),
        };
        for (row, prepared) in rows.into_iter().zip(prepared) {
            match prepared? {
                Ok((item, change)) => {
                    log.read(row, change);
                    out.batch.push(&item)?;
                    out.rows.push(row);
                }
                Err(why) => out.skipped.push(self.skip(row, &why)),
            }
        }
        Ok(out)
    }

    /// What tells that the data have changed, beside the names of the rows: the size of their
    /// files, and how they are read.
    pub fn stamp(&self) -> String {
        let mut out = format!("{} bytes", self.bytes + self.items.bytes());
        if self.transpose {
            out += ", transposed";
        }
        if self.ignore_exif {
            out += ", EXIF ignored";
        }
        out
    }

    fn prepare(&self, item: Fetched) -> upright::Result<Prepared> {
        let Decoded { item, change } = match item() {
            Ok(decoded) => decoded,
            Err(why) => return Ok(Err(why)),
        };
        Ok((self.prepare.apply)(item)?.map(|(item, further)| match further {
            Change::None => (item, change),
            further => (item, further),
        }))
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn skip(&self, row: usize, why: &Unusable) -> Skipped {
        Skipped { row, name: self.name(row), why: why.clone() }
    }

    /// How many rows were skipped so far, and the first of them.
    fn first_skipped(&self, log: &Log) -> Option<(usize, Skipped)> {
        let (&row, why) = log.skipped().first_key_value()?;
        Some((log.skipped().len(), self.skip(row, why)))
    }
}

impl Dataset for Source {
    fn signal(&self) -> Signal {
        self.prepare.signal
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn label(&self, row: usize) -> Option<u32> {
        self.labels.as_ref()?.get(row).copied()
    }

    fn read(&self, rows: &[usize]) -> upright::Result<Loaded> {
        let Rows { batch, rows, .. } = self.load(rows)?;
        Ok(Loaded { batch, rows })
    }
}
