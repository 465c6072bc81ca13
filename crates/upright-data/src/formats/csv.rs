//! Lists of files as CSV with a header.

use std::path::Path;

use upright::SignalKind;

use super::list::{self, LABELS, Line, PATHS, ROWS, SPLITS};
use super::{Format, Holds, Read};
use crate::error::{Error, Result};
use crate::examples::texts;

pub(super) const FORMAT: Format = Format {
    name: "csv",
    about: "A list of files with the column `path` and, if known, `label`, `row` and `split`.",
    endings: &[".csv"],
    called: "csv",
    kinds: &SignalKind::ALL,
    gz: false,
    sniff: |_| Some(Holds::Names),
    read: Read::Names(|path, options| list::open(path, lines(path)?, FIX, options)),
    words: &["path", "label", "row", "split", "\"", ",", "\n"],
    examples: || {
        texts(&[
            "path,label\na.png,3\n\"b, c.png\",cat\n",
            "path,row,label,split\na.npz,0,1,train\nb.idx3,2,0,test\n",
        ])
    },
    ..Format::BASE
};

const FIX: &str = "write `path,label` as the first line, then one line per row; `row` and `split` \
                   may be further columns";

/// The first column that has one of some names, whatever their case.
pub(crate) fn column(header: &csv::StringRecord, names: &[&str]) -> Option<usize> {
    let plain = |h: &str| h.trim_start_matches('\u{feff}').to_ascii_lowercase();
    header.iter().position(|h| names.contains(&plain(h).as_str()))
}

fn lines(path: &Path) -> Result<Vec<Line>> {
    let bad = |e: csv::Error| Error::unreadable(path, e.to_string(), FIX);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(bad)?;
    let header = reader.headers().map_err(bad)?.clone();
    let column = |names: &[&str]| column(&header, names);
    let Some(at) = column(PATHS) else {
        let got: Vec<&str> = header.iter().collect();
        return Err(Error::unreadable(
            path,
            format!("no column `path`; it has: {}", got.join(", ")),
            FIX,
        ));
    };
    let (label, row, split) = (column(LABELS), column(ROWS), column(SPLITS));
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(bad)?;
        let field = |i: usize| record.get(i).unwrap_or("").to_owned();
        let some = |i: Option<usize>| i.map(field).filter(|l| !l.is_empty());
        let number = |text: String| {
            let why = || format!("row `{text}` is not a number (0, 1, 2, ...)");
            text.parse().map_err(|_| Error::unreadable(path, why(), FIX))
        };
        let row = some(row).map(number).transpose()?;
        rows.push(Line { path: field(at), label: some(label), row, split: some(split) });
    }
    Ok(rows)
}
