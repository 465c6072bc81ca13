//! The artifacts of the page's classifiers.

use upright::internal::state::Data;
use upright::{
    Canonicalizer, Config, FitData, Model, ModelOptions, Part, Reduce, Role, Silent, Tap,
};
use upright_wasm::Subject;

use crate::{answers, artifact, write};

/// Samples to fit on, and their seed: the classifiers were trained on others.
const SAMPLES: usize = 6000;
const SEED: u64 = 11;

/// Fits the named subjects, by default all, and writes down what all answer.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let named = names.iter().map(|name| Subject::parse(name).map_err(|e| e.to_string()));
    let named: Vec<Subject> = named.collect::<Result<_, _>>()?;
    let wanted = |s: &Subject| named.is_empty() || named.contains(s);
    for subject in Subject::ALL.into_iter().filter(wanted) {
        let c = fit(subject).map_err(|e| e.to_string())?;
        println!("{}", c.report().advice().1);
        let bytes = rounded(&c).and_then(|c| c.to_bytes()).map_err(|e| e.to_string())?;
        write(&artifact(subject), &bytes)?;
    }
    answers::run()
}

/// Most features that are read at two thirds and at nine tenths of a network: fewer than usual,
/// as the artifacts go over the wire.
fn features(subject: Subject) -> [usize; 2] {
    match subject {
        Subject::Digits => [600, 300],
        Subject::Strokes => [300, 300],
        Subject::Solids => [64, 64],
    }
}

fn fit(subject: Subject) -> upright::Result<Canonicalizer> {
    let [middle, late] = features(subject);
    let grid = |dim| Reduce::Grid { dim, seed: 0 };
    let taps =
        vec![Tap::auto(), Tap::middle().reduced(grid(middle)), Tap::late().reduced(grid(late))];
    let options = ModelOptions { taps, ..ModelOptions::default() };
    let model = Model::from_bytes(subject.name(), subject.model(), &options)?;
    let names = subject.classes().iter().map(|&name| name.into()).collect();
    // Linear readings weigh little and bear the rounding.
    let proposer = Part::new("learned")
        .number("copies", 24_000.0)
        .number("landmarks", 0.0)
        .flag("steps", false);
    let config = Config::of_signal(model.signal())
        .with(Role::Proposer, proposer)
        .with(Role::Score, Part::new("judge").number("lessons", 8000.0));
    let samples = subject.samples(SAMPLES, SEED)?;
    config.fit(model.with_class_names(names), &FitData::new(&samples), &mut Silent)
}

/// Tensors of fewer numbers stay as they are.
const LARGE: usize = 1000;

/// The same with large tensors rounded to so few digits, 3 bits of a half and 8 of a single after
/// the first, that the others, which would not compress, are all zero.
fn rounded(c: &Canonicalizer) -> upright::Result<Canonicalizer> {
    let mut states = c.states();
    for state in states.values_mut() {
        for (name, mut tensor) in state.tensors().clone() {
            match &mut tensor.data {
                Data::F16(v) if v.len() > LARGE => v.iter_mut().for_each(|b| *b = half(*b)),
                Data::F32(v) if v.len() > LARGE => v.iter_mut().for_each(|v| *v = single(*v)),
                _ => {}
            }
            state.put(&name, tensor);
        }
    }
    Canonicalizer::restore(c.model().clone(), c.config().clone(), c.report().clone(), &states)
}

fn half(bits: u16) -> u16 {
    (bits + 0x40) & !0x7f
}

fn single(v: f32) -> f32 {
    f32::from_bits((v.to_bits() + 0x4000) & !0x7fff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_the_first_digits() {
        // 1 + 1/8 in 16 bits, then just below and above the middle of the next step.
        assert_eq!([0x3c80, 0x3cbf, 0x3cc0].map(half), [0x3c80, 0x3c80, 0x3d00]);
        for v in [1.0f32, -0.3, 1e-8, 12345.678] {
            assert!((single(v) - v).abs() <= v.abs() / 512.0);
            assert_eq!(single(v).to_bits() & 0x7fff, 0);
        }
    }
}
