//! Derivatives of a scalar with respect to outputs, as derivatives with respect
//! to raw items.

use std::ops::Range;

use crate::engine::{self, Engine, Input, Lane, Value};
use crate::error::{Error, Result};
use crate::model::pieces::{joined, pieces};
use crate::model::{Model, describe};
use crate::onnx::{gradient, products};
use crate::outputs::{Cotangents, Outputs};
use crate::tensor::{Batch, Matrix};

/// Most numbers kept between the way there and the way back: 128 MiB.
const KEPT: usize = 32 << 20;

/// Both ways through the graph, ready to run.
#[derive(Debug)]
pub(super) struct Backward {
    /// Computes logits, tapped tensors and what the way back reads.
    there: Box<dyn Engine>,
    back: Box<dyn Engine>,
    /// What the way back reads, and where the way there gives it.
    kept: Vec<(String, usize)>,
    seeds: Vec<String>,
    shapes: Vec<Vec<usize>>,
    /// How many tensors the way there computes.
    tensors: usize,
    /// Numbers that a micro-batch leaves between the way there and the way back.
    size: usize,
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
        let mut outputs = self.no_outputs()?;
        let mut all = Vec::with_capacity(batch.data().len());
        let most = (KEPT / ways.size.max(1)).max(1) * self.rest;
        let stretch = self.stretch().min(most);
        for from in (0..batch.len()).step_by(stretch) {
            let items = from..batch.len().min(from + stretch);
            let (kept, pooled): (Vec<_>, Vec<_>) =
                self.there(ways, batch, items.clone())?.into_iter().unzip();
            let Some(pooled) = joined(pooled)? else { continue };
            let seen = self.projected(pooled);
            let seeds = self.seeds(seen.len(), &d(items, &seen)?)?;
            let parts = self.share(&pieces(0..seen.len(), self.rest), |lane, items, count| {
                let (at, rows) = (items[0] / self.rest, items[0]..items[0] + count);
                self.back(ways, lane, &kept[at], &seeds, rows)
            })?;
            all.extend(parts.into_iter().flatten());
            outputs.append(&seen)?;
        }
        let gradient = self.preprocess.pullback(self.signal, &all);
        Ok((outputs, Batch::new(self.signal, gradient)?))
    }

    /// The way there for some items: what each micro-batch leaves for the way back, and what
    /// it gave.
    fn there(
        &self,
        ways: &Backward,
        batch: &Batch,
        items: Range<usize>,
    ) -> Result<Vec<(Vec<Value>, Outputs)>> {
        let wanted: Vec<usize> = (0..ways.tensors).collect();
        self.share(&pieces(items, self.rest), |lane, items, count| {
            let data = self.preprocess.normalise(&batch.select(items));
            let input = Input { name: &self.input, shape: &self.shape(), data: &data };
            let values = ways.there.run_on(lane, &[input], &wanted)?;
            let seen = self.pooled(&values, items.len(), count)?;
            Ok((values, seen))
        })
    }

    /// The way back for a micro-batch, whose items are some rows of the seeds.
    fn back(
        &self,
        ways: &Backward,
        lane: Lane,
        values: &[Value],
        seeds: &[Option<Matrix>],
        rows: Range<usize>,
    ) -> Result<Vec<f32>> {
        let mut filled = Vec::with_capacity(seeds.len());
        for (shape, seed) in ways.shapes.iter().zip(seeds) {
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
        for ((name, shape), data) in ways.seeds.iter().zip(&ways.shapes).zip(&filled) {
            inputs.push(Input { name, shape, data });
        }
        let mut values = ways.back.run_on(lane, &inputs, &[0])?;
        let size = self.signal.size();
        match values.pop() {
            Some(v) if v.data.len() == self.rest * size => Ok(v.data[..rows.len() * size].to_vec()),
            other => Err(Error::shape("gradient", self.shape(), other.map(|v| v.shape))),
        }
    }

    /// The shape of a micro-batch that goes both ways.
    fn shape(&self) -> Vec<usize> {
        let mut shape = vec![self.rest];
        shape.extend(self.signal.shape());
        shape
    }

    fn backward(&self) -> Result<&Backward> {
        if let Some(ready) = self.backward.get() {
            return Ok(ready);
        }
        let shape = self.shape();
        let zeros = vec![0.0; shape.iter().product()];
        let load = |graph: &_, names: &[String]| {
            engine::load(&self.options.engine, graph, names, self.options.threads)
        };
        let run = describe::once(&self.options.engine, &self.input, &shape);
        let mut tensors = self.tensors();
        let built = gradient::build(&self.graph, &self.input, &shape, &tensors, &run)?;
        let (graph, kept) = built.backward()?;
        let kept = kept.into_iter().map(|name| {
            let at = tensors.iter().position(|t| *t == name).unwrap_or_else(|| {
                tensors.push(name.clone());
                tensors.len() - 1
            });
            (name, at)
        });
        let kept = kept.collect();
        let with_products = products::rewritten(&self.graph, &self.sizes)?;
        let there = load(with_products.as_ref().unwrap_or(&self.graph), &tensors)?;
        let input = Input { name: &self.input, shape: &shape, data: &zeros };
        let left = there.run(&[input], &(0..tensors.len()).collect::<Vec<_>>())?;
        let ready = Backward {
            there,
            back: load(&graph, &[built.output])?,
            kept,
            seeds: built.seeds,
            shapes: built.shapes,
            tensors: tensors.len(),
            size: left.iter().map(|v| v.data.len()).sum(),
        };
        Ok(self.backward.get_or_init(|| ready))
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
