//! [`Source`]: rows of any format as an [`upright::dataset::Dataset`].

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use serde::Serialize;
use upright::Error;
use upright::dataset::{Dataset, Loaded};
use upright::tensor::{Batch, Signal};

use super::choice::{draw, kept};
use super::labels::{self, Labels};
use super::ledger::{Ledger, Seen};
use super::media::{Item, Media};
use super::options::{Allowance, Options, Want};
use super::prepare::Prepare;
use crate::report::{Failure, Note, Result};
use crate::rows::{Format, Rows};

/// Items that can be decoded one by one, from several threads.
pub trait Items: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// What to call one in messages and results.
    fn name(&self, row: usize) -> String;

    /// Decodes one. The error is a reason to put behind its name.
    fn item(&self, row: usize) -> std::result::Result<Decoded, String>;
}

/// An item, and what is worth recording about how it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The item.
    pub item: Item,
    /// Plain, or turned.
    pub seen: Seen,
}

impl Decoded {
    /// An item that was read as it is.
    pub fn plain(item: Item) -> Self {
        Decoded { item, seen: Seen::Plain }
    }
}

/// What a format's reader found.
pub struct Opened {
    /// The items.
    pub items: Box<dyn Items>,
    /// Their labels, in the same order.
    pub labels: Labels,
    /// What is worth saying.
    pub notes: Vec<Note>,
}

/// Rows that are decoded when asked for. Unreadable ones are left out, recorded,
/// and stop the reading once there are more than allowed.
pub struct Source {
    items: Box<dyn Items>,
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
        let Opened { items, labels, notes } = opened;
        if options.want == Want::Labelled && matches!(labels, Labels::None) {
            return Err(Failure::data(
                Path::new(origin),
                "no labels",
                "give class folders, a list with the columns path,label, idx images with their \
                 labels file beside them, an npz archive with `y`, or `--labels FILE`",
            ));
        }
        let (labels, classes) = labels::resolve(origin, labels, options)?;
        let kept = kept(origin, &*items, options)?;
        let drawn = draw(kept.len(), options.limit, options.seed);
        let rows: Vec<usize> = drawn.into_iter().map(|r| kept[r]).collect();
        let labels = labels.map(|l| rows.iter().map(|&r| l[r]).collect());
        let ledger = Mutex::new(Ledger::new(rows.len()));
        Ok(Source {
            items,
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
        self.items.name(self.rows[row])
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
            let read = ledger.readable();
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
        let what = Media::of(self.prepare.signal).plural();
        let read = ledger.readable();
        let mut advise = |count: usize, code, message: String, help: &str| {
            if count > 0 {
                notes.push(Note { code, warning: false, message, help: help.into() });
            }
        };
        let repeated = ledger.count(Seen::Repeated);
        advise(
            repeated,
            "cloud::few",
            format!(
                "{repeated} of {read} {what} have fewer points than the model takes; some are repeated"
            ),
            "scan more densely, or give meshes",
        );
        let thinned = ledger.count(Seen::Thinned);
        advise(
            thinned,
            "strokes::many",
            format!(
                "{thinned} of {read} {what} have more strokes than the model has room for; their shortest are left out"
            ),
            "simplify them, or use a model of longer sequences",
        );
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
            "{} of {} {} unreadable, first: `{first}` ({reason})",
            ledger.reasons().len(),
            self.rows.len(),
            Media::of(self.prepare.signal).plural(),
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
        let decoded: Vec<std::result::Result<(Vec<f32>, Seen), Trouble>> =
            rows.par_iter().map(|&row| self.item(row)).collect();
        let mut ledger = self.ledger();
        let mut loaded = Loaded {
            batch: Batch::with_capacity(self.prepare.signal, rows.len()),
            rows: Vec::with_capacity(rows.len()),
        };
        for (row, item) in rows.into_iter().zip(decoded) {
            match item {
                Ok((item, seen)) => {
                    ledger.read(row, seen);
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
                what: Media::of(self.prepare.signal).plural(),
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
    fn item(&self, row: usize) -> std::result::Result<(Vec<f32>, Seen), Trouble> {
        let Decoded { item, seen } = self.items.item(self.rows[row]).map_err(Trouble::Row)?;
        match (self.prepare.apply)(item) {
            Ok((item, Seen::Plain)) => Ok((item, seen)),
            Ok((item, changed)) => Ok((item, changed)),
            Err(Error::Data { why, .. }) => Err(Trouble::Row(why)),
            Err(other) => Err(Trouble::All(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::picture::Picture;
    use super::*;

    fn pixels(item: Item) -> Vec<f32> {
        let Item::Picture(picture) = item else { panic!("{:?}", item.media()) };
        picture.data
    }

    /// Every tenth picture is broken, every third asks to be turned; the value is the row.
    struct Numbers(usize);

    impl Items for Numbers {
        fn len(&self) -> usize {
            self.0
        }

        fn name(&self, row: usize) -> String {
            format!("n/{row}.png")
        }

        fn item(&self, row: usize) -> std::result::Result<Decoded, String> {
            if row % 10 == 9 {
                return Err("truncated at byte 8".into());
            }
            let picture = Picture { width: 1, height: 1, channels: 1, data: vec![row as f32] };
            let seen = if row.is_multiple_of(3) { Seen::Turned } else { Seen::Plain };
            Ok(Decoded { item: Item::Picture(picture), seen })
        }
    }

    fn source(rows: usize, options: &Options) -> Source {
        let prepare = Prepare {
            signal: Signal::image(1, 1, 1),
            apply: Box::new(|item| Ok((pixels(item), Seen::Plain))),
        };
        let opened = Opened { items: Box::new(Numbers(rows)), labels: Labels::None, notes: vec![] };
        Source::new("n", opened, options, prepare).unwrap()
    }

    fn options(allowance: Allowance) -> Options {
        Options { allowance, ..Options::new(Want::Inputs, Signal::image(1, 1, 1)) }
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
    fn patterns_choose_rows_by_their_names() {
        let rows = |include: &[&str], exclude: &[&str]| {
            let list = |p: &[&str]| p.iter().map(|&p| p.to_owned()).collect();
            let options = Options {
                include: list(include),
                exclude: list(exclude),
                ..options(Allowance::Count(9))
            };
            let opened = Opened {
                items: Box::new(Numbers(30)),
                labels: Labels::Numbers((0..30).collect()),
                notes: vec![],
            };
            let prepare = Prepare {
                signal: Signal::image(1, 1, 1),
                apply: Box::new(|item| Ok((pixels(item), Seen::Plain))),
            };
            let source = Source::new("n", opened, &options, prepare)?;
            Ok::<Vec<u32>, Failure>((0..source.len()).map(|r| source.label(r).unwrap()).collect())
        };
        assert_eq!(
            rows(&["n/1?.png", "*/2.png"], &["*[02468].png"]).unwrap(),
            [11, 13, 15, 17, 19]
        );
        assert_eq!(rows(&[], &["*/?.png", "*/1?.png"]).unwrap().len(), 10);
        let e = rows(&["1?.png"], &[]).unwrap_err();
        assert_eq!(e.to_string(), "n: the patterns leave none of its 30 rows");
        assert!(e.help().contains("names look like `n/0.png`"));
    }

    #[test]
    fn an_unusable_picture_is_skipped_but_a_wrong_set_up_stops() {
        let mut s = source(5, &options(Allowance::Count(5)));
        s.prepare.apply = Box::new(|p| {
            let why = String::from("too thin");
            Err(Error::Data { what: format!("{:?}", p.media()), why, help: String::new() })
        });
        assert!(s.read(&[1]).unwrap().rows.is_empty());
        s.prepare.apply = Box::new(|_| Err(Error::shape("picture", 1, 2)));
        assert_eq!(s.read(&[1]).unwrap_err().code(), "input::shape");
    }
}
