//! Tables of components: a row has a name, a sentence and what it takes; a
//! name is looked up once, and a wrong one gets the list of right ones.

use crate::config::Param;
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
