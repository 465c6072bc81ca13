//! Rows that are left out, and why.

use std::fmt;

use serde::Serialize;

/// Why something cannot be used, as words to put behind its name. Where a
/// reader says it of an item, the row is skipped and all others are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Unusable {
    why: String,
    #[serde(skip)]
    hint: Option<Box<upright::Hint>>,
}

impl Unusable {
    /// What would make it usable, where the library knows.
    pub fn hint(&self) -> Option<&upright::Hint> {
        self.hint.as_deref()
    }
}

impl From<upright::Error> for Unusable {
    fn from(error: upright::Error) -> Self {
        Unusable { why: error.to_string(), hint: error.hint().map(Box::new) }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Unusable { why, hint: None }
    }
}

impl From<&str> for Unusable {
    fn from(why: &str) -> Self {
        Unusable { why: why.into(), hint: None }
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
