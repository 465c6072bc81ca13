//! What a fit found out about itself, and the advice that follows.

use serde::{Deserialize, Serialize};

use super::{Prediction, Verdict};
use crate::stats::Share;

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
/// bank nor the gate has seen.
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
    /// What else is worth knowing, e.g. what compressing the bank has lost.
    pub notes: Vec<String>,
}

/// Whether to use the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// It helps and does not harm.
    Use,
    /// It harms, does not help, or cannot work here.
    DoNotUse,
    /// It helps, but training with such transforms should help more.
    RetrainInstead,
}

impl FitReport {
    /// Points of upright accuracy that are lost beyond what chance explains: the net loss
    /// less one standard error, the square root of the inputs lost. Not below 0.
    pub fn harm(&self) -> f64 {
        let Accuracy { before, after, .. } = self.upright;
        let lost = before.hits.saturating_sub(after.hits) as f64;
        if before.of == 0 { 0.0 } else { 100.0 * (lost - lost.sqrt()) / before.of as f64 }
    }

    /// The advice and a sentence that says why.
    pub fn advice(&self) -> (Advice, String) {
        let (up, tr) = (&self.upright, &self.transformed);
        let upright = format!("upright accuracy {} -> {}", up.before, up.after);
        let transformed = format!("transformed accuracy {} -> {}", tr.before, tr.after);
        if up.before.of == 0 {
            return (Advice::DoNotUse, "nothing is proven: there were no held-out labels".into());
        }
        if let Some(auroc) = self.auroc.filter(|&a| a < 0.6) {
            return (
                Advice::DoNotUse,
                format!(
                    "do not use it: transformed inputs do not look less familiar than upright \
                     ones (AUROC {auroc:.2}); try another score or tap, or the model has learnt \
                     these transforms already ({transformed})"
                ),
            );
        }
        let drop = up.before.percent() - up.after.percent();
        if drop > 1.0 {
            return (
                Advice::DoNotUse,
                format!(
                    "do not use it as it is: {upright}, a loss of {drop:.1} points; lower the \
                     gate's limit or narrow the space"
                ),
            );
        }
        let gain = tr.after.percent() - tr.before.percent();
        if gain < 2.0 {
            return (
                Advice::DoNotUse,
                format!("do not use it: it gains only {gain:.1} points ({transformed})"),
            );
        }
        if tr.after.percent() < 0.5 * up.before.percent() {
            return (
                Advice::RetrainInstead,
                format!(
                    "it helps ({transformed}, {upright}), but most transformed inputs stay \
                     wrong: if you can, retrain with such transforms instead"
                ),
            );
        }
        (Advice::Use, format!("use it: {transformed}, {upright}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(up: (usize, usize), tr: (usize, usize), auroc: f64) -> FitReport {
        let accuracy = |(before, after)| Accuracy {
            before: Share { hits: before, of: 1000 },
            after: Share { hits: after, of: 1000 },
            searched: Share { hits: 500, of: 1000 },
            abstained: Share::default(),
        };
        FitReport {
            bank: 1,
            calibrated_on: 1,
            transforms: Transforms::Synthetic,
            tau: Some(0.0),
            auroc: Some(auroc),
            upright: accuracy(up),
            transformed: accuracy(tr),
            nan: 0,
            notes: vec![],
        }
    }

    /// 1000 inputs: 16 lost are 1.6 points less 0.4; one lost of 1000 is chance.
    #[test]
    fn harm_is_what_chance_does_not_explain() {
        let harm = |after| report((990, after), (350, 850), 0.95).harm();
        assert!((harm(974) - 1.2).abs() < 1e-9);
        assert!(harm(989).abs() < 1e-9 && harm(995).abs() < 1e-9);
    }

    #[test]
    fn advice_follows_harm_help_and_separation() {
        assert_eq!(report((990, 985), (350, 850), 0.95).advice().0, Advice::Use);
        assert_eq!(report((990, 960), (350, 850), 0.95).advice().0, Advice::DoNotUse);
        assert_eq!(report((990, 989), (350, 850), 0.5).advice().0, Advice::DoNotUse);
        assert_eq!(report((990, 989), (900, 905), 0.9).advice().0, Advice::DoNotUse);
        assert_eq!(report((990, 989), (100, 300), 0.9).advice().0, Advice::RetrainInstead);
    }
}
