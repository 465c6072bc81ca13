//! Bytes of small valid files, made for tests and fuzzers.

use std::io::{Cursor, Write};

/// A `.npy` file with the given header fields and data.
pub(crate) fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = (text.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, text.as_bytes(), data].concat()
}

/// An archive of `.npy` members.
pub(crate) fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default();
        let done = out.start_file(format!("{name}.npy"), options).map(|()| out.write_all(bytes));
        debug_assert!(matches!(done, Ok(Ok(()))), "memory takes all that is written");
    }
    out.finish().map(Cursor::into_inner).unwrap_or_default()
}

/// An idx file of bytes.
pub(crate) fn idx(dims: &[u32], data: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 8, dims.len() as u8];
    out.extend(dims.iter().flat_map(|d| d.to_be_bytes()));
    out.extend(data);
    out
}

/// Numbers as bytes, the least significant first.
pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Texts as bytes.
pub(crate) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|t| t.as_bytes().to_vec()).collect()
}

/// Packed with gzip.
#[cfg(test)]
pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}
