//! Rows that are left out, and why.

use std::fmt;

use serde::Serialize;

/// Why something cannot be used, as words to put behind its name. Where a
/// reader says it of an item, the row is skipped and all others are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Unusable(String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Unusable(why)
    }
}

impl From<&str> for Unusable {
    fn from(why: &str) -> Self {
        Unusable(why.into())
    }
}

/// A row that could not be read and was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Which row.
    pub row: usize,
    /// Its file, or file and number inside it.
    #[serde(rename = "path")]
    pub name: String,
    /// What is wrong with it.
    #[serde(rename = "reason")]
    pub why: Unusable,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.name, self.why)
    }
}
