//! [`Gradient`]: derivatives of a scalar with respect to outputs, as
//! derivatives with respect to raw items. Made on first use.

use std::ops::Range;
use std::sync::OnceLock;

use super::batching::{Piece, joined, pieces};
use super::description::Description;
use super::{Model, describe};
use crate::engine::{self, Engine, Input, Lane, Value, apart};
use crate::error::{Error, Result};
use crate::onnx::{Graph, gradient, products};
use crate::outputs::{Cotangents, Outputs};
use crate::tensor::{Batch, Matrix};

/// Most numbers kept between the way there and the way back: 128 MiB.
const KEPT: usize = 32 << 20;

/// What derivatives need, or why there are none.
#[derive(Debug, Default)]
pub(super) struct Gradient(OnceLock<Result<Ways>>);

/// Both ways through the network, ready to run.
#[derive(Debug)]
pub(super) struct Ways {
    by: By,
    /// Whether lone micro-batches must do with one thread, too.
    lane_matters: bool,
}

/// What runs the ways.
#[derive(Debug)]
enum By {
    Graphs(Box<Graphs>),
    /// The network's own engine, which has a gradient.
    Engine,
}

/// A graph for each way.
#[derive(Debug)]
struct Graphs {
    /// Computes logits, tapped tensors and what the way back reads.
    there: Box<dyn Engine>,
    /// What the way back reads, and where the way there gives it.
    kept: Vec<(String, usize)>,
    /// How many tensors the way there computes.
    tensors: usize,
    /// Numbers that an item leaves between the way there and the way back.
    size: usize,
    /// For small micro-batches.
    few: Back,
    /// For large ones, made on first use; none where they give other bits or leave too much.
    many: OnceLock<Result<Option<Back>>>,
}

/// The way back for micro-batches of one size.
#[derive(Debug)]
struct Back {
    engine: Box<dyn Engine>,
    ends: Vec<String>,
    shapes: Vec<Vec<usize>>,
    items: usize,
}

#[cfg(test)]
impl Gradient {
    pub(super) fn is_made(&self) -> bool {
        self.0.get().is_some()
    }
}

impl Ways {
    /// Numbers that an item leaves between the way there and the way back.
    fn size(&self) -> usize {
        match &self.by {
            By::Graphs(graphs) => graphs.size,
            By::Engine => 0,
        }
    }
}

impl Model {
    /// Whether the model has a gradient; if not, the error names every operator that lacks
    /// one. The first call prepares the gradient, which takes as long as loading the model;
    /// later ones know.
    #[doc(hidden)]
    pub fn differentiable(&self) -> Result<()> {
        match &self.external {
            Some(external) => external.differentiable(),
            None => self.ways().map(|_| ()),
        }
    }

    /// The derivative of a scalar with respect to raw items, given its derivatives with
    /// respect to their [`Outputs`]. A row does not depend on the others.
    #[doc(hidden)]
    pub fn pullback(&self, batch: &Batch<'_>, d: &Cotangents) -> Result<Batch<'static>> {
        d.check_rows(batch.len())?;
        Ok(self.run_with_pullback(batch, |items, _| Ok(d.rows(items)))?.1)
    }

    /// Runs raw items and pulls the derivatives of a scalar back to them. `d` is asked for
    /// these derivatives once per block of items, with their positions and what they gave. The
    /// outputs are those of [`Model::run`] up to rounding.
    #[doc(hidden)]
    pub fn run_with_pullback(
        &self,
        batch: &Batch<'_>,
        d: impl FnMut(Range<usize>, &Outputs) -> Result<Cotangents>,
    ) -> Result<(Outputs, Batch<'static>)> {
        match &self.external {
            Some(external) => external.run_with_pullback(self, batch, d),
            None => self.alone_with_pullback(batch, d),
        }
    }

    /// The same without an energy network beside it.
    pub(super) fn alone_with_pullback(
        &self,
        batch: &Batch<'_>,
        mut d: impl FnMut(Range<usize>, &Outputs) -> Result<Cotangents>,
    ) -> Result<(Outputs, Batch<'static>)> {
        self.description.check(&self.network.input, batch)?;
        let ways = self.ways()?;
        let many = if batch.len() < self.micro_batch() { None } else { self.many(ways)? };
        let size = many.map_or(self.batching.smallest(), |many| many.items);
        let kept = (KEPT / (size * ways.size()).max(1)).max(1).saturating_mul(size);
        let block = self.batching.block(self.network.width()).min(kept);
        let mut outputs = self.network.no_outputs()?;
        let mut all = Vec::with_capacity(batch.data().len());
        for from in (0..batch.len()).step_by(block) {
            let items = from..batch.len().min(from + block);
            let (seen, gradient) =
                self.both_ways(ways, many, batch, items.clone(), |seen| d(items, seen))?;
            outputs.append(&seen)?;
            all.extend(gradient);
        }
        let Description { preprocess, fed, .. } = self.description.as_ref();
        let gradient = preprocess.pullback(batch.signal(), *fed, &all);
        Ok((outputs, Batch::new(batch.signal(), gradient)?))
    }

    /// There and back for some items, at least one, in micro-batches of `many` as far as they
    /// go round: what they gave, and the gradient before normalisation.
    fn both_ways(
        &self,
        ways: &Ways,
        many: Option<&Back>,
        batch: &Batch<'_>,
        items: Range<usize>,
        d: impl FnOnce(&Outputs) -> Result<Cotangents>,
    ) -> Result<(Outputs, Vec<f32>)> {
        let engine = self.network.engine.as_ref();
        let sizes: Vec<usize> =
            many.map(|many| many.items).into_iter().chain([self.batching.smallest()]).collect();
        let pieces = pieces(items.clone(), &sizes);
        let there = |lane, _, piece: &Piece| self.there(ways, lane, batch, piece);
        let left = self.batching.each(engine, ways.lane_matters, &pieces, there)?;
        let (kept, pooled): (Vec<_>, Vec<_>) = left.into_iter().unzip();
        let seen = match joined(pooled)? {
            Some(pooled) => self.network.projected(pooled),
            None => self.network.no_outputs()?,
        };
        let derivatives = self.network.derivatives(seen.len(), &d(&seen)?)?;
        let back = |lane, at: usize, piece: &Piece| {
            let from = piece.items[0] - items.start;
            let rows = from..from + piece.count;
            match &ways.by {
                By::Graphs(graphs) => {
                    let way = many.filter(|many| many.items == piece.items.len());
                    self.back(
                        graphs,
                        way.unwrap_or(&graphs.few),
                        lane,
                        &kept[at],
                        &derivatives,
                        rows,
                    )
                }
                By::Engine => self.back_by_engine(lane, batch, piece, &derivatives, rows),
            }
        };
        let parts = self.batching.each(engine, ways.lane_matters, &pieces, back)?;
        Ok((seen, parts.concat()))
    }

    /// The way there for a micro-batch: what it leaves for the way back, and what it gave.
    fn there(
        &self,
        ways: &Ways,
        lane: Lane,
        batch: &Batch<'_>,
        piece: &Piece,
    ) -> Result<(Vec<Value>, Outputs)> {
        let batch = piece.of(batch);
        let By::Graphs(graphs) = &ways.by else {
            let values = self.network.forward(&self.description, lane, &batch)?;
            return Ok((vec![], self.network.pooled(&values, batch.len(), piece.count)?));
        };
        let wanted: Vec<usize> = (0..graphs.tensors).collect();
        let shape = self.description.shape(batch.len());
        let data = self.description.preprocess.normalise(&batch, self.description.fed);
        let input = Input { name: &self.network.input, shape: &shape, data: &data };
        let values = graphs.there.run_on(lane, &[input], &wanted)?;
        let seen = self.network.pooled(&values, batch.len(), piece.count)?;
        Ok((values, seen))
    }

    /// The way back for a micro-batch, whose items are some rows of the derivatives.
    fn back(
        &self,
        graphs: &Graphs,
        way: &Back,
        lane: Lane,
        values: &[Value],
        derivatives: &[Option<Matrix>],
        rows: Range<usize>,
    ) -> Result<Vec<f32>> {
        let mut filled = Vec::with_capacity(derivatives.len());
        for (shape, derivative) in way.shapes.iter().zip(derivatives) {
            filled.push(filled_up(shape, derivative.as_ref(), &rows)?);
        }
        let mut inputs = Vec::with_capacity(graphs.kept.len() + filled.len());
        for (name, at) in &graphs.kept {
            let v = &values[*at];
            inputs.push(Input { name, shape: &v.shape, data: &v.data });
        }
        for ((name, shape), data) in way.ends.iter().zip(&way.shapes).zip(&filled) {
            inputs.push(Input { name, shape, data });
        }
        let mut values = way.engine.run_on(lane, &inputs, &[0])?;
        let gradient = values.pop().map(|v| v.data.into()).unwrap_or_default();
        self.first(gradient, way.items, rows.len())
    }

    /// As [`Model::back`], by the network's own engine.
    fn back_by_engine(
        &self,
        lane: Lane,
        batch: &Batch<'_>,
        piece: &Piece,
        derivatives: &[Option<Matrix>],
        rows: Range<usize>,
    ) -> Result<Vec<f32>> {
        let items = piece.items.len();
        let logits = [self.classes()];
        let shapes = std::iter::once(&logits[..]).chain((1..derivatives.len()).map(|at| {
            let tap = self.network.taps.iter().find(|tap| tap.places == [at]);
            tap.map_or(&[][..], |tap| &tap.shape)
        }));
        let value = |(shape, derivative): (&[usize], &Option<Matrix>)| {
            let Some(derivative) = derivative else { return Ok(None) };
            let shape: Vec<usize> = [items].iter().chain(shape).copied().collect();
            let data = filled_up(&shape, Some(derivative), &rows)?.into();
            Ok(Some(Value { shape, data }))
        };
        let d = shapes.zip(derivatives).map(value).collect::<Result<Vec<_>>>()?;
        let data = self.description.preprocess.normalise(&piece.of(batch), self.description.fed);
        let shape = self.description.shape(items);
        let input = Input { name: &self.network.input, shape: &shape, data: &data };
        self.first(self.network.engine.pullback_on(lane, input, &d)?, items, rows.len())
    }

    /// The first `count` of a gradient's `items`.
    fn first(&self, mut gradient: Vec<f32>, items: usize, count: usize) -> Result<Vec<f32>> {
        let size = self.description.fed.size();
        if gradient.len() != items * size {
            return Err(Error::shape("gradient", self.description.shape(items), gradient.len()));
        }
        gradient.truncate(count * size);
        Ok(gradient)
    }

    fn ways(&self) -> Result<&Ways> {
        let made = self.gradient.0.get();
        made.unwrap_or_else(|| apart(|| self.gradient.0.get_or_init(|| self.made_ways())))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn made_ways(&self) -> Result<Ways> {
        let by = match &self.network.graph {
            Some(graph) => By::Graphs(self.graphs(graph)?.into()),
            None if self.network.engine.has_pullback() => By::Engine,
            None => {
                let all = format!("the {} engine, which brings none", self.engine());
                return Err(Error::Gradient { path: self.description.name.clone(), all });
            }
        };
        let mut ways = Ways { by, lane_matters: self.batching.lane_matters };
        if !ways.lane_matters && self.network.engine.lanes() > 1 {
            ways.lane_matters =
                self.bits_on(&ways, Lane::Whole)? != self.bits_on(&ways, Lane::One(0))?;
        }
        Ok(ways)
    }

    /// The bits that made-up items get on a lane.
    fn bits_on(&self, ways: &Ways, lane: Lane) -> Result<Vec<u32>> {
        let items = self.batching.smallest();
        let batch = describe::specimen(self.description.fed, items)?;
        let piece = Piece { items: (0..items).collect(), count: items };
        let (kept, pooled) = self.there(ways, lane, &batch, &piece)?;
        let seen = self.network.projected(pooled);
        let derivatives = self.network.derivatives(items, &same(&seen))?;
        let gradient = match &ways.by {
            By::Graphs(graphs) => {
                self.back(graphs, &graphs.few, lane, &kept, &derivatives, 0..items)?
            }
            By::Engine => self.back_by_engine(lane, &batch, &piece, &derivatives, 0..items)?,
        };
        Ok(seen.logits.data().iter().chain(&gradient).map(|v| v.to_bits()).collect())
    }

    fn graphs(&self, graph: &Graph) -> Result<Graphs> {
        let mut tensors = self.network.tensors.clone();
        let smallest = self.batching.smallest();
        let (few, kept) = self.way_back(graph, smallest)?;
        let kept = kept.into_iter().map(|name| {
            let at = tensors.iter().position(|t| *t == name).unwrap_or_else(|| {
                tensors.push(name.clone());
                tensors.len() - 1
            });
            (name, at)
        });
        let kept = kept.collect();
        let with_products = products::rewritten(graph, &self.network.sizes)?;
        let there = self.loaded(with_products.as_ref().unwrap_or(graph), &tensors)?;
        let shape = self.description.shape(smallest);
        let zeros = vec![0.0; shape.iter().product()];
        let input = Input { name: &self.network.input, shape: &shape, data: &zeros };
        let left = there.run(&[input], &(0..tensors.len()).collect::<Vec<_>>())?;
        let size = left.iter().map(|v| v.data.len()).sum::<usize>().div_ceil(smallest);
        let (tensors, many) = (tensors.len(), OnceLock::new());
        Ok(Graphs { there, kept, tensors, size, few, many })
    }

    fn loaded(&self, graph: &Graph, names: &[String]) -> Result<Box<dyn Engine>> {
        let options = &self.description.options;
        engine::load(&options.engine, graph, names, options.threads)
    }

    /// The way back for micro-batches of a size, and what it reads of the way there.
    fn way_back(&self, graph: &Graph, items: usize) -> Result<(Back, Vec<String>)> {
        let (input, shape) = (&self.network.input, self.description.shape(items));
        let once = describe::once(&self.description.options.engine, input, &shape);
        let built = gradient::build(graph, input, &shape, &self.network.tensors, &once)?;
        let (graph, kept) = built.backward()?;
        let engine = self.loaded(&graph, &[built.output])?;
        Ok((Back { engine, ends: built.ends, shapes: built.shapes, items }, kept))
    }

    /// The way back for large micro-batches, if made-up items get the same bits from it.
    fn many<'a>(&self, ways: &'a Ways) -> Result<Option<&'a Back>> {
        let (By::Graphs(graphs), Some(graph)) = (&ways.by, &self.network.graph) else {
            return Ok(None);
        };
        let micro_batch = self.micro_batch();
        if micro_batch == self.batching.smallest() || micro_batch * graphs.size > KEPT {
            return Ok(None);
        }
        let tried = || self.tried_many(ways, graphs, graph);
        let made = graphs.many.get();
        let made = made.unwrap_or_else(|| apart(|| graphs.many.get_or_init(tried)));
        made.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    fn tried_many(&self, ways: &Ways, graphs: &Graphs, graph: &Graph) -> Result<Option<Back>> {
        let (way, kept) = self.way_back(graph, self.micro_batch())?;
        let batch = describe::specimen(self.description.fed, self.micro_batch())?;
        let bits = |many: Option<&Back>| -> Result<Vec<u32>> {
            let same = |seen: &Outputs| Ok(same(seen));
            let (_, gradient) = self.both_ways(ways, many, &batch, 0..batch.len(), same)?;
            Ok(gradient.iter().map(|v| v.to_bits()).collect())
        };
        let alike = kept.iter().eq(graphs.kept.iter().map(|(name, _)| name))
            && bits(None)? == bits(Some(&way))?;
        Ok(Some(way).filter(|_| alike))
    }

    /// Whether large micro-batches have a way back of their own.
    #[cfg(test)]
    pub(super) fn has_large_way_back(&self) -> bool {
        self.ways().and_then(|ways| self.many(ways)).unwrap().is_some()
    }
}

/// Derivatives to try a gradient with: the outputs themselves.
fn same(seen: &Outputs) -> Cotangents {
    let features = seen.features.iter().cloned().map(Some).collect();
    Cotangents { logits: Some(seen.logits.clone()), features }
}

/// Some rows of a derivative as a tensor of a shape, filled up with zeros.
fn filled_up(
    shape: &[usize],
    derivative: Option<&Matrix>,
    rows: &Range<usize>,
) -> Result<Vec<f32>> {
    let mut data = vec![0.0; shape.iter().product()];
    if let Some(derivative) = derivative {
        let from = &derivative.data()[rows.start * derivative.cols()..rows.end * derivative.cols()];
        let to = data.get_mut(..from.len());
        to.ok_or_else(|| Error::shape("derivative", shape, derivative.cols()))?
            .copy_from_slice(from);
    }
    Ok(data)
}
