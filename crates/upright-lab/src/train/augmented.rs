//! What a user would do instead of canonicalizing: the classifier's kind of network,
//! trained on samples and transformed copies of them. Networks that are made for
//! transforms ([`stn`](super::stn), [`equivariant`](super::equivariant)) learn the same
//! way.

use burn::nn::loss::{CrossEntropyLoss, CrossEntropyLossConfig};
use burn::tensor::{Device, Tensor};
use upright::Signal;
use upright::internal::tensor::argmax;

use super::RealSettings;
use super::course::{self, Lesson, Network};
use super::examples::{Examples, Labelled, classes, items};
use super::net::Net;
use super::pooled_net::CloudNet;

/// Half the paper's widths: those of the classifiers that it is compared with.
pub(super) const WIDTHS: [usize; 4] = [32, 64, 128, 256];

/// Of networks for clouds.
pub(super) const CLOUD: [usize; 3] = [64, 128, 256];

/// Trains the plain network.
pub(super) fn train(settings: &RealSettings) -> Result<(), String> {
    let examples = Examples::open(settings)?;
    let outputs = examples.classes();
    if let Signal::Cloud { points } = examples.signal() {
        let make = |device: &Device| CloudNet::new(points, &CLOUD, outputs, device);
        return classifier(settings, ("augm", &CLOUD), &examples, Learns::Both, make);
    }
    let make = |device: &Device| Net::new(&WIDTHS, outputs, device);
    classifier(settings, ("augm", &WIDTHS), &examples, Learns::Both, make)
}

/// What a classifier learns from.
#[derive(Clone, Copy)]
pub(super) enum Learns {
    /// Samples as they are.
    Upright,
    /// Samples as they are, and transformed copies of them.
    Both,
}

/// Trains a network, of a name and widths, to tell classes apart.
pub(super) fn classifier<N: Network>(
    settings: &RealSettings,
    (name, widths): (&str, &[usize]),
    examples: &Examples,
    learns: Learns,
    make: impl Fn(&Device) -> N,
) -> Result<(), String> {
    let device = Device::flex().autodiff();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let lesson = Classes { examples, learns, loss, device };
    let names: Vec<String> =
        (0..examples.classes() as u32).map(|c| examples.model.class_name(c)).collect();
    let names = names.join(",");
    let image = [("channels", "gray"), ("scale", "1/255"), ("mean", "0"), ("std", "1")];
    let cloud = [("signal", "cloud")];
    let of_signal =
        if matches!(examples.signal(), Signal::Image { .. }) { &image[..] } else { &cloud };
    let properties = [&[("task", "classification"), ("names", names.as_str())], of_signal].concat();
    course::run(settings, name, widths, examples, make, &lesson, &properties)
}

struct Classes<'a> {
    examples: &'a Examples,
    learns: Learns,
    loss: CrossEntropyLoss,
    device: Device,
}

impl<N: Network> Lesson<N> for Classes<'_> {
    fn loss(&self, net: &N, step: u64) -> Result<Tensor<1>, String> {
        let (batch, labels) = match self.learns {
            Learns::Upright => self.examples.upright(step)?,
            Learns::Both => self.examples.step(step, false)?,
        };
        let batch = self.examples.thinned(batch, step)?;
        let logits = net.outputs(items(&batch, &self.device));
        Ok(self.loss.forward(logits, classes(&labels, &self.device)))
    }

    fn reached(&self, net: &N) -> Result<String, String> {
        let device = self.device.clone().without_autodiff();
        let accuracy = |(batch, labels): &Labelled| -> Result<f64, String> {
            let mut right = 0;
            let rows: Vec<usize> = (0..batch.len()).collect();
            for rows in rows.chunks(250) {
                let logits = net.outputs(items(&batch.select(rows), &device)).into_data();
                let logits = logits.try_to_vec::<f32>().map_err(|why| format!("{why:?}"))?;
                let said = logits.chunks_exact(self.examples.classes()).map(argmax);
                right += rows.iter().zip(said).filter(|(r, s)| labels[**r] as usize == *s).count();
            }
            Ok(100.0 * right as f64 / batch.len() as f64)
        };
        let (upright, transformed) = self.examples.judges()?;
        Ok(format!(
            "right on {:.1} % of {} upright and {:.1} % of as many transformed held-out samples",
            accuracy(&upright)?,
            upright.1.len(),
            accuracy(&transformed)?
        ))
    }
}
