//! Whole files in memory, unpacked if they are packed with gzip.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Unpacked content above this many bytes must not be packed tighter than [`RATIO_CAP`].
pub(crate) const RATIO_FREE: u64 = 16 << 20;
/// Largest ratio of unpacked to packed bytes.
pub(crate) const RATIO_CAP: u64 = 200;

/// Reads a file of at most `cap` bytes after unpacking. The error is a reason
/// to put behind the file's name.
pub(crate) fn read(path: &Path, cap: u64) -> Result<Vec<u8>, String> {
    let (file, packed) = opened(path).map_err(|e| e.to_string())?;
    let length = file.get_ref().metadata().map_err(|e| e.to_string())?.len();
    let bytes = if packed {
        let ratio = length.saturating_mul(RATIO_CAP).max(RATIO_FREE);
        take(MultiGzDecoder::new(file), cap.min(ratio))
    } else {
        take(file, cap)
    }?;
    if bytes.is_empty() {
        return Err("empty file".into());
    }
    Ok(bytes)
}

fn take(from: impl Read, cap: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = from.take(cap.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| format!("reading stops after {} bytes: {e}", bytes.len()))?;
    if bytes.len() as u64 > cap {
        return Err(format!("more than {cap} bytes, the limit"));
    }
    Ok(bytes)
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
    let packed = file.read_exact(&mut start).is_ok() && start == [0x1f, 0x8b];
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
