//! Several sets of items one after the other, and chosen rows of them.

use crate::item::{Decoded, Fetched, Items, Set};
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

    fn fetch<'a>(&'a self, rows: &[usize]) -> Vec<Fetched<'a>> {
        let part = |row: usize| self.starts.partition_point(|&s| s <= row) - 1;
        let of_one = rows.chunk_by(|&a, &b| part(a) == part(b));
        let fetch = |rows: &[usize]| {
            let part = part(rows[0]);
            let rows: Vec<usize> = rows.iter().map(|row| row - self.starts[part]).collect();
            self.parts[part].fetch(&rows)
        };
        of_one.flat_map(fetch).collect()
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes()).sum()
    }
}

/// Joins sets; labels stay only if all sets have labels of one kind.
pub(crate) fn join(sets: Vec<Set>) -> Set {
    let mut out = Chain { parts: Vec::new(), starts: Vec::new(), len: 0 };
    let (mut names, mut numbers, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut bytes = 0;
    for set in sets.into_iter().filter(|s| s.items.len() > 0) {
        out.starts.push(out.len);
        out.len += set.items.len();
        out.parts.push(set.items);
        notes.extend(set.notes);
        bytes += set.bytes;
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
    Set { items: Box::new(out), labels, notes, bytes }
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

    fn fetch<'a>(&'a self, rows: &[usize]) -> Vec<Fetched<'a>> {
        let places: Vec<usize> =
            rows.iter().filter_map(|&row| self.rows[row].as_ref().ok().copied()).collect();
        let mut found = self.from.fetch(&places).into_iter();
        let fetched = |&row: &usize| match &self.rows[row] {
            Ok(_) => found.next(),
            Err(_) => None,
        };
        let none = || Box::new(|| Err("there is no such row".into())) as Fetched<'a>;
        rows.iter().map(fetched).map(|f| f.unwrap_or_else(none)).collect()
    }

    fn bytes(&self) -> u64 {
        self.from.bytes()
    }
}
