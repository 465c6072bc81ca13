//! The `k` nearest vectors of an [`Index`], exactly.
//!
//! 8-bit stand-ins of queries and vectors are multiplied in blocks of integers,
//! which bounds every distance (see [`super::bounds`]). A vector whose lower
//! bound exceeds the k-th smallest upper bound is not among the nearest; the
//! few others are measured directly, in the order of their lower bounds. Which
//! of them are measured may depend on the order of work, the nearest do not:
//! they are the smallest by distance, then by row.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions};
use rten_tensor::NdTensorView;

use super::bounds::{Batch, Key, LANES, bounds};
use super::index::Index;
use super::metric::Metric;

/// Rows multiplied at a time.
const BLOCK: usize = 512;
/// Queries multiplied at a time.
const QUERIES: usize = 256;
/// Such groups of queries that share the packing of a block, which takes as long as
/// multiplying one of them.
const GROUPS: usize = 16;

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
            .chunks(GROUPS * QUERIES)
            .flat_map(|queries| {
                let batches: Vec<Batch> =
                    queries.chunks(QUERIES).map(|q| Batch::new(self, q, &key, top)).collect();
                match (key.euclid > 0.0, key.cosine > 0.0) {
                    (true, true) => self.scan::<true, true>(&gemm, &key, &batches, &range, k),
                    (false, true) => self.scan::<false, true>(&gemm, &key, &batches, &range, k),
                    _ => self.scan::<true, false>(&gemm, &key, &batches, &range, k),
                }
            })
            .collect()
    }

    fn scan<const EUCLID: bool, const COSINE: bool>(
        &self,
        gemm: &GemmExecutor<u8, i8, i32>,
        key: &Key,
        batches: &[Batch],
        range: &Range<usize>,
        k: usize,
    ) -> Vec<Vec<Maybe>> {
        let cols = self.cols();
        let prepared: Vec<_> = batches
            .par_iter()
            .map(|batch| {
                let width = batch.lanes.len() * LANES;
                let view = NdTensorView::from_data([width, cols], &batch.bytes[..]);
                let packed = gemm.prepack_b(view.transposed());
                (batch, width, packed, Limits::new(k, batch.queries))
            })
            .collect();
        let arch = pulp::Arch::new();
        let blocks: Vec<usize> = range.clone().step_by(BLOCK).collect();
        let hits: Vec<Vec<Vec<(u32, Maybe)>>> = blocks
            .par_iter()
            .map_init(Vec::new, |products, &from| {
                let to = (from + BLOCK).min(range.end);
                let rows =
                    NdTensorView::from_data([to - from, cols], &self.bytes[from * cols..to * cols]);
                let rows = gemm.prepack_a(rows);
                let groups = prepared.iter().map(|(batch, width, packed, limits)| {
                    products.resize((to - from) * width, 0);
                    let done = gemm.gemm(
                        products,
                        GemmInputA::Packed(&rows),
                        GemmInputB::Packed(packed),
                        GemmOptions::default(),
                    );
                    if done.is_err() {
                        // Shapes agree by construction; were they not to, every row stays.
                        return everything(from..to, batch.queries);
                    }
                    arch.dispatch(
                        #[inline(always)]
                        || self.sift::<EUCLID, COSINE>(key, batch, limits, products, from..to),
                    )
                });
                groups.collect()
            })
            .collect();
        let mut lists: Vec<Vec<Vec<Maybe>>> =
            batches.iter().map(|batch| vec![Vec::new(); batch.queries]).collect();
        for groups in hits {
            for ((hits, lists), (.., limits)) in groups.into_iter().zip(&mut lists).zip(&prepared) {
                for (j, maybe) in hits {
                    if maybe.bound <= limits.get(j as usize) {
                        lists[j as usize].push(maybe);
                    }
                }
            }
        }
        let mut lists: Vec<Vec<Maybe>> = lists.into_iter().flatten().collect();
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
    pub(in crate::score) fn nearest_of(
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
            let sums = metric.sums(query, &row);
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
        f64::from(bound) > Key::new(metric, self.unit).of(&metric.sums(query, &row))
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
            .map(|(query, list)| self.nearest_of(metric, query, &list, k))
            .collect()
    }
}

fn everything(rows: Range<usize>, queries: usize) -> Vec<(u32, Maybe)> {
    let all = |j: usize| rows.clone().map(move |i| (j as u32, Maybe { bound: 0.0, row: i as u32 }));
    (0..queries).flat_map(all).collect()
}
