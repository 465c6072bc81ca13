//! All views vote: their probabilities are averaged with the weights
//! `softmax(-energy / T)`, the input as it is among them. The lowest view of
//! the winning class stands for the answer.
//!
//! `T` is given, or chosen by accuracy on the calibration searches among
//! multiples of the spread of calibration energies. A small `T` gives `lowest`.

use super::{Answer, Make, Readout};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::gate::Look;
use crate::registry::Kind;
use crate::search::lowest;
use crate::state::{State, damaged};
use crate::tensor::argmax;
use crate::trace::Trace;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "vote",
    about: "all views vote, familiar ones with more weight",
    params: &[Param::auto(
        "temperature",
        1e-9,
        1e9,
        "energy difference that divides a weight by e; auto chooses it on calibration data",
    )],
    make: Make { candidates, load },
};

/// Multiples of the spread that are tried.
const SHARES: [f32; 9] = [0.003, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2, 0.35, 0.6];

#[derive(Debug)]
struct Vote {
    temperature: f32,
}

fn candidates(settings: &Settings, spread: f32) -> Vec<Box<dyn Readout>> {
    let spread = if spread.is_finite() && spread > 0.0 { spread } else { 1.0 };
    let vote = |temperature: f32| Box::new(Vote { temperature }) as Box<dyn Readout>;
    match settings.auto("temperature") {
        Some(t) => vec![vote(t as f32)],
        None => SHARES.iter().map(|s| vote(s * spread)).collect(),
    }
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Readout>> {
    let temperature = state.read_f32("temperature")?.first().copied();
    let temperature = temperature.ok_or_else(|| damaged("tensor `temperature` is empty".into()))?;
    Ok(Box::new(Vote { temperature }))
}

impl Readout for Vote {
    fn read(&self, trace: &Trace) -> Option<Answer> {
        let views = || {
            std::iter::once((&trace.raw, &trace.raw_logits))
                .chain(trace.seen.iter().zip(&trace.logits))
        };
        let least = views().map(|(s, _)| s.energy).filter(|e| !e.is_nan()).reduce(f32::min)?;
        let mut votes = vec![0.0; trace.raw_logits.len()];
        let mut total = 0.0;
        for (seen, logits) in views().filter(|(s, _)| !s.energy.is_nan()) {
            // Of infinite energies the difference would not be a number.
            let above = if seen.energy <= least { 0.0 } else { least - seen.energy };
            let weight = f64::from(libm::expf(above / self.temperature));
            let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let exps: Vec<f32> = logits.iter().map(|l| libm::expf(l - top)).collect();
            let sum: f32 = exps.iter().sum();
            for (vote, e) in votes.iter_mut().zip(&exps) {
                *vote += weight * f64::from(e / sum);
            }
            total += weight;
        }
        let logits: Vec<f32> =
            votes.iter().map(|v| libm::log((v / total).max(1e-30)) as f32).collect();
        let label = argmax(&logits) as u32;
        let own = |s: &crate::search::Seen| if s.label == label { s.energy } else { f32::NAN };
        let view = lowest(trace.seen.iter().map(own))?;
        let seen = &trace.seen[view];
        let energy = if seen.label == label { seen.energy } else { f32::NAN };
        Some(Answer { view, look: Look { energy, label }, logits })
    }

    fn state(&self) -> State {
        State::new().f32("temperature", &[self.temperature])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Seen;

    fn seen(energy: f32, label: u32) -> Seen {
        Seen { pose: vec![energy], energy, label, gradient: None, follows: None }
    }

    /// Energies 3 (the input), 0, 0.1, 0.1 with labels 0, 0, 1, 1, each certain. Weights at
    /// T = 1: e^-3 + 1 = 1.050 for class 0, 2 e^-0.1 = 1.810 for class 1. At T = 0.01 the
    /// lowest view wins.
    #[test]
    fn many_nearly_lowest_views_outvote_one_lowest() {
        let sure = |label: usize| if label == 0 { vec![30.0, 0.0] } else { vec![0.0, 30.0] };
        let mut trace = Trace::new(seen(3.0, 0), sure(0));
        trace.seen = vec![seen(0.0, 0), seen(0.1, 1), seen(0.1, 1)];
        trace.logits = vec![sure(0), sure(1), sure(1)];
        let answer = Vote { temperature: 1.0 }.read(&trace).unwrap();
        assert_eq!((answer.look.label, answer.view), (1, 1));
        let p = answer.logits[1].exp();
        assert!((p - 1.810 / 2.860).abs() < 1e-3, "{p}");
        assert_eq!(Vote { temperature: 0.01 }.read(&trace).unwrap().look.label, 0);
    }

    #[test]
    fn a_vote_for_a_class_that_no_view_shows_has_no_energy() {
        let mut trace = Trace::new(seen(0.0, 0), vec![9.0, 0.0]);
        trace.seen = vec![seen(5.0, 1)];
        trace.logits = vec![vec![0.0, 9.0]];
        let answer = Vote { temperature: 1.0 }.read(&trace).unwrap();
        assert!(answer.look.label == 0 && answer.look.energy.is_nan());
    }
}
