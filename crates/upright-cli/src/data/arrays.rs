//! Sketches and clouds in numpy arrays: `.npy` (also packed with gzip) and
//! `.npz`, `[N,P,3]` for many or `[P,3]` for one.

use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::bytes;
use super::clouds;
use super::label_file;
use super::labels::Labels;
use super::media::{Item, Media};
use super::npy::{self, Array, Kind};
use super::npz::Npz;
use super::options::Options;
use super::source::{Decoded, Items, Opened};
use super::strokes::Drawing;
use crate::report::{Failure, Result};

/// Largest array after unpacking, in bytes.
const CAP: u64 = 4 << 30;

/// What a value of a 16-bit cloud is divided by.
const SHORT: f32 = 32_767.0;

/// Columns that rows may have: x, y and a pen, or x, y, z and whatever follows.
fn columns(media: Media) -> RangeInclusive<usize> {
    if media == Media::Drawings { 2..=3 } else { 3..=9 }
}

fn wanted(media: Media) -> &'static str {
    if media == Media::Drawings {
        "give [N,L,3] (x, y, pen) or [N,L,2]"
    } else {
        "give [N,P,3]; colours or normals may follow the coordinates"
    }
}

fn gz(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"))
}

/// Whether a `.npy` file holds many items rather than one.
pub(super) fn is_stack(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let from: Box<dyn Read> =
        if gz(path) { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    npy::announced(BufReader::new(from)).is_ok_and(|shape| shape.len() == 3)
}

/// Reads a `.npy` file.
pub(super) fn read(path: &Path) -> std::result::Result<Array, String> {
    if gz(path) {
        let bytes = bytes::read(path, CAP)?;
        return Array::read(&bytes[..], bytes.len() as u64);
    }
    let file = File::open(path).map_err(|e| e.to_string())?;
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    if length > CAP {
        return Err(format!("{length} bytes, the limit is {CAP}"));
    }
    Array::read(BufReader::new(file), length)
}

/// The numbers and columns of a `.npy` file that holds one item.
pub(super) fn one(path: &Path, media: Media) -> std::result::Result<(Vec<f32>, usize), String> {
    let array = read(path)?;
    match *array.shape() {
        [_, c] if columns(media).contains(&c) => Ok((scaled(&array, media, 0, array.len()), c)),
        [n, _, _] => Err(format!("{n} {} in one file; give the file itself", media.plural())),
        _ => Err(format!("an array of shape {:?}", array.shape())),
    }
}

fn scaled(array: &Array, media: Media, from: usize, count: usize) -> Vec<f32> {
    let mut values = array.floats(from, count);
    if media == Media::Clouds && array.kind() == Kind::Signed(2) {
        for v in &mut values {
            *v /= SHORT;
        }
    }
    values
}

struct Stack {
    name: String,
    array: Array,
    media: Media,
    rows: usize,
    columns: usize,
}

/// Opens a `.npy` stack, with the labels beside it if there are any.
pub(super) fn open(path: &Path, options: &Options) -> Result<Opened> {
    let media = options.media();
    let array = read(path).map_err(|why| Failure::data(path, why, wanted(media)))?;
    let stack = stack(path, array, media)?;
    let labels = match labels_beside(path) {
        Some(beside) if options.labels.is_none() => label_file::read(&beside, stack.len(), media)?,
        _ => Labels::None,
    };
    Ok(Opened { items: Box::new(stack), labels, notes: Vec::new() })
}

/// Opens the items of an archive: `x`, `data`, `points` or `strokes`; and, if it is
/// there, `y` or `labels`.
pub(super) fn open_npz(path: &Path, options: &Options) -> Result<Opened> {
    let media = options.media();
    let own = if media == Media::Clouds { "points" } else { "strokes" };
    let mut npz = Npz::open(path)?;
    let Some(array) = npz.first(&["x", own, "data"])? else {
        return Err(Failure::data(
            path,
            format!("no array `x`, `{own}` or `data`; there are: {}", npz.names().join(", ")),
            format!("save it as `numpy.savez(file, x={own}, y=labels)`"),
        ));
    };
    let stack = stack(path, array, media)?;
    let labels = npz.row_labels(stack.rows, media)?;
    Ok(Opened { items: Box::new(stack), labels, notes: Vec::new() })
}

fn stack(path: &Path, array: Array, media: Media) -> Result<Stack> {
    let bad = |why: String| Failure::data(path, why, wanted(media));
    let [rows, points, columns] = match *array.shape() {
        [n, p, c] if self::columns(media).contains(&c) => [n, p, c],
        _ => return Err(bad(format!("{} of shape {:?}", media.plural(), array.shape()))),
    };
    if rows == 0 || points == 0 {
        let found = "an empty array".into();
        return Err(Failure::Empty { path: path.into(), found, media });
    }
    if media == Media::Clouds && points > clouds::POINT_CAP {
        return Err(bad(format!("{points} points, the limit is {}", clouds::POINT_CAP)));
    }
    Ok(Stack { name: path.display().to_string(), array, media, rows, columns })
}

impl Items for Stack {
    fn len(&self) -> usize {
        self.rows
    }

    fn name(&self, row: usize) -> String {
        format!("{}#{row}", self.name)
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, String> {
        let size = self.array.len() / self.rows;
        let values = scaled(&self.array, self.media, row * size, size);
        let item = match self.media {
            Media::Drawings => Item::Drawing(Drawing::from_rows(&values, self.columns)?),
            _ => Item::Shape(clouds::from_rows(&values, self.columns)?),
        };
        Ok(Decoded::plain(item))
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
    use super::super::idx::tests::gz as packed;
    use super::super::npy::tests::npy;
    use super::super::npz::tests::archive;
    use super::super::options::Want;
    use super::*;
    use upright::tensor::Signal;

    fn options(media: Media) -> Options {
        let signal = match media {
            Media::Clouds => Signal::Cloud { points: 2 },
            _ => Signal::Strokes { length: 4 },
        };
        Options::new(Want::Labelled, signal)
    }

    fn shorts(values: &[i16]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn packed_shorts_become_clouds_with_the_labels_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set-test-points-i16.npy.gz");
        let data = shorts(&[32_767, 0, -32_767, 0, 0, 0, 1, 2, 3, 4, 5, 6]);
        std::fs::write(&path, packed(&npy("<i2", false, "(2, 2, 3)", &data))).unwrap();
        std::fs::write(folder.path().join("set-test-labels.csv"), "name,label\na,7\nb,0\n")
            .unwrap();
        assert!(is_stack(&path));
        let opened = open(&path, &options(Media::Clouds)).unwrap();
        assert_eq!(opened.labels, Labels::Numbers(vec![7, 0]));
        let Item::Shape(shape) = opened.items.item(0).unwrap().item else { panic!() };
        assert_eq!(shape.points(), [[1.0, 0.0, -1.0], [0.0; 3]]);
        assert!(opened.items.name(1).ends_with("i16.npy.gz#1"));
    }

    #[test]
    fn archives_hold_sketches_with_and_without_a_pen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        for (shape, values) in [
            ("(1, 3, 3)", vec![1., 2., 1., 3., 4., 0., 9., 9., -1.]),
            ("(1, 2, 2)", vec![1., 2., 3., 4.]),
        ] {
            archive(
                &path,
                &[
                    ("strokes", npy("<f4", false, shape, &floats(&values))),
                    ("y", npy("|u1", false, "(1,)", &[3])),
                ],
            );
            let opened = open_npz(&path, &options(Media::Drawings)).unwrap();
            assert_eq!(opened.labels, Labels::Numbers(vec![3]));
            let Item::Drawing(drawing) = opened.items.item(0).unwrap().item else { panic!() };
            assert_eq!(drawing.strokes(), [[[1., 2.], [3., 4.]]]);
        }
    }

    #[test]
    fn wrong_shapes_say_what_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        for (media, shape, size) in [
            (Media::Clouds, "(2, 2, 2)", 8),
            (Media::Drawings, "(2, 1, 4)", 8),
            (Media::Clouds, "(1, 28, 28)", 784),
        ] {
            std::fs::write(&path, npy("|u1", false, shape, &vec![0; size])).unwrap();
            let e = open(&path, &options(media)).err().unwrap();
            assert!(e.to_string().contains(&format!("{} of shape", media.plural())), "{e}");
            assert!(e.help().contains(if media == Media::Clouds { "[N,P,3]" } else { "[N,L,3]" }));
        }
        std::fs::write(&path, npy("|u1", false, "(0, 5, 3)", &[])).unwrap();
        assert_eq!(open(&path, &options(Media::Clouds)).err().unwrap().code(), "data::empty");
        std::fs::write(&path, npy("<f4", false, "(2, 3)", &floats(&[0.; 6]))).unwrap();
        assert!(!is_stack(&path));
        assert_eq!(one(&path, Media::Clouds).unwrap().1, 3);
    }
}
