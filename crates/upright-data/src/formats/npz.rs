//! Numpy archives (`.npz`) of images, sketches or clouds.

use std::path::Path;

use upright::{Picture, SignalKind};

use super::npy;
use super::{Format, Holds, Read};
use crate::archive::Npz;
use crate::array::{Array, Number};
use crate::error::{Error, Found, Result};
use crate::examples::{floats, npy, npz};
use crate::item::{Decoded, Item, Items, Set};
use crate::note::Note;
use crate::options::Options;
use crate::skip::Unusable;

pub(super) const FORMAT: Format = Format {
    name: "npz",
    about: "A numpy archive of items and, if they are known, their classes.",
    endings: &[".npz"],
    called: "npz",
    kinds: &SignalKind::ALL,
    gz: false,
    shapes: npy::shapes,
    sniff: |_| Some(Holds::Many),
    read: Read::Many(open),
    words: npy::WORDS,
    examples,
    ..Format::BASE
};

fn examples() -> Vec<Vec<u8>> {
    let values: Vec<f32> = (0..24).map(|i| (i * 7 % 11) as f32).collect();
    let pens = [1., 2., 1., 3., 4., 0., 0., 0., -1.];
    let array = |shape: &str, values: &[f32]| npy("<f4", false, shape, &floats(values));
    vec![
        npz(&[("x", array("(2, 4, 3)", &values)), ("y", npy("|u1", false, "(2,)", &[0, 1]))]),
        npz(&[("strokes", array("(1, 3, 3)", &pens))]),
        npz(&[("data", array("(1, 6, 2)", &values[..12]))]),
        npz(&[
            ("x", npy("|u1", false, "(2, 3, 3)", &[5; 18])),
            ("y", npy("<i8", false, "(2,)", &[0; 16])),
        ]),
        npz(&[("images", array("(1, 3, 2, 2)", &values[..12]))]),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Interleaved,
    Planar,
}

struct Images {
    name: String,
    array: Array,
    layout: Layout,
    height: usize,
    width: usize,
    channels: usize,
    transpose: bool,
}

fn open(path: &Path, options: &Options) -> Result<Set> {
    if options.kind() == SignalKind::Image {
        images(path, options.transpose)
    } else {
        points(path, options.kind())
    }
}

/// Opens the sketches or clouds of an archive: `x`, `data`, `points` or `strokes`; and, if it
/// is there, `y` or `labels`.
fn points(path: &Path, kind: SignalKind) -> Result<Set> {
    let own = if kind == SignalKind::Cloud { "points" } else { "strokes" };
    let mut npz = Npz::open(path)?;
    let array = first(&mut npz, path, ["x", own, "data"], own)?;
    let stack = npy::Stack::new(path, array, kind)?;
    let labels = npz.row_labels(stack.len(), kind)?;
    Ok(Set::new(stack, labels))
}

/// The first array there is of some names.
fn first(npz: &mut Npz, path: &Path, names: [&str; 3], own: &str) -> Result<Array> {
    let [a, b, c] = names;
    npz.first(&names)?.ok_or_else(|| {
        Error::unreadable(
            path,
            format!("no array `{a}`, `{b}` or `{c}`; there are: {}", npz.names().join(", ")),
            format!("save it as `numpy.savez(file, x={own}, y=labels)`"),
        )
    })
}

/// Opens the images of an archive: `x`, `images` or `data` of shape `[N,H,W]`,
/// `[N,H,W,C]` or `[N,C,H,W]` with 1 or 3 channels, whole numbers in 0..255 or floats
/// in 0..1; and, if it is there, `y` or `labels` of shape `[N]`.
fn images(path: &Path, transpose: bool) -> Result<Set> {
    let mut npz = Npz::open(path)?;
    let array = first(&mut npz, path, ["x", "images", "data"], "images")?;
    let (height, width, channels, layout) = match *array.shape() {
        [_, h, w] => (h, w, 1, Layout::Interleaved),
        [_, h, w, c @ (1 | 3)] => (h, w, c, Layout::Interleaved),
        [_, c @ (1 | 3), h, w] => (h, w, c, Layout::Planar),
        _ => {
            return Err(Error::unreadable(
                path,
                format!("images of shape {:?}", array.shape()),
                "give [N,H,W], [N,H,W,C] or [N,C,H,W] with 1 or 3 channels",
            ));
        }
    };
    if !matches!(array.number(), Number::Unsigned(1) | Number::Float(_)) {
        return Err(Error::unreadable(
            path,
            format!("images of type {:?}", array.number()),
            "save images as uint8 (0..255) or as float32 (0..1)",
        ));
    }
    if array.is_empty() {
        let (kind, found) = (SignalKind::Image, Found::Nothing("an empty array"));
        return Err(Error::Empty { path: path.into(), kind, found });
    }
    let labels = npz.row_labels(array.shape()[0], SignalKind::Image)?;
    let notes = range(path, &array).into_iter().collect();
    let name = path.display().to_string();
    let stack = Images { name, array, layout, height, width, channels, transpose };
    Ok(Set { notes, ..Set::new(stack, labels) })
}

/// A note about floats beyond 0..1 among the first thousand images.
fn range(path: &Path, array: &Array) -> Option<Note> {
    if matches!(array.number(), Number::Unsigned(_)) {
        return None;
    }
    let per = array.len() / array.shape()[0];
    let (low, high) = array
        .floats(0, per * array.shape()[0].min(1000))
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
    (low < 0.0 || high > 1.0).then(|| Note::Range { path: path.into(), low, high })
}

impl Items for Images {
    fn len(&self) -> usize {
        self.array.shape()[0]
    }

    fn name(&self, row: usize) -> String {
        format!("{}#{row}", self.name)
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, Unusable> {
        let Images { height, width, channels, .. } = *self;
        let size = height * width * channels;
        let mut data = self.array.floats(row * size, size);
        if matches!(self.array.number(), Number::Unsigned(_)) {
            for v in &mut data {
                *v /= 255.0;
            }
        }
        if let Some(bad) = data.iter().find(|v| !v.is_finite()) {
            return Err(format!("holds {bad}").into());
        }
        if self.layout == Layout::Planar && channels > 1 {
            let plane = height * width;
            data = (0..size).map(|i| data[i % channels * plane + i / channels]).collect();
        }
        let picture = Picture::new(width, height, channels, data).map_err(|e| e.to_string())?;
        let picture = if self.transpose { picture.transposed() } else { picture };
        Ok(Item::Image(picture).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Labels;
    use crate::options::Want;
    use upright::Signal;

    fn picture(opened: &Set, row: usize) -> Picture {
        match opened.items.item(row).unwrap().item {
            Item::Image(picture) => picture,
            other => panic!("{:?}", other.kind()),
        }
    }

    fn opened(members: &[(&str, Vec<u8>)]) -> Result<Set> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        std::fs::write(&path, npz(members)).unwrap();
        images(&path, false)
    }

    #[test]
    fn all_three_layouts_give_interleaved_pixels() {
        // One 1x2 image: red pixel (255, 0, 0), then (0, 51, 255).
        let interleaved =
            opened(&[("x", npy("|u1", false, "(1, 1, 2, 3)", &[255, 0, 0, 0, 51, 255]))]);
        let planar =
            opened(&[("images", npy("|u1", false, "(1, 3, 1, 2)", &[255, 0, 0, 51, 0, 255]))]);
        let expected = [1.0, 0.0, 0.0, 0.0, 0.2, 1.0];
        for opened in [interleaved, planar] {
            let picture = picture(&opened.unwrap(), 0);
            assert_eq!((picture.width(), picture.height(), picture.channels()), (2, 1, 3));
            assert_eq!(picture.data(), expected);
        }
        let grey =
            opened(&[("data", npy("<f4", false, "(1, 1, 1)", &0.25f32.to_le_bytes()))]).unwrap();
        assert_eq!(picture(&grey, 0).data(), [0.25]);
        assert!(grey.notes.is_empty());
    }

    #[test]
    fn archives_hold_sketches_with_and_without_a_pen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        for (shape, values) in [
            ("(1, 3, 3)", vec![1., 2., 1., 3., 4., 0., 9., 9., -1.]),
            ("(1, 2, 2)", vec![1., 2., 3., 4.]),
        ] {
            let members = [
                ("strokes", npy("<f4", false, shape, &floats(&values))),
                ("y", npy("|u1", false, "(1,)", &[3])),
            ];
            std::fs::write(&path, npz(&members)).unwrap();
            let options = Options::new(Want::Labelled, Signal::Strokes { length: 4 });
            let opened = open(&path, &options).unwrap();
            assert_eq!(opened.labels, Labels::Numbers(vec![3]));
            let Item::Strokes(strokes) = opened.items.item(0).unwrap().item else { panic!() };
            assert_eq!(strokes.strokes(), [[[1., 2.], [3., 4.]]]);
        }
    }

    #[test]
    fn labels_must_be_one_per_image() {
        let x = || ("x", npy("|u1", false, "(2, 1, 1)", &[0, 1]));
        let good = opened(&[
            x(),
            ("y", npy("<i8", false, "(2,)", &[[3, 0, 0, 0, 0, 0, 0, 0]; 2].concat())),
        ]);
        assert!(matches!(good.unwrap().labels, Labels::Numbers(l) if l == [3, 3]));
        let bad = opened(&[x(), ("y", npy("|u1", false, "(1,)", &[0]))]).err().unwrap();
        assert!(bad.to_string().ends_with("1 labels for 2 images"), "{bad}");
    }

    #[test]
    fn an_archive_without_images_lists_what_it_has() {
        let e = opened(&[
            ("logits", npy("|u1", false, "(1,)", &[0])),
            ("b", npy("|u1", false, "(1,)", &[0])),
        ]);
        assert!(e.err().unwrap().to_string().ends_with("there are: b, logits"));
    }

    #[test]
    fn an_array_packed_beyond_all_reason_is_refused() {
        let zeros = vec![0; 17 << 20];
        let e = opened(&[("x", npy("|u1", false, &format!("({}, 1, 1)", zeros.len()), &zeros))]);
        let e = e.err().unwrap().to_string();
        assert!(e.contains("more than 200:1"), "{e}");
    }

    #[test]
    fn a_shape_larger_than_the_data_is_refused() {
        let e = opened(&[("x", npy("<f8", false, "(100000000, 1000, 1000)", &[0; 64]))]);
        assert!(e.err().unwrap().to_string().contains("but 64 bytes follow the header"));
    }

    #[test]
    fn no_damaged_archive_makes_it_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let whole = npz(&[
            ("x", npy("|u1", false, "(2, 1, 1)", &[0, 9])),
            ("y", npy("|u1", false, "(2,)", &[0, 1])),
        ]);
        for at in 0..whole.len() {
            for value in [0, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                std::fs::write(&path, &damaged).unwrap();
                if let Ok(opened) = images(&path, false) {
                    for row in 0..opened.items.len() {
                        let _ = opened.items.item(row);
                    }
                }
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(images(&path, false).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn floats_beyond_one_are_warned_about() {
        let opened =
            opened(&[("x", npy("<f4", false, "(1, 1, 1)", &255f32.to_le_bytes()))]).unwrap();
        assert_eq!(opened.notes[0].code(), "preprocess::range");
    }

    #[test]
    fn what_is_not_an_archive_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        std::fs::write(&path, b"hello").unwrap();
        assert!(images(&path, false).err().unwrap().to_string().contains("not an npz archive"));
    }
}
