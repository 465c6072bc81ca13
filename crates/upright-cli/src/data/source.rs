//! [`Source`]: rows of any format as an [`upright::dataset::Dataset`].

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use serde::Serialize;
use upright::Error;
use upright::dataset::{Dataset, Loaded};
use upright::model::Model;
use upright::tensor::{Batch, Signal};

use super::labels::{self, Labels};
use super::ledger::{Ledger, Seen};
use super::options::{Allowance, Options, Want};
use super::picture::{Decoded, Picture};
use crate::report::{Failure, Note, Result};
use crate::rows::{Format, Rows};

/// Pictures that can be decoded one by one, from several threads.
pub trait Pictures: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// What to call one in messages and results.
    fn name(&self, row: usize) -> String;

    /// Decodes one. The error is a reason to put behind its name.
    fn picture(&self, row: usize) -> std::result::Result<Decoded, String>;
}

/// What a format's reader found.
pub struct Opened {
    /// The pictures.
    pub pictures: Box<dyn Pictures>,
    /// Their labels, in the same order.
    pub labels: Labels,
    /// What is worth saying.
    pub notes: Vec<Note>,
}

/// How a decoded picture becomes one item of a batch.
pub struct Prepare {
    /// What an item is.
    pub signal: Signal,
    /// Makes the item. [`Error::Data`] means that this picture is unusable;
    /// any other error stops reading.
    pub apply: Box<dyn Fn(Picture) -> upright::Result<Vec<f32>> + Send + Sync>,
}

impl Prepare {
    /// Makes items as a model wants them.
    pub fn for_model(model: &Model) -> Self {
        let (signal, preprocess) = (model.signal(), model.preprocess().clone());
        Prepare {
            signal,
            apply: Box::new(move |p| {
                let picture =
                    upright::preprocess::Picture::new(p.width, p.height, p.channels, p.data)?;
                preprocess.prepare(&picture, signal)
            }),
        }
    }
}

/// Rows that are decoded when asked for. Unreadable ones are left out, recorded,
/// and stop the reading once there are more than allowed.
pub struct Source {
    pictures: Box<dyn Pictures>,
    rows: Vec<usize>,
    labels: Option<Vec<u32>>,
    classes: Vec<String>,
    prepare: Prepare,
    allowance: Allowance,
    ignore_exif: bool,
    notes: Vec<Note>,
    ledger: Mutex<Ledger>,
}

#[derive(Serialize)]
struct Unreadable<'a> {
    row: usize,
    path: String,
    reason: &'a str,
}

impl Source {
    /// Joins what was found with how to read it.
    pub(super) fn new(
        origin: &str,
        opened: Opened,
        options: &Options,
        prepare: Prepare,
    ) -> Result<Self> {
        let Opened { pictures, labels, notes } = opened;
        if options.want == Want::Labelled && matches!(labels, Labels::None) {
            return Err(Failure::data(
                Path::new(origin),
                "no labels",
                "give class folders, a list with the columns path,label, idx images with their \
                 labels file beside them, or an npz archive with `y`",
            ));
        }
        let (labels, classes) = labels::resolve(origin, labels, options)?;
        let rows = draw(pictures.len(), options.limit, options.seed);
        let labels = labels.map(|l| rows.iter().map(|&r| l[r]).collect());
        let ledger = Mutex::new(Ledger::new(rows.len()));
        Ok(Source {
            pictures,
            rows,
            labels,
            classes,
            prepare,
            allowance: options.allowance,
            ignore_exif: options.ignore_exif,
            notes,
            ledger,
        })
    }

    /// The class names by model output; empty if nothing names them.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The file of a row, or file and number inside it.
    pub fn name(&self, row: usize) -> String {
        self.pictures.name(self.rows[row])
    }

    /// Number of rows found unreadable so far.
    pub fn unreadable(&self) -> usize {
        self.ledger().count(Seen::Broken)
    }

    /// What is worth saying about the data, as far as they were read.
    pub fn notes(&self) -> Vec<Note> {
        let ledger = self.ledger();
        let mut notes = self.notes.clone();
        let turned = ledger.count(Seen::Turned);
        if turned > 0 {
            let read = turned + ledger.count(Seen::Plain);
            let (what, help) = if self.ignore_exif {
                ("ignored", "leave out `--ignore-exif` to turn them upright")
            } else {
                ("applied before everything", "`--ignore-exif` to see raw pixels")
            };
            notes.push(Note {
                code: "exif::present",
                warning: false,
                message: format!("{turned} of {read} photos carry an EXIF rotation; {what}"),
                help: help.into(),
            });
        }
        if let Some((message, _, _)) = self.broken(&ledger) {
            notes.push(Note {
                code: "data::corrupt",
                warning: true,
                message,
                help: "skipped and listed in `errors.jsonl`; `--strict` to stop, `--max-errors` \
                       to allow more or fewer"
                    .into(),
            });
        }
        notes
    }

    /// Writes the unreadable rows as JSON lines; nothing if there are none.
    pub fn write_errors(&self, path: &Path) -> Result<()> {
        let ledger = self.ledger();
        if ledger.reasons().is_empty() {
            return Ok(());
        }
        let mut rows = Rows::open(Some(path), Format::Jsonl)?;
        for (&row, reason) in ledger.reasons() {
            rows.write(&Unreadable { row, path: self.name(row), reason })?;
        }
        rows.finish()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sentence about unreadable rows, with the first one and its reason.
    fn broken(&self, ledger: &Ledger) -> Option<(String, String, String)> {
        let (&row, reason) = ledger.reasons().first_key_value()?;
        let first = self.name(row);
        let message = format!(
            "{} of {} images unreadable, first: `{first}` ({reason})",
            ledger.reasons().len(),
            self.rows.len(),
        );
        Some((message, first, reason.clone()))
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
        let rows: Vec<usize> = rows.iter().copied().filter(|&r| r < self.rows.len()).collect();
        let decoded: Vec<std::result::Result<(Vec<f32>, bool), Trouble>> =
            rows.par_iter().map(|&row| self.item(row)).collect();
        let mut ledger = self.ledger();
        let mut loaded = Loaded {
            batch: Batch::with_capacity(self.prepare.signal, rows.len()),
            rows: Vec::with_capacity(rows.len()),
        };
        for (row, item) in rows.into_iter().zip(decoded) {
            match item {
                Ok((item, turned)) => {
                    ledger.read(row, turned);
                    loaded.batch.push(&item)?;
                    loaded.rows.push(row);
                }
                Err(Trouble::Row(reason)) => ledger.broken(row, reason),
                Err(Trouble::All(error)) => return Err(error),
            }
        }
        if ledger.reasons().len() > self.allowance.of(self.rows.len())
            && let Some((_, first, reason)) = self.broken(&ledger)
        {
            return Err(Error::Corrupt {
                count: ledger.reasons().len(),
                total: self.rows.len(),
                first,
                reason,
            });
        }
        Ok(loaded)
    }
}

enum Trouble {
    Row(String),
    All(Error),
}

impl Source {
    fn item(&self, row: usize) -> std::result::Result<(Vec<f32>, bool), Trouble> {
        let Decoded { picture, turned } =
            self.pictures.picture(self.rows[row]).map_err(Trouble::Row)?;
        match (self.prepare.apply)(picture) {
            Ok(item) => Ok((item, turned)),
            Err(Error::Data { why, .. }) => Err(Trouble::Row(why)),
            Err(other) => Err(Trouble::All(other)),
        }
    }
}

/// The rows to read, in order: all, or `limit` of them drawn with the seed. A
/// smaller limit draws a part of what a larger one draws.
fn draw(rows: usize, limit: Option<usize>, seed: u64) -> Vec<usize> {
    let Some(limit) = limit.filter(|&l| l < rows) else { return (0..rows).collect() };
    let mut lots: Vec<(u64, usize)> = (0..rows).map(|r| (lot(seed, r as u64), r)).collect();
    lots.sort_unstable();
    lots.truncate(limit);
    let mut drawn: Vec<usize> = lots.into_iter().map(|(_, r)| r).collect();
    drawn.sort_unstable();
    drawn
}

/// A number that looks random and depends on nothing but its arguments: the
/// `SplitMix64` stream of the seed at the given place.
fn lot(seed: u64, place: u64) -> u64 {
    let mix = |mut z: u64| {
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let step = 0x9e37_79b9_7f4a_7c15u64;
    mix(mix(seed.wrapping_add(step)).wrapping_add(step.wrapping_mul(place.wrapping_add(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tenth picture is broken, every third asks to be turned; the value is the row.
    struct Numbers(usize);

    impl Pictures for Numbers {
        fn len(&self) -> usize {
            self.0
        }

        fn name(&self, row: usize) -> String {
            format!("n/{row}.png")
        }

        fn picture(&self, row: usize) -> std::result::Result<Decoded, String> {
            if row % 10 == 9 {
                return Err("truncated at byte 8".into());
            }
            let picture = Picture { width: 1, height: 1, channels: 1, data: vec![row as f32] };
            Ok(Decoded { picture, turned: row.is_multiple_of(3) })
        }
    }

    fn source(rows: usize, options: &Options) -> Source {
        let prepare =
            Prepare { signal: Signal::image(1, 1, 1), apply: Box::new(|picture| Ok(picture.data)) };
        let opened =
            Opened { pictures: Box::new(Numbers(rows)), labels: Labels::None, notes: vec![] };
        Source::new("n", opened, options, prepare).unwrap()
    }

    fn options(allowance: Allowance) -> Options {
        Options { allowance, ..Options::new(Want::Pictures) }
    }

    #[test]
    fn rows_come_in_the_asked_order_without_the_broken_ones() {
        let source = source(20, &options(Allowance::Percent(10.0)));
        let loaded = source.read(&[12, 9, 3, 99]).unwrap();
        assert_eq!(loaded.rows, [12, 3]);
        assert_eq!(loaded.batch.data(), [12.0, 3.0]);
        source.read(&[9]).unwrap();
        assert_eq!(source.unreadable(), 1, "a row counts once");
    }

    #[test]
    fn more_broken_rows_than_allowed_stop_the_reading() {
        let source = source(100, &options(Allowance::Count(2)));
        assert!(source.read(&[9, 19]).is_ok());
        let e = source.read(&(20..40).collect::<Vec<_>>()).unwrap_err();
        assert_eq!(
            e.to_string(),
            "4 of 100 images unreadable, first: `n/9.png` (truncated at byte 8)"
        );
        assert_eq!(e.code(), "data::corrupt");
    }

    #[test]
    fn broken_and_turned_rows_are_noted_and_listed() {
        let source = source(100, &options(Allowance::Percent(10.0)));
        source.read(&(0..100).collect::<Vec<_>>()).unwrap();
        let notes = source.notes();
        assert_eq!(
            notes[0].message,
            "30 of 90 photos carry an EXIF rotation; applied before everything"
        );
        assert_eq!(
            notes[1].message,
            "10 of 100 images unreadable, first: `n/9.png` (truncated at byte 8)"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("errors.jsonl");
        source.write_errors(&path).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 10);
        assert_eq!(
            text.lines().nth(1),
            Some(r#"{"row":19,"path":"n/19.png","reason":"truncated at byte 8"}"#)
        );
    }

    #[test]
    fn a_limit_draws_the_same_rows_for_the_same_seed() {
        let (a, b) = (draw(1000, Some(50), 1), draw(1000, Some(50), 2));
        assert_eq!(a, draw(1000, Some(50), 1));
        assert_ne!(a, b);
        assert_eq!(a.len(), 50);
        assert!(a.is_sorted_by(|x, y| x < y));
        assert!(draw(1000, Some(10), 1).iter().all(|r| a.contains(r)));
        assert_eq!(draw(3, Some(5), 1), [0, 1, 2]);
        let upper = draw(1000, Some(200), 7).iter().filter(|&&r| r >= 500).count();
        assert!((70..=130).contains(&upper), "{upper} of 200 from the upper half");
    }

    #[test]
    fn an_unusable_picture_is_skipped_but_a_wrong_set_up_stops() {
        let mut s = source(5, &options(Allowance::Count(5)));
        s.prepare.apply = Box::new(|p| {
            let why = String::from("too thin");
            Err(Error::Data { what: format!("{}", p.width), why, help: String::new() })
        });
        assert!(s.read(&[1]).unwrap().rows.is_empty());
        s.prepare.apply = Box::new(|_| Err(Error::shape("picture", 1, 2)));
        assert_eq!(s.read(&[1]).unwrap_err().code(), "input::shape");
    }
}
