//! Bounds of distances from products of 8-bit stand-ins.
//!
//! With `q = q' + f` and `b = b' + e` the Cauchy-Schwarz inequality gives
//! `|q.b - q'.b'| <= |q| |e| + |f| |b'|`, hence bounds below and above every
//! distance, widened by what `f32` may round.

use rayon::prelude::*;

use super::index::{Index, Row, TINY};
use super::metric::{Metric, Sums};

/// Queries compared at a time.
pub(super) const LANES: usize = 16;

/// What bounds are bounds of: a monotone function of the distance that is
/// cheap to bound and of order one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) euclid: f32,
    pub(super) cosine: f32,
    root: bool,
    unit: f64,
    /// Whether both parts can be told apart in `f32`; if not, every bound is 0.
    sound: bool,
}

impl Key {
    /// The key for a metric, in a bank's unit.
    pub(super) fn new(metric: &Metric, unit: f64) -> Self {
        let scale = if metric.squared { unit * unit } else { unit };
        let (euclid, cosine) = (metric.euclid * scale, metric.cosine);
        let top = euclid.max(cosine);
        let (euclid, cosine) = (euclid / top, cosine / top);
        let mixed = euclid > 0.0 && cosine > 0.0;
        let sound = !mixed || euclid.min(cosine) > 1e-12;
        let weight = |w: f64| if sound { w as f32 } else { 0.0 };
        let root = mixed && !metric.squared;
        Key { euclid: weight(euclid), cosine: weight(cosine), root, unit, sound }
    }

    /// The key of a pair with these sums.
    pub(super) fn of(&self, sums: &Sums) -> f64 {
        let mut key = 0.0;
        if self.euclid > 0.0 {
            let square = sums.square / self.unit / self.unit;
            key += f64::from(self.euclid) * if self.root { square.sqrt() } else { square };
        }
        if self.cosine > 0.0 {
            key += f64::from(self.cosine) * sums.cosine();
        }
        key
    }
}

/// Some queries, each number an array over them: what [`Row`] is for a vector.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lanes {
    /// 128 times the sum of a stand-in.
    offset: [i32; LANES],
    step: [f32; LANES],
    square: [f32; LANES],
    /// At least `|q - mean|`.
    size: [f32; LANES],
    miss: [f32; LANES],
    inverse: [f32; LANES],
    /// `q . mean`.
    shift: [f32; LANES],
    /// Room for rounding where products with the mean are added.
    slack: [f32; LANES],
}

/// Queries, padded to whole [`Lanes`] with zeros.
pub(super) struct Batch {
    pub(super) queries: usize,
    /// 8-bit stand-ins, a row per query.
    pub(super) bytes: Vec<i8>,
    pub(super) lanes: Vec<Lanes>,
}

impl Batch {
    /// Rounds queries to `-top..=top`.
    pub(super) fn new(index: &Index, queries: &[&[f32]], key: &Key, top: f64) -> Self {
        let (n, cols) = (queries.len(), index.cols());
        let lanes = n.div_ceil(LANES);
        let mut batch = Batch {
            queries: n,
            bytes: vec![0; lanes * LANES * cols],
            lanes: vec![Lanes::default(); lanes],
        };
        let pairs = batch.lanes.par_iter_mut().zip(batch.bytes.par_chunks_mut(LANES * cols));
        pairs.zip(queries.par_chunks(LANES)).for_each(|((lanes, bytes), queries)| {
            let mut centred = vec![0.0f64; cols];
            for (l, (query, bytes)) in queries.iter().zip(bytes.chunks_mut(cols)).enumerate() {
                lanes.set(l, index, query, key, top, &mut centred, bytes);
            }
        });
        batch
    }
}

impl Lanes {
    #[expect(clippy::too_many_arguments, reason = "one query into one place of each array")]
    fn set(
        &mut self,
        l: usize,
        index: &Index,
        query: &[f32],
        key: &Key,
        top: f64,
        centred: &mut [f64],
        bytes: &mut [i8],
    ) {
        let unit = 1.0 / index.unit;
        let (mut widest, mut square, mut whole, mut shift) = (0.0f64, 0.0, 0.0, 0.0);
        for ((c, &q), &m) in centred.iter_mut().zip(query).zip(index.mean()) {
            let (q, m) = (f64::from(q) * unit, f64::from(m) * unit);
            *c = q - m;
            widest = widest.max(c.abs());
            square += *c * *c;
            whole += q * q;
            shift += q * m;
        }
        let (away, size): (f64, f64) = (square.sqrt(), whole.sqrt());
        let vague = key.cosine > 0.0 && size > 0.0 && size < TINY;
        if !key.sound || vague || away > 1.0 / TINY || size > 1.0 / TINY {
            self.size[l] = 1e30;
            self.miss[l] = 1e30;
            self.slack[l] = 1e30;
            self.inverse[l] = 1.0;
            return;
        }
        let step = widest / top;
        let mut sum = 0;
        let mut miss = square;
        if step > 0.0 {
            miss = 0.0;
            let per = 1.0 / step;
            for (b, &c) in bytes.iter_mut().zip(centred.iter()) {
                let whole = (c * per).round_ties_even().clamp(-top, top);
                let left = c - step * whole;
                miss += left * left;
                *b = whole as i8;
                sum += i32::from(*b);
            }
        }
        self.offset[l] = 128 * sum;
        self.step[l] = step as f32;
        self.square[l] = square as f32;
        self.size[l] = (away * 1.000_01).max(1e-12) as f32;
        self.miss[l] = (miss.sqrt() * 1.000_01).max(1e-12) as f32;
        self.inverse[l] = if size > 0.0 { (1.0 / size) as f32 } else { 0.0 };
        self.shift[l] = shift as f32;
        if key.cosine > 0.0 {
            self.slack[l] = (4e-6 * index.centre * (size + index.radius)) as f32;
        }
    }
}

/// Bounds below the keys of a vector and some queries, or above them.
#[expect(clippy::inline_always, reason = "the loops around it vectorise only if it is inlined")]
#[inline(always)]
pub(super) fn bounds<const EUCLID: bool, const COSINE: bool, const ABOVE: bool>(
    key: &Key,
    row: &Row,
    lanes: &Lanes,
    products: &[i32; LANES],
) -> [f32; LANES] {
    let side = if ABOVE { 4e-6 } else { -4e-6 };
    let mut bounds = [0.0; LANES];
    for l in 0..LANES {
        let dot = row.step * lanes.step[l] * (products[l] - lanes.offset[l]) as f32;
        let miss = row.miss * lanes.size[l] + row.reach * lanes.miss[l] + lanes.slack[l];
        let dot = if ABOVE { dot - miss } else { dot + miss };
        let mut v = 0.0;
        if EUCLID {
            let base = row.square + lanes.square[l];
            let square = (base - 2.0 * dot + side * base).max(0.0);
            v += key.euclid * if COSINE && key.root { square.sqrt() } else { square };
        }
        if COSINE {
            let cos = (dot + row.shift + lanes.shift[l]) * (row.inverse * lanes.inverse[l]);
            v += key.cosine * (1.0 + 0.25 * side - cos.clamp(-1.0, 1.0));
        }
        bounds[l] = v + side * v;
    }
    bounds
}
