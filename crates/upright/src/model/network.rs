//! [`Network`]: what is run. An engine, the tensors it computes, and the taps
//! that read them.

use std::sync::Arc;

use super::describe;
use super::description::Description;
use super::taps::{self, Asked, Tapped};
use crate::engine::{Engine, Input, Lane, Value};
use crate::error::{Error, Result};
use crate::onnx::Graph;
use crate::onnx::facts::Facts;
use crate::outputs::{Cotangents, Head, Outputs};
use crate::tensor::{Batch, Matrix};

/// Largest difference, relative to the largest logit, between the network's logits and
/// those of its head.
const HEAD_TOLERANCE: f32 = 1e-3;

/// An engine and what it computes.
#[derive(Debug)]
pub(super) struct Network {
    /// What the engine runs; none if somebody else knows.
    pub(super) graph: Option<Graph>,
    /// What decides which convolutions run as products.
    pub(super) sizes: Facts,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) input: String,
    /// What the engine computes: the logits, then what is tapped.
    pub(super) tensors: Vec<String>,
    pub(super) taps: Vec<Tapped>,
    pub(super) classes: usize,
    pub(super) head: Option<Head>,
}

impl Network {
    /// One micro-batch through the engine: every tensor that it computes.
    pub(super) fn forward(
        &self,
        description: &Description,
        lane: Lane,
        batch: &Batch<'_>,
    ) -> Result<Vec<Value>> {
        let shape = description.shape(batch.len());
        let data = description.preprocess.normalise(batch, description.fed);
        let wanted: Vec<usize> = (0..self.tensors.len()).collect();
        let input = Input { name: &self.input, shape: &shape, data: &data };
        let values = self.engine.run_on(lane, &[input], &wanted)?;
        if values.len() != wanted.len() {
            return Err(Error::shape("tensors from the engine", wanted.len(), values.len()));
        }
        Ok(values)
    }

    /// Learns sizes from what some items gave.
    pub(super) fn learn(
        &mut self,
        name: &str,
        taps: Vec<Asked>,
        values: &[Value],
        items: usize,
    ) -> Result<()> {
        self.classes = describe::classes(&values[0], items).ok_or_else(|| {
            let (logits, shape) = (&self.tensors[0], &values[0].shape);
            if self.graph.is_none() {
                return Error::shape(format!("logits of {name}"), (items, "classes"), shape);
            }
            let what = format!("output `{logits}` is {shape:?} for a batch of {items}");
            describe::unusable(name, format!("{what}; a classifier gives [N,classes]"))
        })?;
        self.taps = taps::fitted(taps, &self.tensors, values, items)?;
        Ok(())
    }

    /// Whether a head gives the logits of the first tap's features, here of some items; logits
    /// may be rounded by so much.
    pub(super) fn agrees(
        &self,
        head: &Head,
        rounding: f32,
        values: &[Value],
        items: usize,
    ) -> Result<bool> {
        let outputs = self.projected(self.pooled(values, items, items)?);
        let Some(features) = outputs.features.first() else { return Ok(false) };
        if (head.weight.cols(), head.weight.rows()) != (features.cols(), outputs.logits.cols()) {
            return Ok(false);
        }
        let top = outputs.logits.data().iter().fold(1.0f32, |a, v| a.max(v.abs()));
        Ok(features.iter().zip(outputs.logits.iter()).all(|(f, z)| {
            head.weight.iter().zip(&head.bias).zip(z).all(|((w, b), z)| {
                let sum: f64 = w.iter().zip(f).map(|(w, f)| f64::from(w * f)).sum();
                let off = (sum as f32 + b - z).abs();
                off <= rounding + HEAD_TOLERANCE * top || off.is_nan()
            })
        }))
    }

    /// Outputs of no items.
    pub(super) fn no_outputs(&self) -> Result<Outputs> {
        Outputs::new(
            Matrix::zeros(0, self.classes),
            self.taps.iter().map(|t| Matrix::zeros(0, t.features)).collect(),
        )
    }

    /// Numbers that one item leaves before they are projected.
    pub(super) fn width(&self) -> usize {
        self.classes + self.taps.iter().map(|t| t.reduction.pooled()).sum::<usize>()
    }

    /// The first `count` rows of what a micro-batch of `items` gave, with features pooled but
    /// not yet projected.
    pub(super) fn pooled(&self, values: &[Value], items: usize, count: usize) -> Result<Outputs> {
        let logits = first_rows(&values[0], items, self.classes, count)?.to_vec();
        let logits = Matrix::new(count, self.classes, logits)?;
        let mut features = Vec::with_capacity(self.taps.len());
        for tap in &self.taps {
            let parts: Vec<(&[f32], usize)> = tap
                .places
                .iter()
                .map(|&i| {
                    let cols = values[i].data.len() / items;
                    Ok((first_rows(&values[i], items, cols, count)?, cols))
                })
                .collect::<Result<_>>()?;
            let mut joined = Vec::with_capacity(count * tap.reduction.size());
            for i in 0..count {
                for (data, cols) in &parts {
                    joined.extend_from_slice(&data[i * cols..(i + 1) * cols]);
                }
            }
            let raw = Matrix::new(count, tap.reduction.size(), joined)?;
            features.push(tap.reduction.pool(raw)?);
        }
        Outputs::new(logits, features)
    }

    /// Pooled features to reduced ones.
    pub(super) fn projected(&self, pooled: Outputs) -> Outputs {
        let features = self.taps.iter().zip(pooled.features);
        Outputs {
            logits: pooled.logits,
            features: features.map(|(tap, f)| tap.reduction.project(f)).collect(),
        }
    }

    /// For each tensor the engine computes, the derivative with respect to its rows.
    pub(super) fn derivatives(&self, rows: usize, d: &Cotangents) -> Result<Vec<Option<Matrix>>> {
        let check = |what: &str, m: &Matrix, cols: usize| {
            if (m.rows(), m.cols()) == (rows, cols) {
                return Ok(());
            }
            Err(Error::shape(what, (rows, cols), (m.rows(), m.cols())))
        };
        let mut derivatives: Vec<Option<Matrix>> = vec![None; self.tensors.len()];
        if let Some(m) = &d.logits {
            check("derivative of the logits", m, self.classes)?;
            derivatives[0] = Some(m.clone());
        }
        if d.features.len() > self.taps.len() {
            return Err(Error::shape("taps", self.taps.len(), d.features.len()));
        }
        for (tap, m) in self.taps.iter().zip(&d.features) {
            let Some(m) = m else { continue };
            check("derivative of the features", m, tap.features)?;
            let back = tap.reduction.pullback(m)?;
            let mut from = 0;
            for (&at, &cols) in tap.places.iter().zip(&tap.widths) {
                let part = |i: usize| &back.row(i)[from..from + cols];
                let data: Vec<f32> = (0..rows).flat_map(|i| part(i).iter().copied()).collect();
                from += cols;
                match &mut derivatives[at] {
                    Some(sum) => {
                        sum.data_mut().iter_mut().zip(&data).for_each(|(s, d)| *s += d);
                    }
                    empty => *empty = Some(Matrix::new(rows, cols, data)?),
                }
            }
        }
        Ok(derivatives)
    }
}

/// The first `count` of a tensor's `items` rows, which must be `cols` long.
fn first_rows(value: &Value, items: usize, cols: usize, count: usize) -> Result<&[f32]> {
    if value.data.len() != items * cols {
        return Err(Error::shape("tensor from the engine", (items, cols), &value.shape));
    }
    Ok(&value.data[..count * cols])
}
