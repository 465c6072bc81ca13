//! What can go wrong with a job as a whole, and what would help.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a job cannot start or go on. Whatever was journalled before is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder that holds something else than a job.
    #[error("`{}` is not the folder of a job: {why}", folder.display())]
    NotAJob {
        /// The folder.
        folder: PathBuf,
        /// What is there.
        why: String,
    },
    /// A job that was begun with something else.
    #[error("`{}` was begun with {}", folder.display(), differences(changes))]
    Differs {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        changes: Vec<Change>,
    },
    /// Another run works in the folder.
    #[error("another run is at work in `{}`", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// Two items of one id.
    #[error("the id `{id}` is that of items {} and {}, counted from 0", rows[0], rows[1])]
    Duplicate {
        /// The id.
        id: String,
        /// The two items.
        rows: [usize; 2],
    },
    /// More items without an answer than tolerated.
    #[error("{count} of {total} items cannot be read so far")]
    Unread {
        /// How many.
        count: usize,
        /// Items of the job, or of the shard.
        total: usize,
    },
    /// A setting that makes no sense.
    #[error("{0}")]
    Setting(&'static str),
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] upright_data::Error),
    /// The library refused.
    #[error(transparent)]
    Library(#[from] upright::Error),
    /// Reading or writing the folder failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

/// Something that a job was begun with and that is another now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it is.
    pub what: String,
    /// As it was.
    pub was: String,
    /// As it is now.
    pub is: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "another {} ({}, now {})", self.what, self.was, self.is)
    }
}

/// What would help against an [`Error`]. Front ends put it into their own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Write into another folder.
    OtherFolder,
    /// Begin as before, or write into another folder.
    AsBefore,
    /// Wait for the other run, or write into another folder.
    Wait,
    /// Give every item an id of its own.
    UniqueIds,
    /// Repair the items, or tolerate more.
    Tolerate,
    /// Make room, then run the same again: finished parts are kept.
    MakeRoom,
    /// Make the folder writable, then run the same again.
    MakeWritable,
    /// Run the same again: finished parts are kept.
    Again,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hint::OtherFolder => "write into a new or empty folder",
            Hint::AsBefore => "run it as it was begun, or write into another folder",
            Hint::Wait => "wait until it ends, or write into another folder",
            Hint::UniqueIds => "give every item an id of its own",
            Hint::Tolerate => "repair or remove them, or tolerate more; finished parts are kept",
            Hint::MakeRoom => "make room, then run the same again: finished parts are kept",
            Hint::MakeWritable => {
                "make it writable, then run the same again: finished parts are kept"
            }
            Hint::Again => "run the same again: finished parts are kept",
        })
    }
}

impl Error {
    /// A failure on a path.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io { path: path.into(), source }
    }

    /// A stable code, `area::problem`.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NotAJob { .. } => "job::folder",
            Error::Differs { .. } => "job::differs",
            Error::Busy { .. } => "job::busy",
            Error::Duplicate { .. } => "job::duplicate",
            Error::Unread { .. } => "data::corrupt",
            Error::Setting(_) => "config::setting",
            Error::Data(e) => e.code(),
            Error::Library(e) => e.code(),
            Error::Io { .. } => "io",
        }
    }

    /// What would help; errors of the data and the library have hints of their own.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Error::NotAJob { .. } => Hint::OtherFolder,
            Error::Differs { .. } => Hint::AsBefore,
            Error::Busy { .. } => Hint::Wait,
            Error::Duplicate { .. } => Hint::UniqueIds,
            Error::Unread { .. } => Hint::Tolerate,
            Error::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Hint::MakeRoom,
                ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Hint::MakeWritable,
                _ => Hint::Again,
            },
            Error::Setting(_) | Error::Data(_) | Error::Library(_) => return None,
        })
    }
}

fn differences(changes: &[Change]) -> String {
    let mut words: Vec<String> = changes.iter().take(5).map(ToString::to_string).collect();
    if changes.len() > 5 {
        words.push(format!("{} more", changes.len() - 5));
    }
    words.join(", ")
}
