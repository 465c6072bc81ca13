//! Derivatives of a scalar with respect to outputs, as derivatives with respect
//! to raw items.

use crate::engine::{self, Engine, Input};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::onnx::gradient;
use crate::outputs::{Cotangents, Outputs};
use crate::tensor::{Batch, Matrix};

/// The gradient graph, ready to run.
#[derive(Debug)]
pub(super) struct Backward {
    engine: Box<dyn Engine>,
    seeds: Vec<String>,
    shapes: Vec<Vec<usize>>,
}

impl Model {
    /// Whether the model has a gradient; if not, the error names every operator that lacks
    /// one. The first call prepares the gradient, which takes as long as loading the model.
    pub fn differentiable(&self) -> Result<()> {
        self.backward().map(|_| ())
    }

    /// The derivative of a scalar with respect to raw items, given its derivatives with
    /// respect to their [`Outputs`]. A row does not depend on the others. Costs about as
    /// much as two to three forward passes.
    pub fn pullback(&self, batch: &Batch, d: &Cotangents) -> Result<Batch> {
        if batch.signal() != self.signal {
            return Err(Error::shape(
                format!("input `{}`", self.input),
                self.signal.shape(),
                batch.signal().shape(),
            ));
        }
        let backward = self.backward()?;
        let seeds = self.seeds(batch.len(), d)?;
        let mut shape = vec![self.micro_batch];
        shape.extend(self.signal.shape());
        let size: usize = self.signal.shape().iter().product();
        let mut all = Vec::with_capacity(batch.len() * size);
        for from in (0..batch.len()).step_by(self.micro_batch) {
            let count = self.micro_batch.min(batch.len() - from);
            let items: Vec<usize> =
                (0..self.micro_batch).map(|i| from + i.min(count - 1)).collect();
            let data = self.preprocess.normalise(&batch.select(&items));
            let rows: Vec<Vec<f32>> = backward
                .shapes
                .iter()
                .zip(&seeds)
                .map(|(shape, seed)| {
                    let mut rows = vec![0.0; shape.iter().product()];
                    if let Some(seed) = seed {
                        let given = &seed.data()[from * seed.cols()..(from + count) * seed.cols()];
                        let to = rows.get_mut(..given.len());
                        to.ok_or_else(|| Error::shape("derivative", shape, seed.cols()))?
                            .copy_from_slice(given);
                    }
                    Ok(rows)
                })
                .collect::<Result<_>>()?;
            let mut inputs = vec![Input { name: &self.input, shape: &shape, data: &data }];
            for ((name, shape), data) in backward.seeds.iter().zip(&backward.shapes).zip(&rows) {
                inputs.push(Input { name, shape, data });
            }
            let values = backward.engine.run(&inputs, &[0])?;
            let Some(value) = values.first().filter(|v| v.data.len() == data.len()) else {
                return Err(Error::shape("gradient", data.len(), values.len()));
            };
            all.extend_from_slice(&value.data[..count * size]);
        }
        Batch::new(self.signal, self.preprocess.pullback(self.signal, &all))
    }

    /// Runs raw items, asks for the derivatives of a scalar with respect to what came out,
    /// and pulls those back to the items.
    pub fn run_with_pullback(
        &self,
        batch: &Batch,
        d: impl FnOnce(&Outputs) -> Result<Cotangents>,
    ) -> Result<(Outputs, Batch)> {
        let outputs = self.run(batch)?;
        let d = d(&outputs)?;
        let gradient = self.pullback(batch, &d)?;
        Ok((outputs, gradient))
    }

    fn backward(&self) -> Result<&Backward> {
        if let Some(ready) = self.backward.get() {
            return Ok(ready);
        }
        let mut shape = vec![self.micro_batch];
        shape.extend(self.signal.shape());
        let zeros = vec![0.0; shape.iter().product()];
        let load = |graph: &_, names: &[String]| {
            engine::load(&self.options.engine, graph, names, self.options.threads)
        };
        let run = |graph: &_, names: &[String]| -> Result<Vec<Vec<f32>>> {
            let input = Input { name: &self.input, shape: &shape, data: &zeros };
            let all: Vec<usize> = (0..names.len()).collect();
            let values = load(graph, names)?.run(&[input], &all)?;
            Ok(values.into_iter().map(|v| v.data).collect())
        };
        let seeds = self.tensors();
        let built = gradient::build(&self.graph, &self.input, &shape, &seeds, &[], &run)?;
        let engine = load(&built.graph, &[built.output])?;
        let ready = Backward { engine, seeds: built.seeds, shapes: built.shapes };
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
