//! Tables of components: a row has a name, a sentence and what it takes; a
//! name is looked up once, and a wrong one gets the list of right ones.

use crate::config::{Param, Part, Settings};
use crate::error::{Error, Result};

/// A row of a component table. `M` holds the function pointers that make one.
#[derive(Debug)]
pub struct Kind<M: 'static> {
    /// Kebab-case, as in configs and flags; the name of its file.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// What can be set on it.
    pub params: &'static [Param],
    /// How to make one.
    pub make: M,
}

/// What a row asks for, in the words of `upright list`.
pub trait Requires {
    /// The things that must be there to make one with these settings.
    fn requires(&self, settings: &Settings) -> Vec<&'static str> {
        let _ = settings;
        Vec::new()
    }
}

impl Requires for &[&str] {}

/// A row of any table, without what makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// What can be set on it.
    pub params: &'static [Param],
    /// What must be there to make one with its defaults.
    pub requires: Vec<&'static str>,
}

/// The rows of a table, without what makes them.
pub fn rows<M: Requires>(table: &'static [Kind<M>]) -> Vec<Row> {
    let usual = |kind: &'static Kind<M>| Part::new(kind.name).resolve(kind.params).ok();
    let row = |kind: &'static Kind<M>| Row {
        name: kind.name,
        about: kind.about,
        params: kind.params,
        requires: usual(kind).map(|s| kind.make.requires(&s)).unwrap_or_default(),
    };
    table.iter().map(row).collect()
}

/// The row with the given name, or an error that lists the names.
pub fn find<M>(
    kind: &'static str,
    table: &'static [Kind<M>],
    name: &str,
) -> Result<&'static Kind<M>> {
    table.iter().find(|row| row.name == name).ok_or_else(|| Error::UnknownName {
        kind,
        name: name.into(),
        known: table.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
    })
}
