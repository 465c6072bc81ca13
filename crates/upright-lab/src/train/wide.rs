//! The classifier's kind of network at the paper's own width, trained as classifiers are
//! that know nothing of transforms, and at the classifier's width trained alike: what of a
//! difference to the paper's numbers is the half width of ours.

use burn::tensor::Device;
use upright::Signal;

use super::RealSettings;
use super::augmented::{self, Learns, classifier};
use super::examples::Examples;
use super::net::Net;

/// The paper's widths.
const WIDTHS: [usize; 4] = [64, 128, 256, 512];

/// Trains the wide network.
pub(super) fn train(settings: &RealSettings) -> Result<(), String> {
    upright(settings, "wide", WIDTHS)
}

/// Trains the network of the classifier's own width.
pub(super) fn narrow(settings: &RealSettings) -> Result<(), String> {
    upright(settings, "narrow", augmented::WIDTHS)
}

/// Trains a network of a name and widths on samples as they are.
fn upright(settings: &RealSettings, name: &str, widths: [usize; 4]) -> Result<(), String> {
    let examples = Examples::open(settings)?;
    if !matches!(examples.signal(), Signal::Image { .. }) {
        return Err("the paper's width is known of images; give mnist or emnist".into());
    }
    let outputs = examples.classes();
    let make = |device: &Device| Net::new(&widths, outputs, device);
    classifier(settings, (name, &widths), &examples, Learns::Upright, make)
}
