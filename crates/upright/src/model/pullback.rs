//! Derivatives of a scalar with respect to outputs, as derivatives with respect
//! to raw items.

use std::ops::Range;
use std::sync::OnceLock;

use crate::engine::{self, Engine, Input, Lane, Value};
use crate::error::{Error, Result};
use crate::model::pieces::{Piece, joined, pieces};
use crate::model::{Model, describe};
use crate::onnx::{Graph, gradient, products};
use crate::outputs::{Cotangents, Outputs};
use crate::tensor::{Batch, Matrix};

/// Most numbers kept between the way there and the way back: 128 MiB.
const KEPT: usize = 32 << 20;

/// Both ways through the graph, ready to run.
#[derive(Debug)]
pub(super) struct Backward {
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
    many: OnceLock<Option<Back>>,
}

/// The way back for micro-batches of one size.
#[derive(Debug)]
pub(super) struct Back {
    engine: Box<dyn Engine>,
    seeds: Vec<String>,
    shapes: Vec<Vec<usize>>,
    items: usize,
}

impl Model {
    /// Whether the model has a gradient; if not, the error names every operator that lacks
    /// one. The first call prepares the gradient, which takes as long as loading the model.
    pub fn differentiable(&self) -> Result<()> {
        self.backward().map(|_| ())
    }

    /// The derivative of a scalar with respect to raw items, given its derivatives with
    /// respect to their [`Outputs`]. A row does not depend on the others.
    pub fn pullback(&self, batch: &Batch, d: &Cotangents) -> Result<Batch> {
        let rows = |m: &Matrix, items: &Range<usize>| -> Result<Matrix> {
            if m.rows() != batch.len() {
                return Err(Error::shape("derivatives", batch.len(), m.rows()));
            }
            Ok(m.select(&items.clone().collect::<Vec<_>>()))
        };
        let part = |items: Range<usize>, _: &Outputs| {
            let of = |m: &Option<Matrix>| m.as_ref().map(|m| rows(m, &items)).transpose();
            let features = d.features.iter().map(of).collect::<Result<_>>()?;
            Ok(Cotangents { logits: of(&d.logits)?, features })
        };
        Ok(self.run_with_pullback(batch, part)?.1)
    }

    /// Runs raw items and pulls the derivatives of a scalar back to them. `d` is asked for
    /// these derivatives once a stretch of items, with their positions and what they gave. The
    /// outputs are those of [`Model::run`] up to rounding.
    pub fn run_with_pullback(
        &self,
        batch: &Batch,
        mut d: impl FnMut(Range<usize>, &Outputs) -> Result<Cotangents>,
    ) -> Result<(Outputs, Batch)> {
        self.check_signal(batch)?;
        let ways = self.backward()?;
        let many = if batch.len() < self.micro_batch { None } else { self.many(ways)? };
        let size = many.map_or(self.smallest(), |many| many.items);
        let stretch = self.stretch().min((KEPT / (size * ways.size).max(1)).max(1) * size);
        let mut outputs = self.no_outputs()?;
        let mut all = Vec::with_capacity(batch.data().len());
        for from in (0..batch.len()).step_by(stretch) {
            let items = from..batch.len().min(from + stretch);
            let (seen, gradient) =
                self.both_ways(ways, many, batch, items.clone(), |seen| d(items, seen))?;
            outputs.append(&seen)?;
            all.extend(gradient);
        }
        let gradient = self.preprocess.pullback(self.signal, &all);
        Ok((outputs, Batch::new(self.signal, gradient)?))
    }

    /// There and back for some items, at least one, in micro-batches of `many` as far as they
    /// go round: what they gave, and the gradient before normalisation.
    fn both_ways(
        &self,
        ways: &Backward,
        many: Option<&Back>,
        batch: &Batch,
        items: Range<usize>,
        d: impl FnOnce(&Outputs) -> Result<Cotangents>,
    ) -> Result<(Outputs, Vec<f32>)> {
        let sizes: Vec<usize> =
            many.map(|many| many.items).into_iter().chain([self.smallest()]).collect();
        let pieces = pieces(items.clone(), &sizes);
        let left = self.share(&pieces, |lane, _, piece| self.there(ways, lane, batch, piece))?;
        let (kept, pooled): (Vec<_>, Vec<_>) = left.into_iter().unzip();
        let seen = match joined(pooled)? {
            Some(pooled) => self.projected(pooled),
            None => self.no_outputs()?,
        };
        let seeds = self.seeds(seen.len(), &d(&seen)?)?;
        let parts = self.share(&pieces, |lane, at, piece| {
            let way = many.filter(|many| many.items == piece.items.len()).unwrap_or(&ways.few);
            let from = piece.items[0] - items.start;
            self.back(ways, way, lane, &kept[at], &seeds, from..from + piece.count)
        })?;
        Ok((seen, parts.concat()))
    }

    /// The way there for a micro-batch: what it leaves for the way back, and what it gave.
    fn there(
        &self,
        ways: &Backward,
        lane: Lane,
        batch: &Batch,
        piece: &Piece,
    ) -> Result<(Vec<Value>, Outputs)> {
        let wanted: Vec<usize> = (0..ways.tensors).collect();
        let shape = self.shape(piece.items.len());
        let data = self.preprocess.normalise(&batch.select(&piece.items));
        let input = Input { name: &self.input, shape: &shape, data: &data };
        let values = ways.there.run_on(lane, &[input], &wanted)?;
        let seen = self.pooled(&values, piece.items.len(), piece.count)?;
        Ok((values, seen))
    }

    /// The way back for a micro-batch, whose items are some rows of the seeds.
    fn back(
        &self,
        ways: &Backward,
        way: &Back,
        lane: Lane,
        values: &[Value],
        seeds: &[Option<Matrix>],
        rows: Range<usize>,
    ) -> Result<Vec<f32>> {
        let mut filled = Vec::with_capacity(seeds.len());
        for (shape, seed) in way.shapes.iter().zip(seeds) {
            let mut data = vec![0.0; shape.iter().product()];
            if let Some(seed) = seed {
                let from = &seed.data()[rows.start * seed.cols()..rows.end * seed.cols()];
                let to = data.get_mut(..from.len());
                to.ok_or_else(|| Error::shape("derivative", shape, seed.cols()))?
                    .copy_from_slice(from);
            }
            filled.push(data);
        }
        let mut inputs = Vec::with_capacity(ways.kept.len() + filled.len());
        for (name, at) in &ways.kept {
            let v = &values[*at];
            inputs.push(Input { name, shape: &v.shape, data: &v.data });
        }
        for ((name, shape), data) in way.seeds.iter().zip(&way.shapes).zip(&filled) {
            inputs.push(Input { name, shape, data });
        }
        let mut values = way.engine.run_on(lane, &inputs, &[0])?;
        let size = self.signal.size();
        match values.pop() {
            Some(v) if v.data.len() == way.items * size => Ok(v.data[..rows.len() * size].to_vec()),
            other => Err(Error::shape("gradient", self.shape(way.items), other.map(|v| v.shape))),
        }
    }

    /// The shape of a micro-batch.
    fn shape(&self, items: usize) -> Vec<usize> {
        let mut shape = vec![items];
        shape.extend(self.signal.shape());
        shape
    }

    pub(super) fn backward(&self) -> Result<&Backward> {
        if let Some(ready) = self.backward.get() {
            return Ok(ready);
        }
        let mut tensors = self.tensors();
        let (few, kept) = self.way_back(self.smallest())?;
        let kept = kept.into_iter().map(|name| {
            let at = tensors.iter().position(|t| *t == name).unwrap_or_else(|| {
                tensors.push(name.clone());
                tensors.len() - 1
            });
            (name, at)
        });
        let kept = kept.collect();
        let with_products = products::rewritten(&self.graph, &self.sizes)?;
        let there = self.loaded(with_products.as_ref().unwrap_or(&self.graph), &tensors)?;
        let shape = self.shape(self.smallest());
        let zeros = vec![0.0; shape.iter().product()];
        let input = Input { name: &self.input, shape: &shape, data: &zeros };
        let left = there.run(&[input], &(0..tensors.len()).collect::<Vec<_>>())?;
        let size = left.iter().map(|v| v.data.len()).sum::<usize>().div_ceil(self.smallest());
        let (tensors, many) = (tensors.len(), OnceLock::new());
        Ok(self.backward.get_or_init(|| Backward { there, kept, tensors, size, few, many }))
    }

    fn loaded(&self, graph: &Graph, names: &[String]) -> Result<Box<dyn Engine>> {
        engine::load(&self.options.engine, graph, names, self.options.threads)
    }

    /// The way back for micro-batches of a size, and what it reads of the way there.
    fn way_back(&self, items: usize) -> Result<(Back, Vec<String>)> {
        let shape = self.shape(items);
        let once = describe::once(&self.options.engine, &self.input, &shape);
        let built = gradient::build(&self.graph, &self.input, &shape, &self.tensors(), &once)?;
        let (graph, kept) = built.backward()?;
        let engine = self.loaded(&graph, &[built.output])?;
        Ok((Back { engine, seeds: built.seeds, shapes: built.shapes, items }, kept))
    }

    /// The way back for large micro-batches, if made-up items get the same bits from it.
    pub(super) fn many<'a>(&self, ways: &'a Backward) -> Result<Option<&'a Back>> {
        if self.micro_batch == self.smallest() || self.micro_batch * ways.size > KEPT {
            return Ok(None);
        }
        if let Some(tried) = ways.many.get() {
            return Ok(tried.as_ref());
        }
        let (way, kept) = self.way_back(self.micro_batch)?;
        let batch = describe::specimen(self.signal, self.micro_batch)?;
        let bits = |many: Option<&Back>| -> Result<Vec<u32>> {
            let same = |seen: &Outputs| {
                let features = seen.features.iter().cloned().map(Some).collect();
                Ok(Cotangents { logits: Some(seen.logits.clone()), features })
            };
            let (_, gradient) = self.both_ways(ways, many, &batch, 0..batch.len(), same)?;
            Ok(gradient.iter().map(|v| v.to_bits()).collect())
        };
        let alike = kept.iter().eq(ways.kept.iter().map(|(name, _)| name))
            && bits(None)? == bits(Some(&way))?;
        Ok(ways.many.get_or_init(|| Some(way).filter(|_| alike)).as_ref())
    }

    /// The tensors that the engine computes: the logits, then what is tapped.
    fn tensors(&self) -> Vec<String> {
        let mut names = vec![self.ending.logits.clone()];
        for tap in &self.taps {
            for (&at, name) in tap.wanted.iter().zip(&tap.tensors) {
                if at >= names.len() {
                    names.resize(at + 1, String::new());
                }
                names[at].clone_from(name);
            }
        }
        names
    }

    /// For each tensor the engine computes, the derivative with respect to its rows.
    fn seeds(&self, rows: usize, d: &Cotangents) -> Result<Vec<Option<Matrix>>> {
        let check = |what: &str, m: &Matrix, cols: usize| {
            if (m.rows(), m.cols()) == (rows, cols) {
                return Ok(());
            }
            Err(Error::shape(what, (rows, cols), (m.rows(), m.cols())))
        };
        let count = self.tensors().len();
        let mut seeds: Vec<Option<Matrix>> = vec![None; count];
        if let Some(m) = &d.logits {
            check("derivative of the logits", m, self.classes)?;
            seeds[0] = Some(m.clone());
        }
        if d.features.len() > self.taps.len() {
            return Err(Error::shape("taps", self.taps.len(), d.features.len()));
        }
        for (tap, m) in self.taps.iter().zip(&d.features) {
            let Some(m) = m else { continue };
            check("derivative of the features", m, tap.len())?;
            let back = tap.reduction.pullback(m)?;
            let mut from = 0;
            for (&at, &cols) in tap.wanted.iter().zip(&tap.widths) {
                let part = |i: usize| &back.row(i)[from..from + cols];
                let data: Vec<f32> = (0..rows).flat_map(|i| part(i).iter().copied()).collect();
                from += cols;
                match &mut seeds[at] {
                    Some(sum) => {
                        sum.data_mut().iter_mut().zip(&data).for_each(|(s, d)| *s += d);
                    }
                    empty => *empty = Some(Matrix::new(rows, cols, data)?),
                }
            }
        }
        Ok(seeds)
    }
}
