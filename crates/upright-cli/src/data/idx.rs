//! The idx files of MNIST and its relatives, packed with gzip or not.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::labels::Labels;
use super::media::{Item, Media};
use super::picture::Picture;
use super::source::{Decoded, Items, Opened};
use crate::report::{Failure, Note, Result};

/// Largest file that is read, in bytes.
const CAP: u64 = 4 << 30;

/// Whether a file's name is that of idx images, such as `train-images-idx3-ubyte.gz`.
pub fn looks_like_images(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    ["idx3-ubyte", ".idx3", "images.idx"].iter().any(|end| plain.ends_with(end))
}

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
pub fn open(path: &Path, transpose: bool) -> Result<Opened> {
    let (dims, bytes) = read(path, 3)?;
    let [rows, height, width] = dims[..] else {
        return Err(Failure::data(path, "not images", ""));
    };
    if bytes.is_empty() {
        return Err(Failure::Empty {
            path: path.into(),
            found: "an empty idx file".into(),
            media: Media::Pictures,
        });
    }
    let labels = match labels_beside(path) {
        None => Labels::None,
        Some(beside) => {
            let (_, labels) = read(&beside, 1)?;
            if labels.len() != rows {
                return Err(Failure::data(
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
    let notes = (official && !transpose).then(|| Note {
        code: "data::transposed",
        warning: false,
        message: format!(
            "the official EMNIST files, such as `{name}` may be, are stored transposed"
        ),
        help: "`--transpose` exchanges rows and columns; leave it out if the model was trained on \
               the pictures as stored"
            .into(),
    });
    let idx = Idx { name, rows, height, width, bytes, transpose };
    Ok(Opened { items: Box::new(idx), labels, notes: notes.into_iter().collect() })
}

impl Items for Idx {
    fn len(&self) -> usize {
        self.rows
    }

    fn name(&self, row: usize) -> String {
        format!("{}#{row}", self.name)
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, String> {
        let Idx { height, width, .. } = *self;
        let size = height * width;
        let data = self.bytes[row * size..(row + 1) * size]
            .iter()
            .map(|&v| f32::from(v) / 255.0)
            .collect();
        let picture = Picture { width, height, channels: 1, data };
        let picture = if self.transpose { picture.transposed() } else { picture };
        Ok(Decoded::plain(Item::Picture(picture)))
    }
}

/// The dimensions and bytes of an idx file of unsigned bytes with `rank` dimensions.
pub(super) fn read(path: &Path, rank: usize) -> Result<(Vec<usize>, Vec<u8>)> {
    let io = |e| Failure::io(path, e);
    let mut file = BufReader::new(File::open(path).map_err(io)?);
    let mut start = [0; 2];
    let packed = file.read_exact(&mut start).is_ok() && start == [0x1f, 0x8b];
    file.rewind().map_err(io)?;
    let parsed = if packed { parse(MultiGzDecoder::new(file), rank) } else { parse(file, rank) };
    parsed.map_err(|why| Failure::data(path, why, "download or write the file again"))
}

fn parse(mut from: impl Read, rank: usize) -> std::result::Result<(Vec<usize>, Vec<u8>), String> {
    let mut magic = [0; 4];
    from.read_exact(&mut magic).map_err(|_| "too short for an idx file".to_owned())?;
    let expected = [0, 0, 8, rank as u8];
    if magic != expected {
        return Err(format!(
            "not an idx file of bytes with {rank} dimensions: it starts with {magic:02x?}, not {expected:02x?}"
        ));
    }
    let mut dims = Vec::with_capacity(rank);
    for _ in 0..rank {
        let mut dim = [0; 4];
        from.read_exact(&mut dim).map_err(|_| "its header is cut off".to_owned())?;
        dims.push(u32::from_be_bytes(dim) as usize);
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
pub(super) mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    pub(crate) fn idx(dims: &[u32], data: &[u8]) -> Vec<u8> {
        let mut out = vec![0, 0, 8, dims.len() as u8];
        out.extend(dims.iter().flat_map(|d| d.to_be_bytes()));
        out.extend(data);
        out
    }

    pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn picture(opened: &Opened, row: usize) -> Picture {
        match opened.items.item(row).unwrap().item {
            Item::Picture(picture) => picture,
            other => panic!("{:?}", other.media()),
        }
    }

    fn opened(bytes: &[u8], labels: Option<&[u8]>, transpose: bool) -> Result<Opened> {
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
        assert_eq!((picture.width, picture.height), (3, 1));
        assert_eq!(picture.data, [0.0, 0.2, 1.0]);
        assert!(matches!(opened.labels, Labels::Numbers(l) if l == [7, 1]));
    }

    #[test]
    fn transposing_turns_rows_into_columns() {
        let opened = opened(&idx(&[1, 1, 3], &[0, 51, 255]), None, true).unwrap();
        let picture = picture(&opened, 0);
        assert_eq!((picture.width, picture.height), (1, 3));
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
    fn names_of_idx_images_are_recognised() {
        for name in [
            "train-images-idx3-ubyte.gz",
            "t10k-images.idx3-ubyte",
            "emnist-letters-test-images-idx3-ubyte",
        ] {
            assert!(looks_like_images(Path::new(name)), "{name}");
        }
        assert!(!looks_like_images(Path::new("train-labels-idx1-ubyte.gz")));
    }
}
