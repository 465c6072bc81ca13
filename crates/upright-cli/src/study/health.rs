//! The state of data: what could not be read, what appears twice, what is empty.

use std::collections::BTreeMap;

use upright::Batch;
use upright_data::Source;

use super::chained;

/// The state of one set of data.
#[derive(Debug, Default)]
pub struct Health {
    /// Rows there are.
    pub rows: usize,
    /// Rows that could be read.
    pub read: usize,
    /// Rows without a label, which are left out.
    pub unlabelled: usize,
    /// Rows whose content another row had already.
    pub duplicates: usize,
    /// Contents that appear with more than one label.
    pub contradictions: usize,
    /// Rows of one single value.
    pub blank: usize,
    /// Rows whose energy is not a number.
    pub not_numbers: usize,
    /// Labelled rows of each class.
    pub classes: BTreeMap<u32, usize>,
    /// What reading the data had to say.
    pub notes: Vec<String>,
    /// A fingerprint of the prepared inputs and labels, in order.
    pub fingerprint: u64,
    contents: BTreeMap<u64, Vec<Option<u32>>>,
}

impl Health {
    /// Looks at some rows that were read.
    pub fn add(&mut self, batch: &Batch, rows: &[usize], labels: &[Option<u32>]) {
        for (i, (_, label)) in rows.iter().zip(labels).enumerate() {
            let item = batch.item(i);
            self.read += 1;
            match label {
                Some(label) => *self.classes.entry(*label).or_default() += 1,
                None => self.unlabelled += 1,
            }
            self.blank += usize::from(item.iter().all(|v| v.total_cmp(&item[0]).is_eq()));
            let content = chained(0, item);
            let word = u64::from(label.map_or(u32::MAX, |l| l));
            self.fingerprint = chained(self.fingerprint ^ content.rotate_left(17) ^ word, &[]);
            self.contents.entry(content).or_default().push(*label);
        }
    }

    /// Counts what takes all rows, and asks the reader what it noticed.
    pub fn finish(&mut self, source: Option<&Source>, rows: usize) {
        self.rows = rows;
        self.duplicates = self.read - self.contents.len();
        let many = |labels: &&Vec<Option<u32>>| labels.iter().any(|l| *l != labels[0]);
        self.contradictions = self.contents.values().filter(many).count();
        self.contents.clear();
        let notes = source.map(Source::notes).unwrap_or_default();
        self.notes = notes.into_iter().map(|n| n.to_string()).collect();
    }

    /// What was counted, in words.
    pub fn counts(&self) -> [(&'static str, usize); 7] {
        [
            ("rows", self.rows),
            ("unreadable", self.rows - self.read),
            ("without a label (left out)", self.unlabelled),
            ("exact duplicates of an earlier row", self.duplicates),
            ("contents with more than one label", self.contradictions),
            ("blank (one value everywhere)", self.blank),
            ("energy is not a number", self.not_numbers),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use upright::Signal;

    /// Four items: two equal ones with different labels, a blank one, and another.
    #[test]
    fn duplicates_contradictions_and_blanks_are_counted() {
        let data = vec![0.0, 1.0, 0.0, 1.0, 0.5, 0.5, 1.0, 0.0];
        let batch = Batch::new(Signal::image(1, 1, 2), data).unwrap();
        let mut health = Health::default();
        health.add(&batch, &[0, 1, 2, 4], &[Some(1), Some(2), Some(1), None]);
        health.finish(None, 5);
        let counts: Vec<usize> = health.counts().iter().map(|c| c.1).collect();
        assert_eq!(counts, [5, 1, 1, 1, 1, 1, 0]);
        assert_eq!(health.classes, BTreeMap::from([(1, 2), (2, 1)]));
    }

    #[test]
    fn the_fingerprint_depends_on_content_labels_and_order() {
        let print = |items: &[f32], labels: &[Option<u32>]| {
            let batch = Batch::new(Signal::image(1, 1, 1), items.to_vec()).unwrap();
            let mut health = Health::default();
            health.add(&batch, &[0, 1], labels);
            health.fingerprint
        };
        let all = [
            print(&[0.1, 0.2], &[Some(0), Some(1)]),
            print(&[0.2, 0.1], &[Some(0), Some(1)]),
            print(&[0.1, 0.2], &[Some(1), Some(0)]),
            print(&[0.1, 0.3], &[Some(0), Some(1)]),
        ];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])), "{all:?}");
    }
}
