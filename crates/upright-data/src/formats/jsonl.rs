//! Lists of files as JSON lines.

use std::collections::BTreeMap;
use std::path::Path;

use upright::SignalKind;

use super::list::{self, LABELS, Line, PATHS, ROWS, SPLITS};
use super::{Format, Holds, Read};
use crate::error::{Error, Result};
use crate::examples::texts;

pub(super) const FORMAT: Format = Format {
    name: "jsonl",
    about: "A list of files, one JSON object with `path` per line.",
    endings: &[".jsonl", ".ndjson"],
    called: "jsonl",
    kinds: &SignalKind::ALL,
    gz: false,
    sniff: |_| Some(Holds::Names),
    read: Read::Names(|path, options| list::open(path, lines(path)?, FIX, options)),
    words: &[
        "\"path\"",
        "\"label\"",
        "\"row\"",
        "\"split\"",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "null",
        "\"",
        "\\u0000",
        "\n",
    ],
    examples: || {
        texts(&[
            "{\"path\":\"a.png\",\"label\":3}\n{\"path\":\"b.png\",\"label\":\"cat\"}\n",
            "{\"path\":\"b.npz\",\"row\":2,\"split\":\"train\"}\n",
        ])
    },
    ..Format::BASE
};

const FIX: &str = "write one object per line: {\"path\": \"a.png\", \"label\": 3}";

fn lines(path: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let bad = |why: String| Error::unreadable(path, format!("line {}: {why}", i + 1), FIX);
        let fields: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        let find = |names: &[&str]| names.iter().find_map(|n| fields.get(*n));
        let text = |names: &[&str]| match find(names) {
            None | Some(serde_json::Value::Null) => None,
            Some(serde_json::Value::String(s)) => Some(s.clone()),
            Some(other) => Some(other.to_string()),
        };
        let file = find(PATHS).and_then(|v| v.as_str()).ok_or_else(|| bad("no `path`".into()))?;
        let row = match text(ROWS).map(|r| r.parse()) {
            None => None,
            Some(Ok(row)) => Some(row),
            Some(Err(_)) => return Err(bad("`row` is not a number (0, 1, 2, ...)".into())),
        };
        rows.push(Line { path: file.to_owned(), label: text(LABELS), row, split: text(SPLITS) });
    }
    Ok(rows)
}
