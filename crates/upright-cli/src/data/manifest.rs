//! Lists: CSV with a header, or JSON lines, naming a path and, if known, a
//! label for each row. Paths are relative to the list. A column `row` names one
//! item of a file that holds many, counted from 0; a column `split` says which
//! part of the data a row belongs to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::chain::{self, Chosen};
use super::files::Files;
use super::labels::Labels;
use super::options::{Options, Split};
use super::source::Opened;
use super::stack;
use crate::report::{Failure, Result};

/// Endings of the names of lists.
pub(super) const ENDINGS: &[&str] = &["csv", "jsonl", "ndjson"];

/// Names of the column of paths.
pub(super) const PATHS: &[&str] = &["path", "file", "file_name", "filename", "image"];
/// Names of the column of labels.
pub(super) const LABELS: &[&str] = &["label", "class", "target"];
const ROWS: &[&str] = &["row"];
const SPLITS: &[&str] = &["split"];

const HELP: &str = "write `path,label` as the first line, then one line a row; `row` and `split` \
                    may be further columns";

/// One line of a list.
struct Line {
    path: String,
    label: Option<String>,
    row: Option<usize>,
    split: Option<String>,
}

/// Opens a list.
pub(super) fn open(path: &Path, options: &Options) -> Result<Opened> {
    let csv = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    let rows = if csv { read_csv(path) } else { read_jsonl(path) }?;
    let rows = of_split(path, rows, options)?;
    if rows.is_empty() {
        let found = "a list without rows".into();
        return Err(Failure::Empty { path: path.into(), found, media: options.media() });
    }
    let named: Vec<String> = rows.iter().filter_map(|r| r.label.clone()).collect();
    if !named.is_empty() && named.len() != rows.len() {
        let lack = rows.len() - named.len();
        return Err(Failure::data(path, format!("{lack} rows have no label"), HELP));
    }
    let mut opened = items(path, &rows, options)?;
    if !named.is_empty() {
        opened.labels = numbered(named, options);
    }
    Ok(opened)
}

/// The rows of the split that was asked for.
fn of_split(path: &Path, rows: Vec<Line>, options: &Options) -> Result<Vec<Line>> {
    let known = |row: &Line| {
        let word = row.split.as_ref()?.to_ascii_lowercase();
        Split::ALL.into_iter().find(|s| s.words().contains(&word.as_str()))
    };
    let mut found: Vec<&str> = rows.iter().filter_map(|r| r.split.as_deref()).collect();
    found.sort_unstable();
    found.dedup();
    match options.split {
        None if found.len() > 1 => {
            Err(Failure::Splits { folder: path.into(), found: found.join(", ") })
        }
        Some(wanted) if !found.is_empty() => {
            Ok(rows.into_iter().filter(|r| known(r) == Some(wanted)).collect())
        }
        _ => Ok(rows),
    }
}

/// The items that rows name, with the labels of their files if all have some.
fn items(list: &Path, rows: &[Line], options: &Options) -> Result<Opened> {
    let folder = list.parent().unwrap_or(Path::new(""));
    let media = options.media();
    let single: Vec<PathBuf> =
        rows.iter().filter(|r| r.row.is_none()).map(|r| folder.join(&r.path)).collect();
    let mut starts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut len = single.len();
    let files = Files { paths: single, media, ignore_exif: options.ignore_exif };
    let mut sets = vec![Opened { items: Box::new(files), labels: Labels::None, notes: Vec::new() }];
    for row in rows.iter().filter(|r| r.row.is_some()) {
        if starts.contains_key(row.path.as_str()) {
            continue;
        }
        let file = folder.join(&row.path);
        if !stack::is_one(&file, media) {
            let why = format!("`{}` is no file of many {}", row.path, media.plural());
            return Err(Failure::data(list, why, "leave out `row` for files of one item"));
        }
        let set = stack::open(&file, options)?;
        starts.insert(&row.path, (len, set.items.len()));
        len += set.items.len();
        sets.push(set);
    }
    if starts.is_empty() {
        return Ok(sets.remove(0));
    }
    let mut next = 0..;
    let places: Vec<std::result::Result<usize, String>> = rows
        .iter()
        .map(|r| match r.row {
            None => Ok(next.next().unwrap_or(0)),
            Some(row) => match starts.get(r.path.as_str()) {
                Some(&(start, count)) if row < count => Ok(start + row),
                _ => Err(format!("{}#{row}", folder.join(&r.path).display())),
            },
        })
        .collect();
    let all = chain::join(sets);
    // A row that does not exist is never read with success, whatever its label.
    let at = |place: &std::result::Result<usize, String>| place.as_ref().map_or(0, |&p| p);
    let labels = match all.labels {
        Labels::None => Labels::None,
        Labels::Names(n) => Labels::Names(places.iter().map(|p| n[at(p)].clone()).collect()),
        Labels::Numbers(n) => Labels::Numbers(places.iter().map(|p| n[at(p)]).collect()),
    };
    let items = Chosen { from: all.items, rows: places };
    Ok(Opened { items: Box::new(items), labels, notes: all.notes })
}

/// Labels that are all numbers are the numbers of model outputs, unless a list names classes.
fn numbered(named: Vec<String>, options: &Options) -> Labels {
    let numbers: Option<Vec<u32>> = named.iter().map(|l| l.parse().ok()).collect();
    match numbers {
        Some(numbers) if options.classes.is_none() => Labels::Numbers(numbers),
        _ => Labels::Names(named),
    }
}

/// The first column that has one of some names, whatever their case.
pub(super) fn column(header: &csv::StringRecord, names: &[&str]) -> Option<usize> {
    let plain = |h: &str| h.trim_start_matches('\u{feff}').to_ascii_lowercase();
    header.iter().position(|h| names.contains(&plain(h).as_str()))
}

fn read_csv(path: &Path) -> Result<Vec<Line>> {
    let bad = |e: csv::Error| Failure::data(path, e.to_string(), HELP);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(bad)?;
    let header = reader.headers().map_err(bad)?.clone();
    let column = |names: &[&str]| column(&header, names);
    let Some(at) = column(PATHS) else {
        let got: Vec<&str> = header.iter().collect();
        return Err(Failure::data(
            path,
            format!("no column `path`; it has: {}", got.join(", ")),
            HELP,
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
            text.parse().map_err(|_| Failure::data(path, why(), HELP))
        };
        let row = some(row).map(number).transpose()?;
        rows.push(Line { path: field(at), label: some(label), row, split: some(split) });
    }
    Ok(rows)
}

fn read_jsonl(path: &Path) -> Result<Vec<Line>> {
    let help = "write one object a line: {\"path\": \"a.png\", \"label\": 3}";
    let text = std::fs::read_to_string(path).map_err(|e| Failure::io(path, e))?;
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let bad = |why: String| Failure::data(path, format!("line {}: {why}", i + 1), help);
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

#[cfg(test)]
mod tests {
    use super::super::options::Want;
    use super::*;
    use upright::tensor::Signal;

    fn opened(name: &str, text: &str) -> Result<Opened> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        open(&path, &Options::new(Want::Labelled, Signal::image(1, 1, 1)))
    }

    #[test]
    fn paths_are_relative_to_the_list() {
        let opened = opened("l.csv", "label,Path\ncat, a.png\ndog,\"sub/b, c.png\"\n").unwrap();
        assert!(opened.items.name(1).ends_with("sub/b, c.png"));
        assert!(Path::new(&opened.items.name(0)).is_absolute());
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

    #[test]
    fn rows_of_files_with_many_items_are_chosen_by_number_and_split() {
        let folder = tempfile::tempdir().unwrap();
        let line =
            |w: &str, x: u32| format!("{{\"word\":\"{w}\",\"drawing\":[[[0,{x}],[0,1]]]}}\n");
        let text: String = (1..5).map(|x| line(if x > 2 { "dog" } else { "cat" }, x)).collect();
        std::fs::write(folder.path().join("d.ndjson"), text).unwrap();
        let path = folder.path().join("l.csv");
        let read = |list: &str, split: Option<Split>| {
            std::fs::write(&path, list).unwrap();
            let signal = Signal::Strokes { length: 2 };
            open(&path, &Options { split, ..Options::new(Want::Labelled, signal) })
        };
        let list = "path,row,split\nd.ndjson,3,train\nd.ndjson,0,test\nd.ndjson,9,train\n";
        let train = read(list, Some(Split::Train)).unwrap();
        assert_eq!(train.labels, Labels::Names(vec!["dog".into(), "cat".into()]));
        assert!(train.items.name(0).ends_with("d.ndjson#3"));
        assert!(train.items.item(0).is_ok());
        assert_eq!(train.items.item(1).unwrap_err(), "there is no such row");
        let e = read(list, None).err().unwrap();
        assert!(e.to_string().ends_with("holds several sets: test, train"), "{e}");
        let own = read("path,row,label\nd.ndjson,3,hen\na.svg,,hen\n", None).unwrap();
        assert_eq!(own.labels, Labels::Names(vec!["hen".into(), "hen".into()]));
        assert!(own.items.name(1).ends_with("a.svg"));
        for (list, why) in [
            ("path,row\nd.ndjson,x\n", "row `x` is not a number"),
            ("path,row\na.svg,0\n", "`a.svg` is no file of many sketches"),
        ] {
            let e = read(list, None).err().unwrap();
            assert!(e.to_string().contains(why), "{why}: {e}");
        }
    }
}
