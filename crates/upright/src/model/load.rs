//! Making a graph ready to run.

use std::sync::OnceLock;

use super::{Model, Options, Tapped, describe, pieces};
use crate::engine::{self, Lane};
use crate::error::{Error, Result};
use crate::onnx::facts::Facts;
use crate::onnx::{Dim, Graph, products};
use crate::outputs::{Head, Outputs};
use crate::preprocess::Overrides;
use crate::reduce::Reduce;

/// Largest difference, relative to the largest logit, between the model's logits and
/// those of its head.
const HEAD_TOLERANCE: f32 = 1e-3;

impl Model {
    pub(super) fn new(graph: Graph, beside: Overrides, options: &Options) -> Result<Self> {
        let input = describe::input(&graph)?;
        let said = options.preprocess.clone().or(beside).or(Overrides::from_metadata(&graph));
        let (signal, said) = describe::signal(&graph, &input, said, options)?;
        let preprocess = options.exact.clone().unwrap_or(said);
        let output = describe::output(&graph, options.output.as_deref())?;
        let ending = graph.ending(&output);
        let fixed = match input.dims.as_deref() {
            Some([Dim::Fixed(n), ..]) if *n > 0 => Some(*n),
            _ => None,
        };
        let row = engine::row(&options.engine)?;
        let mut shape = vec![fixed.unwrap_or(1)];
        shape.extend(signal.shape());
        let sizes = if fixed.or(options.micro_batch) == Some(1) {
            Facts::default()
        } else {
            // What an engine cannot run is reported when it is loaded.
            let once = describe::once(row.name, &input.name, &shape);
            products::learn(&graph, &input.name, &shape, &once).unwrap_or_default()
        };
        let with_products = products::rewritten(&graph, &sizes)?;
        let usual = pieces::usual(&graph, with_products.is_some()).max(row.make.micro_batch);
        let micro_batch = fixed.or(options.micro_batch).unwrap_or(usual).max(1);
        let mut wanted = vec![ending.logits.clone()];
        let mut taps = Vec::new();
        for tap in &options.taps {
            let tensors = describe::tensors(&graph, &output, &ending, &tap.name)?;
            let at = tensors.iter().map(|t| {
                wanted.iter().position(|w| w == t).unwrap_or_else(|| {
                    wanted.push(t.clone());
                    wanted.len() - 1
                })
            });
            let at: Vec<usize> = at.collect();
            let reduction = Reduce::None.fit(&[1])?;
            let (name, reduce) = (tap.name.clone(), tap.reduce);
            taps.push(Tapped { name, tensors, wanted: at, widths: vec![], reduce, reduction });
        }
        let engine =
            (row.make.load)(with_products.as_ref().unwrap_or(&graph), &wanted, options.threads)?;
        let mut model = Model {
            graph,
            sizes,
            engine,
            input: input.name,
            output,
            signal,
            preprocess,
            ending,
            taps,
            micro_batch,
            smaller: Vec::new(),
            lane_matters: false,
            classes: 0,
            head: None,
            class_names: None,
            options: Options { engine: row.name.into(), ..options.clone() },
            backward: OnceLock::new(),
        };
        model.try_sizes(fixed.is_some(), options.micro_batch.is_some())?;
        model.probe()?;
        Ok(model)
    }

    /// Runs once to learn sizes, and to see whether the head found in the graph is right.
    fn probe(&mut self) -> Result<()> {
        let batch = describe::specimen(self.signal, self.micro_batch)?;
        let values = self.forward(Lane::Whole, &batch)?;
        self.classes =
            describe::classes(&self.graph, &self.ending.logits, &values[0], batch.len())?;
        for tap in &mut self.taps {
            let shapes = tap.wanted.iter().map(|&i| {
                let shape = &values[i].shape;
                if shape.first() == Some(&batch.len()) && !values[i].data.is_empty() {
                    return Ok(&shape[1..]);
                }
                Err(Error::shape(
                    format!("tap `{}`", tap.name),
                    format!("{} items in the first dimension", batch.len()),
                    shape,
                ))
            });
            let shapes: Vec<&[usize]> = shapes.collect::<Result<_>>()?;
            tap.widths = shapes.iter().map(|s| s.iter().product()).collect();
            tap.reduction = match shapes.as_slice() {
                [one] => tap.reduce.fit(one)?,
                _ => tap.reduce.fit(&[tap.widths.iter().sum()])?,
            };
        }
        self.class_names = describe::class_names(&self.graph, self.classes);
        let outputs = self.read(&values, batch.len(), batch.len())?;
        let first =
            self.taps.first().filter(|t| t.tensors == self.ending.features && t.reduction.keeps());
        if first.is_some()
            && let Some(head) = &self.ending.head
            && agrees(head, &outputs)
        {
            self.head = Some(head.clone());
        }
        Ok(())
    }
}

/// Whether a head gives the logits of the outputs' first features.
fn agrees(head: &Head, outputs: &Outputs) -> bool {
    let Some(features) = outputs.features.first() else { return false };
    if (head.weight.cols(), head.weight.rows()) != (features.cols(), outputs.logits.cols()) {
        return false;
    }
    let top = outputs.logits.data().iter().fold(1.0f32, |a, v| a.max(v.abs()));
    features.iter().zip(outputs.logits.iter()).all(|(f, z)| {
        head.weight.iter().zip(&head.bias).zip(z).all(|((w, b), z)| {
            let sum: f64 = w.iter().zip(f).map(|(w, f)| f64::from(w * f)).sum();
            let off = (sum as f32 + b - z).abs();
            off <= HEAD_TOLERANCE * top || off.is_nan()
        })
    })
}
