//! What every readout must do, whatever its settings.

use upright::gate::Look;
use upright::internal::config::Domain;
use upright::internal::tensor::argmax;
use upright::readout::{self, Answer, Readout, TABLE};
use upright::search::Seen;
use upright::{Part, Trace};

const CLASSES: usize = 4;

/// Every readout with its defaults, at each of its candidates, and with each number at both
/// ends and in the middle (of the exponents).
fn all() -> Vec<(Part, Box<dyn Readout>)> {
    let mut all = Vec::new();
    for row in TABLE {
        let mut parts = vec![Part::new(row.name)];
        for param in row.params {
            match param.domain {
                Domain::Real { low, high, .. } | Domain::Auto { low, high } => {
                    let middle = (low * high).sqrt();
                    let with = |v| Part::new(row.name).number(param.name, v);
                    parts.extend([low, middle, high].map(with));
                }
                _ => panic!("{}: say here how to vary `{}`", row.name, param.name),
            }
        }
        for part in parts {
            for spread in [0.0, 0.7, f32::NAN, f32::INFINITY] {
                let candidates = readout::candidates(&part, spread).unwrap();
                assert!(!candidates.is_empty(), "{part:?}");
                all.extend(candidates.into_iter().map(|readout| (part.clone(), readout)));
            }
        }
    }
    all
}

/// Uniform numbers in 0..1 from a fixed sequence.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 40) as f32) / 16_777_216.0
    }

    /// A view that says what its logits say.
    fn view(&mut self, energy: f32) -> (Seen, Vec<f32>) {
        let logits: Vec<f32> = (0..CLASSES).map(|_| 12.0 * self.next() - 6.0).collect();
        let label = argmax(&logits) as u32;
        (Seen::new(vec![self.next()], energy, label), logits)
    }

    fn trace(&mut self, energies: &[f32]) -> Trace {
        let raw = self.next();
        let (raw, logits) = self.view(raw);
        let mut trace = Trace::new(raw, logits);
        for &energy in energies {
            let (seen, logits) = self.view(energy);
            trace.seen.push(seen);
            trace.logits.push(logits);
        }
        trace
    }
}

/// Searches of all lengths: plain, with equal energies, with NaN and with infinite ones.
fn traces() -> Vec<Trace> {
    let mut noise = Noise(5);
    let mut traces = Vec::new();
    for round in 0..40 {
        let energies: Vec<f32> = (0..round % 9)
            .map(|i| match (round + i) % 7 {
                0 if round % 2 == 0 => f32::NAN,
                1 if round % 5 == 0 => f32::NEG_INFINITY,
                2 => 0.25,
                _ => 2.0 * noise.next() - 0.5,
            })
            .collect();
        traces.push(noise.trace(&energies));
    }
    traces
}

/// An answer with its numbers as bits, so that NaN equals NaN.
fn bits(answer: Option<Answer>) -> Option<(usize, u32, u32, Vec<u32>)> {
    answer.map(|a| {
        let logits = a.logits.iter().map(|v| v.to_bits()).collect();
        (a.view, a.look.label, a.look.energy.to_bits(), logits)
    })
}

#[test]
fn every_readout_answers_alike_twice_and_after_loading() {
    for (part, readout) in all() {
        let again = readout::load(&part, &readout.state()).unwrap();
        assert_eq!(again.state(), readout.state(), "{part:?}");
        for trace in traces() {
            let answer = bits(readout.read(&trace));
            assert_eq!(answer, bits(readout.read(&trace)), "{part:?}");
            assert_eq!(answer, bits(again.read(&trace)), "{part:?} {trace:?}");
        }
    }
}

#[test]
fn every_answer_is_a_view_with_its_energy_and_says_its_largest_logit() {
    for (part, readout) in all() {
        for trace in traces() {
            let Some(answer) = readout.read(&trace) else {
                assert!(trace.seen.is_empty(), "{part:?} {trace:?}");
                continue;
            };
            let Look { energy, label } = answer.look;
            assert_eq!(answer.logits.len(), CLASSES, "{part:?}");
            assert!(answer.logits.iter().all(|v| v.is_finite()), "{part:?} {answer:?}");
            assert_eq!(argmax(&answer.logits) as u32, label, "{part:?} {answer:?}");
            let seen = &trace.seen[answer.view];
            // Without a view that says so, there is no energy that a gate could believe.
            if !energy.is_nan() {
                assert_eq!(seen.energy.to_bits(), energy.to_bits(), "{part:?} {trace:?}");
                assert_eq!(seen.label, label, "{part:?} {trace:?}");
            }
        }
    }
}

/// A view whose energy is not a number has no say: without it the answer is the same.
#[test]
fn views_of_no_energy_never_win() {
    for (part, readout) in all() {
        for trace in traces() {
            let mut without = Trace::new(trace.raw.clone(), trace.raw_logits.clone());
            let kept: Vec<usize> =
                (0..trace.seen.len()).filter(|&i| !trace.seen[i].energy.is_nan()).collect();
            without.seen = kept.iter().map(|&i| trace.seen[i].clone()).collect();
            without.logits = kept.iter().map(|&i| trace.logits[i].clone()).collect();
            let (with, without) = (readout.read(&trace), readout.read(&without));
            let Some(without) = without else {
                assert!(with.is_none_or(|a| a.look.energy.is_nan()), "{part:?} {trace:?}");
                continue;
            };
            let with = with.unwrap();
            assert!(!trace.seen[with.view].energy.is_nan() || with.look.energy.is_nan());
            let (mut a, mut b) = (bits(Some(with)).unwrap(), bits(Some(without)).unwrap());
            (a.0, b.0) = (0, 0);
            assert_eq!(a, b, "{part:?} {trace:?}");
        }
    }
}

/// A search that chooses nothing that exists is as one that leaves the choice to the energy.
#[test]
fn no_readout_leaves_its_trace() {
    for (part, readout) in all() {
        for mut trace in traces() {
            let plain = bits(readout.read(&trace));
            trace.pick = Some(trace.seen.len());
            assert_eq!(bits(readout.read(&trace)), plain, "{part:?}");
            trace.pick = trace.seen.len().checked_sub(1);
            let picked = readout.read(&trace);
            assert!(picked.is_none_or(|a| a.view < trace.seen.len()), "{part:?}");
        }
    }
}

#[test]
fn empty_and_broken_traces_are_no_answer_and_no_panic() {
    let mut noise = Noise(1);
    for (part, readout) in all() {
        for energy in [0.5, f32::NAN, f32::INFINITY] {
            let mut empty = noise.trace(&[]);
            empty.raw.energy = energy;
            assert_eq!(readout.read(&empty), None, "{part:?}");
        }
        let mut lost = noise.trace(&[0.1, 0.2]);
        lost.logits.clear();
        readout.read(&lost);
        let mut nothing = noise.trace(&[0.1, f32::NAN]);
        nothing.raw.energy = f32::NAN;
        nothing.raw_logits = vec![f32::NAN; CLASSES];
        nothing.logits = vec![vec![f32::NAN; CLASSES]; 2];
        readout.read(&nothing);
        nothing.seen.iter_mut().for_each(|s| s.energy = f32::NAN);
        let none = readout.read(&nothing);
        assert!(none.is_none_or(|a| a.look.energy.is_nan()), "{part:?}");
    }
}
