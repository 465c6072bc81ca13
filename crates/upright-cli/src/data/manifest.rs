//! Lists of pictures: CSV with a header, or JSON lines, naming a path and,
//! if known, a label for each. Paths are relative to the list.

use std::collections::BTreeMap;
use std::path::Path;

use super::folder::Files;
use super::labels::Labels;
use super::options::Options;
use super::source::Opened;
use crate::report::{Failure, Result};

/// Endings of the names of lists.
pub(super) const ENDINGS: &[&str] = &["csv", "jsonl", "ndjson"];

const PATHS: &[&str] = &["path", "file", "file_name", "filename", "image"];
const LABELS: &[&str] = &["label", "class", "target"];

const HELP: &str = "write `path,label` as the first line, then one line a picture";

/// Opens a list.
pub(super) fn open(path: &Path, options: &Options) -> Result<Opened> {
    let csv = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let rows = if csv { read_csv(path) } else { read_jsonl(path) }?;
    if rows.is_empty() {
        return Err(Failure::Empty { path: path.into(), found: "a list without rows".into() });
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let paths = rows.iter().map(|(p, _)| folder.join(p)).collect();
    let named: Vec<String> = rows.into_iter().filter_map(|(_, l)| l).collect();
    let files = Files { paths, ignore_exif: options.ignore_exif };
    let labels = match named.len() {
        0 => Labels::None,
        n if n != files.paths.len() => {
            let lack = files.paths.len() - n;
            return Err(Failure::data(path, format!("{lack} rows have no label"), HELP));
        }
        _ => numbered(named, options),
    };
    Ok(Opened { pictures: Box::new(files), labels, notes: Vec::new() })
}

/// Labels that are all numbers are the numbers of model outputs, unless a list names classes.
fn numbered(named: Vec<String>, options: &Options) -> Labels {
    let numbers: Option<Vec<u32>> = named.iter().map(|l| l.parse().ok()).collect();
    match numbers {
        Some(numbers) if options.classes.is_none() => Labels::Numbers(numbers),
        _ => Labels::Names(named),
    }
}

type Row = (String, Option<String>);

fn read_csv(path: &Path) -> Result<Vec<Row>> {
    let bad = |e: csv::Error| Failure::data(path, e.to_string(), HELP);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(bad)?;
    let header = reader.headers().map_err(bad)?.clone();
    let column = |names: &[&str]| {
        header.iter().position(|h| {
            names.contains(&h.trim_start_matches('\u{feff}').to_ascii_lowercase().as_str())
        })
    };
    let Some(at) = column(PATHS) else {
        let got: Vec<&str> = header.iter().collect();
        return Err(Failure::data(
            path,
            format!("no column `path`; it has: {}", got.join(", ")),
            HELP,
        ));
    };
    let label = column(LABELS);
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(bad)?;
        let field = |i: usize| record.get(i).unwrap_or("").to_owned();
        rows.push((field(at), label.map(field).filter(|l| !l.is_empty())));
    }
    Ok(rows)
}

fn read_jsonl(path: &Path) -> Result<Vec<Row>> {
    let help = "write one object a line: {\"path\": \"a.png\", \"label\": 3}";
    let text = std::fs::read_to_string(path).map_err(|e| Failure::io(path, e))?;
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let bad = |why: String| Failure::data(path, format!("line {}: {why}", i + 1), help);
        let fields: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        let find = |names: &[&str]| names.iter().find_map(|n| fields.get(*n));
        let file = find(PATHS).and_then(|v| v.as_str()).ok_or_else(|| bad("no `path`".into()))?;
        let label = match find(LABELS) {
            None | Some(serde_json::Value::Null) => None,
            Some(serde_json::Value::String(s)) => Some(s.clone()),
            Some(other) => Some(other.to_string()),
        };
        rows.push((file.to_owned(), label));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::super::options::Want;
    use super::*;

    fn opened(name: &str, text: &str) -> Result<Opened> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        open(&path, &Options::new(Want::Labelled))
    }

    #[test]
    fn paths_are_relative_to_the_list() {
        let opened = opened("l.csv", "label,Path\ncat, a.png\ndog,\"sub/b, c.png\"\n").unwrap();
        assert!(opened.pictures.name(1).ends_with("sub/b, c.png"));
        assert!(Path::new(&opened.pictures.name(0)).is_absolute());
        assert_eq!(opened.labels, Labels::Names(vec!["cat".into(), "dog".into()]));
    }

    #[test]
    fn numbers_are_model_outputs() {
        let csv = opened("l.csv", "path,label\na.png,3\nb.png,0\n").unwrap();
        let jsonl = opened(
            "l.jsonl",
            "{\"path\":\"a.png\",\"label\":3}\n\n{\"path\":\"b\",\"label\":\"0\"}\n",
        );
        for opened in [csv, jsonl.unwrap()] {
            assert_eq!(opened.labels, Labels::Numbers(vec![3, 0]));
        }
    }

    #[test]
    fn lists_without_what_is_needed_are_refused() {
        for (text, why) in [
            ("a,b\n1,2\n", "no column `path`; it has: a, b"),
            ("path,label\n", "holds 0 readable images (a list without rows)"),
            ("path,label\na.png,1\nb.png,\n", "1 rows have no label"),
            ("path,label\na.png\n", "found record with 1 fields"),
        ] {
            let e = opened("l.csv", text).err().unwrap().to_string();
            assert!(e.contains(why), "{why}: {e}");
        }
        let e = opened("l.jsonl", "{\"path\":\"a\"}\nnonsense\n").err().unwrap().to_string();
        assert!(e.contains("line 2:"), "{e}");
    }
}
