//! How to read data.

use std::path::PathBuf;
use std::str::FromStr;

use upright::{Signal, SignalKind};

/// How many rows may be unreadable before reading stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowance {
    /// So many rows.
    Count(usize),
    /// So many of a hundred rows, rounded up.
    Percent(f64),
}

impl Allowance {
    /// The number of rows out of `total`.
    pub fn of(self, total: usize) -> usize {
        match self {
            Allowance::Count(n) => n,
            Allowance::Percent(p) => (p / 100.0 * total as f64).ceil() as usize,
        }
    }
}

impl FromStr for Allowance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is neither a count nor a percentage such as 1%");
        match text.strip_suffix('%') {
            None => text.parse().map(Allowance::Count).map_err(|_| bad()),
            Some(p) => match p.trim().parse() {
                Ok(p) if (0.0..=100.0).contains(&p) => Ok(Allowance::Percent(p)),
                _ => Err(bad()),
            },
        }
    }
}

/// One of the usual parts of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// For training.
    Train,
    /// For choices.
    Val,
    /// For judging.
    Test,
}

impl Split {
    /// Every split.
    pub const ALL: [Split; 3] = [Split::Train, Split::Val, Split::Test];

    /// The words that name it in folders and files, the usual one first.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Split::Train => &["train", "training"],
            Split::Val => &["val", "valid", "validation"],
            Split::Test => &["test", "t10k", "testing"],
        }
    }
}

/// What is needed of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A true class for every row.
    Labelled,
    /// Inputs; labels only where the format has them anyway.
    Inputs,
}

/// How to read data.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What is needed.
    pub want: Want,
    /// Number of the model's outputs, if known.
    pub outputs: Option<usize>,
    /// Seed of [`Options::limit`].
    pub seed: u64,
    /// What the model takes.
    pub signal: Signal,
    /// The part to read.
    pub split: Option<Split>,
    /// Patterns of which a row's name must fit one, if there are any.
    pub include: Vec<String>,
    /// Patterns of which a row's name must fit none.
    pub exclude: Vec<String>,
    /// File of labels, one per row.
    pub labels: Option<PathBuf>,
    /// File of class names in the order of the model's outputs.
    pub classes: Option<PathBuf>,
    /// Whether classes may be missing.
    pub allow_missing_classes: bool,
    /// Most rows to read.
    pub limit: Option<usize>,
    /// Whether to exchange rows and columns of idx and npz images.
    pub transpose: bool,
    /// Whether to leave EXIF orientations alone.
    pub ignore_exif: bool,
    /// Unreadable rows that are tolerated.
    pub allowance: Allowance,
}

impl Options {
    /// What the rows are.
    pub fn kind(&self) -> SignalKind {
        self.signal.kind()
    }

    /// Reads all there is; at most one of a hundred rows may be unreadable.
    pub fn new(want: Want, signal: Signal) -> Self {
        Options {
            want,
            outputs: None,
            seed: 0,
            signal,
            split: None,
            include: Vec::new(),
            exclude: Vec::new(),
            labels: None,
            classes: None,
            allow_missing_classes: false,
            limit: None,
            transpose: false,
            ignore_exif: false,
            allowance: Allowance::Percent(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_are_counts_or_percentages() {
        assert_eq!("5".parse(), Ok(Allowance::Count(5)));
        assert_eq!("1%".parse(), Ok(Allowance::Percent(1.0)));
        for bad in ["", "-1", "x", "101%", "%", "nan%"] {
            assert!(bad.parse::<Allowance>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_percentage_always_tolerates_one_bad_file() {
        assert_eq!(Allowance::Percent(1.0).of(3), 1);
        assert_eq!(Allowance::Percent(1.0).of(10_000), 100);
        assert_eq!(Allowance::Percent(0.0).of(10_000), 0);
    }
}
