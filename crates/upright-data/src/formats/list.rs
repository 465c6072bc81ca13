//! Lists of files: a path and, if known, a label for each row. Paths are
//! relative to the list. `row` names one item of a file that holds many,
//! counted from 0; `split` says which part of the data a row belongs to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::chain::{self, Chosen};
use crate::error::{Error, Found, Result};
use crate::files::Files;
use crate::formats;
use crate::item::Set;
use crate::labels::Labels;
use crate::options::{Options, Split};

/// Names of the column of paths.
pub(crate) const PATHS: &[&str] = &["path", "file", "file_name", "filename", "image"];
/// Names of the column of labels.
pub(crate) const LABELS: &[&str] = &["label", "class", "target"];
/// Names of the column of numbers of items.
pub(super) const ROWS: &[&str] = &["row"];
/// Names of the column of splits.
pub(super) const SPLITS: &[&str] = &["split"];

/// One line of a list.
pub(super) struct Line {
    /// The file.
    pub(super) path: String,
    /// Its class.
    pub(super) label: Option<String>,
    /// The item in a file of many.
    pub(super) row: Option<usize>,
    /// The part of the data.
    pub(super) split: Option<String>,
}

/// Opens what the lines of a list name; `fix` says how such a list is written.
pub(super) fn open(
    path: &Path,
    lines: Vec<Line>,
    fix: &'static str,
    options: &Options,
) -> Result<Set> {
    let lines = of_split(path, lines, options)?;
    if lines.is_empty() {
        let (kind, found) = (options.kind(), Found::Nothing("a list without rows"));
        return Err(Error::Empty { path: path.into(), kind, found });
    }
    let named: Vec<String> = lines.iter().filter_map(|l| l.label.clone()).collect();
    if !named.is_empty() && named.len() != lines.len() {
        let lack = lines.len() - named.len();
        return Err(Error::unreadable(path, format!("{lack} rows have no label"), fix));
    }
    let mut set = items(path, &lines, options)?;
    if !named.is_empty() {
        set.labels = numbered(named, options);
    }
    Ok(set)
}

/// The lines of the split that was asked for.
fn of_split(path: &Path, lines: Vec<Line>, options: &Options) -> Result<Vec<Line>> {
    let known = |line: &Line| {
        let word = line.split.as_ref()?.to_ascii_lowercase();
        Split::ALL.into_iter().find(|s| s.words().contains(&word.as_str()))
    };
    let mut found: Vec<&str> = lines.iter().filter_map(|l| l.split.as_deref()).collect();
    found.sort_unstable();
    found.dedup();
    match options.split {
        None if found.len() > 1 => {
            let found = found.into_iter().map(str::to_owned).collect();
            Err(Error::Splits { path: path.into(), found })
        }
        Some(wanted) if !found.is_empty() => {
            Ok(lines.into_iter().filter(|l| known(l) == Some(wanted)).collect())
        }
        _ => Ok(lines),
    }
}

/// The items that lines name, with the labels of their files if all have some.
fn items(list: &Path, lines: &[Line], options: &Options) -> Result<Set> {
    let folder = list.parent().unwrap_or(Path::new(""));
    let kind = options.kind();
    let single: Vec<PathBuf> =
        lines.iter().filter(|l| l.row.is_none()).map(|l| folder.join(&l.path)).collect();
    let mut starts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut len = single.len();
    let mut sets = vec![Set::new(Files::new(single, options), Labels::None)];
    for line in lines.iter().filter(|l| l.row.is_some()) {
        if starts.contains_key(line.path.as_str()) {
            continue;
        }
        let file = folder.join(&line.path);
        let Some((_, many)) = formats::many(&file, kind) else {
            let why = format!("`{}` is no file of many {}", line.path, kind.plural());
            return Err(Error::unreadable(list, why, "leave out `row` for files of one item"));
        };
        let set = formats::open(many, &file, options)?;
        starts.insert(&line.path, (len, set.items.len()));
        len += set.items.len();
        sets.push(set);
    }
    if starts.is_empty() {
        return Ok(sets.remove(0));
    }
    let mut next = 0..;
    let places: Vec<std::result::Result<usize, String>> = lines
        .iter()
        .map(|l| match l.row {
            None => Ok(next.next().unwrap_or(0)),
            Some(row) => match starts.get(l.path.as_str()) {
                Some(&(start, count)) if row < count => Ok(start + row),
                _ => Err(format!("{}#{row}", folder.join(&l.path).display())),
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
    Ok(Set {
        notes: all.notes,
        bytes: all.bytes,
        ..Set::new(Chosen { from: all.items, rows: places }, labels)
    })
}

/// Labels that are all numbers are the numbers of model outputs, unless a list names classes.
fn numbered(named: Vec<String>, options: &Options) -> Labels {
    let numbers: Option<Vec<u32>> = named.iter().map(|l| l.parse().ok()).collect();
    match numbers {
        Some(numbers) if options.classes.is_none() => Labels::Numbers(numbers),
        _ => Labels::Names(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Want;
    use upright::Signal;

    fn opened(name: &str, text: &str) -> Result<Set> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let open = formats::names(&path).unwrap();
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
            (formats::names(&path).unwrap())(
                &path,
                &Options { split, ..Options::new(Want::Labelled, signal) },
            )
        };
        let list = "path,row,split\nd.ndjson,3,train\nd.ndjson,0,test\nd.ndjson,9,train\n";
        let train = read(list, Some(Split::Train)).unwrap();
        assert_eq!(train.labels, Labels::Names(vec!["dog".into(), "cat".into()]));
        assert!(train.items.name(0).ends_with("d.ndjson#3"));
        assert!(train.items.item(0).is_ok());
        assert_eq!(train.items.item(1).unwrap_err().to_string(), "there is no such row");
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
