//! The idx files of MNIST and its relatives, packed with gzip or not.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use upright::{Picture, SignalKind};

use super::{Format, Holds, Read};
use crate::bytes;
use crate::error::{Error, Found, Result};
use crate::examples;
use crate::item::{Decoded, Item, Items, Set};
use crate::labels::Labels;
use crate::note::Note;
use crate::skip::Unusable;

pub(super) const FORMAT: Format = Format {
    name: "idx",
    about: "Images as MNIST and its relatives are stored, with the labels beside them.",
    endings: &["idx3-ubyte", ".idx3", "images.idx"],
    called: "idx",
    kinds: &[SignalKind::Image],
    sniff: |_| Some(Holds::Many),
    read: Read::Many(|path, options| open(path, options.transpose)),
    examples: || vec![examples::idx(&[2, 3, 2], &[9; 12])],
    ..Format::BASE
};

/// Largest file that is read, in bytes.
const CAP: u64 = 4 << 30;

/// The labels that belong to an images file, if they lie beside it.
fn labels_beside(images: &Path) -> Option<PathBuf> {
    let name = images.file_name()?.to_str()?;
    let named = name.replacen("images", "labels", 1).replacen("idx3", "idx1", 1);
    if named == name {
        return None;
    }
    let plain = named.strip_suffix(".gz").unwrap_or(&named).to_owned();
    [named, format!("{plain}.gz"), plain]
        .iter()
        .map(|n| images.with_file_name(n))
        .find(|p| p.is_file())
}

struct Idx {
    name: String,
    rows: usize,
    height: usize,
    width: usize,
    bytes: Vec<u8>,
    transpose: bool,
}

/// Opens idx images, and the labels beside them if there are any.
fn open(path: &Path, transpose: bool) -> Result<Set> {
    let ([rows, height, width], bytes) = read(path)?;
    if bytes.is_empty() {
        let (kind, found) = (SignalKind::Image, Found::Nothing("an empty idx file"));
        return Err(Error::Empty { path: path.into(), kind, found });
    }
    let labels = match labels_beside(path) {
        None => Labels::None,
        Some(beside) => {
            let ([_], labels) = read(&beside)?;
            if labels.len() != rows {
                return Err(Error::unreadable(
                    &beside,
                    format!(
                        "{} labels for the {rows} images of `{}`",
                        labels.len(),
                        path.display()
                    ),
                    "give the labels file that belongs to the images",
                ));
            }
            Labels::Numbers(labels.into_iter().map(u32::from).collect())
        }
    };
    let name = path.display().to_string();
    let official = path
        .file_name()
        .and_then(|n| n.to_str())
        .is_some_and(|n| n.to_ascii_lowercase().starts_with("emnist-"));
    let note = (official && !transpose).then(|| Note::Transposed { path: path.into() });
    let idx = Idx { name, rows, height, width, bytes, transpose };
    Ok(Set { notes: note.into_iter().collect(), ..Set::new(idx, labels) })
}

impl Items for Idx {
    fn len(&self) -> usize {
        self.rows
    }

    fn name(&self, row: usize) -> String {
        format!("{}#{row}", self.name)
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, Unusable> {
        let Idx { height, width, .. } = *self;
        let size = height * width;
        let data = self.bytes[row * size..(row + 1) * size]
            .iter()
            .map(|&v| f32::from(v) / 255.0)
            .collect();
        let picture = Picture::new(width, height, 1, data).map_err(|e| e.to_string())?;
        let picture = if self.transpose { picture.transposed() } else { picture };
        Ok(Item::Image(picture).into())
    }
}

/// The dimensions and bytes of an idx file of unsigned bytes with `RANK` dimensions.
pub(crate) fn read<const RANK: usize>(path: &Path) -> Result<([usize; RANK], Vec<u8>)> {
    let (file, packed) = bytes::opened(path).map_err(|e| Error::io(path, e))?;
    let parsed = if packed { parse(MultiGzDecoder::new(file)) } else { parse(file) };
    parsed.map_err(|why| Error::unreadable(path, why, "download or write the file again"))
}

fn parse<const RANK: usize>(
    mut from: impl std::io::Read,
) -> std::result::Result<([usize; RANK], Vec<u8>), String> {
    let mut magic = [0; 4];
    from.read_exact(&mut magic).map_err(|_| "too short for an idx file".to_owned())?;
    let expected = [0, 0, 8, RANK as u8];
    if magic != expected {
        return Err(format!(
            "not an idx file of bytes with {RANK} dimensions: it starts with {magic:02x?}, not {expected:02x?}"
        ));
    }
    let mut dims = [0; RANK];
    for dim in &mut dims {
        let mut four = [0; 4];
        from.read_exact(&mut four).map_err(|_| "its header is cut off".to_owned())?;
        *dim = u32::from_be_bytes(four) as usize;
    }
    let size = dims
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .filter(|&n| n as u64 <= CAP)
        .ok_or_else(|| format!("its dimensions {dims:?} exceed the limit of {CAP} bytes"))?;
    let mut bytes = Vec::new();
    let read = from.by_ref().take(size as u64 + 1).read_to_end(&mut bytes);
    let says = format!("its header says {dims:?} = {size} bytes");
    match read {
        Err(e) => Err(format!("{says}, but reading stops after {}: {e}", bytes.len())),
        Ok(n) if n < size => Err(format!("{says}, but {n} follow")),
        Ok(n) if n > size => Err(format!("{says}, but more follow")),
        Ok(_) => Ok((dims, bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{gz, idx};

    fn picture(opened: &Set, row: usize) -> Picture {
        match opened.items.item(row).unwrap().item {
            Item::Image(picture) => picture,
            other => panic!("{:?}", other.kind()),
        }
    }

    fn opened(bytes: &[u8], labels: Option<&[u8]>, transpose: bool) -> Result<Set> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train-images-idx3-ubyte.gz");
        std::fs::write(&path, bytes).unwrap();
        if let Some(labels) = labels {
            std::fs::write(folder.path().join("train-labels-idx1-ubyte.gz"), labels).unwrap();
        }
        open(&path, transpose)
    }

    #[test]
    fn images_and_the_labels_beside_them_are_read() {
        let images = gz(&idx(&[2, 1, 3], &[0, 51, 255, 255, 0, 0]));
        let opened = opened(&images, Some(&gz(&idx(&[2], &[7, 1]))), false).unwrap();
        assert_eq!(opened.items.len(), 2);
        let picture = picture(&opened, 0);
        assert_eq!((picture.width(), picture.height()), (3, 1));
        assert_eq!(picture.data(), [0.0, 0.2, 1.0]);
        assert!(matches!(opened.labels, Labels::Numbers(l) if l == [7, 1]));
    }

    #[test]
    fn transposing_turns_rows_into_columns() {
        let opened = opened(&idx(&[1, 1, 3], &[0, 51, 255]), None, true).unwrap();
        let picture = picture(&opened, 0);
        assert_eq!((picture.width(), picture.height()), (1, 3));
        assert!(matches!(opened.labels, Labels::None));
    }

    #[test]
    fn damaged_files_are_refused_with_a_reason() {
        let whole = idx(&[2, 2, 2], &[1; 8]);
        let packed = gz(&whole);
        for (bytes, why) in [
            (gz(&idx(&[8], &[1; 8])), "starts with [00, 00, 08, 01]"),
            (gz(b"text instead"), "not an idx file"),
            (gz(&whole[..20]), "its header says [2, 2, 2] = 8 bytes, but 4 follow"),
            (gz(&[&whole[..], &[0]].concat()), "but more follow"),
            (whole[..10].to_vec(), "its header is cut off"),
            (vec![], "too short"),
            (packed[..packed.len() - 9].to_vec(), "reading stops after"),
            (gz(&idx(&[u32::MAX, u32::MAX, u32::MAX], &[])), "exceed the limit"),
            (gz(&idx(&[60_000, 28, 28], &[1; 100])), "but 100 follow"),
        ] {
            let e = opened(&bytes, None, false).err().unwrap().to_string();
            assert!(e.contains(why), "{why}: {e}");
        }
    }

    #[test]
    fn labels_of_another_set_are_refused() {
        let e = opened(&idx(&[1, 1, 1], &[0]), Some(&idx(&[2], &[0, 0])), false).err().unwrap();
        assert!(e.to_string().contains("2 labels for the 1 images"), "{e}");
    }

    #[test]
    fn only_official_names_are_noted_as_transposed() {
        let folder = tempfile::tempdir().unwrap();
        for (name, noted) in [("emnist-letters-idx3-ubyte", 1), ("letters-idx3-ubyte", 0)] {
            let path = folder.path().join(name);
            std::fs::write(&path, idx(&[1, 1, 1], &[0])).unwrap();
            assert_eq!(open(&path, false).unwrap().notes.len(), noted, "{name}");
            assert!(open(&path, true).unwrap().notes.is_empty());
        }
    }
}
