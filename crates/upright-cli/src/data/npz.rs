//! Numpy archives (`.npz`): named arrays, and pictures stored in one of them.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::bytes::{RATIO_CAP, RATIO_FREE};
use super::labels::Labels;
use super::media::{Item, Media};
use super::npy::{Array, Kind};
use super::picture::Picture;
use super::source::{Decoded, Items, Opened};
use crate::report::{Failure, Note, Result};

/// Largest member that is read, in bytes.
const MEMBER_CAP: u64 = 4 << 30;

/// An archive of which arrays are read by name.
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
}

impl Npz {
    /// Opens an archive.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Failure::io(path, e))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|e| {
            Failure::data(path, format!("not an npz archive: {e}"), "write it with `numpy.savez`")
        })?;
        Ok(Npz { path: path.into(), archive })
    }

    /// The names of its arrays, sorted.
    pub fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(std::result::Result::ok);
        let mut names: Vec<_> =
            names.filter_map(|n| n.strip_suffix(".npy").map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// The array of a name, if there is one.
    pub fn array(&mut self, name: &str) -> Result<Option<Array>> {
        let Some(place) = self.archive.index_for_name(&format!("{name}.npy")) else {
            return Ok(None);
        };
        let bad = |why: String| {
            Failure::data(
                &self.path,
                format!("array `{name}`: {why}"),
                "write it again with `numpy.savez`",
            )
        };
        let member = self.archive.by_index(place).map_err(|e| bad(e.to_string()))?;
        let (size, packed) = (member.size(), member.compressed_size());
        if size > MEMBER_CAP {
            let what = format!("array `{name}` of {}", self.path.display());
            return Err(upright::Error::TooLarge { what, size, limit: MEMBER_CAP }.into());
        }
        if size > RATIO_FREE && size / packed.max(1) > RATIO_CAP {
            return Err(bad(format!(
                "{size} bytes packed into {packed} is more than {RATIO_CAP}:1, which no real data is"
            )));
        }
        Array::read(member, size).map(Some).map_err(bad)
    }

    /// The first array there is of some names.
    pub fn first(&mut self, names: &[&str]) -> Result<Option<Array>> {
        for name in names {
            if let Some(array) = self.array(name)? {
                return Ok(Some(array));
            }
        }
        Ok(None)
    }

    /// The array `y` or `labels`, if there is one; it must have an entry for every row.
    pub fn row_labels(&mut self, rows: usize, media: Media) -> Result<Labels> {
        let labels = self.first(&["y", "labels"])?;
        let bad = |why: String| Failure::data(&self.path, why, "give one label a row");
        match labels {
            None => Ok(Labels::None),
            Some(labels) if labels.len() != rows => {
                Err(bad(format!("{} labels for {rows} {}", labels.len(), media.plural())))
            }
            Some(labels) => {
                Ok(Labels::Numbers(labels.labels().map_err(|e| bad(format!("labels: {e}")))?))
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Interleaved,
    Planar,
}

struct Stack {
    name: String,
    array: Array,
    layout: Layout,
    height: usize,
    width: usize,
    channels: usize,
    transpose: bool,
}

/// Opens the pictures of an archive: `x`, `images` or `data` of shape `[N,H,W]`,
/// `[N,H,W,C]` or `[N,C,H,W]` with 1 or 3 channels, whole numbers in 0..255 or floats
/// in 0..1; and, if it is there, `y` or `labels` of shape `[N]`.
pub fn open(path: &Path, transpose: bool) -> Result<Opened> {
    let mut npz = Npz::open(path)?;
    let Some(array) = npz.first(&["x", "images", "data"])? else {
        return Err(Failure::data(
            path,
            format!("no array `x`, `images` or `data`; there are: {}", npz.names().join(", ")),
            "save it as `numpy.savez(file, x=images, y=labels)`",
        ));
    };
    let (height, width, channels, layout) = match *array.shape() {
        [_, h, w] => (h, w, 1, Layout::Interleaved),
        [_, h, w, c @ (1 | 3)] => (h, w, c, Layout::Interleaved),
        [_, c @ (1 | 3), h, w] => (h, w, c, Layout::Planar),
        _ => {
            return Err(Failure::data(
                path,
                format!("images of shape {:?}", array.shape()),
                "give [N,H,W], [N,H,W,C] or [N,C,H,W] with 1 or 3 channels",
            ));
        }
    };
    if !matches!(array.kind(), Kind::Unsigned(1) | Kind::Float(_)) {
        return Err(Failure::data(
            path,
            format!("images of type {:?}", array.kind()),
            "save images as uint8 (0..255) or as float32 (0..1)",
        ));
    }
    if array.is_empty() {
        return Err(Failure::Empty {
            path: path.into(),
            found: "an empty array".into(),
            media: Media::Pictures,
        });
    }
    let rows = array.shape()[0];
    let labels = npz.row_labels(rows, Media::Pictures)?;
    let notes = range_note(path, &array).into_iter().collect();
    let name = path.display().to_string();
    let stack = Stack { name, array, layout, height, width, channels, transpose };
    Ok(Opened { items: Box::new(stack), labels, notes })
}

fn range_note(path: &Path, array: &Array) -> Option<Note> {
    if matches!(array.kind(), Kind::Unsigned(_)) {
        return None;
    }
    let per = array.len() / array.shape()[0];
    let (low, high) = array
        .floats(0, per * array.shape()[0].min(1000))
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
    (low < 0.0 || high > 1.0).then(|| Note {
        code: "preprocess::range",
        warning: true,
        message: format!("floats in `{}` span {low}..{high}, not 0..1", path.display()),
        help: "save images as uint8, or scale them to 0..1; normalisation comes later".into(),
    })
}

impl Items for Stack {
    fn len(&self) -> usize {
        self.array.shape()[0]
    }

    fn name(&self, row: usize) -> String {
        format!("{}#{row}", self.name)
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, String> {
        let Stack { height, width, channels, .. } = *self;
        let size = height * width * channels;
        let mut data = self.array.floats(row * size, size);
        if matches!(self.array.kind(), Kind::Unsigned(_)) {
            for v in &mut data {
                *v /= 255.0;
            }
        }
        if let Some(bad) = data.iter().find(|v| !v.is_finite()) {
            return Err(format!("holds {bad}"));
        }
        if self.layout == Layout::Planar && channels > 1 {
            let plane = height * width;
            data = (0..size).map(|i| data[i % channels * plane + i / channels]).collect();
        }
        let picture = Picture { width, height, channels, data };
        let picture = if self.transpose { picture.transposed() } else { picture };
        Ok(Decoded::plain(Item::Picture(picture)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::npy::tests::npy;
    use super::*;
    use std::io::Write;

    fn picture(opened: &Opened, row: usize) -> Picture {
        match opened.items.item(row).unwrap().item {
            Item::Picture(picture) => picture,
            other => panic!("{:?}", other.media()),
        }
    }

    /// Writes an archive of raw `.npy` members.
    pub(crate) fn archive(path: &Path, members: &[(&str, Vec<u8>)]) {
        let mut writer = zip::ZipWriter::new(File::create(path).unwrap());
        for (name, bytes) in members {
            let options = zip::write::SimpleFileOptions::default();
            writer.start_file(format!("{name}.npy"), options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
    }

    fn opened(members: &[(&str, Vec<u8>)]) -> Result<Opened> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        archive(&path, members);
        open(&path, false)
    }

    #[test]
    fn all_three_layouts_give_interleaved_pictures() {
        // One 1x2 picture: red pixel (255, 0, 0), then (0, 51, 255).
        let interleaved =
            opened(&[("x", npy("|u1", false, "(1, 1, 2, 3)", &[255, 0, 0, 0, 51, 255]))]);
        let planar =
            opened(&[("images", npy("|u1", false, "(1, 3, 1, 2)", &[255, 0, 0, 51, 0, 255]))]);
        let expected = [1.0, 0.0, 0.0, 0.0, 0.2, 1.0];
        for opened in [interleaved, planar] {
            let picture = picture(&opened.unwrap(), 0);
            assert_eq!((picture.width, picture.height, picture.channels), (2, 1, 3));
            assert_eq!(picture.data, expected);
        }
        let grey =
            opened(&[("data", npy("<f4", false, "(1, 1, 1)", &0.25f32.to_le_bytes()))]).unwrap();
        assert_eq!(picture(&grey, 0).data, [0.25]);
        assert!(grey.notes.is_empty());
    }

    #[test]
    fn labels_must_be_one_an_image() {
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
    fn an_archive_without_pictures_lists_what_it_has() {
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
        archive(
            &path,
            &[
                ("x", npy("|u1", false, "(2, 1, 1)", &[0, 9])),
                ("y", npy("|u1", false, "(2,)", &[0, 1])),
            ],
        );
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            for value in [0, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                std::fs::write(&path, &damaged).unwrap();
                if let Ok(opened) = open(&path, false) {
                    for row in 0..opened.items.len() {
                        let _ = opened.items.item(row);
                    }
                }
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(open(&path, false).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn floats_beyond_one_are_warned_about() {
        let opened =
            opened(&[("x", npy("<f4", false, "(1, 1, 1)", &255f32.to_le_bytes()))]).unwrap();
        assert_eq!(opened.notes[0].code, "preprocess::range");
    }

    #[test]
    fn what_is_not_an_archive_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        std::fs::write(&path, b"hello").unwrap();
        assert!(open(&path, false).err().unwrap().to_string().contains("not an npz archive"));
    }
}
