//! What a fit found out about itself.

use serde::{Deserialize, Serialize};

use super::{Prediction, Verdict};
use crate::stats::{Paired, Share};

/// Accuracy of the bare model and behind the gate, on the same inputs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Accuracy {
    /// The bare model.
    pub before: Share,
    /// Behind the gate.
    pub after: Share,
    /// How many inputs were searched.
    pub searched: Share,
    /// How many inputs were left unanswered; they count as wrong in `after` only if their
    /// best guess is.
    pub abstained: Share,
    /// What became of every labelled input.
    pub paired: Paired,
}

impl Accuracy {
    /// Counts some predictions; those without a label count only where none is needed.
    #[doc(hidden)]
    pub fn add(&mut self, predictions: &[Prediction], labels: &[Option<u32>]) {
        let count = |share: &mut Share, hit: bool| {
            share.of += 1;
            share.hits += usize::from(hit);
        };
        for (p, label) in predictions.iter().zip(labels) {
            if let Some(label) = *label {
                count(&mut self.before, p.raw_label == label);
                count(&mut self.after, p.label == label);
                self.paired.of += 1;
                self.paired.mended += usize::from(p.raw_label != label && p.label == label);
                self.paired.broken += usize::from(p.raw_label == label && p.label != label);
            }
            count(&mut self.searched, p.searched());
            count(&mut self.abstained, p.verdict == Verdict::Abstained);
        }
    }
}

/// Where transformed inputs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transforms {
    /// Copies of upright inputs under random poses of the space.
    #[default]
    Synthetic,
    /// Data that came transformed.
    Given,
}

/// What a fit found out. Accuracies are on held-out samples that neither the
/// bank nor the gate had seen; they calibrate the gate after that.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FitReport {
    /// Samples in the bank.
    pub bank: usize,
    /// Samples the gate was calibrated on.
    pub calibrated_on: usize,
    /// Where the transformed inputs come from.
    pub transforms: Transforms,
    /// The energy above which inputs are searched; absent if unlimited.
    pub tau: Option<f32>,
    /// How often a transformed input scores higher than an upright one.
    pub auroc: Option<f64>,
    /// Upright inputs.
    pub upright: Accuracy,
    /// Transformed inputs.
    pub transformed: Accuracy,
    /// Calibration energies that are not numbers.
    pub nan: usize,
    /// What searching every transformed input would reach; measured where little is gained.
    pub ceiling: Option<Ceiling>,
    /// What else is worth knowing, e.g. what compressing the bank has lost.
    pub notes: Vec<String>,
}

/// What comes of searching transformed inputs without asking the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ceiling {
    /// Right answers if every view of lower energy is believed.
    pub right: Share,
    /// Inputs of which some view has a lower energy.
    pub lower: Share,
    /// Inputs whose answer then changes.
    pub changed: Share,
}
