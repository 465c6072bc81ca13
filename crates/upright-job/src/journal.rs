//! The journal of a job: a first line with what it was begun with, then a line for each part.
//! Lines are only ever added, each synced before anything relies on it. Whoever holds the
//! journal open holds the folder: its lock ends with the process.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::facts::Facts;

/// The journal's name; readers of data folders leave out names that start so.
pub(crate) const NAME: &str = "_journal.jsonl";

/// What is known of a finished part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its number, from 0.
    pub(crate) part: usize,
    /// The name of its file.
    pub(crate) file: String,
    /// Rows in it.
    pub(crate) rows: usize,
    /// Those without an answer.
    pub(crate) errors: usize,
    /// Those that were searched.
    pub(crate) searched: usize,
    /// Its first id.
    pub(crate) first: String,
    /// Its last id.
    pub(crate) last: String,
    /// BLAKE3 of its file.
    pub(crate) blake3: String,
}

#[derive(Serialize, Deserialize)]
struct Head {
    job: Facts,
}

/// An open, locked journal.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    /// What the job was begun with; `None` in a new one.
    pub(crate) facts: Option<Facts>,
    /// The last line of every part that has one.
    pub(crate) parts: BTreeMap<usize, Entry>,
}

impl Journal {
    /// Opens or creates the journal of a folder and locks it. A last line that was not written
    /// to its end is cut off; other lines that say nothing are passed over.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        let io = |e| Error::io(&path, e);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy { folder: folder.into() }),
            Err(TryLockError::Error(e)) => return Err(io(e)),
        }
        let mut journal =
            Journal { path: path.clone(), file, length: 0, facts: None, parts: BTreeMap::new() };
        let mut text = Vec::new();
        journal.file.read_to_end(&mut text).map_err(io)?;
        let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        journal.cut(whole as u64).map_err(io)?;
        let mut lines = text[..whole].split(|&b| b == b'\n').filter(|line| !line.is_empty());
        if let Some(first) = lines.next() {
            let head: Head = serde_json::from_slice(first).map_err(|e| Error::NotAJob {
                folder: folder.into(),
                why: format!("the first line of `{NAME}` does not say what it was begun with: {e}"),
            })?;
            journal.facts = Some(head.job);
        }
        for entry in lines.filter_map(|line| serde_json::from_slice::<Entry>(line).ok()) {
            journal.parts.insert(entry.part, entry);
        }
        Ok(journal)
    }

    /// What the job of a folder was begun with, without opening it for work.
    pub(crate) fn peek(folder: &Path) -> Option<Facts> {
        let mut first = String::new();
        BufReader::new(File::open(folder.join(NAME)).ok()?).read_line(&mut first).ok()?;
        Some(serde_json::from_str::<Head>(&first).ok()?.job)
    }

    /// Writes what the job is begun with into a new journal.
    pub(crate) fn begin(&mut self, facts: Facts) -> Result<()> {
        let head = Head { job: facts };
        self.add(&head)?;
        self.facts = Some(head.job);
        Ok(())
    }

    /// Adds a part, unless the journal says the same already.
    pub(crate) fn record(&mut self, entry: Entry) -> Result<()> {
        if self.parts.get(&entry.part) != Some(&entry) {
            self.add(&entry)?;
            self.parts.insert(entry.part, entry);
        }
        Ok(())
    }

    fn add(&mut self, line: &impl Serialize) -> Result<()> {
        let written =
            serde_json::to_vec(line).map_err(std::io::Error::from).and_then(|mut line| {
                line.push(b'\n');
                self.file.seek(SeekFrom::Start(self.length))?;
                self.file.write_all(&line)?;
                self.file.sync_data()?;
                Ok(line.len() as u64)
            });
        match written {
            Ok(more) => {
                self.length += more;
                Ok(())
            }
            Err(e) => {
                // Half a line would be cut off when the journal is opened again, too.
                self.cut(self.length).ok();
                Err(Error::io(&self.path, e))
            }
        }
    }

    fn cut(&mut self, length: u64) -> std::io::Result<()> {
        if self.file.metadata()?.len() != length {
            self.file.set_len(length)?;
            self.file.sync_data()?;
        }
        self.length = length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(part: usize, hash: &str) -> Entry {
        let id = |n: usize| format!("id-{n}");
        Entry {
            part,
            file: format!("part-{part:05}.csv"),
            rows: 10,
            errors: 0,
            searched: 3,
            first: id(part * 10),
            last: id(part * 10 + 9),
            blake3: hash.into(),
        }
    }

    fn begun(folder: &Path) -> Journal {
        let mut journal = Journal::open(folder).unwrap();
        assert!(journal.facts.is_none());
        journal.begin(json!({ "model": "a" }).as_object().unwrap().clone()).unwrap();
        journal.record(entry(0, "x")).unwrap();
        journal.record(entry(1, "y")).unwrap();
        journal
    }

    #[test]
    fn a_torn_last_line_is_cut_off_wherever_it_is_torn() {
        let folder = tempfile::tempdir().unwrap();
        drop(begun(folder.path()));
        let path = folder.path().join(NAME);
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> =
            whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(folder.path()).unwrap();
            let lines = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(journal.facts.is_some(), lines > 0, "cut at {cut}");
            assert_eq!(journal.parts.len(), lines.saturating_sub(1), "cut at {cut}");
            if lines == 2 {
                journal.record(entry(1, "y")).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {cut}");
            }
        }
    }

    #[test]
    fn a_later_line_of_a_part_counts_and_nothing_is_said_twice() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begun(folder.path());
        let length = journal.length;
        journal.record(entry(1, "y")).unwrap();
        assert_eq!(journal.length, length);
        journal.record(entry(1, "z")).unwrap();
        drop(journal);
        assert_eq!(Journal::open(folder.path()).unwrap().parts[&1].blake3, "z");
    }

    #[test]
    fn a_damaged_line_between_others_loses_its_part_alone() {
        let folder = tempfile::tempdir().unwrap();
        drop(begun(folder.path()));
        let path = folder.path().join(NAME);
        let text = std::fs::read_to_string(&path).unwrap().replace("\"part\":0", "\"pa\\rt\":0");
        std::fs::write(&path, text).unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.parts.keys().collect::<Vec<_>>(), [&1]);
        drop(journal);
        std::fs::write(&path, "hello\n").unwrap();
        let e = Journal::open(folder.path()).err().unwrap();
        assert_eq!(e.code(), "job::folder");
    }

    #[test]
    fn a_second_opener_is_told_that_the_folder_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let first = begun(folder.path());
        assert!(matches!(Journal::open(folder.path()), Err(Error::Busy { .. })));
        drop(first);
        assert_eq!(Journal::open(folder.path()).unwrap().parts.len(), 2);
    }
}
