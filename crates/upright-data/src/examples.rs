//! Bytes of small valid files, made for tests and fuzzers.

use std::io::{Cursor, Write};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

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

/// A tar file of members.
pub(crate) fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        let done = out.append_data(&mut header, name, *bytes);
        debug_assert!(done.is_ok(), "memory takes all that is written");
    }
    out.into_inner().unwrap_or_default()
}

/// A Parquet file of images with their ids and labels: bytes, or structs as Hugging Face has
/// them; an empty image is none. Every hundred rows are a group.
pub(crate) fn parquet(nested: bool, named: bool, rows: &[(&str, &[u8], i64)]) -> Vec<u8> {
    table(nested, named, rows).unwrap_or_default()
}

fn table(nested: bool, named: bool, rows: &[(&str, &[u8], i64)]) -> Result<Vec<u8>, ParquetError> {
    let image = if nested {
        "optional group image { optional binary bytes; optional binary path (UTF8); }"
    } else {
        "optional binary image;"
    };
    let id = if named { "required binary id (UTF8);" } else { "" };
    let schema = format!("message schema {{ {id} {image} optional int64 label; }}");
    let schema = Arc::new(parse_message_type(&schema)?);
    let mut out = SerializedFileWriter::new(Vec::new(), schema, Arc::default())?;
    for rows in rows.chunks(100) {
        let mut group = out.next_row_group()?;
        if named {
            let ids: Vec<ByteArray> = rows.iter().map(|r| r.0.into()).collect();
            column::<ByteArrayType>(&mut group, &ids, None)?;
        }
        let there = |r: &&(&str, &[u8], i64)| !r.1.is_empty();
        let images: Vec<ByteArray> =
            rows.iter().filter(there).map(|r| r.1.to_vec().into()).collect();
        let full = if nested { 2 } else { 1 };
        let levels: Vec<i16> = rows.iter().map(|r| full - i16::from(r.1.is_empty())).collect();
        column::<ByteArrayType>(&mut group, &images, Some(&levels))?;
        if nested {
            column::<ByteArrayType>(&mut group, &[], Some(&vec![1; rows.len()]))?;
        }
        let labels: Vec<i64> = rows.iter().map(|r| r.2).collect();
        column::<Int64Type>(&mut group, &labels, Some(&vec![1; rows.len()]))?;
        group.close()?;
    }
    out.into_inner()
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()?;
    }
    Ok(())
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
