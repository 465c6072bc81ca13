//! A study's log: JSON lines, appended and synced one by one.
//!
//! The first line says what the study is; then one line per finished trial
//! and one per finished series. A line counts when its newline is there, so what a
//! crash tore off is dropped on opening. One process at a time may write.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::trial::{Series, Trial};
use crate::error::{Error, Result};

/// Largest log that is read.
const LARGEST: u64 = 1 << 30;

/// A line of a log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    /// What the study is.
    Study(Header),
    /// A finished trial.
    Trial(Trial),
    /// A series that gets no further trials.
    Ended(Series),
}

/// What a study is; two with equal headers continue each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The format's version.
    pub(super) version: u32,
    /// BLAKE3 of what follows.
    pub(super) fingerprint: String,
    pub(super) seed: u64,
    pub(super) label: String,
    pub(super) sampler: serde_json::Value,
    pub(super) knobs: serde_json::Value,
}

impl Header {
    /// The first thing in which another header differs.
    fn difference(&self, other: &Header) -> Option<String> {
        if self.version != other.version {
            return Some(format!("its format is {}, not {}", other.version, self.version));
        }
        if self.seed != other.seed {
            return Some(format!("its seed is {}, not {}", other.seed, self.seed));
        }
        if self.label != other.label {
            return Some(format!("it is about `{}`, not `{}`", other.label, self.label));
        }
        if self.knobs != other.knobs {
            return Some("its space has other knobs".into());
        }
        if self.sampler != other.sampler {
            return Some("its sampler or pruner has other settings".into());
        }
        (self.fingerprint != other.fingerprint).then(|| "its first line is damaged".into())
    }
}

/// An open log.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens a log and reads the lines after its first, which must equal
    /// `header`; makes the file if there is none.
    pub(super) fn open(path: &Path, header: &Header) -> Result<(Self, Vec<Line>)> {
        let io = |e| Error::io(path, e);
        let new = !path.exists();
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(refused(path, "another process is writing it", "wait for it to end"));
            }
            Err(TryLockError::Error(e)) if e.kind() != ErrorKind::Unsupported => {
                return Err(io(e));
            }
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let size = file.metadata().map_err(io)?.len();
        if size > LARGEST {
            return Err(Error::TooLarge { what: path.display().to_string(), size, limit: LARGEST });
        }
        let mut bytes = Vec::with_capacity(size as usize);
        file.read_to_end(&mut bytes).map_err(io)?;
        let (kept, mut lines) = read(path, &bytes)?;
        check(path, header, &bytes, &lines)?;
        file.set_len(kept as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        let mut log = Log { path: path.into(), file };
        if lines.is_empty() {
            log.append(&Line::Study(header.clone()))?;
        } else {
            lines.remove(0);
        }
        if new {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
            // Not every system lets a folder be synced.
            let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|f| f.sync_all());
        }
        Ok((log, lines))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line; when this returns, the line is on the disk. On failure
    /// nothing of it is left, as far as the disk allows.
    pub(super) fn append(&mut self, line: &Line) -> Result<()> {
        let mut text = text(line)?;
        text.push('\n');
        let io = |e| Error::io(&self.path, e);
        let before = self.file.stream_position().map_err(io)?;
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        if written.is_err() {
            let _ =
                self.file.set_len(before).and_then(|()| self.file.seek(SeekFrom::Start(before)));
        }
        written.map_err(io)
    }
}

fn text(line: &Line) -> Result<String> {
    serde_json::to_string(line)
        .map_err(|e| Error::Tune { why: format!("a line cannot be written: {e}"), hint: None })
}

fn refused(path: &Path, why: &str, help: &str) -> Error {
    Error::Tune { why: format!("{}: {why}", path.display()), hint: Some(help.into()) }
}

/// How many bytes are whole lines, and these lines. Only the last line may be
/// unreadable; it is dropped.
fn read(path: &Path, bytes: &[u8]) -> Result<(usize, Vec<Line>)> {
    let (mut kept, mut lines) = (0, Vec::new());
    let ended = bytes.split_inclusive(|&b| b == b'\n').filter(|line| line.ends_with(b"\n"));
    let whole: usize = ended.clone().map(<[u8]>::len).sum();
    for line in ended {
        match serde_json::from_slice(line) {
            Ok(read) => lines.push(read),
            Err(_) if kept + line.len() == whole && !lines.is_empty() => break,
            Err(e) => {
                let why = format!("line {} is not one of a study: {e}", lines.len() + 1);
                return Err(refused(path, &why, "give another file for the log"));
            }
        }
        kept += line.len();
    }
    Ok((kept, lines))
}

/// Refuses a file that is not a log of this study. A file without a whole line
/// must be the beginning of this study's first line.
fn check(path: &Path, header: &Header, bytes: &[u8], lines: &[Line]) -> Result<()> {
    let why = match lines.first() {
        Some(Line::Study(found)) => header.difference(found),
        Some(_) => Some("it does not begin like a study".into()),
        None => {
            let begun = text(&Line::Study(header.clone()))?.as_bytes().starts_with(bytes);
            (!begun).then(|| "it is not the log of a study".into())
        }
    };
    match why {
        Some(why) => Err(refused(
            path,
            &format!("cannot resume: {why}"),
            "resume with the same space, seed, settings and data, or give another file for the log",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn header() -> Header {
        Header {
            version: 1,
            fingerprint: "f".into(),
            seed: 7,
            label: "digits".into(),
            sampler: serde_json::json!({"startup": 10}),
            knobs: serde_json::json!([]),
        }
    }

    fn ended(part: usize) -> Line {
        Line::Ended(Series { stage: 1, part })
    }

    #[test]
    fn only_the_last_line_may_be_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (mut log, _) = Log::open(&path, &header()).unwrap();
        log.append(&ended(0)).unwrap();
        log.append(&ended(1)).unwrap();
        drop(log);
        let whole = fs::read(&path).unwrap();

        for tail in ["{\"ended\":{\"sta", "\0\0\0\n", "{}\n"] {
            fs::write(&path, [&whole, tail.as_bytes()].concat()).unwrap();
            let (_, lines) = Log::open(&path, &header()).unwrap();
            assert_eq!(lines.len(), 2, "{tail:?}");
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        let broken = String::from_utf8(whole.clone()).unwrap().replacen("ended", "endde", 1);
        fs::write(&path, &broken).unwrap();
        let e = Log::open(&path, &header()).unwrap_err().to_string();
        assert!(e.contains("line 2 is not one of a study"), "{e}");
        assert_eq!(fs::read_to_string(&path).unwrap(), broken, "a refused file stays as it is");
    }

    #[test]
    fn a_torn_first_line_is_written_again_but_a_strange_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        drop(Log::open(&path, &header()).unwrap());
        let whole = fs::read(&path).unwrap();
        for kept in [0, 1, whole.len() - 1] {
            fs::write(&path, &whole[..kept]).unwrap();
            drop(Log::open(&path, &header()).unwrap());
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        for strange in ["hello", "hello\n", "{\"ended\":{\"stage\":1,\"part\":0}}\n"] {
            fs::write(&path, strange).unwrap();
            assert!(Log::open(&path, &header()).is_err(), "{strange:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), strange);
        }
    }

    #[test]
    fn another_set_up_is_refused_by_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        drop(Log::open(&path, &header()).unwrap());
        let cases = [
            (Header { version: 2, ..header() }, "its format is 1, not 2"),
            (Header { seed: 8, ..header() }, "its seed is 7, not 8"),
            (Header { label: "b".into(), ..header() }, "it is about `digits`, not `b`"),
            (Header { knobs: serde_json::json!([1]), ..header() }, "its space has other knobs"),
            (Header { sampler: serde_json::json!(1), ..header() }, "its sampler or pruner"),
        ];
        for (other, why) in cases {
            let e = Log::open(&path, &other).unwrap_err();
            assert!(e.to_string().contains(why), "{e}");
            assert!(e.hint().unwrap().to_string().starts_with("resume with the same"), "{e:?}");
        }
    }

    #[test]
    fn two_writers_are_one_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let first = Log::open(&path, &header()).unwrap();
        let e = Log::open(&path, &header()).unwrap_err().to_string();
        assert!(e.ends_with("another process is writing it"), "{e}");
        drop(first);
        Log::open(&path, &header()).unwrap();
    }
}
