//! [`Batching`]: how many items run together, so that neither that nor their
//! number nor the threads change a bit of what an item gives.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::{Engine, Lane, Lanes, Value};
use crate::error::{Error, Result};
use crate::onnx::Graph;
use crate::outputs::Outputs;
use crate::tensor::Batch;

/// Sizes of small micro-batches, for what is left over. Some engines multiply a single row in
/// another way.
const SMALLER: [usize; 3] = [4, 2, 1];

/// Networks of fewer weights are small.
const SMALL: i64 = 1 << 18;

/// Most numbers that are pooled before they are projected together: 64 MiB.
const POOLED: usize = 16 << 20;

/// Items that should run together on any engine: several through layers that go step by
/// step and have too little to do in a step, through products, which read their weights once
/// a run, and through networks so small that starting a run takes as long as the run.
pub(super) fn usual(graph: &Graph, products: bool) -> usize {
    let steps = ["LSTM", "GRU", "RNN"];
    let step_by_step = graph.operators().iter().any(|o| steps.contains(&o.name.as_str()));
    if step_by_step || products || is_small(graph) { 8 } else { 1 }
}

/// Whether a network has so few weights that several threads would wait for each other more
/// than they work.
pub(super) fn is_small(graph: &Graph) -> bool {
    let size = |dims: &[i64]| dims.iter().fold(1, |a: i64, d| a.saturating_mul(*d));
    let sizes = graph.graph().initializer.iter().map(|w| size(&w.dims));
    sizes.fold(0, i64::saturating_add) < SMALL
}

/// A micro-batch: the items in it, and how many of them count; the others repeat the last.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) items: Vec<usize>,
    pub(super) count: usize,
}

impl Piece {
    /// Its items out of all.
    pub(super) fn of<'b>(&self, batch: &'b Batch<'_>) -> Batch<'b> {
        match self.items.first() {
            Some(&first) if self.count == self.items.len() => {
                batch.slice(first..first + self.count)
            }
            _ => batch.select(&self.items),
        }
    }
}

/// Some items as micro-batches of the given sizes, each as often as it goes; the last is
/// filled up.
pub(super) fn pieces(items: Range<usize>, sizes: &[usize]) -> Vec<Piece> {
    let mut all = Vec::new();
    let mut from = items.start;
    for (i, &size) in sizes.iter().enumerate() {
        let fills_up = i + 1 == sizes.len();
        while from < items.end && (fills_up || items.end - from >= size) {
            let count = size.min(items.end - from);
            all.push(Piece { items: (0..size).map(|i| from + i.min(count - 1)).collect(), count });
            from += count;
        }
    }
    all
}

/// Outputs of several micro-batches as one; none of none.
pub(super) fn joined(parts: Vec<Outputs>) -> Result<Option<Outputs>> {
    let mut parts = parts.into_iter();
    let Some(mut all) = parts.next() else { return Ok(None) };
    parts.try_for_each(|part| all.append(&part))?;
    Ok(Some(all))
}

/// What is known about the size of micro-batches before they are tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) items: usize,
    /// The network takes no other.
    pub(super) fixed: bool,
    /// The user wants no other.
    pub(super) asked: bool,
    /// One thread is enough for a run.
    pub(super) small: bool,
}

/// How items are put together and run.
#[derive(Debug, Clone)]
pub(super) struct Batching {
    pub(super) micro_batch: usize,
    /// Sizes of smaller micro-batches, for what is left over, in falling order.
    pub(super) smaller: Vec<usize>,
    /// Whether lone micro-batches must do with one thread, too.
    pub(super) lane_matters: bool,
    /// Whether they should.
    small: bool,
    lanes: Arc<Lanes>,
    /// Once set, nothing more runs.
    pub(super) stop: Option<Arc<AtomicBool>>,
}

impl Batching {
    /// Tries on made-up items what changes their bits: their place in a micro-batch (some
    /// engines sum a row in an order that depends on where in memory it starts), the size of
    /// the micro-batch, the threads of a run; and avoids it. `run` gives all that a
    /// micro-batch of some of the made-up items gives.
    pub(super) fn tried(
        size: Size,
        lanes: Arc<Lanes>,
        engine: &dyn Engine,
        run: impl Fn(Lane, &[usize]) -> Result<Vec<Value>>,
    ) -> Result<Self> {
        let bits = |lane, items: &[usize]| Ok(by_item(&run(lane, items)?, items.len()));
        let mut batching = Batching {
            micro_batch: size.items,
            smaller: Vec::new(),
            lane_matters: false,
            small: size.small,
            lanes,
            stop: None,
        };
        let there: Vec<usize> = (0..size.items).collect();
        let back: Vec<usize> = there.iter().rev().copied().collect();
        let many = bits(Lane::Whole, &there)?;
        let lane = if engine.lanes() > 1 { Lane::One(0) } else { Lane::Whole };
        let mut turned = bits(lane, &back)?;
        turned.reverse();
        if turned != many {
            batching.lane_matters = bits(lane, &there)? != many;
            let place_matters = bits(Lane::Whole, &back)?.into_iter().rev().ne(many.clone());
            if place_matters && !size.fixed && !size.asked {
                batching.micro_batch = 1;
            }
        }
        let some = &there[..SMALLER[0].min(batching.micro_batch)];
        let smaller = |items: &usize| !size.fixed && *items < batching.micro_batch;
        for items in SMALLER.into_iter().filter(smaller) {
            let few = some.chunks_exact(items).map(|items| bits(Lane::Whole, items));
            let few = few.collect::<Result<Vec<_>>>()?.concat();
            if few == many[..few.len()] {
                batching.smaller.push(items);
            }
        }
        Ok(batching)
    }

    /// Some items as micro-batches: large ones, then smaller ones.
    pub(super) fn pieces(&self, items: Range<usize>) -> Vec<Piece> {
        let sizes: Vec<usize> = [self.micro_batch].iter().chain(&self.smaller).copied().collect();
        pieces(items, &sizes)
    }

    /// The size of the smallest micro-batches.
    pub(super) fn smallest(&self) -> usize {
        self.smaller.last().copied().unwrap_or(self.micro_batch)
    }

    /// Items whose features are projected together, in whole micro-batches, where one item
    /// leaves `width` numbers.
    pub(super) fn block(&self, width: usize) -> usize {
        (POOLED / width.max(1) / self.micro_batch).max(1) * self.micro_batch
    }

    /// Does something with every micro-batch, several at a time: `work` gets a lane of the
    /// engine, the position of the micro-batch, and itself. It must not wait for others.
    pub(super) fn each<T: Send>(
        &self,
        engine: &dyn Engine,
        lane_matters: bool,
        pieces: &[Piece],
        work: impl Fn(Lane, usize, &Piece) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let stopped = || self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        let whole = !lane_matters && !self.small;
        self.lanes.each(engine, whole, pieces.len(), |lane, i| {
            if stopped() {
                let why = "it was told to stop".into();
                return Err(Error::Engine { engine: engine.name(), why, source: None });
            }
            work(lane, i, &pieces[i])
        })
    }
}

/// The bits of what some items gave, by item.
pub(super) fn by_item(values: &[Value], items: usize) -> Vec<Vec<u32>> {
    let mut bits = vec![Vec::new(); items];
    for value in values {
        let size = (value.data.len() / items).max(1);
        for (bits, row) in bits.iter_mut().zip(value.data.chunks(size)) {
            bits.extend(row.iter().map(|v| v.to_bits()));
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::model::{Model, Options};
    use crate::onnx::build::{model, node, shape, weight};
    use crate::onnx::proto::NodeProto;

    /// Two classes of 1 x 2 x 2 pictures; `first` make `relu` out of `x`.
    fn load(first: Vec<NodeProto>, micro_batch: Option<usize>) -> Model {
        let last = [
            node("Flatten", &["relu"], "flat"),
            node("Gemm", &["flat", "w"], "y").with_int("transB", 1),
        ];
        let nodes = first.into_iter().chain(last).collect();
        let w = weight("w", &[2, 4], &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, -1.0]);
        let mut axis = shape("items", &[0]);
        axis.dims.clear();
        let bytes = model(&[0, 1, 2, 2], nodes, vec![w, axis]).encode_to_vec();
        let options = Options { micro_batch, ..Options::default() };
        Model::from_bytes("net.onnx", &bytes, &options).unwrap()
    }

    #[test]
    fn what_is_left_over_runs_in_small_micro_batches_with_the_same_bits() {
        let split: Vec<(Vec<usize>, usize)> =
            pieces(3..10, &[4, 2]).into_iter().map(|p| (p.items, p.count)).collect();
        assert_eq!(split, [(vec![3, 4, 5, 6], 4), (vec![7, 8], 2), (vec![9, 9], 1)]);
        let m = load(vec![node("Relu", &["x"], "relu")], Some(4));
        let b = &m.batching;
        assert!(b.micro_batch == 4 && b.smaller.contains(&2) && !b.lane_matters, "{b:?}");
        let data = (0..28u8).map(|i| (f32::from(i) * 0.37).sin()).collect();
        let batch = Batch::new(m.signal(), data).unwrap();
        let all = m.run(&batch).unwrap();
        for i in 0..7 {
            assert_eq!(m.run(&batch.select(&[i])).unwrap().logits.row(0), all.logits.row(i));
        }
        let sizes: Vec<usize> = b.pieces(0..7).iter().map(|p| p.items.len()).collect();
        assert_eq!(sizes, [4, 2, b.smallest()]);
    }

    /// Multiplies by the size of the batch.
    #[test]
    fn a_model_that_looks_at_the_size_of_its_batch_always_gets_the_same() {
        let sized = vec![
            node("Shape", &["x"], "shape"),
            node("Cast", &["shape"], "sizes").with_int("to", 1),
            node("ReduceMax", &["sizes"], "size"),
            node("Mul", &["x", "size"], "relu"),
        ];
        let m = load(sized, Some(4));
        assert_eq!((m.micro_batch(), m.batching.smallest()), (4, 4));
    }

    /// Sums over an item and those that follow it in a batch.
    #[test]
    fn a_model_that_looks_at_its_neighbours_gets_items_one_by_one() {
        let sums = || vec![node("CumSum", &["x", "items"], "relu").with_int("reverse", 1)];
        let m = load(sums(), None);
        assert_eq!(
            (m.micro_batch(), m.batching.smallest(), m.batching.lane_matters),
            (1, 1, false)
        );
        let m = load(sums(), Some(4));
        assert_eq!((m.micro_batch(), m.batching.smallest()), (4, 4));
        let m = load(vec![node("Relu", &["x"], "relu")], None);
        assert_eq!(m.micro_batch(), 8);
    }
}
