//! Some rows of a data set.

use std::collections::BTreeMap;
use std::sync::Arc;

use upright::{Batch, Dataset, Loaded, Signal};

/// Some rows of a data set.
#[derive(Clone)]
pub(crate) struct Rows {
    data: Arc<dyn Dataset + Send>,
    rows: Vec<usize>,
}

impl Rows {
    pub(super) fn all(data: impl Dataset + Send + 'static) -> Self {
        let rows = (0..data.len()).collect();
        Rows { data: Arc::new(data), rows }
    }

    /// Every second row, from the first or from the second on.
    pub(super) fn half(&self, odd: usize) -> Self {
        Rows {
            data: self.data.clone(),
            rows: self.rows.iter().copied().skip(odd).step_by(2).collect(),
        }
    }

    /// The rows that a function of their number, counted within their class, chooses.
    pub(super) fn within_class(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut seen: BTreeMap<Option<u32>, usize> = BTreeMap::new();
        let chosen = |&row: &usize| {
            let at = seen.entry(self.data.label(row)).or_default();
            *at += 1;
            keep(*at - 1)
        };
        Rows { data: self.data.clone(), rows: self.rows.iter().copied().filter(chosen).collect() }
    }

    /// At most so many, spread evenly.
    pub(crate) fn some(&self, most: usize) -> Self {
        let n = self.rows.len();
        let taken = most.min(n);
        let rows = (0..taken).map(|i| self.rows[i * n / taken]).collect();
        Rows { data: self.data.clone(), rows }
    }

    /// Those that are not among some others.
    pub(crate) fn without(&self, others: &Rows) -> Self {
        let taken: std::collections::BTreeSet<usize> = others.rows.iter().copied().collect();
        let left = self.rows.iter().copied().filter(|row| !taken.contains(row));
        Rows { data: self.data.clone(), rows: left.collect() }
    }

    /// All of them, with their classes.
    pub(crate) fn load(&self) -> upright::Result<(Batch<'static>, Vec<u32>)> {
        let Loaded { batch, rows } = self.data.read(&self.rows)?;
        Ok((batch, rows.iter().filter_map(|&r| self.data.label(r)).collect()))
    }
}

impl Dataset for Rows {
    fn signal(&self) -> Signal {
        self.data.signal()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn label(&self, row: usize) -> Option<u32> {
        self.data.label(*self.rows.get(row)?)
    }

    fn read(&self, rows: &[usize]) -> upright::Result<Loaded> {
        let rows: Vec<usize> = rows.iter().copied().filter(|&r| r < self.rows.len()).collect();
        let inner: Vec<usize> = rows.iter().map(|&r| self.rows[r]).collect();
        let Loaded { batch, rows: read } = self.data.read(&inner)?;
        // What could not be read is left out; the rest keeps its order.
        let mut left = read.iter().peekable();
        let kept = rows
            .into_iter()
            .zip(inner)
            .filter(|(_, inner)| left.next_if(|r| *r == inner).is_some())
            .map(|(row, _)| row);
        Ok(Loaded { batch, rows: kept.collect() })
    }
}
/// Rows whose classes are told apart from them.
pub(super) struct Labelled {
    pub(super) rows: Rows,
    pub(super) labels: Vec<u32>,
}

impl Dataset for Labelled {
    fn signal(&self) -> Signal {
        self.rows.signal()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn label(&self, row: usize) -> Option<u32> {
        self.labels.get(row).copied()
    }

    fn read(&self, rows: &[usize]) -> upright::Result<Loaded> {
        self.rows.read(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use upright::Samples;

    fn numbered(labels: Vec<u32>) -> Rows {
        let signal = Signal::image(1, 1, 1);
        let data = (0..labels.len()).map(|i| i as f32).collect();
        Rows::all(Samples::labelled(Batch::new(signal, data).unwrap(), labels).unwrap())
    }

    fn read(rows: &Rows) -> Vec<f32> {
        rows.load().unwrap().0.data().to_vec()
    }

    #[test]
    fn odd_and_even_rows_share_nothing() {
        let all = numbered(vec![0; 7]);
        assert_eq!(read(&all.half(1)), [1.0, 3.0, 5.0]);
        assert_eq!(read(&all.half(0)), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(read(&all.half(0).some(2)), [0.0, 4.0]);
        assert_eq!(read(&all.half(0).without(&all.some(3))), [6.0]);
        assert_eq!(all.half(0).read(&[2, 9, 0]).unwrap().rows, [2, 0]);
    }

    #[test]
    fn rows_are_counted_within_their_class() {
        let all = numbered(vec![3, 3, 1, 3, 1]);
        assert_eq!(read(&all.within_class(|at| at < 1)), [0.0, 2.0]);
        assert_eq!(read(&all.within_class(|at| at == 2)), [3.0]);
    }
}
