//! How the rows of a part are written.

mod parquet;

use std::fmt;
use std::str::FromStr;

use crate::row::{Row, Table};

/// A format of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Columns, compressed.
    #[default]
    Parquet,
    /// A header, then a line of comma-separated fields per row.
    Csv,
    /// A JSON object per line.
    Jsonl,
}

impl Format {
    /// Every format, the usual one first.
    pub const ALL: [Format; 3] = [Format::Parquet, Format::Csv, Format::Jsonl];

    /// Its name, and the ending of its files.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
        }
    }

    /// Rows as the bytes of a file: the same rows, the same bytes.
    pub fn encode(self, table: &Table, rows: &[Row]) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        match self {
            Format::Parquet => {
                return parquet::encode(table, rows).map_err(std::io::Error::other);
            }
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(&mut out);
                for row in rows {
                    writer.serialize(table.record(row)).map_err(std::io::Error::other)?;
                }
                writer.flush()?;
            }
            Format::Jsonl => {
                for row in rows {
                    serde_json::to_writer(&mut out, &table.record(row))?;
                    out.push(b'\n');
                }
            }
        }
        Ok(out)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Format::ALL.into_iter().find(|f| f.name() == text);
        found.ok_or_else(|| format!("`{text}` is none of parquet, csv and jsonl"))
    }
}
