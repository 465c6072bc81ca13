//! Whether to use what a fit gave: decided by paired tests on its proof, with
//! the reason and what would tell more.

use serde::{Deserialize, Serialize};

use super::{Accuracy, FitReport};
use crate::stats::{Paired, rounded};

/// Points of upright accuracy that may be lost unless said otherwise.
const LOSS: f64 = 1.0;
/// Gains below this many points are not worth the views.
const GAIN: f64 = 2.0;
/// Energies that tell transformed inputs from upright ones less often than this do not.
const SEPARATES: f64 = 0.6;

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
    /// The held-out samples do not tell.
    TooFew,
}

impl FitReport {
    /// Points of upright accuracy that are lost beyond what chance explains: the net loss
    /// less one standard error, the square root of the inputs lost. Not below 0.
    #[doc(hidden)]
    pub fn harm(&self) -> f64 {
        let Accuracy { before, after, .. } = self.upright;
        let lost = before.hits.saturating_sub(after.hits) as f64;
        if before.of == 0 { 0.0 } else { 100.0 * (lost - lost.sqrt()) / before.of as f64 }
    }

    /// The advice and a sentence that says why.
    pub fn advice(&self) -> (Advice, String) {
        self.advice_allowing(LOSS)
    }

    /// The advice where so many points of upright accuracy may be lost.
    #[doc(hidden)]
    pub fn advice_allowing(&self, allowed: f64) -> (Advice, String) {
        let (up, tr) = (&self.upright, &self.transformed);
        let change = |name: &str, a: &Accuracy| {
            let (low, high) = interval(&a.paired);
            format!("{name} accuracy {} -> {} ({low:+.1}..{high:+.1} points)", a.before, a.after)
        };
        let (upright, transformed) = (change("upright", up), change("transformed", tr));
        if up.before.of == 0 || tr.before.of == 0 {
            return (Advice::DoNotUse, "nothing is proven: there were no held-out labels".into());
        }
        let lost = -up.paired.gain();
        if self.harm() > allowed {
            let sentence = format!(
                "do not use it: {upright}, a loss of {:.1} points where {allowed:.1} may be lost",
                rounded(lost, 1)
            );
            return (Advice::DoNotUse, sentence);
        }
        let more =
            |paired: &Paired, least: f64| paired.needed(least).saturating_sub(paired.of).max(1);
        if lost > allowed {
            let sentence = format!(
                "too few samples to say: {upright} may be chance or a loss beyond {allowed:.1}; \
                 about {} more held-out samples would tell",
                more(&up.paired, allowed)
            );
            return (Advice::TooFew, sentence);
        }
        let why = self.why().map_or(String::new(), |why| format!("; {why}"));
        let (low, high) = interval(&tr.paired);
        let flips =
            format!("{} mended, {} broken of {}", tr.paired.mended, tr.paired.broken, tr.before.of);
        // More samples would not mend what no threshold can.
        let hopeless = self.ceiling.is_some_and(|c| c.right.percent() <= tr.before.percent());
        if tr.paired.interval().1 < GAIN || hopeless && !tr.paired.helps() {
            let gain = rounded(tr.paired.gain(), 1);
            let verb = if gain < 0.0 { "loses" } else { "gains" };
            let sentence = format!(
                "do not use it: it {verb} {:.1} points ({low:+.1}..{high:+.1}) of transformed \
                 accuracy, {flips}{why}",
                gain.abs()
            );
            return (Advice::DoNotUse, sentence);
        }
        if !tr.paired.helps() {
            // How many samples would open a closed gate is in its own note.
            let closed = up.searched.hits + tr.searched.hits == 0;
            let needed = if closed {
                "the gate stays closed".into()
            } else {
                format!("about {} more held-out samples would tell", more(&tr.paired, GAIN))
            };
            let sentence = format!("too few samples to say: {transformed}, {flips}; {needed}{why}");
            return (Advice::TooFew, sentence);
        }
        if tr.after.percent() < 0.5 * up.before.percent() {
            return (
                Advice::RetrainInstead,
                format!(
                    "it helps: {transformed}, {upright}; but most transformed inputs stay wrong: \
                     if you can, retrain with such transforms instead{why}"
                ),
            );
        }
        (Advice::Use, format!("use it: {transformed}, {upright}{why}"))
    }

    /// Why little is gained, where that is so: only then the ceiling is measured.
    fn why(&self) -> Option<String> {
        let ceiling = self.ceiling?;
        let mut reasons = Vec::new();
        if let Some(auroc) = self.auroc.filter(|&a| a < SEPARATES) {
            reasons.push(format!(
                "transformed inputs do not look less familiar than upright ones (AUROC {auroc:.2}): \
                 another score or tap may, or the model has learnt these transforms already"
            ));
        }
        reasons.push(format!(
            "without the gate {} would be right: a view of lower energy is found for {} of \
             transformed inputs and changes the answer of {}",
            ceiling.right, ceiling.lower, ceiling.changed
        ));
        Some(reasons.join("; "))
    }
}

/// The interval of a gain, for print.
fn interval(paired: &Paired) -> (f64, f64) {
    let (low, high) = paired.interval();
    (rounded(low, 1), rounded(high, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonicalizer::Ceiling;
    use crate::stats::{Paired, Share};

    /// Right before and after, and inputs broken beside those that the difference tells.
    fn accuracy(of: usize, before: usize, after: usize, broken: usize) -> Accuracy {
        let lost = before.saturating_sub(after);
        let gained = after.saturating_sub(before);
        Accuracy {
            before: Share { hits: before, of },
            after: Share { hits: after, of },
            searched: Share { hits: of / 2, of },
            abstained: Share::default(),
            paired: Paired { mended: gained + broken, broken: lost + broken, of },
        }
    }

    fn report(up: (usize, usize), tr: (usize, usize), auroc: f64) -> FitReport {
        FitReport {
            auroc: Some(auroc),
            upright: accuracy(1000, up.0, up.1, 0),
            transformed: accuracy(1000, tr.0, tr.1, 5),
            ..FitReport::default()
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
        let kind = |up, tr| report(up, tr, 0.95).advice().0;
        assert_eq!(kind((990, 985), (350, 850)), Advice::Use);
        assert_eq!(kind((990, 960), (350, 850)), Advice::DoNotUse);
        assert_eq!(kind((990, 979), (350, 850)), Advice::TooFew, "1.1 points may be chance");
        assert_eq!(kind((990, 989), (900, 905)), Advice::DoNotUse);
        assert_eq!(kind((990, 989), (100, 300)), Advice::RetrainInstead);
    }

    #[test]
    fn what_is_accepted_is_not_called_harm() {
        let lossy = report((990, 960), (350, 850), 0.95);
        assert_eq!(lossy.advice_allowing(5.0).0, Advice::Use);
        let (_, sentence) = lossy.advice();
        assert!(sentence.contains("a loss of 3.0 points where 1.0 may be lost"), "{sentence}");
    }

    #[test]
    fn a_gain_that_rests_on_one_input_is_none() {
        let few = FitReport {
            upright: accuracy(30, 25, 25, 0),
            transformed: accuracy(30, 14, 15, 0),
            ..FitReport::default()
        };
        let (advice, sentence) = few.advice();
        assert_eq!(advice, Advice::TooFew);
        assert!(sentence.contains("46.7 % -> 50.0 %"), "{sentence}");
        assert!(sentence.contains("1 mended, 0 broken of 30"), "{sentence}");
        assert!(sentence.contains("more held-out samples would tell"), "{sentence}");
    }

    #[test]
    fn a_closed_gate_is_blamed_instead_of_the_proof() {
        let mut closed = FitReport {
            upright: accuracy(30, 25, 25, 0),
            transformed: accuracy(30, 14, 14, 0),
            ..FitReport::default()
        };
        for a in [&mut closed.upright, &mut closed.transformed] {
            a.searched.hits = 0;
        }
        let (advice, sentence) = closed.advice();
        assert_eq!(advice, Advice::TooFew);
        assert!(
            sentence.ends_with("0 mended, 0 broken of 30; the gate stays closed"),
            "{sentence}"
        );
    }

    #[test]
    fn where_little_is_gained_the_reason_is_said() {
        let mut small = report((990, 989), (350, 352), 0.52);
        let share = |hits| Share { hits, of: 200 };
        small.ceiling = Some(Ceiling { right: share(82), lower: share(180), changed: share(30) });
        let (advice, sentence) = small.advice();
        assert_eq!(advice, Advice::DoNotUse);
        assert!(sentence.contains("AUROC 0.52"), "{sentence}");
        assert!(sentence.contains("without the gate 41.0 % would be right"), "{sentence}");
    }

    /// 2 mended and 2 broken of 80 would ask for hundreds more, but searching all mends less.
    #[test]
    fn more_samples_are_not_asked_for_where_no_search_helps() {
        let share = |hits| Share { hits, of: 80 };
        let of = |right| FitReport {
            upright: accuracy(80, 79, 79, 0),
            transformed: accuracy(80, 43, 43, 2),
            ceiling: Some(Ceiling { right: share(right), lower: share(73), changed: share(33) }),
            ..FitReport::default()
        };
        let (advice, sentence) = of(36).advice();
        assert_eq!(advice, Advice::DoNotUse);
        assert!(sentence.starts_with("do not use it: it gains 0.0 points"), "{sentence}");
        assert!(sentence.contains("without the gate 45.0 % would be right"), "{sentence}");
        assert_eq!(of(60).advice().0, Advice::TooFew);
    }

    #[test]
    fn a_loss_is_called_a_loss() {
        let worse = report((990, 990), (350, 300), 0.95);
        let (_, sentence) = worse.advice();
        assert!(sentence.starts_with("do not use it: it loses 5.0 points"), "{sentence}");
    }
}
