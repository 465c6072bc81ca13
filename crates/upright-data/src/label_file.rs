//! Labels in a file of their own, one per row.

use std::path::Path;

use upright::SignalKind;

use crate::bytes;
use crate::error::{Error, Result};
use crate::formats::list::{LABELS, PATHS};
use crate::formats::{column, read_idx, read_npy};
use crate::labels::Labels;

const FIX: &str = "give one label per row: a .csv with a column `label`, lines of text, or numbers \
                    in a .npy or idx1 file";

/// Reads as many labels as there are rows.
pub(crate) fn read(path: &Path, rows: usize, kind: SignalKind) -> Result<Labels> {
    let labels = match bytes::ending(path).as_str() {
        "csv" => words(csv(path)?),
        "npy" => {
            let numbers = read_npy(path).and_then(|a| a.labels());
            Labels::Numbers(numbers.map_err(|why| Error::unreadable(path, why, FIX))?)
        }
        "txt" => {
            let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
            words(
                text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect(),
            )
        }
        _ => {
            let ([_], bytes) = read_idx(path)?;
            Labels::Numbers(bytes.into_iter().map(u32::from).collect())
        }
    };
    let found = match &labels {
        Labels::None => 0,
        Labels::Numbers(n) => n.len(),
        Labels::Names(n) => n.len(),
    };
    if found != rows {
        let why = format!("{found} labels for {rows} {}", kind.plural());
        return Err(Error::unreadable(path, why, FIX));
    }
    Ok(labels)
}

/// Labels that are all numbers are the numbers of model outputs.
fn words(words: Vec<String>) -> Labels {
    let numbers: Option<Vec<u32>> = words.iter().map(|l| l.parse().ok()).collect();
    numbers.map_or(Labels::Names(words), Labels::Numbers)
}

fn csv(path: &Path) -> Result<Vec<String>> {
    let bad = |e: csv::Error| Error::unreadable(path, e.to_string(), FIX);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(bad)?;
    let header = reader.headers().map_err(bad)?.clone();
    let column = |names: &[&str]| column(&header, names);
    if column(PATHS).is_some() {
        let fix = "give this list in place of the data";
        return Err(Error::unreadable(path, "it names files, not just labels", fix));
    }
    let Some(at) = column(LABELS) else {
        let got: Vec<&str> = header.iter().collect();
        let why = format!("no column `label`; it has: {}", got.join(", "));
        return Err(Error::unreadable(path, why, FIX));
    };
    reader.records().map(|r| Ok(r.map_err(bad)?.get(at).unwrap_or("").to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(name: &str, bytes: &[u8]) -> Result<Labels> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read(&path, 2, SignalKind::Cloud)
    }

    #[test]
    fn every_kind_of_label_file_is_read() {
        use crate::examples::{gz, idx, npy};
        for (name, bytes) in [
            ("l.csv", b"name,label\na,3\nb,0\n".to_vec()),
            ("l.txt", b"3\n0\n".to_vec()),
            ("l.npy", npy("|u1", false, "(2,)", &[3, 0])),
            ("l.npy.gz", gz(&npy("|u1", false, "(2,)", &[3, 0]))),
            ("l-idx1-ubyte.gz", gz(&idx(&[2], &[3, 0]))),
        ] {
            assert_eq!(labels(name, &bytes).unwrap(), Labels::Numbers(vec![3, 0]), "{name}");
        }
        let words = labels("l.csv", b"class\nsofa\nbed\n").unwrap();
        assert_eq!(words, Labels::Names(vec!["sofa".into(), "bed".into()]));
    }

    #[test]
    fn wrong_label_files_say_so() {
        for (name, text, why) in [
            ("l.csv", "label\n1\n", "1 labels for 2 clouds"),
            ("l.csv", "a,b\n1,2\n", "no column `label`; it has: a, b"),
            ("l.csv", "path,label\na,1\nb,2\n", "it names files"),
            ("l.npy", "x", "too short"),
        ] {
            let e = labels(name, text.as_bytes()).unwrap_err().to_string();
            assert!(e.contains(why), "{why}: {e}");
        }
    }
}
