//! A network beside the classifier that says how unfamiliar a view looks. It
//! is shown the same raw items, prepares them by its own rules, and what it says
//! is one more tap, after those of the classifier.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::taps::Tapped;
use super::{Model, describe};
use crate::error::{Error, Result};
use crate::outputs::{Cotangents, Outputs};
use crate::tensor::{Batch, Matrix};

/// The name of the tap that holds what the network says.
const EXTERNAL: &str = "external";

/// Most numbers that it gives for an item: a score, or log-odds of two.
const MOST: usize = 2;

/// An energy network, with the taps of the classifier and its own.
#[derive(Debug, Clone)]
pub(super) struct External {
    model: Model,
    pub(super) taps: Vec<Tapped>,
}

impl Model {
    /// The same classifier with an energy network beside it, for the score `external`; both
    /// take items of the same shape.
    pub(crate) fn with_external(mut self, energy: Model) -> Result<Self> {
        check(&energy)?;
        let (own, fed) = (energy.description.fed, self.description.fed);
        if own != fed {
            let what = format!("input of the energy network {}", energy.description.name);
            return Err(Error::shape(what, fed.shape(), own.shape()));
        }
        let mut energy = energy;
        Arc::make_mut(&mut energy.description).signal = self.signal();
        let mut taps = self.network.taps.clone();
        taps.push(Tapped::plain(EXTERNAL, energy.output(), energy.classes())?);
        self.external = Some(Arc::new(External { model: energy, taps }));
        Ok(self)
    }

    /// The energy network beside the classifier.
    pub(crate) fn external(&self) -> Option<&Model> {
        self.external.as_ref().map(|external| &external.model)
    }

    /// The position of the tap that holds what the energy network says.
    pub(crate) fn external_tap(&self) -> Option<usize> {
        self.external.as_ref().map(|external| external.taps.len() - 1)
    }
}

/// Refuses a network that gives too many numbers to be an energy.
pub(super) fn check(model: &Model) -> Result<()> {
    let given = model.classes();
    if given <= MOST {
        return Ok(());
    }
    let why = format!(
        "output `{}` has {given} numbers per input; an energy network gives [N], [N,1] or [N,2]",
        model.output()
    );
    Err(describe::unusable(&model.description.name, why))
}

impl External {
    /// What both networks make of items, the classifier's part being known.
    pub(super) fn beside(&self, seen: Outputs, batch: &Batch<'_>) -> Result<Outputs> {
        beside(seen, self.model.run(batch)?.logits)
    }

    pub(super) fn differentiable(&self) -> Result<()> {
        self.model.differentiable()
    }

    /// As [`Model::run_with_pullback`], for both. The classifier's own way back is only gone
    /// where something asks for it.
    pub(super) fn run_with_pullback(
        &self,
        classifier: &Model,
        batch: &Batch<'_>,
        mut d: impl FnMut(Range<usize>, &Outputs) -> Result<Cotangents>,
    ) -> Result<(Outputs, Batch<'static>)> {
        let mut seen = classifier.run_alone(batch)?;
        let taps = seen.features.len();
        let mut asked = Vec::new();
        let (said, mut gradient) = self.model.alone_with_pullback(batch, |items, energy| {
            let rows: Vec<usize> = items.clone().collect();
            let both = beside(seen.select(&rows), energy.logits.clone())?;
            let mut d = d(items.clone(), &both)?;
            let own = if d.features.len() > taps { d.features.pop().flatten() } else { None };
            if d.logits.is_some() || d.features.iter().any(Option::is_some) {
                asked.push((rows, d));
            }
            Ok(Cotangents { logits: own, features: vec![] })
        })?;
        for (rows, d) in asked {
            let back =
                classifier.alone_with_pullback(&batch.select(&rows), |i, _| Ok(d.rows(i)))?.1;
            let size = batch.signal().size();
            let mut data = gradient.data().to_vec();
            for (n, row) in rows.into_iter().enumerate() {
                let to = &mut data[row * size..(row + 1) * size];
                to.iter_mut().zip(back.item(n)).for_each(|(a, b)| *a += b);
            }
            gradient = Batch::new(batch.signal(), data)?;
        }
        seen = beside(seen, said.logits)?;
        Ok((seen, gradient))
    }

    pub(super) fn stopped_by(&self, stop: &Arc<AtomicBool>) -> Self {
        External { model: self.model.clone().stopped_by(stop), taps: self.taps.clone() }
    }
}

fn beside(seen: Outputs, energy: Matrix) -> Result<Outputs> {
    let Outputs { logits, mut features } = seen;
    features.push(energy);
    Outputs::new(logits, features)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::Options;
    use super::*;
    use crate::onnx::build::{model, node, weight};
    use crate::onnx::proto::ModelProto;
    use crate::tensor::Signal;

    /// A linear network of so many outputs on pictures of 1 x 2 x 2; weight `i` is `i + 1`.
    fn linear(outputs: usize, ends: &[&str]) -> ModelProto {
        let mut nodes = vec![node("Flatten", &["x"], "flat")];
        let gemm = if ends.is_empty() { "y" } else { "gemm" };
        nodes.push(node("Gemm", &["flat", "w"], gemm).with_int("transB", 1));
        for (i, end) in ends.iter().enumerate() {
            let from = if i == 0 { "gemm".into() } else { format!("end{i}") };
            let to = if i + 1 == ends.len() { "y".into() } else { format!("end{}", i + 1) };
            nodes.push(node(end, &[&from], &to));
        }
        let w: Vec<f32> = (0..outputs * 4).map(|i| (i + 1) as f32).collect();
        model(&[0, 1, 2, 2], nodes, vec![weight("w", &[outputs as i64, 4], &w)])
    }

    fn options() -> Options {
        Options { energy: true, ..Options::default() }
    }

    fn energy(outputs: usize, ends: &[&str], options: &Options) -> Result<Model> {
        Model::from_bytes("energy.onnx", &linear(outputs, ends).encode_to_vec(), options)
    }

    fn classifier() -> Model {
        let bytes = linear(3, &[]).encode_to_vec();
        Model::from_bytes("net.onnx", &bytes, &Options::default()).unwrap()
    }

    #[test]
    fn what_it_says_is_the_last_tap_prepared_by_its_own_rules() {
        let mut options = options();
        options.preprocess.set("mean", "1").unwrap();
        let m = classifier().with_external(energy(1, &[], &options).unwrap()).unwrap();
        let names: Vec<&str> = m.taps().iter().map(|tap| tap.name.as_str()).collect();
        assert_eq!(names.last(), Some(&EXTERNAL));
        assert_eq!(m.external_tap(), Some(names.len() - 1));
        let batch = Batch::new(m.signal(), vec![1.0, 1.0, 1.0, 2.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
        let out = m.run(&batch).unwrap();
        assert_eq!(out.features.len(), names.len());
        assert_eq!(out.features.last().unwrap().data(), [4.0, -1.0]);
        assert_eq!(out.logits, classifier().run(&batch).unwrap().logits);
    }

    #[test]
    fn gradients_of_both_networks_add_up() {
        let m = classifier().with_external(energy(2, &["Softmax"], &options()).unwrap());
        let m = m.unwrap();
        m.differentiable().unwrap();
        let batch = Batch::new(m.signal(), vec![0.1; 8]).unwrap();
        let rows = |cols: &[f32]| Some(Matrix::new(2, cols.len(), [cols, cols].concat()).unwrap());
        let taps = m.taps().len();
        let mut features = vec![None; taps];
        features[taps - 1] = rows(&[-1.0, 1.0]);
        let d = Cotangents { logits: None, features: features.clone() };
        // Of the second output's 5, 6, 7, 8 less the first one's 1, 2, 3, 4.
        assert_eq!(m.pullback(&batch, &d).unwrap().data(), [4.0; 8]);
        let d = Cotangents { logits: rows(&[0.0, 0.0, 1.0]), features };
        let both = [13.0, 14.0, 15.0, 16.0];
        assert_eq!(m.pullback(&batch, &d).unwrap().data(), [both, both].concat());
    }

    #[test]
    fn one_or_two_numbers_of_the_same_input_are_an_energy_and_nothing_else() {
        let flat = [node("Flatten", &["x"], "flat"), node("ReduceMean", &["flat"], "y")];
        let [flatten, mean] = flat;
        let nodes = vec![flatten, mean.with_ints("axes", &[1]).with_int("keepdims", 0)];
        let bytes = model(&[0, 1, 2, 2], nodes, vec![]).encode_to_vec();
        let one = Model::from_bytes("mean.onnx", &bytes, &options()).unwrap();
        assert_eq!(one.classes(), 1);
        let bare = Options { taps: vec![], ..Options::default() };
        let e = Model::from_bytes("mean.onnx", &bytes, &bare).unwrap_err();
        assert!(e.to_string().contains("a classifier gives [N,classes]"), "{e}");
        let e = energy(3, &[], &options()).unwrap_err().to_string();
        assert!(e.contains("3 numbers per input"), "{e}");
        let nodes = vec![node("Flatten", &["x"], "flat"), node("Gemm", &["flat", "w"], "y")];
        let wide = model(&[0, 1, 2, 3], nodes, vec![weight("w", &[6, 1], &[1.0; 6])]);
        let wide = Model::from_bytes("wide", &wide.encode_to_vec(), &options()).unwrap();
        assert_eq!(wide.signal(), Signal::image(1, 2, 3));
        let e = classifier().with_external(wide).unwrap_err().to_string();
        assert!(e.contains("energy network wide") && e.contains("[1, 2, 3]"), "{e}");
    }
}
