//! What can go wrong with a data set as a whole, and what would help. A row
//! that cannot be read is no error; see [`crate::Skipped`].

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use upright::{Signal, SignalKind};

use crate::options::Split;
use crate::skip::{Skipped, Unusable};

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a data set cannot be opened, or its reading stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to open.
    #[error("no data given")]
    NoPath,
    /// Several paths where labels are needed, which only one set has.
    #[error("{count} paths given where one labelled set is needed")]
    ManyPaths {
        /// How many.
        count: usize,
    },
    /// A folder that should hold one folder per class does not.
    #[error("no class folders in `{}` ({count} {} lie directly in it)", folder.display(), kind.plural())]
    NoClasses {
        /// The folder.
        folder: PathBuf,
        /// Items found directly in it.
        count: usize,
        /// What they are.
        kind: SignalKind,
    },
    /// A list of class names of another length than the model's outputs.
    #[error("`{}` names {listed} classes, model has {outputs} outputs", path.display())]
    ClassList {
        /// The list.
        path: PathBuf,
        /// Names in it.
        listed: usize,
        /// Outputs of the model.
        outputs: usize,
    },
    /// Labels that are numbers of outputs that the model does not have.
    #[error("labels of `{}` go up to {top}, model has {outputs} outputs (0..{})", path.display(), outputs.saturating_sub(1))]
    Beyond {
        /// The data.
        path: PathBuf,
        /// The largest label.
        top: usize,
        /// Outputs of the model.
        outputs: usize,
    },
    /// Classes that the list of class names lacks.
    #[error("`{}` has classes that the list does not name: {}", path.display(), quoted(names))]
    Unlisted {
        /// The data.
        path: PathBuf,
        /// The classes.
        names: Vec<String>,
    },
    /// Fewer or more classes than the model has outputs.
    #[error("`{}` has {found} classes, model has {outputs} outputs{}", path.display(), lacking(missing))]
    Classes {
        /// The data.
        path: PathBuf,
        /// Classes in them.
        found: usize,
        /// Outputs of the model.
        outputs: usize,
        /// Those that are missing, as far as they are known.
        missing: Vec<String>,
    },
    /// Nothing to read.
    #[error("`{}` holds 0 readable {} ({found})", path.display(), kind.plural())]
    Empty {
        /// The folder or file.
        path: PathBuf,
        /// What was looked for.
        kind: SignalKind,
        /// What is there instead.
        found: Found,
    },
    /// Data of another kind than the model takes.
    #[error("the model wants {} {} but `{}` is {}", wants.kind().plural(), shape(*wants), path.display(), gives.singular())]
    Kind {
        /// The file.
        path: PathBuf,
        /// What the model takes.
        wants: Signal,
        /// What the file holds.
        gives: SignalKind,
    },
    /// Several splits of which none was chosen.
    #[error("`{}` holds several sets: {}", path.display(), found.join(", "))]
    Splits {
        /// The folder or list.
        path: PathBuf,
        /// The sets.
        found: Vec<String>,
    },
    /// The split that was chosen is not there.
    #[error("{}: {}", folder.display(), absent(*split, *files))]
    NoSplit {
        /// The folder.
        folder: PathBuf,
        /// The split.
        split: Split,
        /// Whether files, not folders, of splits were looked for.
        files: bool,
    },
    /// No true classes where they are needed.
    #[error("{}: no labels", path.display())]
    NoLabels {
        /// The data.
        path: PathBuf,
    },
    /// Patterns that fit no name.
    #[error("{}: the patterns leave none of its {rows} rows", path.display())]
    NoMatch {
        /// The data.
        path: PathBuf,
        /// Rows there are.
        rows: usize,
        /// The name of the first.
        example: String,
    },
    /// A file whose name belongs to no format.
    #[error("{}: not a kind of data that is known by its name", path.display())]
    UnknownName {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        kind: SignalKind,
    },
    /// A file that is not what it should be.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: Unusable,
        /// What such a file should hold; may be empty.
        fix: Cow<'static, str>,
    },
    /// Something is larger than its cap.
    #[error("{what} is {size} bytes, the limit is {limit}")]
    TooLarge {
        /// What was to be read.
        what: String,
        /// Its size.
        size: u64,
        /// The cap.
        limit: u64,
    },
    /// More rows were skipped than are tolerated.
    #[error("{count} of {total} {} unreadable, first: {first}", kind.plural())]
    Skipped {
        /// What the rows are.
        kind: SignalKind,
        /// Rows skipped so far.
        count: usize,
        /// Rows in all.
        total: usize,
        /// The first of them.
        first: Skipped,
    },
    /// Items cannot be made what the model takes.
    #[error(transparent)]
    Model(#[from] upright::Error),
    /// Input failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
}

/// What is found where there should have been items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Files: how many of each ending, the most frequent first.
    Files(Vec<(usize, String)>),
    /// Something that could hold items, but holds none.
    Nothing(&'static str),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = match self {
            Found::Nothing(what) => return f.write_str(what),
            Found::Files(files) => files,
        };
        let list: Vec<String> = files.iter().take(5).map(|(n, e)| format!("{n} {e}")).collect();
        match files.iter().map(|(n, _)| n).sum() {
            0usize => f.write_str("no files"),
            1 => write!(f, "1 file: {}", list.join(", ")),
            n => write!(f, "{n} files: {}", list.join(", ")),
        }
    }
}

impl Error {
    /// A file that is not what it should be.
    pub fn unreadable(
        path: &Path,
        why: impl Into<Unusable>,
        fix: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error::Unreadable { path: path.into(), why: why.into(), fix: fix.into() }
    }

    /// An input failure on a path.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io { path: path.into(), source }
    }

    /// A stable code, `area::problem`, for scripts and documentation.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NoPath | Error::ManyPaths { .. } => "data::paths",
            Error::NoClasses { .. } => "data::no_classes",
            Error::ClassList { .. }
            | Error::Beyond { .. }
            | Error::Unlisted { .. }
            | Error::Classes { .. } => "data::classes",
            Error::Empty { .. } => "data::empty",
            Error::Kind { .. } => "input::shape",
            Error::Splits { .. } => "data::splits",
            Error::NoSplit { .. }
            | Error::NoLabels { .. }
            | Error::NoMatch { .. }
            | Error::UnknownName { .. }
            | Error::Unreadable { .. } => "data::unreadable",
            Error::TooLarge { .. } => "input::too_large",
            Error::Skipped { .. } => "data::corrupt",
            Error::Model(e) => e.code(),
            Error::Io { .. } => "io",
        }
    }
}

impl From<Error> for upright::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Model(e) => e,
            Error::Io { path, source } => upright::Error::io(path, source),
            Error::TooLarge { what, size, limit } => upright::Error::TooLarge { what, size, limit },
            Error::Skipped { kind, count, total, first } => upright::Error::Corrupt {
                what: kind.plural(),
                count,
                total,
                first: first.name,
                reason: first.why.to_string(),
            },
            Error::Unreadable { path, why, fix } => upright::Error::Data {
                what: path.display().to_string(),
                why: why.to_string(),
                hint: (!fix.is_empty()).then(|| fix.into_owned().into()),
            },
            other => {
                upright::Error::Data { what: "data".into(), why: other.to_string(), hint: None }
            }
        }
    }
}

fn absent(split: Split, files: bool) -> String {
    if files {
        "no file of that split in it".into()
    } else {
        format!("no folder `{}` in it", split.words()[0])
    }
}

fn lacking(missing: &[String]) -> String {
    if missing.is_empty() { String::new() } else { format!("; missing: {}", quoted(missing)) }
}

/// Names between backticks; the first ten, if there are many.
fn quoted(names: &[String]) -> String {
    let mut out: Vec<String> = names.iter().take(10).map(|n| format!("`{n}`")).collect();
    if names.len() > 10 {
        out.push(format!("and {} more", names.len() - 10));
    }
    out.join(", ")
}

fn shape(signal: Signal) -> String {
    let dims: Vec<String> = signal.shape().iter().map(ToString::to_string).collect();
    format!("[N,{}]", dims.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_counted_and_cut_to_five() {
        let found = |n: usize| Found::Files((0..n).map(|i| (n - i, format!(".{i}"))).collect());
        assert_eq!(found(0).to_string(), "no files");
        assert_eq!(found(1).to_string(), "1 file: 1 .0");
        assert_eq!(found(6).to_string(), "21 files: 6 .0, 5 .1, 4 .2, 3 .3, 2 .4");
    }

    #[test]
    fn too_many_skipped_rows_are_corrupt_data_to_the_library() {
        let first = Skipped { row: 3, name: "a.png".into(), why: "empty file".into() };
        let error = Error::Skipped { kind: SignalKind::Image, count: 2, total: 9, first };
        let text = error.to_string();
        let library = upright::Error::from(error);
        assert_eq!((library.code(), library.to_string()), ("data::corrupt", text));
    }
}
