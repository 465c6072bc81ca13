//! Small valid files that no format's own examples give.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Packed with gzip.
pub(super) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    let done = out.write_all(bytes).and_then(|()| out.finish());
    done.unwrap_or_default()
}

/// Labels.
pub(super) fn labels() -> Vec<Vec<u8>> {
    ["name,label\na,3\nb,0\n", "label\ncat\ndog\n"].map(|t| t.as_bytes().to_vec()).into()
}
