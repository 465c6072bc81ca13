//! [`Index`]: feature vectors sorted by class, stored for searching.
//!
//! Vectors are kept either as given (`f32`) or in 16 bits: minus the bank's
//! mean, in whole steps of `max_i |v_i - mean_i| / 32639`, one per vector. The
//! upper byte of these numbers is a bank of 8-bit vectors, which is what
//! [`super::scan`] multiplies; the lower byte restores the rest. Banks of
//! `f32` vectors hold the same 8-bit vectors beside their own. The rounding of
//! a vector's distance is at most `sqrt(D)` half steps, about `1e-5` of its
//! largest entry times `sqrt(D)`; it is far below `1e-3` of the distance for
//! anything but near copies of stored vectors.

use rayon::prelude::*;

use crate::error::Result;
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// Largest 16-bit number whose upper byte, rounded, is at most 127.
const TOP: f64 = 32639.0;

/// Banks up to this many numbers are stored as `f32` unless told otherwise.
const SMALL: usize = 4 << 20;

/// Norms relative to the bank's unit beyond which bounds in `f32` are not trusted.
pub(super) const TINY: f64 = 1e-15;

/// How vectors are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// As given.
    Full,
    /// 16 bits a number.
    Half,
}

impl Storage {
    /// What the setting `storage` asks for with this many numbers.
    pub(super) fn chosen(word: &str, numbers: usize) -> Self {
        match word {
            "f32" => Storage::Full,
            "i16" => Storage::Half,
            _ if numbers <= SMALL => Storage::Full,
            _ => Storage::Half,
        }
    }
}

enum Rows {
    Full(Vec<f32>),
    Half { low: Vec<i8>, step: Vec<f64> },
}

/// What the bounds of [`super::scan`] need to know of a vector `b`, in the
/// bank's unit, with `c = b - mean` and its 8-bit stand-in `e`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// `e` is this times the 8-bit numbers.
    pub(super) step: f32,
    /// `|c|^2`.
    pub(super) square: f32,
    /// At least `|c - e|`, with room for rounding.
    pub(super) miss: f32,
    /// At least `|e|`.
    pub(super) reach: f32,
    /// `1 / |b|`, or 0 for a zero vector.
    pub(super) inverse: f32,
    /// `c . mean`.
    pub(super) shift: f32,
}

/// Feature vectors sorted by class.
pub(in crate::score) struct Index {
    cols: usize,
    /// Class `c` is rows `offsets[c]..offsets[c + 1]`.
    offsets: Vec<u32>,
    mean: Vec<f32>,
    rows: Rows,
    /// The 8-bit vectors, plus 128.
    pub(super) bytes: Vec<u8>,
    pub(super) stats: Vec<Row>,
    /// A power of two near the largest entry.
    pub(super) unit: f64,
    /// `|mean|` in units.
    pub(super) centre: f64,
    /// Largest `|b - mean|`, in units.
    pub(super) radius: f64,
    /// What was lost when the vectors were made, in words; not stored.
    pub(super) note: Option<String>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bits = if matches!(self.rows, Rows::Full(_)) { 32 } else { 16 };
        write!(f, "{} x {} in {bits} bits, {} classes", self.len(), self.cols, self.classes())
    }
}

impl Index {
    /// Stores the rows of `features` in the given order, which is by class:
    /// class `c` is `order[offsets[c]..offsets[c + 1]]`. All numbers must be finite.
    pub(super) fn build(
        features: &Matrix,
        order: &[usize],
        offsets: Vec<u32>,
        storage: Storage,
    ) -> Self {
        let cols = features.cols();
        let mut sum = vec![0.0f64; cols];
        for &i in order {
            for (s, &v) in sum.iter_mut().zip(features.row(i)) {
                *s += f64::from(v);
            }
        }
        let mean: Vec<f32> = sum.iter().map(|s| (s / order.len().max(1) as f64) as f32).collect();
        let mut bytes = vec![0u8; order.len() * cols];
        let rows = match storage {
            Storage::Full => {
                let mut data = Vec::with_capacity(order.len() * cols);
                for &i in order {
                    data.extend_from_slice(features.row(i));
                }
                Rows::Full(data)
            }
            Storage::Half => {
                let mut low = vec![0i8; order.len() * cols];
                let step = order
                    .par_iter()
                    .zip(low.par_chunks_mut(cols))
                    .zip(bytes.par_chunks_mut(cols))
                    .map(|((&i, low), high)| {
                        let row = features.row(i);
                        let step = widest(row, &mean) / TOP;
                        for (((low, high), &v), &m) in low.iter_mut().zip(high).zip(row).zip(&mean)
                        {
                            (*high, *low) = split(whole(v, m, step));
                        }
                        step
                    })
                    .collect();
                Rows::Half { low, step }
            }
        };
        Index::finish(cols, offsets, mean, rows, bytes)
    }

    /// Derives everything else from what [`Index::state`] stores.
    fn finish(cols: usize, offsets: Vec<u32>, mean: Vec<f32>, rows: Rows, bytes: Vec<u8>) -> Self {
        let mut index = Index {
            cols,
            offsets,
            mean,
            rows,
            bytes,
            stats: Vec::new(),
            unit: 1.0,
            centre: 0.0,
            radius: 0.0,
            note: None,
        };
        let n = index.len();
        let largest = (0..n).into_par_iter().map_init(
            || vec![0.0; cols],
            |row, i| {
                index.read(i, row);
                f64::from(row.iter().fold(0.0f32, |a, v| a.max(v.abs())))
            },
        );
        let top = largest.reduce(|| 0.0, f64::max);
        index.unit = if top > 0.0 { libm::exp2(libm::ceil(libm::log2(top))) } else { 1.0 };
        if let Rows::Full(data) = &index.rows {
            let pairs = data.par_chunks(cols).zip(index.bytes.par_chunks_mut(cols));
            pairs.for_each(|(row, high)| {
                let step = widest(row, &index.mean) / TOP;
                for ((high, &v), &m) in high.iter_mut().zip(row).zip(&index.mean) {
                    (*high, _) = split(whole(v, m, step));
                }
            });
        }
        let derived: Vec<(Row, f64)> = (0..n)
            .into_par_iter()
            .map_init(
                || vec![0.0; cols],
                |row, i| {
                    index.read(i, row);
                    index.derive(i, row)
                },
            )
            .collect();
        index.radius = derived.iter().fold(0.0, |a, d| a.max(d.1));
        index.centre = norm(index.mean.iter().map(|&m| f64::from(m) / index.unit));
        index.stats = derived.into_iter().map(|d| d.0).collect();
        index
    }

    /// The bounds' view of row `i`, and its distance to the mean in units.
    fn derive(&self, i: usize, row: &[f32]) -> (Row, f64) {
        let high = &self.bytes[i * self.cols..(i + 1) * self.cols];
        let step = match &self.rows {
            Rows::Full(_) => widest(row, &self.mean) / TOP,
            Rows::Half { step, .. } => step[i],
        } * 256.0
            / self.unit;
        let (mut square, mut miss, mut reach, mut whole, mut shift) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for ((&v, &m), &h) in row.iter().zip(&self.mean).zip(high) {
            let (b, m) = (f64::from(v) / self.unit, f64::from(m) / self.unit);
            let (c, e) = (b - m, step * (f64::from(h) - 128.0));
            square += c * c;
            miss += (c - e) * (c - e);
            reach += e * e;
            whole += b * b;
            shift += c * m;
        }
        let (away, size): (f64, f64) = (square.sqrt(), whole.sqrt());
        let vague = size > 0.0 && size < TINY;
        let stats = Row {
            step: step as f32,
            square: square as f32,
            miss: if vague { 1e30 } else { (miss.sqrt() * 1.000_01 + away * 4e-6) as f32 },
            reach: if vague { 1e30 } else { (reach.sqrt() * 1.000_01 + 1e-20) as f32 },
            inverse: match size > 0.0 {
                true if vague => 1.0,
                true => (1.0 / size) as f32,
                false => 0.0,
            },
            shift: shift as f32,
        };
        (stats, away)
    }

    /// Number of vectors.
    pub(in crate::score) fn len(&self) -> usize {
        self.offsets.last().map_or(0, |&n| n as usize)
    }

    /// Length of a vector.
    pub(in crate::score) fn cols(&self) -> usize {
        self.cols
    }

    /// Number of classes, with or without vectors.
    pub(in crate::score) fn classes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The class of a row.
    pub(in crate::score) fn class_of(&self, row: usize) -> u32 {
        self.offsets.partition_point(|&start| start as usize <= row).saturating_sub(1) as u32
    }

    /// The rows of a class; empty for one that has none.
    pub(in crate::score) fn class(&self, class: usize) -> std::ops::Range<usize> {
        match self.offsets.get(class..class + 2) {
            Some(&[from, to]) => from as usize..to as usize,
            _ => 0..0,
        }
    }

    /// The mean of all vectors.
    pub(super) fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// Writes vector `i`.
    pub(in crate::score) fn read(&self, i: usize, row: &mut [f32]) {
        let at = i * self.cols..(i + 1) * self.cols;
        match &self.rows {
            Rows::Full(data) => row.copy_from_slice(&data[at]),
            Rows::Half { low, step } => {
                let (step, high, low) = (step[i], &self.bytes[at.clone()], &low[at]);
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || {
                        for (((r, &h), &l), &m) in row.iter_mut().zip(high).zip(low).zip(&self.mean)
                        {
                            let v = f64::from(m) + step * f64::from(join(h, l));
                            *r = (v as f32).clamp(f32::MIN, f32::MAX);
                        }
                    },
                );
            }
        }
    }

    /// Everything that cannot be derived.
    pub(in crate::score) fn state(&self) -> State {
        let state = State::new().u32("offsets", &self.offsets).f32("mean", &self.mean);
        match &self.rows {
            Rows::Full(data) => state.f32("bank", data),
            Rows::Half { low, step } => {
                let both = |i: usize| {
                    let word = |i: usize| {
                        low.get(i).map_or(0, |&l| u32::from(join(self.bytes[i], l) as u16))
                    };
                    word(2 * i) | word(2 * i + 1) << 16
                };
                let words: Vec<u32> = (0..low.len().div_ceil(2)).map(both).collect();
                state.u32("bank", &words).f64("step", step)
            }
        }
    }

    /// Restores what [`Index::state`] stored, after checking it.
    pub(in crate::score) fn load(state: &State) -> Result<Self> {
        let (offsets, mean) = (state.read_u32("offsets")?, state.read_f32("mean")?);
        let cols = mean.len();
        if cols == 0 || offsets.first() != Some(&0) || !offsets.is_sorted() {
            return Err(damaged("the classes of a bank are not in order".into()));
        }
        let n = offsets.last().map_or(0, |&n| n as usize);
        let Some(numbers) = n.checked_mul(cols).filter(|&n| n > 0) else {
            return Err(damaged("a bank is empty".into()));
        };
        if mean.iter().any(|v| !v.is_finite()) {
            return Err(damaged("a bank's mean is not finite".into()));
        }
        let wrong = || damaged(format!("a bank does not hold {n} x {cols} finite numbers"));
        if !state.tensors().contains_key("step") {
            let data = state.read_f32("bank")?;
            if data.len() != numbers || data.iter().any(|v| !v.is_finite()) {
                return Err(wrong());
            }
            let bytes = vec![0; numbers];
            return Ok(Index::finish(cols, offsets, mean, Rows::Full(data), bytes));
        }
        let (words, step) = (state.read_u32("bank")?, state.read_f64("step")?);
        let sane = |s: &f64| (0.0..=f64::from(f32::MAX)).contains(s);
        if words.len() != numbers.div_ceil(2) || step.len() != n || !step.iter().all(sane) {
            return Err(wrong());
        }
        let mut low = vec![0i8; numbers];
        let mut bytes = vec![0u8; numbers];
        for (i, (low, high)) in low.iter_mut().zip(&mut bytes).enumerate() {
            let word = (words[i / 2] >> (16 * (i % 2))) as u16 as i16;
            if i32::from(word).abs() > TOP as i32 {
                return Err(wrong());
            }
            (*high, *low) = split(i32::from(word));
        }
        let index = Index::finish(cols, offsets, mean, Rows::Half { low, step }, bytes);
        if index.unit.is_finite() { Ok(index) } else { Err(wrong()) }
    }

    /// Bytes this takes in memory.
    #[cfg(test)]
    pub(super) fn bytes_resident(&self) -> usize {
        let rows = match &self.rows {
            Rows::Full(data) => data.len() * 4,
            Rows::Half { low, step } => low.len() + step.len() * 8,
        };
        let stats = self.stats.len() * size_of::<Row>();
        rows + self.bytes.len() + stats + self.mean.len() * 4 + self.offsets.len() * 4
    }
}

/// Largest distance of an entry to its mean.
fn widest(row: &[f32], mean: &[f32]) -> f64 {
    row.iter().zip(mean).fold(0.0, |a, (&v, &m)| (f64::from(v) - f64::from(m)).abs().max(a))
}

/// `v - m` in whole steps.
fn whole(v: f32, m: f32, step: f64) -> i32 {
    if step > 0.0 {
        libm::rint((f64::from(v) - f64::from(m)) / step).clamp(-TOP, TOP) as i32
    } else {
        0
    }
}

/// The upper byte, rounded and plus 128, and what remains.
fn split(whole: i32) -> (u8, i8) {
    let high = (whole + 128) >> 8;
    ((high + 128) as u8, (whole - (high << 8)) as i8)
}

/// The inverse of [`split`].
#[inline]
fn join(high: u8, low: i8) -> i32 {
    ((i32::from(high) - 128) << 8) + i32::from(low)
}

/// Euclidean norm.
pub(super) fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}
