//! The classifier's kind of network at the paper's own width, trained as classifiers are
//! that know nothing of transforms: what of a difference to the paper's numbers is the
//! half width of ours.

use burn::tensor::Device;
use upright::Signal;

use super::RealSettings;
use super::augmented::{Learns, classifier};
use super::examples::Examples;
use super::net::Net;

/// The paper's widths.
const WIDTHS: [usize; 4] = [64, 128, 256, 512];

/// Trains the wide network on samples as they are.
pub(super) fn train(settings: &RealSettings) -> Result<(), String> {
    let examples = Examples::open(settings)?;
    if !matches!(examples.signal(), Signal::Image { .. }) {
        return Err("the paper's width is known of images; give mnist or emnist".into());
    }
    let outputs = examples.classes();
    let make = |device: &Device| Net::new(&WIDTHS, outputs, device);
    classifier(settings, ("wide", &WIDTHS), &examples, Learns::Upright, make)
}
