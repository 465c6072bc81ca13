//! The readers, each through the front door: open the file as a data set,
//! read every row. Every format of the table is one, and one more packed with
//! gzip if it may be; then labels in a file of their own, models and artifacts.

use std::path::Path;
use std::time::Duration;

use upright::{Dataset, Signal, SignalKind};
use upright_data::{Allowance, Change, FORMATS, Format, Item, Options, Prepare, Read, Split, Want};

use super::mutate::Dice;
use super::{artifacts, models, seeds};

/// One reader and what to feed it.
pub(super) struct Reader {
    /// What it is called.
    pub(super) name: String,
    /// The name of its file, which chooses the reader.
    pub(super) file: String,
    /// What its format is made of.
    pub(super) words: &'static [&'static str],
    /// Whether its files are packed with gzip.
    pub(super) packed: bool,
    /// Valid files, before packing.
    pub(super) seeds: Vec<Vec<u8>>,
    /// Most bytes it may hold for files of at most [`super::mutate::LONGEST`] bytes.
    pub(super) cap: usize,
    /// Longest time that one input may take.
    pub(super) patience: Duration,
    /// Damage that knows how its files are built, beside damage to their bytes.
    pub(super) inner: Option<Damage>,
    /// Reads all of a file; whether that worked.
    pub(super) read: Box<dyn Fn(&Path) -> bool + Send + Sync>,
}

/// A damaged copy of one of the seeds, with the words of the format at hand.
pub(super) type Damage = fn(&mut Dice, &[Vec<u8>], &[&str]) -> Vec<u8>;

pub(super) const MB: usize = 1 << 20;

/// Time that a reader of data may take for one input.
const PATIENCE: Duration = Duration::from_secs(5);

/// Every reader.
pub(super) fn readers() -> Vec<Reader> {
    let mut out = Vec::new();
    for format in FORMATS {
        out.push(reader(format, false));
        if format.gz {
            out.push(reader(format, true));
        }
    }
    out.push(Reader {
        name: "labels".into(),
        file: "labels.csv".into(),
        words: &["label", "class", "path", "\"", ",", "\n"],
        packed: false,
        seeds: seeds::labels(),
        cap: 8 * MB,
        patience: PATIENCE,
        inner: None,
        read: Box::new(labels),
    });
    out.extend(models::readers());
    out.extend(artifacts::readers());
    out
}

fn reader(format: &'static Format, packed: bool) -> Reader {
    let gz = |text: &str| if packed { text.to_owned() } else { String::new() };
    Reader {
        name: format!("{}{}", format.name, gz("-gz")),
        file: format!("a{}{}", format.endings[0], gz(".gz")),
        words: format.words,
        packed,
        seeds: (format.examples)(),
        cap: match format.name {
            // An image of 256 MB decoded, the decoder's own copy, and the numbers as f32.
            "image" | "parquet" | "tar" => 1536 * MB,
            _ if packed => 64 * MB,
            _ => 8 * MB,
        },
        patience: PATIENCE,
        inner: None,
        read: Box::new(|path| {
            let read = |&kind: &SignalKind| match format.read {
                Read::Names(_) => listed(path, kind),
                _ => all(path, &options(signal(kind)), prepare(kind)),
            };
            format.kinds.iter().filter(|kind| read(kind)).count() > 0
        }),
    }
}

/// Few points, so that an item may be small.
fn signal(kind: SignalKind) -> Signal {
    match kind {
        SignalKind::Image => Signal::image(1, 1, 1),
        SignalKind::Strokes => Signal::Strokes { length: 8 },
        SignalKind::Cloud => Signal::Cloud { points: 2 },
    }
}

/// One pixel of an image, or the points.
fn prepare(kind: SignalKind) -> Prepare {
    let signal = signal(kind);
    if kind != SignalKind::Image {
        return Prepare::for_points(signal, 0);
    }
    let apply = |item| {
        let Item::Image(picture) = item else {
            return Err(upright::Error::shape("item", "an image", "another"));
        };
        Ok(Ok((picture.data()[..1].to_vec(), Change::None)))
    };
    Prepare { signal, apply: Box::new(apply) }
}

fn options(signal: Signal) -> Options {
    Options { allowance: Allowance::Percent(100.0), ..Options::new(Want::Inputs, signal) }
}

fn all(path: &Path, options: &Options, prepare: Prepare) -> bool {
    let Ok(source) = upright_data::open(&[path.into()], options, prepare) else { return false };
    let rows: Vec<usize> = (0..source.len()).collect();
    let right = rows
        .chunks(16)
        .all(|rows| source.load(rows).is_ok_and(|r| r.batch.data().iter().all(|v| v.is_finite())));
    assert!(right, "what was read is not finite, or stopped");
    for &row in &rows {
        let _ = source.name(row);
    }
    source.skipped_count() == 0
}

/// The files that a list names are not there, so opening it is all.
fn listed(path: &Path, kind: SignalKind) -> bool {
    let options = Options { split: Some(Split::Train), ..options(signal(kind)) };
    match upright_data::open(&[path.into()], &options, prepare(kind)) {
        Ok(source) => {
            let rows: Vec<usize> = (0..source.len()).collect();
            source.load(&rows).is_ok()
        }
        Err(e) => {
            let text = e.to_string();
            text.contains("is no file of many") || text.contains("No such file")
        }
    }
}

/// Labels of two images that lie beside them.
fn labels(path: &Path) -> bool {
    let images = path.with_file_name("two-images-idx3-ubyte");
    if !images.exists()
        && std::fs::write(
            &images,
            [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1][..], &[1, 2]].concat(),
        )
        .is_err()
    {
        return false;
    }
    let options = Options { labels: Some(path.into()), ..options(signal(SignalKind::Image)) };
    all(&images, &options, prepare(SignalKind::Image))
}
