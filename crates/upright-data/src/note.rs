//! What is worth saying about data that can be read all the same.

use std::fmt;
use std::path::PathBuf;

use upright::SignalKind;

use crate::error::Found;
use crate::skip::Skipped;

/// An observation, for front ends to put into their own words with what can be
/// done about it; `Display` says what was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// idx images whose file name is one of those that are stored transposed.
    Transposed {
        /// The file.
        path: PathBuf,
    },
    /// Floating-point images beyond 0..1.
    Range {
        /// The file.
        path: PathBuf,
        /// The smallest value looked at.
        low: f32,
        /// The largest value looked at.
        high: f32,
    },
    /// Images whose files ask for them to be turned.
    Exif {
        /// How many.
        count: usize,
        /// Of how many that were read.
        read: usize,
        /// Whether they were turned.
        applied: bool,
    },
    /// Clouds some of whose points were repeated, as the model takes more.
    FewPoints {
        /// How many.
        count: usize,
        /// Of how many that were read.
        read: usize,
    },
    /// Sketches some of whose strokes were left out, as the model takes fewer points.
    ManyStrokes {
        /// How many.
        count: usize,
        /// Of how many that were read.
        read: usize,
    },
    /// Files in a folder that are of no known format.
    Unknown {
        /// How many of each ending.
        files: Found,
    },
    /// Rows that were skipped.
    Skipped {
        /// What the rows are.
        kind: SignalKind,
        /// How many.
        count: usize,
        /// Rows in all.
        total: usize,
        /// The first of them.
        first: Skipped,
    },
}

impl Note {
    /// A stable code, `area::problem`.
    pub fn code(&self) -> &'static str {
        match self {
            Note::Transposed { .. } => "data::transposed",
            Note::Range { .. } => "preprocess::range",
            Note::Exif { .. } => "exif::present",
            Note::FewPoints { .. } => "cloud::few",
            Note::ManyStrokes { .. } => "strokes::many",
            Note::Unknown { .. } => "data::unknown",
            Note::Skipped { .. } => "data::corrupt",
        }
    }

    /// Whether results are concerned.
    pub fn is_warning(&self) -> bool {
        matches!(self, Note::Range { .. } | Note::Skipped { .. })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Transposed { path } => write!(
                f,
                "the official EMNIST files, such as `{}` may be, are stored transposed",
                path.display()
            ),
            Note::Range { path, low, high } => {
                write!(f, "floats in `{}` span {low}..{high}, not 0..1", path.display())
            }
            Note::Exif { count, read, applied } => {
                let what = if *applied { "applied before everything" } else { "ignored" };
                write!(
                    f,
                    "{count} of {read} {} carry an EXIF rotation; {what}",
                    SignalKind::Image.plural()
                )
            }
            Note::FewPoints { count, read } => write!(
                f,
                "{count} of {read} {} have fewer points than the model takes; some are repeated",
                SignalKind::Cloud.plural()
            ),
            Note::ManyStrokes { count, read } => write!(
                f,
                "{count} of {read} {} have more strokes than the model has room for; their \
                 shortest are left out",
                SignalKind::Strokes.plural()
            ),
            Note::Unknown { files } => write!(f, "left out, of unknown formats: {files}"),
            Note::Skipped { kind, count, total, first } => {
                write!(f, "{count} of {total} {} unreadable, first: {first}", kind.plural())
            }
        }
    }
}
