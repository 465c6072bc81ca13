//! Sketches and clouds in numpy arrays: `[N,P,3]` for many or `[P,3]` for one.

use std::fs::File;
use std::io::BufReader;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use upright::SignalKind;

use super::{Format, Holds, Read};
use crate::array::{self, Array, Number};
use crate::bytes::{self, Content};
use crate::cloud::{self, Cloud};
use crate::error::{Error, Found, Result};
use crate::examples::{floats, npy};
use crate::item::{Decoded, Item, Items, Set};
use crate::label_file;
use crate::labels::Labels;
use crate::options::Options;
use crate::skip::Unusable;
use crate::strokes::Strokes;

pub(super) const FORMAT: Format = Format {
    name: "npy",
    about: "A numpy array of one sketch or cloud, or of many.",
    endings: &[".npy"],
    called: "npy",
    kinds: &[SignalKind::Strokes, SignalKind::Cloud],
    shapes,
    sniff,
    read: Read::Either(one, open),
    words: WORDS,
    examples,
    ..Format::BASE
};

/// What headers of arrays are made of.
pub(super) const WORDS: &[&str] = &[
    "'descr'",
    "'shape'",
    "'fortran_order'",
    "True",
    "False",
    "<f4",
    "<i2",
    ">f8",
    "|u1",
    "<f2",
    "|O",
    "(",
    ")",
    ", ",
];

fn examples() -> Vec<Vec<u8>> {
    let values: Vec<f32> = (0..24).map(|i| (i * 7 % 11) as f32).collect();
    let doubles: Vec<u8> = (0..12).flat_map(|i| f64::from(i).to_be_bytes()).collect();
    let pens = [1., 2., 1., 3., 4., 0., 0., 0., -1.];
    vec![
        npy("<f4", false, "(2, 4, 3)", &floats(&values)),
        npy("<i2", false, "(2, 4, 3)", &floats(&values[..12])),
        npy(">f8", true, "(1, 4, 3)", &doubles),
        npy("<f4", false, "(4, 3)", &floats(&values[..12])),
        npy("<f4", false, "(3, 3)", &floats(&pens)),
    ]
}

/// Largest array after unpacking, in bytes.
const CAP: u64 = 4 << 30;

/// What a value of a 16-bit cloud is divided by.
const SHORT: f32 = 32_767.0;

/// Columns that rows may have: x, y and a pen, or x, y, z and whatever follows.
fn columns(kind: SignalKind) -> RangeInclusive<usize> {
    if kind == SignalKind::Strokes { 2..=3 } else { 3..=9 }
}

/// The shapes of arrays that hold many items, for messages.
pub(super) fn shapes(kind: SignalKind) -> &'static str {
    match kind {
        SignalKind::Image => "",
        SignalKind::Strokes => "[N,L,3] or [N,L,2]",
        SignalKind::Cloud => "[N,P,3]",
    }
}

fn fix(kind: SignalKind) -> &'static str {
    if kind == SignalKind::Strokes {
        "give [N,L,3] (x, y, pen) or [N,L,2]"
    } else {
        "give [N,P,3]; colours or normals may follow the coordinates"
    }
}

fn sniff(path: &Path) -> Option<Holds> {
    let shape = array::announced(bytes::start(path, CAP).ok()?);
    Some(if shape.is_ok_and(|s| s.len() == 3) { Holds::Many } else { Holds::One })
}

/// Reads a `.npy` file.
pub(crate) fn read(path: &Path) -> std::result::Result<Array, Unusable> {
    if bytes::name(path).1 {
        let bytes = bytes::read(path, CAP)?;
        return Array::read(&bytes[..], bytes.len() as u64);
    }
    let file = File::open(path).map_err(|e| e.to_string())?;
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    if length > CAP {
        return Err(format!("{length} bytes, the limit is {CAP}").into());
    }
    Array::read(BufReader::new(file), length)
}

/// The item of a file that holds one.
fn one(from: Content<'_>, options: &Options) -> std::result::Result<Decoded, Unusable> {
    let kind = options.kind();
    let array = match from {
        Content::File(path) => read(path)?,
        Content::Bytes(_) => {
            let bytes = from.read(CAP)?;
            Array::read(&bytes[..], bytes.len() as u64)?
        }
    };
    match *array.shape() {
        [_, c] if columns(kind).contains(&c) => {
            item(&scaled(&array, kind, 0, array.len()), kind, c)
        }
        [n, _, _] => Err(format!("{n} {} in one file; give the file itself", kind.plural()).into()),
        _ => Err(format!("an array of shape {:?}", array.shape()).into()),
    }
}

fn item(
    values: &[f32],
    kind: SignalKind,
    columns: usize,
) -> std::result::Result<Decoded, Unusable> {
    Ok(match kind {
        SignalKind::Strokes => Item::Strokes(Strokes::from_rows(values, columns)?),
        _ => Item::Cloud(Cloud::from_rows(values, columns)?),
    }
    .into())
}

fn scaled(array: &Array, kind: SignalKind, from: usize, count: usize) -> Vec<f32> {
    let mut values = array.floats(from, count);
    if kind == SignalKind::Cloud && array.number() == Number::Signed(2) {
        for v in &mut values {
            *v /= SHORT;
        }
    }
    values
}

/// Many items in one array.
pub(super) struct Stack {
    name: String,
    array: Array,
    kind: SignalKind,
    rows: usize,
    columns: usize,
}

/// Opens a file of many, with the labels beside it if there are any.
fn open(path: &Path, options: &Options) -> Result<Set> {
    let kind = options.kind();
    let array = read(path).map_err(|why| Error::unreadable(path, why, fix(kind)))?;
    let stack = Stack::new(path, array, kind)?;
    let labels = match labels_beside(path) {
        Some(beside) if options.labels.is_none() => label_file::read(&beside, stack.len(), kind)?,
        _ => Labels::None,
    };
    Ok(Set::new(stack, labels))
}

impl Stack {
    /// Checks the shape of an array that came from a file.
    pub(super) fn new(path: &Path, array: Array, kind: SignalKind) -> Result<Self> {
        let bad = |why: String| Error::unreadable(path, why, fix(kind));
        let [rows, points, columns] = match *array.shape() {
            [n, p, c] if columns(kind).contains(&c) => [n, p, c],
            _ => return Err(bad(format!("{} of shape {:?}", kind.plural(), array.shape()))),
        };
        if rows == 0 || points == 0 {
            let found = Found::Nothing("an empty array");
            return Err(Error::Empty { path: path.into(), kind, found });
        }
        if kind == SignalKind::Cloud && points > cloud::POINT_CAP {
            return Err(bad(format!("{points} points, the limit is {}", cloud::POINT_CAP)));
        }
        Ok(Stack { name: path.display().to_string(), array, kind, rows, columns })
    }
}

impl Items for Stack {
    fn len(&self) -> usize {
        self.rows
    }

    fn name(&self, row: usize) -> String {
        format!("{}#{row}", self.name)
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, Unusable> {
        let size = self.array.len() / self.rows;
        item(&scaled(&self.array, self.kind, row * size, size), self.kind, self.columns)
    }
}

/// The labels that belong to an array: what its name says up to `points` or the like,
/// then `labels`.
fn labels_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let mut at = 0;
    let word = name.split_inclusive(['-', '_', '.']).find_map(|word| {
        let from = at;
        at += word.len();
        let bare = word.trim_end_matches(['-', '_', '.']).to_ascii_lowercase();
        ["points", "clouds", "strokes", "sketches", "data", "x"]
            .contains(&bare.as_str())
            .then_some(from)
    })?;
    ["labels.npy", "labels.npy.gz", "labels.csv", "labels.txt"]
        .iter()
        .map(|end| path.with_file_name(format!("{}{end}", &name[..word])))
        .find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::gz;
    use crate::options::Want;
    use upright::Signal;

    fn options(kind: SignalKind) -> Options {
        let signal = match kind {
            SignalKind::Cloud => Signal::Cloud { points: 2 },
            _ => Signal::Strokes { length: 4 },
        };
        Options::new(Want::Labelled, signal)
    }

    fn shorts(values: &[i16]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn packed_shorts_become_clouds_with_the_labels_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set-test-points-i16.npy.gz");
        let data = shorts(&[32_767, 0, -32_767, 0, 0, 0, 1, 2, 3, 4, 5, 6]);
        std::fs::write(&path, gz(&npy("<i2", false, "(2, 2, 3)", &data))).unwrap();
        std::fs::write(folder.path().join("set-test-labels.csv"), "name,label\na,7\nb,0\n")
            .unwrap();
        assert_eq!(sniff(&path), Some(Holds::Many));
        let opened = open(&path, &options(SignalKind::Cloud)).unwrap();
        assert_eq!(opened.labels, Labels::Numbers(vec![7, 0]));
        let Item::Cloud(cloud) = opened.items.item(0).unwrap().item else { panic!() };
        assert_eq!(cloud.points(), [[1.0, 0.0, -1.0], [0.0; 3]]);
        assert!(opened.items.name(1).ends_with("i16.npy.gz#1"));
    }

    #[test]
    fn wrong_shapes_say_what_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        for (kind, shape, size) in [
            (SignalKind::Cloud, "(2, 2, 2)", 8),
            (SignalKind::Strokes, "(2, 1, 4)", 8),
            (SignalKind::Cloud, "(1, 28, 28)", 784),
        ] {
            std::fs::write(&path, npy("|u1", false, shape, &vec![0; size])).unwrap();
            let e = open(&path, &options(kind)).err().unwrap();
            assert!(e.to_string().contains(&format!("{} of shape", kind.plural())), "{e}");
            let Error::Unreadable { fix, .. } = e else { panic!("{e}") };
            assert!(fix.contains(shapes(kind).split(' ').next().unwrap()), "{fix}");
        }
        std::fs::write(&path, npy("|u1", false, "(0, 5, 3)", &[])).unwrap();
        let e = open(&path, &options(SignalKind::Cloud)).err().unwrap();
        assert_eq!(e.code(), "data::empty");
        std::fs::write(&path, npy("<f4", false, "(2, 3)", &floats(&[0.; 6]))).unwrap();
        assert_eq!(sniff(&path), Some(Holds::One));
        assert!(one(Content::File(&path), &options(SignalKind::Cloud)).is_ok());
    }
}
