//! Several sets of items one after the other, and chosen rows of them.

use crate::item::{Decoded, Items, Set};
use crate::labels::Labels;
use crate::skip::Unusable;

/// Sets in a row.
struct Chain {
    parts: Vec<Box<dyn Items>>,
    /// The first row of each part.
    starts: Vec<usize>,
    len: usize,
}

impl Chain {
    fn place(&self, row: usize) -> (&dyn Items, usize) {
        let part = self.starts.partition_point(|&s| s <= row) - 1;
        (&*self.parts[part], row - self.starts[part])
    }
}

impl Items for Chain {
    fn len(&self) -> usize {
        self.len
    }

    fn name(&self, row: usize) -> String {
        let (part, row) = self.place(row);
        part.name(row)
    }

    fn item(&self, row: usize) -> Result<Decoded, Unusable> {
        let (part, row) = self.place(row);
        part.item(row)
    }
}

/// Joins sets; labels stay only if all sets have labels of one kind.
pub(crate) fn join(sets: Vec<Set>) -> Set {
    let mut out = Chain { parts: Vec::new(), starts: Vec::new(), len: 0 };
    let (mut names, mut numbers, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for set in sets.into_iter().filter(|s| s.items.len() > 0) {
        out.starts.push(out.len);
        out.len += set.items.len();
        out.parts.push(set.items);
        notes.extend(set.notes);
        match set.labels {
            Labels::None => {}
            Labels::Names(n) => names.extend(n),
            Labels::Numbers(n) => numbers.extend(n),
        }
    }
    let labels = match out.len {
        0 => Labels::None,
        n if n == names.len() => Labels::Names(names),
        n if n == numbers.len() => Labels::Numbers(numbers),
        _ => Labels::None,
    };
    Set { items: Box::new(out), labels, notes }
}

/// Rows of a set, in any order; rows that do not exist are unreadable.
pub(crate) struct Chosen {
    /// Where they are.
    pub(crate) from: Box<dyn Items>,
    /// Which they are, or what to call one that does not exist.
    pub(crate) rows: Vec<Result<usize, String>>,
}

impl Items for Chosen {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn name(&self, row: usize) -> String {
        match &self.rows[row] {
            Ok(row) => self.from.name(*row),
            Err(name) => name.clone(),
        }
    }

    fn item(&self, row: usize) -> Result<Decoded, Unusable> {
        match &self.rows[row] {
            Ok(row) => self.from.item(*row),
            Err(_) => Err("there is no such row".into()),
        }
    }
}
