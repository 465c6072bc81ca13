//! The table of formats: one file each. A new one is a row here and its file;
//! opening, messages, tests and the fuzzer loop over the table.

mod csv;
mod idx;
mod image;
mod jsonl;
pub(crate) mod list;
mod npy;
mod npz;
mod off;
mod parquet;
mod pcd;
mod ply;
mod quickdraw;
mod svg;
mod tar;
mod text;
mod xyz;

use std::path::Path;

use upright::SignalKind;

pub(crate) use csv::column;
pub(crate) use idx::read as read_idx;
pub use image::{decode, decode_bytes};
pub(crate) use npy::read as read_npy;

use crate::bytes::{self, Content};
use crate::error::Result;
use crate::item::{Decoded, Set};
use crate::options::Options;
use crate::skip::Unusable;

/// Every format. Where several could read a file, the first does.
pub static FORMATS: &[Format] = &[
    image::FORMAT,
    svg::FORMAT,
    off::FORMAT,
    ply::FORMAT,
    pcd::FORMAT,
    xyz::FORMAT,
    idx::FORMAT,
    quickdraw::FORMAT,
    npy::FORMAT,
    npz::FORMAT,
    parquet::FORMAT,
    tar::FORMAT,
    csv::FORMAT,
    jsonl::FORMAT,
];

/// A format of files.
#[derive(Debug)]
#[non_exhaustive]
pub struct Format {
    /// Its name, in kebab case.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// How the names of its files end, in small letters; the usual one first.
    pub endings: &'static [&'static str],
    /// What it is called where all that is supported is listed.
    pub called: &'static str,
    /// What its items can be.
    pub kinds: &'static [SignalKind],
    /// Whether files packed with gzip are read, too, if their names go on with `.gz`.
    pub gz: bool,
    /// Whether its reader knows its files by their content, whatever they are called.
    pub any_name: bool,
    /// Whether the files of one folder are parts of one set, rather than sets to choose from.
    pub parts: bool,
    /// The shapes of arrays that hold items of a kind, for messages; may be empty.
    pub shapes: fn(SignalKind) -> &'static str,
    /// What a file of such a name holds, by a look into it where the name does not tell;
    /// `None` if it is not of this format.
    pub sniff: fn(&Path) -> Option<Holds>,
    /// Its reader.
    pub read: Read,
    /// What its files are made of, for fuzzers.
    pub words: &'static [&'static str],
    /// Small valid files, for tests and fuzzers.
    pub examples: fn() -> Vec<Vec<u8>>,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// One item.
    One,
    /// Many items.
    Many,
    /// The names of files.
    Names,
}

/// Reads a file that holds one item, or says why it must be skipped.
pub type ReadOne = fn(Content<'_>, &Options) -> std::result::Result<Decoded, Unusable>;
/// Opens a file that holds many items, or the names of files.
pub type ReadMany = fn(&Path, &Options) -> Result<Set>;

/// The reader of a format, by what its files hold.
#[derive(Debug, Clone, Copy)]
pub enum Read {
    /// One item each.
    One(ReadOne),
    /// Many items.
    Many(ReadMany),
    /// One item or many.
    Either(ReadOne, ReadMany),
    /// The names of files.
    Names(ReadMany),
}

impl Format {
    /// What most formats have in common.
    const BASE: Format = Format {
        name: "",
        about: "",
        endings: &[],
        called: "",
        kinds: &[],
        gz: true,
        any_name: false,
        parts: false,
        shapes: |_| "",
        sniff: |_| Some(Holds::One),
        read: Read::One(|_, _| Err("no reader".into())),
        words: &[],
        examples: Vec::new,
    };

    /// Whether a file has the name of one of its files.
    pub fn is_named(&self, path: &Path) -> bool {
        let (name, packed) = bytes::name(path);
        (self.gz || !packed) && self.endings.iter().any(|end| name.ends_with(end))
    }

    /// The reader of files with one item, if there can be such.
    pub fn one(&self) -> Option<ReadOne> {
        match self.read {
            Read::One(one) | Read::Either(one, _) => Some(one),
            Read::Many(_) | Read::Names(_) => None,
        }
    }

    /// The reader of files with many items, if there can be such.
    pub fn many(&self) -> Option<ReadMany> {
        match self.read {
            Read::Many(many) | Read::Either(_, many) => Some(many),
            Read::One(_) | Read::Names(_) => None,
        }
    }
}

fn of(kind: SignalKind) -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(move |f| f.kinds.contains(&kind))
}

/// The reader of a file that is named like a single item.
pub(crate) fn one(path: &Path, kind: SignalKind) -> Option<ReadOne> {
    of(kind).filter(|f| f.is_named(path)).find_map(Format::one)
}

/// The reader of a file that someone says is a single item.
pub(crate) fn one_called(path: &Path, kind: SignalKind) -> Option<ReadOne> {
    one(path, kind).or_else(|| of(kind).filter(|f| f.any_name).find_map(Format::one))
}

/// Reads the bytes of a file that holds one item. Its name tells the format if it is a usual
/// one, else the bytes do.
pub fn decode_item(
    name: &str,
    bytes: &[u8],
    options: &Options,
) -> std::result::Result<Decoded, Unusable> {
    let (kind, from) = (options.kind(), Content::Bytes(bytes));
    if let Some(read) = one_called(Path::new(name), kind) {
        return read(from, options);
    }
    let readers = of(kind).filter_map(Format::one);
    let mut read = readers.filter_map(|read| read(from, options).ok());
    read.next()
        .ok_or_else(|| format!("not a file of a known kind; supported: {}", supported(kind)).into())
}

/// The format and reader of a file that holds many items.
pub(crate) fn many(path: &Path, kind: SignalKind) -> Option<(&'static Format, ReadMany)> {
    let many = of(kind).filter_map(|f| Some((f, f.many()?)));
    many.into_iter().find(|(f, _)| f.is_named(path) && (f.sniff)(path) == Some(Holds::Many))
}

/// Opens a file of many items.
pub(crate) fn open(read: ReadMany, path: &Path, options: &Options) -> Result<Set> {
    let set = read(path, options)?;
    let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    Ok(Set { bytes, ..set })
}

/// The reader of a file that names files.
pub(crate) fn names(path: &Path) -> Option<ReadMany> {
    FORMATS.iter().find_map(|f| match f.read {
        Read::Names(names) if f.is_named(path) => Some(names),
        _ => None,
    })
}

/// The kind of a file that is surely of another one.
pub(crate) fn other(path: &Path, kind: SignalKind) -> Option<SignalKind> {
    let sure = FORMATS.iter().filter(|f| f.kinds.len() == 1 && f.is_named(path));
    let held = sure.filter(|f| (f.sniff)(path).is_some()).map(|f| f.kinds[0]);
    held.filter(|&k| k != kind).min_by_key(|k| SignalKind::ALL.iter().position(|a| a == k))
}

/// How the names of single items of a kind usually end, without the dot.
pub(crate) fn usual(kind: SignalKind) -> &'static str {
    let endings = of(kind).filter(|f| f.one().is_some()).flat_map(|f| f.endings);
    endings.map(|end| end.trim_start_matches('.')).next().unwrap_or_default()
}

/// What files can hold items of a kind, for messages.
pub fn supported(kind: SignalKind) -> String {
    let called = |which: &dyn Fn(&Format) -> bool, between: &str| {
        of(kind).filter(|f| which(f)).map(|f| f.called).collect::<Vec<_>>().join(between)
    };
    let shapes = of(kind).map(|f| (f.shapes)(kind)).find(|s| !s.is_empty());
    let array = |f: &Format| !(f.shapes)(kind).is_empty();
    let mut parts = vec![called(&|f| matches!(f.read, Read::One(_)), " ")];
    parts.push(called(&|f| matches!(f.read, Read::Many(_)) && !array(f), ", "));
    parts.extend(shapes.map(|shapes| format!("{} of {shapes}", called(&array, " "))));
    parts.retain(|p| !p.is_empty());
    let packed = of(kind).filter(|f| f.one().is_some()).all(|f| f.gz);
    parts.join(", ") + if packed { "; also as .gz" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_supported_is_said_in_a_line() {
        for (kind, text, usual) in [
            (SignalKind::Image, "png jpg bmp tif webp gif pnm, idx, npz, parquet, tar", "png"),
            (
                SignalKind::Strokes,
                "svg, QuickDraw ndjson, npy npz of [N,L,3] or [N,L,2]; also as .gz",
                "svg",
            ),
            (SignalKind::Cloud, "off ply pcd xyz, npy npz of [N,P,3]; also as .gz", "off"),
        ] {
            assert_eq!((supported(kind).as_str(), super::usual(kind)), (text, usual));
        }
    }

    #[test]
    fn names_tell_formats() {
        let named = |name: &str| -> Vec<&str> {
            FORMATS.iter().filter(|f| f.is_named(Path::new(name))).map(|f| f.name).collect()
        };
        for (name, formats) in [
            ("a.PNG", &["image"][..]),
            ("a.png.gz", &[]),
            ("x/b.ply.gz", &["ply"]),
            ("train-images-idx3-ubyte.gz", &["idx"]),
            ("t10k-images.idx3-ubyte", &["idx"]),
            ("emnist-letters-test-images-idx3-ubyte", &["idx"]),
            ("train-labels-idx1-ubyte.gz", &[]),
            ("a.ndjson", &["quickdraw", "jsonl"]),
            ("a.npz.gz", &[]),
            ("none", &[]),
        ] {
            assert_eq!(named(name), formats, "{name}");
        }
    }

    #[test]
    fn text_is_a_cloud_only_if_it_holds_points() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        for (text, kind) in [("1 2 3\n4 5 6\n", Some(SignalKind::Cloud)), ("read me\n", None)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(other(&path, SignalKind::Image), kind, "{text}");
        }
    }
}
