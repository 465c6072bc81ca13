//! The `k` nearest vectors of an [`Index`], exactly.
//!
//! 8-bit stand-ins of queries and vectors are multiplied in blocks of integers.
//! With `q = q' + f` and `b = b' + e` the Cauchy-Schwarz inequality gives
//! `|q.b - q'.b'| <= |q| |e| + |f| |b'|`, hence bounds below and above every
//! distance. A vector whose lower bound exceeds the k-th smallest upper bound
//! is not among the nearest; the few others are measured directly, in the
//! order of their lower bounds. Which of them are measured may depend on the
//! order of work, the nearest do not: they are the smallest by distance, then
//! by row.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_tensor::NdTensorView;

use super::index::{Index, Row, TINY};
use super::metric::{Metric, Sums};

/// Rows multiplied at a time.
const BLOCK: usize = 512;
/// Queries multiplied at a time.
const QUERIES: usize = 256;
/// Queries compared at a time.
const LANES: usize = 16;

/// A stored vector and its distance to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::score) struct Found {
    /// The distance.
    pub(in crate::score) distance: f64,
    /// The vector's row.
    pub(in crate::score) row: u32,
}

/// A vector that may be among the nearest, and a bound below its key.
#[derive(Debug, Clone, Copy)]
pub(in crate::score) struct Maybe {
    pub(in crate::score) bound: f32,
    row: u32,
}

/// What bounds are bounds of: a monotone function of the distance that is
/// cheap to bound and of order one.
#[derive(Debug, Clone, Copy)]
struct Key {
    euclid: f32,
    cosine: f32,
    root: bool,
    unit: f64,
    /// Whether both parts can be told apart in `f32`; if not, every bound is 0.
    sound: bool,
}

impl Key {
    fn new(metric: &Metric, unit: f64) -> Self {
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

    fn of(&self, sums: &Sums) -> f64 {
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
struct Lanes {
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
struct Batch {
    queries: usize,
    /// 8-bit stand-ins, a row a query.
    bytes: Vec<i8>,
    lanes: Vec<Lanes>,
}

impl Batch {
    fn new(index: &Index, queries: &[&[f32]], key: &Key, top: f64) -> Self {
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

/// The `k` smallest upper bounds of each query so far.
struct Limits {
    k: usize,
    best: Vec<Mutex<Vec<f32>>>,
    /// The largest of them, as bits; infinite while there are fewer than `k`.
    limit: Vec<AtomicU32>,
}

impl Limits {
    fn new(k: usize, queries: usize) -> Self {
        Limits {
            k,
            best: (0..queries).map(|_| Mutex::new(Vec::with_capacity(k.min(64)))).collect(),
            limit: (0..queries).map(|_| AtomicU32::new(f32::INFINITY.to_bits())).collect(),
        }
    }

    fn get(&self, j: usize) -> f32 {
        f32::from_bits(self.limit[j].load(Ordering::Relaxed))
    }

    /// Takes an upper bound into account and gives the limit.
    fn lower(&self, j: usize, upper: f32) -> f32 {
        let mut best = self.best[j].lock().unwrap_or_else(PoisonError::into_inner);
        let at = best.partition_point(|&b| b <= upper);
        if at < self.k {
            best.insert(at, upper);
            best.truncate(self.k);
            if best.len() == self.k {
                self.limit[j].store(best[self.k - 1].to_bits(), Ordering::Relaxed);
            }
        }
        self.get(j)
    }
}

/// Bounds below the keys of a vector and some queries, or above them.
#[expect(clippy::inline_always, reason = "the loops around it vectorise only if it is inlined")]
#[inline(always)]
fn bounds<const EUCLID: bool, const COSINE: bool, const ABOVE: bool>(
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

impl Index {
    /// For each query a list that holds its `k` nearest among `range`, with
    /// lower bounds in rising order; all queries are finite.
    pub(in crate::score) fn shortlist(
        &self,
        metric: &Metric,
        queries: &[&[f32]],
        range: Range<usize>,
        k: usize,
    ) -> Vec<Vec<Maybe>> {
        let key = Key::new(metric, self.unit);
        let gemm = GemmExecutor::<u8, i8, i32>::default();
        let top = if gemm.may_saturate() { 63.0 } else { 127.0 };
        queries
            .chunks(QUERIES)
            .flat_map(|queries| {
                let batch = Batch::new(self, queries, &key, top);
                match (key.euclid > 0.0, key.cosine > 0.0) {
                    (true, true) => self.scan::<true, true>(&gemm, &key, &batch, &range, k),
                    (false, true) => self.scan::<false, true>(&gemm, &key, &batch, &range, k),
                    _ => self.scan::<true, false>(&gemm, &key, &batch, &range, k),
                }
            })
            .collect()
    }

    fn scan<const EUCLID: bool, const COSINE: bool>(
        &self,
        gemm: &GemmExecutor<u8, i8, i32>,
        key: &Key,
        batch: &Batch,
        range: &Range<usize>,
        k: usize,
    ) -> Vec<Vec<Maybe>> {
        let (cols, n) = (self.cols(), batch.queries);
        let width = batch.lanes.len() * LANES;
        let view = NdTensorView::from_data([width, cols], &batch.bytes[..]);
        let packed = gemm.prepack_b(view.transposed());
        let limits = Limits::new(k, n);
        let arch = pulp::Arch::new();
        let blocks: Vec<usize> = range.clone().step_by(BLOCK).collect();
        let hits: Vec<Vec<(u32, Maybe)>> = blocks
            .par_iter()
            .map_init(
                || vec![0i32; BLOCK * width],
                |products, &from| {
                    let to = (from + BLOCK).min(range.end);
                    let rows = NdTensorView::from_data(
                        [to - from, cols],
                        &self.bytes[from * cols..to * cols],
                    );
                    let products = &mut products[..(to - from) * width];
                    let done = gemm.gemm(
                        products,
                        GemmInputA::Unpacked(rows),
                        GemmInputB::Packed(&packed),
                        GemmOptions::default(),
                    );
                    if done.is_err() {
                        // Shapes agree by construction; were they not to, every row stays.
                        return everything(from..to, n);
                    }
                    arch.dispatch(
                        #[inline(always)]
                        || self.sift::<EUCLID, COSINE>(key, batch, &limits, products, from..to),
                    )
                },
            )
            .collect();
        let mut lists = vec![Vec::new(); n];
        for (j, maybe) in hits.into_iter().flatten() {
            if maybe.bound <= limits.get(j as usize) {
                lists[j as usize].push(maybe);
            }
        }
        for list in &mut lists {
            list.sort_by(|a, b| a.bound.total_cmp(&b.bound).then(a.row.cmp(&b.row)));
        }
        lists
    }

    /// The pairs of a block whose lower bounds do not exceed the limits.
    #[expect(clippy::inline_always, reason = "it takes the caller's instruction set only so")]
    #[inline(always)]
    fn sift<const EUCLID: bool, const COSINE: bool>(
        &self,
        key: &Key,
        batch: &Batch,
        limits: &Limits,
        products: &[i32],
        rows: Range<usize>,
    ) -> Vec<(u32, Maybe)> {
        let mut limit = vec![[f32::NEG_INFINITY; LANES]; batch.lanes.len()];
        for (j, limit) in limit.as_flattened_mut().iter_mut().take(batch.queries).enumerate() {
            *limit = limits.get(j);
        }
        let mut hits = Vec::new();
        let (products, _) = products.as_chunks::<LANES>();
        for (i, products) in rows.zip(products.chunks_exact(batch.lanes.len())) {
            let row = &self.stats[i];
            for (c, ((products, lanes), limit)) in
                products.iter().zip(&batch.lanes).zip(&mut limit).enumerate()
            {
                let below = bounds::<EUCLID, COSINE, false>(key, row, lanes, products);
                let mut any = false;
                for l in 0..LANES {
                    any |= below[l] <= limit[l];
                }
                if !any {
                    continue;
                }
                let above = bounds::<EUCLID, COSINE, true>(key, row, lanes, products);
                for l in 0..LANES {
                    if below[l] <= limit[l] {
                        let j = c * LANES + l;
                        hits.push((j as u32, Maybe { bound: below[l], row: i as u32 }));
                        if above[l] < limit[l] {
                            limit[l] = limits.lower(j, above[l]);
                        }
                    }
                }
            }
        }
        hits
    }

    /// The `k` nearest of a [`Index::shortlist`], nearest first; all if there are fewer.
    pub(in crate::score) fn settle(
        &self,
        metric: &Metric,
        query: &[f32],
        list: &[Maybe],
        k: usize,
    ) -> Vec<Found> {
        let key = Key::new(metric, self.unit);
        let mut row = vec![0.0; self.cols()];
        let mut best: Vec<(Found, f64)> = Vec::with_capacity(k.min(list.len()) + 1);
        for maybe in list {
            if best.len() == k && best.last().is_some_and(|b| f64::from(maybe.bound) > b.1) {
                break;
            }
            self.read(maybe.row as usize, &mut row);
            let sums = Sums::new(query, &row);
            let found = Found { distance: metric.distance(&sums), row: maybe.row };
            let order = |b: &(Found, f64)| {
                b.0.distance.total_cmp(&found.distance).then(b.0.row.cmp(&found.row)).is_lt()
            };
            let at = best.partition_point(order);
            if at < k {
                best.insert(at, (found, key.of(&sums)));
                best.truncate(k);
            }
        }
        best.into_iter().map(|b| b.0).collect()
    }

    /// Whether a vector with this lower bound is certainly farther than one found.
    pub(in crate::score) fn beyond(
        &self,
        metric: &Metric,
        query: &[f32],
        found: Found,
        bound: f32,
    ) -> bool {
        let mut row = vec![0.0; self.cols()];
        self.read(found.row as usize, &mut row);
        f64::from(bound) > Key::new(metric, self.unit).of(&Sums::new(query, &row))
    }

    /// The `k` nearest of each query among `range`, nearest first.
    pub(in crate::score) fn nearest(
        &self,
        metric: &Metric,
        queries: &[&[f32]],
        range: Range<usize>,
        k: usize,
    ) -> Vec<Vec<Found>> {
        let lists = self.shortlist(metric, queries, range, k);
        queries
            .par_iter()
            .zip(lists)
            .map(|(query, list)| self.settle(metric, query, &list, k))
            .collect()
    }
}

fn everything(rows: Range<usize>, queries: usize) -> Vec<(u32, Maybe)> {
    let all = |j: usize| rows.clone().map(move |i| (j as u32, Maybe { bound: 0.0, row: i as u32 }));
    (0..queries).flat_map(all).collect()
}
