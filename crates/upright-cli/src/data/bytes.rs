//! Whole files in memory, unpacked if they are packed with gzip.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Unpacked content above this many bytes must not be packed tighter than [`RATIO_CAP`].
pub const RATIO_FREE: u64 = 16 << 20;
/// Largest ratio of unpacked to packed bytes.
pub const RATIO_CAP: u64 = 200;

/// Reads a file of at most `cap` bytes after unpacking. The error is a reason
/// to put behind the file's name.
pub fn read(path: &Path, cap: u64) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    let mut file = BufReader::new(file);
    let mut start = [0; 2];
    let packed = file.read_exact(&mut start).is_ok() && start == [0x1f, 0x8b];
    file.rewind().map_err(|e| e.to_string())?;
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

/// A file's ending in small letters, that of its content if it is packed with gzip.
pub fn ending(path: &Path) -> String {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_ascii_lowercase();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    plain.rsplit_once('.').map_or(String::new(), |(_, end)| end.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::idx::tests::gz;
    use super::*;

    #[test]
    fn packed_and_plain_files_read_alike_up_to_their_cap() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.off.gz");
        for bytes in [b"hello".to_vec(), gz(b"hello")] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path, 5).unwrap(), b"hello");
            assert_eq!(read(&path, 4).unwrap_err(), "more than 4 bytes, the limit");
        }
        assert_eq!(ending(&path), "off");
        assert_eq!(ending(Path::new("x/B.PLY")), "ply");
        assert_eq!(ending(Path::new("x/none")), "");
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
