//! From class names to model outputs.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

use crate::error::{Error, Result};
use crate::options::Options;

/// What a format says about the true classes, one entry per row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Labels {
    /// Nothing.
    None,
    /// Numbers of model outputs.
    Numbers(Vec<u32>),
    /// Names, to be matched with model outputs.
    Names(Vec<String>),
}

/// Numbers every row's class as the model does, and names the model's outputs.
///
/// Names are numbered by their place in [`Options::classes`], or else in sorted order, in
/// which numbers sort as numbers. If classes are missing and that is allowed,
/// names that are numbers stand for themselves.
pub(crate) fn resolve(
    origin: &Path,
    labels: Labels,
    options: &Options,
) -> Result<(Option<Vec<u32>>, Vec<String>)> {
    let listed = options.classes.as_deref().map(read_classes).transpose()?;
    if let (Some((path, listed)), Some(outputs)) =
        (options.classes.as_ref().zip(listed.as_ref()), options.outputs)
        && listed.len() != outputs
    {
        return Err(Error::ClassList { path: path.clone(), listed: listed.len(), outputs });
    }
    match labels {
        Labels::None => Ok((None, listed.unwrap_or_default())),
        Labels::Numbers(numbers) => {
            let outputs = listed.as_ref().map(Vec::len).or(options.outputs);
            let top = numbers.iter().max().copied().unwrap_or(0) as usize;
            if let Some(outputs) = outputs.filter(|&o| top >= o) {
                return Err(Error::Beyond { path: origin.into(), top, outputs });
            }
            Ok((Some(numbers), listed.unwrap_or_default()))
        }
        Labels::Names(names) => {
            if let Some((numbers, listed)) = listed.as_ref().and_then(|l| as_numbers(&names, l)) {
                return Ok((Some(numbers), listed));
            }
            let found = sorted(&names);
            let classes = match listed {
                Some(listed) => by_list(origin, &found, listed, options)?,
                None => by_order(origin, found, options)?,
            };
            let place: std::collections::BTreeMap<&str, u32> =
                classes.iter().enumerate().map(|(i, c)| (c.as_str(), i as u32)).collect();
            let numbers = names.iter().filter_map(|n| place.get(n.as_str()).copied()).collect();
            Ok((Some(numbers), classes))
        }
    }
}

/// Names that are numbers of a list's lines, and none of which the list itself names.
fn as_numbers(names: &[String], listed: &[String]) -> Option<(Vec<u32>, Vec<String>)> {
    let numbers: Vec<u32> = names.iter().map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let fit = numbers.iter().all(|&n| (n as usize) < listed.len());
    let named = names.iter().any(|n| listed.contains(n));
    (fit && !named).then(|| (numbers, listed.to_vec()))
}

fn by_list(
    origin: &Path,
    found: &[String],
    listed: Vec<String>,
    options: &Options,
) -> Result<Vec<String>> {
    let known: BTreeSet<&String> = listed.iter().collect();
    let names: Vec<String> = found.iter().filter(|n| !known.contains(n)).cloned().collect();
    if !names.is_empty() {
        return Err(Error::Unlisted { path: origin.into(), names });
    }
    let there: BTreeSet<&String> = found.iter().collect();
    let missing: Vec<String> = listed.iter().filter(|n| !there.contains(n)).cloned().collect();
    if !missing.is_empty() && !options.allow_missing_classes {
        return Err(mismatch(origin, found.len(), listed.len(), missing));
    }
    Ok(listed)
}

fn by_order(origin: &Path, found: Vec<String>, options: &Options) -> Result<Vec<String>> {
    let Some(outputs) = options.outputs.filter(|&o| o != found.len()) else { return Ok(found) };
    let numbers: Option<Vec<usize>> = found.iter().map(|n| n.parse().ok()).collect();
    let Some(numbers) = numbers.filter(|n| n.iter().all(|&n| n < outputs)) else {
        return Err(mismatch(origin, found.len(), outputs, Vec::new()));
    };
    let mut classes: Vec<String> = (0..outputs).map(|i| i.to_string()).collect();
    let missing: Vec<String> =
        (0..outputs).filter(|i| !numbers.contains(i)).map(|i| i.to_string()).collect();
    if missing.len() + numbers.len() != outputs || !options.allow_missing_classes {
        return Err(mismatch(origin, found.len(), outputs, missing));
    }
    for (name, &number) in found.into_iter().zip(&numbers) {
        classes[number] = name;
    }
    Ok(classes)
}

fn mismatch(path: &Path, found: usize, outputs: usize, missing: Vec<String>) -> Error {
    Error::Classes { path: path.into(), found, outputs, missing }
}

/// The distinct names: numbers first and by value, then the rest by spelling.
fn sorted(names: &[String]) -> Vec<String> {
    let mut out: Vec<String> = names.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
    out.sort_by(|a, b| match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(x), Ok(y)) => x.cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    });
    out
}

fn read_classes(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let names: Vec<String> =
        text.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect();
    if let Some(twice) = names.iter().enumerate().find(|(i, n)| names[..*i].contains(n)) {
        return Err(Error::unreadable(
            path,
            format!("class `{}` is named twice", twice.1),
            "name every class once, in the order of the model's outputs",
        ));
    }
    if names.is_empty() {
        return Err(Error::unreadable(path, "no class names", "write one name per line"));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Want;
    use upright::Signal;

    fn names(names: &[&str]) -> Labels {
        Labels::Names(names.iter().map(|&n| n.into()).collect())
    }

    fn with(outputs: Option<usize>, allow_missing_classes: bool) -> Options {
        Options {
            outputs,
            allow_missing_classes,
            ..Options::new(Want::Labelled, Signal::image(1, 1, 1))
        }
    }

    fn listed(lines: &str, options: &Options) -> (tempfile::TempDir, Options) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("classes.txt");
        std::fs::write(&path, lines).unwrap();
        (folder, Options { classes: Some(path), ..options.clone() })
    }

    #[test]
    fn names_sort_and_numbers_sort_as_numbers() {
        let (labels, classes) =
            resolve(Path::new("d"), names(&["dog", "cat", "dog"]), &with(None, false)).unwrap();
        assert_eq!((labels.unwrap(), classes), (vec![1, 0, 1], vec!["cat".into(), "dog".into()]));
        let (labels, _) =
            resolve(Path::new("d"), names(&["10", "9", "2"]), &with(Some(3), false)).unwrap();
        assert_eq!(labels.unwrap(), [2, 1, 0]);
    }

    #[test]
    fn a_list_fixes_the_order_and_names_what_is_missing() {
        let (_folder, options) = listed("sea\nlake\nhill\n", &with(Some(3), false));
        let e = resolve(Path::new("train/"), names(&["hill", "sea"]), &options).unwrap_err();
        assert_eq!(e.to_string(), "`train/` has 2 classes, model has 3 outputs; missing: `lake`");
        assert_eq!(e.code(), "data::classes");
        let options = Options { allow_missing_classes: true, ..options };
        let (labels, classes) =
            resolve(Path::new("train/"), names(&["hill", "sea"]), &options).unwrap();
        assert_eq!(labels.unwrap(), [2, 0]);
        assert_eq!(classes, ["sea", "lake", "hill"]);
        let e = resolve(Path::new("train/"), names(&["pond"]), &options).unwrap_err();
        assert!(e.to_string().ends_with("the list does not name: `pond`"), "{e}");
    }

    #[test]
    fn numbers_are_places_in_a_list_that_does_not_name_them() {
        let (_folder, options) = listed("sea\nlake\nhill\n", &with(Some(3), true));
        let (labels, classes) = resolve(Path::new("d"), names(&["2", "0"]), &options).unwrap();
        assert_eq!((labels.unwrap(), classes.len()), (vec![2, 0], 3));
        assert!(resolve(Path::new("d"), names(&["3", "0"]), &options).is_err());
        let (_folder, options) = listed("1\n0\n", &with(Some(2), true));
        assert_eq!(
            resolve(Path::new("d"), names(&["0", "1"]), &options).unwrap().0.unwrap(),
            [1, 0]
        );
    }

    #[test]
    fn a_list_of_another_length_than_the_model_is_refused() {
        let (_folder, options) = listed("a\nb\n", &with(Some(3), true));
        let e = resolve(Path::new("d"), Labels::None, &options).unwrap_err();
        assert!(e.to_string().ends_with("names 2 classes, model has 3 outputs"), "{e}");
        let (_folder, options) = listed("a\na\n", &with(None, true));
        assert!(
            resolve(Path::new("d"), Labels::None, &options)
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
    }

    #[test]
    fn missing_numbers_are_named_and_stand_for_themselves_if_allowed() {
        let e = resolve(Path::new("d"), names(&["000", "002"]), &with(Some(3), false)).unwrap_err();
        assert!(e.to_string().ends_with("missing: `1`"), "{e}");
        let (labels, classes) =
            resolve(Path::new("d"), names(&["000", "002"]), &with(Some(3), true)).unwrap();
        assert_eq!(labels.unwrap(), [0, 2]);
        assert_eq!(classes, ["000", "1", "002"]);
    }

    #[test]
    fn missing_words_need_a_list_even_if_allowed() {
        assert!(resolve(Path::new("d"), names(&["cat"]), &with(Some(2), true)).is_err());
        assert!(resolve(Path::new("d"), names(&["a", "b", "c"]), &with(Some(2), true)).is_err());
    }

    #[test]
    fn numbers_beyond_the_outputs_are_refused() {
        let e = resolve(Path::new("d"), Labels::Numbers(vec![0, 46]), &with(Some(10), false))
            .unwrap_err();
        assert_eq!(e.to_string(), "labels of `d` go up to 46, model has 10 outputs (0..9)");
    }
}
