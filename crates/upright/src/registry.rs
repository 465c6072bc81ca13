//! Tables of components: a row has a name, a sentence and what it takes; a
//! name is looked up once, and a wrong one gets the list of right ones.

use std::sync::{PoisonError, RwLock};

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
pub fn rows<M: Requires + 'static>(table: impl IntoIterator<Item = &'static Kind<M>>) -> Vec<Row> {
    let usual = |kind: &'static Kind<M>| Part::new(kind.name).resolve(kind.params).ok();
    let row = |kind: &'static Kind<M>| Row {
        name: kind.name,
        about: kind.about,
        params: kind.params,
        requires: usual(kind).map(|s| kind.make.requires(&s)).unwrap_or_default(),
    };
    table.into_iter().map(row).collect()
}

/// The row with the given name, or an error that lists the names.
pub fn find<M>(
    kind: &'static str,
    table: &'static [Kind<M>],
    name: &str,
) -> Result<&'static Kind<M>> {
    among(kind, &table.iter().collect::<Vec<_>>(), name)
}

fn among<M>(kind: &'static str, rows: &[&'static Kind<M>], name: &str) -> Result<&'static Kind<M>> {
    rows.iter().copied().find(|row| row.name == name).ok_or_else(|| Error::UnknownName {
        kind,
        name: name.into(),
        known: rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
    })
}

/// A table that programs may add rows of their own to.
#[derive(Debug)]
pub(crate) struct Open<M: 'static> {
    kind: &'static str,
    table: &'static [Kind<M>],
    added: RwLock<Vec<&'static Kind<M>>>,
}

impl<M> Open<M> {
    /// A table with its built-in rows.
    pub(crate) const fn new(kind: &'static str, table: &'static [Kind<M>]) -> Self {
        Open { kind, table, added: RwLock::new(Vec::new()) }
    }

    /// All rows, the built-in ones first.
    pub(crate) fn rows(&self) -> Vec<&'static Kind<M>> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        self.table.iter().chain(added.iter().copied()).collect()
    }

    /// The row with the given name, or an error that lists the names.
    pub(crate) fn find(&self, name: &str) -> Result<&'static Kind<M>> {
        among(self.kind, &self.rows(), name)
    }

    /// Adds a row, whose name must be new; adding the same row again does nothing.
    pub(crate) fn add(&self, row: &'static Kind<M>) -> Result<()> {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        if added.iter().any(|old| std::ptr::eq(*old, row)) {
            return Ok(());
        }
        if self.table.iter().chain(added.iter().copied()).any(|old| old.name == row.name) {
            return Err(Error::NameTaken { kind: self.kind, name: row.name.into() });
        }
        added.push(row);
        Ok(())
    }
}
