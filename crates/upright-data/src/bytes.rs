//! Whole files in memory, unpacked if they are packed with gzip.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Unpacked content above this many bytes must not be packed tighter than [`RATIO_CAP`].
pub(crate) const RATIO_FREE: u64 = 16 << 20;
/// Largest ratio of unpacked to packed bytes.
pub(crate) const RATIO_CAP: u64 = 200;

/// What a reader of one item reads.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// A file.
    File(&'a Path),
    /// The bytes of one.
    Bytes(&'a [u8]),
}

impl<'a> Content<'a> {
    /// All of it, at most `cap` bytes after unpacking; the error is a reason.
    pub(crate) fn read(self, cap: u64) -> Result<Cow<'a, [u8]>, String> {
        let bytes = match self {
            Content::File(path) => return read(path, cap).map(Cow::Owned),
            Content::Bytes(bytes) => bytes,
        };
        if bytes.starts_with(&GZIP) {
            return unpacked(bytes, bytes.len() as u64, cap).map(Cow::Owned);
        }
        match bytes.len() as u64 {
            0 => Err("empty file".into()),
            length if length > cap => Err(beyond(cap)),
            _ => Ok(Cow::Borrowed(bytes)),
        }
    }
}

/// What every packed file starts with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn beyond(cap: u64) -> String {
    format!("more than {cap} bytes, the limit")
}

/// Unpacks `length` packed bytes.
fn unpacked(from: impl BufRead, length: u64, cap: u64) -> Result<Vec<u8>, String> {
    let ratio = length.saturating_mul(RATIO_CAP).max(RATIO_FREE);
    take(MultiGzDecoder::new(from), cap.min(ratio))
}

/// Reads a file of at most `cap` bytes after unpacking. The error is a reason
/// to put behind the file's name.
pub(crate) fn read(path: &Path, cap: u64) -> Result<Vec<u8>, String> {
    let (file, packed) = opened(path).map_err(|e| e.to_string())?;
    let length = file.get_ref().metadata().map_err(|e| e.to_string())?.len();
    if packed { unpacked(file, length, cap) } else { take(file, cap) }
}

fn take(from: impl Read, cap: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = from.take(cap.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| format!("reading stops after {} bytes: {e}", bytes.len()))?;
    match bytes.len() as u64 {
        0 => Err("empty file".into()),
        length if length > cap => Err(beyond(cap)),
        _ => Ok(bytes),
    }
}

/// A file's name in small letters, without the `.gz` of packed files, and whether it had one.
pub(crate) fn name(path: &Path) -> (String, bool) {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_ascii_lowercase();
    match name.strip_suffix(".gz") {
        Some(plain) => (plain.to_owned(), true),
        None => (name, false),
    }
}

/// What follows the last dot of [`name`]; empty if there is none.
pub(crate) fn ending(path: &Path) -> String {
    name(path).0.rsplit_once('.').map(|(_, end)| end.to_owned()).unwrap_or_default()
}

/// The start of a file, unpacked if it is packed: at most `cap` bytes.
pub(crate) fn start(path: &Path, cap: u64) -> std::io::Result<impl BufRead> {
    let (file, packed) = opened(path)?;
    let from: Box<dyn Read> =
        if packed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(BufReader::new(from.take(cap)))
}

/// A file, and whether it is packed.
pub(crate) fn opened(path: &Path) -> std::io::Result<(BufReader<File>, bool)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut start = [0; 2];
    let packed = file.read_exact(&mut start).is_ok() && start == GZIP;
    file.rewind()?;
    Ok((file, packed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::gz;

    #[test]
    fn packed_and_plain_files_read_alike_up_to_their_cap() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.off.gz");
        for bytes in [b"hello".to_vec(), gz(b"hello")] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path, 5).unwrap(), b"hello");
            assert_eq!(read(&path, 4).unwrap_err(), "more than 4 bytes, the limit");
        }
        assert_eq!(name(&path), ("a.off".into(), true));
        assert_eq!(ending(&path), "off");
        assert_eq!(ending(Path::new("x/none")), "");
        assert_eq!(name(Path::new("x/B.PLY")), ("b.ply".into(), false));
    }

    #[test]
    fn bytes_read_as_the_file_that_they_are_from_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let empty = gz(b"");
        for bytes in [b"hello".as_slice(), &gz(b"hello"), b"", &empty, &gz(b"hello")[..12]] {
            std::fs::write(&path, bytes).unwrap();
            for cap in [4, 5] {
                let held = Content::Bytes(bytes).read(cap);
                assert_eq!(held, Content::File(&path).read(cap), "{bytes:?} {cap}");
            }
        }
    }

    #[test]
    fn what_is_packed_beyond_all_reason_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gz");
        std::fs::write(&path, gz(&vec![0; 17 << 20])).unwrap();
        assert!(read(&path, 1 << 30).unwrap_err().contains("the limit"));
    }

    #[test]
    fn a_cut_or_empty_file_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gz");
        let whole = gz(b"hello, hello, hello");
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        assert!(read(&path, 100).unwrap_err().starts_with("reading stops after"));
        std::fs::write(&path, b"").unwrap();
        assert_eq!(read(&path, 100).unwrap_err(), "empty file");
    }
}
