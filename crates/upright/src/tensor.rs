//! [`Batch`]: signals to classify; [`Matrix`]: logits and features. Both are
//! contiguous row-major `f32` data whose length always equals its shape.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The kind and size of one item of a [`Batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Signal {
    /// An image: channel-major, then rows, then columns; values in 0..1 before normalisation.
    Image {
        /// Channels: 1 grey, 3 colour.
        channels: usize,
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// A stroke sequence: rows of (x, y, pen), in absolute coordinates. A pen of 1 starts a
    /// stroke, 0 continues it; -1 fills up the end and its x and y mean nothing.
    Strokes {
        /// Points per sequence, padding included.
        length: usize,
    },
    /// A point cloud: rows of (x, y, z).
    Cloud {
        /// Points.
        points: usize,
    },
}

/// What a [`Signal`] is, whatever its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignalKind {
    /// An image.
    Image,
    /// Stroke sequences.
    Strokes,
    /// A point cloud.
    Cloud,
}

impl SignalKind {
    /// Every kind.
    #[doc(hidden)]
    pub const ALL: [SignalKind; 3] = [SignalKind::Image, SignalKind::Strokes, SignalKind::Cloud];

    /// What many are called in messages.
    #[doc(hidden)]
    pub fn plural(self) -> &'static str {
        match self {
            SignalKind::Image => "images",
            SignalKind::Strokes => "sketches",
            SignalKind::Cloud => "clouds",
        }
    }

    /// What one is called in messages, with its article.
    #[doc(hidden)]
    pub fn singular(self) -> &'static str {
        match self {
            SignalKind::Image => "an image",
            SignalKind::Strokes => "a sketch",
            SignalKind::Cloud => "a point cloud",
        }
    }

    /// The kind a word names: `image`, `strokes`, `cloud` and what else they are called.
    #[doc(hidden)]
    pub fn parse(word: &str) -> Result<Self> {
        match word.trim().to_lowercase().as_str() {
            "image" | "images" | "picture" | "pictures" => Ok(SignalKind::Image),
            "stroke" | "strokes" | "sketch" | "sketches" => Ok(SignalKind::Strokes),
            "cloud" | "clouds" | "point-cloud" | "point-clouds" | "points" => Ok(SignalKind::Cloud),
            _ => Err(Error::UnknownName {
                kind: "signal",
                name: word.trim().into(),
                known: "image, strokes, cloud".into(),
            }),
        }
    }
}

impl std::fmt::Display for SignalKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.plural())
    }
}

impl Signal {
    /// What it is, whatever its size.
    pub fn kind(&self) -> SignalKind {
        match self {
            Signal::Image { .. } => SignalKind::Image,
            Signal::Strokes { .. } => SignalKind::Strokes,
            Signal::Cloud { .. } => SignalKind::Cloud,
        }
    }

    /// An image of the given size.
    pub fn image(channels: usize, height: usize, width: usize) -> Self {
        Signal::Image { channels, height, width }
    }

    /// Whether an item is so large, as a colour image of 100 x 100, that a network takes its
    /// time over it.
    pub(crate) fn large(&self) -> bool {
        self.size() >= 30_000
    }

    /// Numbers in one item.
    pub fn size(&self) -> usize {
        match *self {
            Signal::Image { channels, height, width } => channels * height * width,
            Signal::Strokes { length } => length * 3,
            Signal::Cloud { points } => points * 3,
        }
    }

    /// The shape of one item, outermost dimension first.
    pub fn shape(&self) -> Vec<usize> {
        match *self {
            Signal::Image { channels, height, width } => vec![channels, height, width],
            Signal::Strokes { length } => vec![length, 3],
            Signal::Cloud { points } => vec![points, 3],
        }
    }
}

/// Signals of one kind and size, stored one after the other, owned or borrowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch<'a> {
    signal: Signal,
    data: Cow<'a, [f32]>,
}

impl Batch<'static> {
    /// Takes over data whose length must be a multiple of the signal's size.
    pub fn new(signal: Signal, data: Vec<f32>) -> Result<Self> {
        Batch::checked(signal, Cow::Owned(data))
    }

    /// A batch without items, with room for some.
    pub(crate) fn with_capacity(signal: Signal, items: usize) -> Self {
        Batch { signal, data: Cow::Owned(Vec::with_capacity(items * signal.size())) }
    }

    /// A batch of `items` items that are zero everywhere.
    pub(crate) fn zeros(signal: Signal, items: usize) -> Self {
        Batch { signal, data: Cow::Owned(vec![0.0; items * signal.size()]) }
    }
}

impl<'a> Batch<'a> {
    /// Reads data where it lies; its length must be a multiple of the signal's size.
    pub fn borrowed(signal: Signal, data: &'a [f32]) -> Result<Self> {
        Batch::checked(signal, Cow::Borrowed(data))
    }

    fn checked(signal: Signal, data: Cow<'a, [f32]>) -> Result<Self> {
        let size = signal.size();
        if size == 0 || !data.len().is_multiple_of(size) {
            return Err(Error::shape(
                format!("batch of {:?}", signal.shape()),
                format!("a multiple of {size} numbers"),
                data.len(),
            ));
        }
        Ok(Batch { signal, data })
    }

    /// What one item is.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        if self.data.is_empty() { 0 } else { self.data.len() / self.signal.size() }
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// All numbers, item after item.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All numbers, to be changed in place; borrowed ones are copied first.
    pub(crate) fn data_mut(&mut self) -> &mut [f32] {
        self.data.to_mut()
    }

    /// The same items, owned; borrowed ones are copied.
    pub fn into_owned(self) -> Batch<'static> {
        Batch { signal: self.signal, data: Cow::Owned(self.data.into_owned()) }
    }

    /// The numbers of item `i`. Panics if there is no such item.
    pub fn item(&self, i: usize) -> &[f32] {
        let n = self.signal.size();
        &self.data[i * n..(i + 1) * n]
    }

    /// Some successive items, where they lie. Panics on items out of range.
    pub(crate) fn slice(&self, items: Range<usize>) -> Batch<'_> {
        let n = self.signal.size();
        Batch { signal: self.signal, data: self.data[items.start * n..items.end * n].into() }
    }

    /// Appends an item.
    pub fn push(&mut self, item: &[f32]) -> Result<()> {
        if item.len() != self.signal.size() {
            return Err(Error::shape("batch item", self.signal.shape(), item.len()));
        }
        self.data.to_mut().extend_from_slice(item);
        Ok(())
    }

    /// The items at the given indices, in that order. Panics on an index out of range.
    #[must_use]
    pub fn select(&self, items: &[usize]) -> Batch<'static> {
        let mut data = Vec::with_capacity(items.len() * self.signal.size());
        for &i in items {
            data.extend_from_slice(self.item(i));
        }
        Batch { signal: self.signal, data: Cow::Owned(data) }
    }
}

/// A matrix of `rows` vectors of length `cols`. Clones share their numbers until one of them
/// is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Arc<Vec<f32>>,
}

impl Matrix {
    /// Wraps row-major data of exactly `rows * cols` numbers.
    pub fn new(rows: usize, cols: usize, data: Vec<f32>) -> Result<Self> {
        if rows.checked_mul(cols) != Some(data.len()) {
            return Err(Error::shape("matrix", (rows, cols), data.len()));
        }
        Ok(Matrix { rows, cols, data: data.into() })
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Matrix { rows, cols, data: vec![0.0; rows * cols].into() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All numbers, row after row.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All numbers, to be changed in place; numbers that clones share are copied first.
    #[doc(hidden)]
    pub fn data_mut(&mut self) -> &mut [f32] {
        Arc::make_mut(&mut self.data).as_mut_slice()
    }

    /// Row `i`. Panics if there is no such row.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, to be changed in place. Panics if there is no such row.
    pub fn row_mut(&mut self, i: usize) -> &mut [f32] {
        let cols = self.cols;
        &mut self.data_mut()[i * cols..(i + 1) * cols]
    }

    /// The rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        (0..self.rows).map(|i| self.row(i))
    }

    /// The rows at the given indices, in that order. Panics on an index out of range.
    #[must_use]
    #[doc(hidden)]
    pub fn select(&self, rows: &[usize]) -> Matrix {
        let mut data = Vec::with_capacity(rows.len() * self.cols);
        for &i in rows {
            data.extend_from_slice(self.row(i));
        }
        Matrix { rows: rows.len(), cols: self.cols, data: data.into() }
    }

    /// Appends the rows of another matrix of equal width.
    pub(crate) fn append(&mut self, other: &Matrix) -> Result<()> {
        if other.cols != self.cols {
            return Err(Error::shape("rows to append", self.cols, other.cols));
        }
        Arc::make_mut(&mut self.data).extend_from_slice(&other.data);
        self.rows += other.rows;
        Ok(())
    }

    /// The numbers, given away; numbers that clones share are copied.
    pub(crate) fn into_data(self) -> Vec<f32> {
        Arc::unwrap_or_clone(self.data)
    }
}

/// Index of the largest entry; the first of equals; 0 for an empty row. NaN never wins.
pub fn argmax(row: &[f32]) -> usize {
    let mut best = 0;
    for (i, v) in row.iter().enumerate() {
        if *v > row[best] || row[best].is_nan() && !v.is_nan() {
            best = i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_refuses_data_that_is_not_whole_items() {
        assert!(Batch::new(Signal::image(1, 2, 2), vec![0.0; 7]).is_err());
        assert_eq!(Batch::new(Signal::image(1, 2, 2), vec![0.0; 8]).unwrap().len(), 2);
    }

    #[test]
    fn a_batch_takes_numbers_over_or_reads_them_where_they_lie() {
        let signal = Signal::image(1, 1, 2);
        let numbers = vec![1.0, 2.0, 3.0, 4.0];
        let at = numbers.as_ptr();
        let borrowed = Batch::borrowed(signal, &numbers).unwrap();
        assert_eq!(borrowed.data().as_ptr(), at);
        assert_eq!(borrowed.slice(1..2).data().as_ptr(), numbers[2..].as_ptr());
        assert!(Batch::borrowed(signal, &numbers[1..]).is_err());
        let mut changed = borrowed.clone();
        changed.data_mut()[0] = 9.0;
        assert_eq!((changed.data()[0], borrowed.data()[0]), (9.0, 1.0));
        let owned = Batch::new(signal, numbers).unwrap().into_owned();
        assert_eq!(owned.data().as_ptr(), at);
    }

    #[test]
    fn clones_of_a_matrix_share_their_numbers_until_one_is_changed() {
        let mut m = Matrix::new(2, 1, vec![1.0, 2.0]).unwrap();
        let clone = m.clone();
        assert_eq!(m.data().as_ptr(), clone.data().as_ptr());
        m.row_mut(1)[0] = 5.0;
        assert_eq!((m.data(), clone.data()), (&[1.0, 5.0][..], &[1.0, 2.0][..]));
        let at = m.data().as_ptr();
        m.data_mut()[0] = 3.0;
        let back = m.into_data();
        assert_eq!(back.as_ptr(), at);
    }

    #[test]
    fn a_matrix_refuses_data_of_another_length() {
        assert!(Matrix::new(2, 3, vec![0.0; 5]).is_err());
        assert!(Matrix::new(usize::MAX, 3, vec![]).is_err());
    }

    #[test]
    fn select_keeps_the_asked_order() {
        let m = Matrix::new(3, 1, vec![1.0, 2.0, 3.0]).unwrap();
        assert_eq!(m.select(&[2, 0, 2]).data(), &[3.0, 1.0, 3.0]);
    }

    #[test]
    fn a_kind_of_signal_is_named_in_plain_words() {
        assert_eq!(SignalKind::parse("Clouds").unwrap(), SignalKind::Cloud);
        assert_eq!(SignalKind::parse("strokes").unwrap(), Signal::Strokes { length: 2 }.kind());
        let e = SignalKind::parse("sound").unwrap_err();
        assert_eq!(e.to_string(), "unknown signal `sound`; there are: image, strokes, cloud");
    }

    #[test]
    fn argmax_takes_the_first_of_equals_and_ignores_nan() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(argmax(&[f32::NAN, 1.0, 0.0]), 1);
        assert_eq!(argmax(&[]), 0);
    }
}
