//! Data on the command line: flags that say how to read it, and a list of the
//! rows that could not be read.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use upright::Signal;
use upright_data::{Allowance, Options, Skipped, Split, Want};

use crate::report::Result;
use crate::rows::{Format, Rows};

/// Flags of every command that reads data.
#[derive(Debug, Clone, PartialEq, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags are what they are")]
#[command(next_help_heading = "Data")]
pub struct DataArgs {
    /// Which part of the data to read, where there are several
    #[arg(long, value_parser = split())]
    pub split: Option<Split>,
    /// Read only rows whose names, as `predict` writes them, fit this pattern (`*`, `?`, `[a-z]`);
    /// may be given several times
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Leave out rows whose names fit this pattern; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// True classes of all rows in order: .csv with a column `label`, .txt, .npy or idx1
    /// [default: class folders, or labels stored with or beside the data]
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Class names, one per line, in the order of the model's outputs [default: sorted names]
    #[arg(long, value_name = "FILE")]
    pub classes: Option<PathBuf>,
    /// Accept data that lack some of the model's classes
    #[arg(long)]
    pub allow_missing_classes: bool,
    /// Read at most so many rows, drawn with the seed
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Exchange rows and columns of idx and npz images (the official EMNIST files need it)
    #[arg(long)]
    pub transpose: bool,
    /// Do not turn images as their EXIF orientation asks
    #[arg(long)]
    pub ignore_exif: bool,
    /// Stop at the first unreadable input
    #[arg(long)]
    pub strict: bool,
    /// How many inputs may be unreadable: a count or a percentage [default: 1%, of `predict` all]
    #[arg(long, value_name = "N|N%")]
    pub max_errors: Option<Allowance>,
}

/// Reads a split by its usual word.
pub fn split() -> impl TypedValueParser<Value = Split> {
    let value = |split: Split| {
        PossibleValue::new(split.words()[0]).help(match split {
            Split::Train => "For training",
            Split::Val => "For choices",
            Split::Test => "For judging",
        })
    };
    PossibleValuesParser::new(Split::ALL.map(value)).map(|word| {
        let named = |split: &Split| split.words()[0] == word;
        Split::ALL.into_iter().find(named).unwrap_or(Split::Test)
    })
}

impl DataArgs {
    /// How many inputs may be unreadable, if anyone asked.
    pub fn tolerated(&self) -> Option<Allowance> {
        if self.strict { Some(Allowance::Count(0)) } else { self.max_errors }
    }

    /// Joins the flags with what the command knows.
    pub fn options(
        &self,
        want: Want,
        signal: Signal,
        outputs: Option<usize>,
        seed: u64,
    ) -> Options {
        Options {
            want,
            outputs,
            seed,
            signal,
            split: self.split,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            labels: self.labels.clone(),
            classes: self.classes.clone(),
            allow_missing_classes: self.allow_missing_classes,
            limit: self.limit,
            transpose: self.transpose,
            ignore_exif: self.ignore_exif,
            allowance: self.tolerated().unwrap_or(Allowance::Percent(1.0)),
        }
    }
}

/// Writes skipped rows as JSON lines; nothing if there are none.
pub fn write_skipped(skipped: &[Skipped], path: &Path) -> Result<()> {
    if skipped.is_empty() {
        return Ok(());
    }
    let mut rows = Rows::open(Some(path), Format::Jsonl)?;
    skipped.iter().try_for_each(|row| rows.write(row))?;
    rows.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        data: DataArgs,
    }

    #[test]
    fn every_split_has_its_word() {
        for split in Split::ALL {
            let flags = Flags::parse_from(["x", "--split", split.words()[0]]);
            assert_eq!(flags.data.split, Some(split));
        }
        assert!(Flags::try_parse_from(["x", "--split", "training"]).is_err());
    }

    #[test]
    fn flags_left_out_are_the_defaults_of_the_readers() {
        let signal = Signal::image(1, 1, 1);
        let options = Flags::parse_from(["x"]).data.options(Want::Inputs, signal, None, 0);
        assert_eq!(options, Options::new(Want::Inputs, signal));
    }

    #[test]
    fn skipped_rows_are_written_one_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("errors.jsonl");
        write_skipped(&[], &path).unwrap();
        assert!(!path.exists());
        let skipped = |row| Skipped { row, name: format!("n/{row}.png"), why: "empty file".into() };
        write_skipped(&[skipped(9), skipped(19)], &path).unwrap();
        assert_eq!(
            std::fs::read_to_string(path).unwrap().lines().nth(1),
            Some(r#"{"row":19,"path":"n/19.png","reason":"empty file"}"#)
        );
    }
}
