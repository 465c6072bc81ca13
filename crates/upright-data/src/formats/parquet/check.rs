//! What a Parquet file says of itself, checked against its bytes before a reader trusts it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use parquet::file::metadata::ColumnChunkMetaData;

use super::thrift::{Met, Stop, walk};
use crate::bytes::{RATIO_CAP, RATIO_FREE};

/// Longest description of a file, in bytes.
const FOOTER_CAP: u64 = 256 << 20;
/// Most columns and groups of columns.
const ELEMENT_CAP: i64 = 4096;
/// Most groups of columns, and so the deepest nesting.
const GROUP_CAP: usize = 256;
/// Bytes of a page's head that are looked at, first and if they do not do.
const HEAD: [u64; 2] = [1 << 12, 1 << 22];
/// Encodings that are read: plain, runs, and dictionaries by their old and new number. Readers
/// of the others make room by what the data say.
const ENCODINGS: [i64; 4] = [0, 2, 3, 8];

/// Checks the description of a file: its size, and how columns nest.
pub(super) fn footer(mut file: &File) -> Result<(), String> {
    let io = |e: std::io::Error| e.to_string();
    let length = file.metadata().map_err(io)?.len();
    let mut tail = [0; 8];
    if length < 12 {
        return Err("not a Parquet file".into());
    }
    file.seek(SeekFrom::End(-8)).map_err(io)?;
    file.read_exact(&mut tail).map_err(io)?;
    let [a, b, c, d, magic @ ..] = tail;
    if &magic != b"PAR1" {
        return Err("not a Parquet file, or not all of it".into());
    }
    let size = u64::from(u32::from_le_bytes([a, b, c, d]));
    if size > length - 12 || size > FOOTER_CAP {
        return Err(format!("its description is said to have {size} bytes"));
    }
    let bytes = part(file, length - 8 - size, size)?;
    let (mut elements, mut groups, mut most) = (0i64, 0, 0);
    walk(&bytes, &mut |path, met| match (path, met) {
        ([2], Met::Struct) => elements += 1,
        ([2, 0, 5], Met::Number(children)) => {
            groups += 1;
            most = most.max(children.unsigned_abs());
        }
        _ => {}
    })
    .map_err(|_| "its description is damaged")?;
    if elements > ELEMENT_CAP || groups > GROUP_CAP || most > elements.unsigned_abs() {
        return Err(format!("{elements} columns in {groups} groups are too many"));
    }
    Ok(())
}

/// Checks every page of a column: how large it becomes, and how many values it has.
pub(super) fn pages(file: &File, column: &ColumnChunkMetaData, rows: u64) -> Result<(), String> {
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    let starts = [column.dictionary_page_offset(), Some(column.data_page_offset())];
    let start = starts.into_iter().flatten().next().unwrap_or(-1);
    let (start, size) = (u64::try_from(start), u64::try_from(column.compressed_size()));
    let (Ok(mut at), Ok(size)) = (start, size) else {
        return Err("a column lies nowhere".into());
    };
    let end = at.checked_add(size).filter(|&end| end <= length).ok_or("a column is cut off")?;
    while at < end {
        let (head, page) = head(file, at, end - at)?;
        if !(0..=(end - at - head).cast_signed()).contains(&page.packed) {
            return Err("a page is cut off".into());
        }
        let packed = page.packed.unsigned_abs();
        let limit = packed.saturating_mul(RATIO_CAP).max(RATIO_FREE);
        if page.size < 0 || page.size.unsigned_abs() > limit {
            return Err(format!("a page of {packed} bytes is said to become {}", page.size));
        }
        if page.values < 0 || page.values.unsigned_abs() > rows {
            return Err(format!("a page of {} values in {rows} rows", page.values));
        }
        if page.entries < 0 || page.entries.saturating_mul(4) > page.size {
            return Err(format!("a dictionary of {} entries in {} bytes", page.entries, page.size));
        }
        if !ENCODINGS.contains(&page.encoding) {
            return Err("an encoding that is not read; write it as plain or dictionary".into());
        }
        at += head + packed;
    }
    Ok(())
}

/// What the head of a page says.
#[derive(Default)]
struct Page {
    size: i64,
    packed: i64,
    values: i64,
    entries: i64,
    encoding: i64,
}

/// The length of a page's head, and what it says.
fn head(file: &File, at: u64, left: u64) -> Result<(u64, Page), String> {
    for cap in HEAD {
        let bytes = part(file, at, left.min(cap))?;
        let mut page = Page::default();
        let walked = walk(&bytes, &mut |path, met| {
            let Met::Number(number) = met else { return };
            match path {
                [2] => page.size = number,
                [3] => page.packed = number,
                [5 | 8, 1] => page.values = number,
                [5, 2] | [8, 4] => page.encoding = number,
                [7, 1] => page.entries = number,
                _ => {}
            }
        });
        match walked {
            Ok(length) => return Ok((length as u64, page)),
            Err(Stop::Short) if left > cap => {}
            Err(_) => break,
        }
    }
    Err("the head of a page is damaged".into())
}

fn part(mut file: &File, start: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(length as usize);
    file.seek(SeekFrom::Start(start)).map_err(|e| e.to_string())?;
    file.take(length).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}
