//! [`super::pc_knn_mix`] and [`super::fisher`] together, each in its standard
//! deviations over transformed samples: `E = d / s_d + weight l / s_l`.
//!
//! `d` is the mixed distance to the nearest samples of the predicted class, `l`
//! the log odds that an input came transformed. The one tells how well a view
//! fits its class, the other how it is posed, which neither tells alone: a
//! search finds views that are upright and belong somewhere.

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::bank::{COMPRESS, CORRECT_ONLY, K, SQUARED, STORAGE, W_COS};
use crate::score::inputs::lack;
use crate::score::{Bank, Make, Needs, Neighbour, Score, fisher, pc_knn_mix};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "pc-knn-fisher",
    about: "pc-knn-mix plus fisher: near samples of the predicted class, and posed like the bank",
    params: &[
        K,
        W_COS,
        SQUARED,
        CORRECT_ONLY,
        STORAGE,
        COMPRESS,
        fisher::RIDGE,
        Param::real("weight", 1.0, 0.01, 100.0, "of the discriminant, relative to the distance"),
    ],
    make: Make {
        needs: |s| Needs {
            features: true,
            labels: true,
            transformed: true,
            samples: s.whole("k"),
            ..Needs::default()
        },
        fit,
        load,
    },
};

/// Names of the parts in what is stored.
const PARTS: [&str; 2] = ["near.", "pose."];

#[derive(Debug)]
struct Both {
    parts: [Box<dyn Score>; 2],
    /// What the parts' energies are multiplied by, the weight included.
    scales: [f64; 2],
    /// Standard deviations of the parts over transformed samples.
    spread: [f64; 2],
}

impl Both {
    fn new(settings: &Settings, parts: [Box<dyn Score>; 2], spread: [f64; 2]) -> Self {
        let scales = [1.0 / spread[0], settings.real("weight") / spread[1]];
        Both { parts, scales, spread }
    }
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let pose = fisher::fitted(KIND.name, settings, bank)?;
    let near = pc_knn_mix::fitted(KIND.name, settings, bank)?;
    let spread =
        [&near, &pose].map(|part| bank.transformed.map_or(0.0, |t| deviation(part.energy(t))));
    if !spread.iter().all(|s| s.is_finite() && *s > 0.0) {
        return Err(lack(
            KIND.name,
            "transformed samples of different energies",
            "choose another score, or a larger bank",
        ));
    }
    Ok(Box::new(Both::new(settings, [near, pose], spread)))
}

/// The standard deviation of the energies that are finite.
fn deviation(energies: Vec<f32>) -> f64 {
    let finite: Vec<f64> = energies.into_iter().filter(|e| e.is_finite()).map(f64::from).collect();
    let n = finite.len() as f64;
    let mean = finite.iter().sum::<f64>() / n;
    (finite.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>() / (n - 1.0)).sqrt()
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let near = pc_knn_mix::load(settings, &state.part(PARTS[0]))?;
    let pose = fisher::load(settings, &state.part(PARTS[1]))?;
    match state.read_f64("spread")?.as_slice() {
        &[a, b] if [a, b].iter().all(|s| s.is_finite() && *s > 0.0) => {
            Ok(Box::new(Both::new(settings, [near, pose], [a, b])))
        }
        _ => Err(damaged("`spread` does not hold two positive numbers".into())),
    }
}

impl Both {
    fn sum(&self, energies: [Vec<f32>; 2]) -> Vec<f32> {
        let [near, pose] = energies;
        let [a, b] = self.scales;
        let sum = |(n, p): (&f32, &f32)| (a * f64::from(*n) + b * f64::from(*p)) as f32;
        near.iter().zip(&pose).map(sum).collect()
    }

    fn join(&self, parts: [Cotangents; 2]) -> Cotangents {
        let [near, pose] = parts;
        let [a, b] = self.scales;
        let add = |n: Option<Matrix>, p: Option<Matrix>| match (n, p) {
            (Some(n), Some(p)) => {
                let mut sum = scaled(n, a);
                sum.data_mut().iter_mut().zip(scaled(p, b).data()).for_each(|(s, p)| *s += p);
                Some(sum)
            }
            (n, p) => n.map(|n| scaled(n, a)).or(p.map(|p| scaled(p, b))),
        };
        let taps = near.features.len().max(pose.features.len());
        let (mut n, mut p) = (near.features.into_iter(), pose.features.into_iter());
        let features = (0..taps).map(|_| add(n.next().flatten(), p.next().flatten())).collect();
        Cotangents { logits: add(near.logits, pose.logits), features }
    }
}

fn scaled(mut m: Matrix, by: f64) -> Matrix {
    m.data_mut().iter_mut().for_each(|v| *v = (f64::from(*v) * by) as f32);
    m
}

impl Score for Both {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        self.sum(self.parts.each_ref().map(|part| part.energy(outputs)))
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        self.join(self.parts.each_ref().map(|part| part.pullback(outputs)))
    }

    fn energy_and_pullback(&self, outputs: &Outputs) -> (Vec<f32>, Cotangents) {
        let [near, pose] = self.parts.each_ref().map(|part| part.energy_and_pullback(outputs));
        (self.sum([near.0, pose.0]), self.join([near.1, pose.1]))
    }

    fn state(&self) -> State {
        let state = State::new().f64("spread", &self.spread);
        let parts = PARTS.iter().zip(&self.parts);
        parts.fold(state, |all, (name, part)| all.with_part(name, &part.state()))
    }

    fn neighbours(&self, outputs: &Outputs) -> Option<Vec<Vec<Neighbour>>> {
        self.parts[0].neighbours(outputs)
    }

    fn note(&self) -> Option<String> {
        self.parts[0].note()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::outputs::Outputs;
    use crate::score::{self, Bank};
    use crate::tensor::Matrix;

    fn outputs(features: &[f32]) -> Outputs {
        let n = features.len();
        let logits = Matrix::new(n, 1, vec![1.0; n]).unwrap();
        Outputs::new(logits, vec![Matrix::new(n, 1, features.to_vec()).unwrap()]).unwrap()
    }

    /// The bank is -1, 0, 1, the copies 4, 5, 6: both have the variance 1, so that with hardly
    /// a ridge `l = 5 (f - 2.5)`, which spreads over the copies by 5. Their nearest sample is 1,
    /// at 3, 4 and 5, which spreads by 1. At 3 the distance is 2 and `l / 5 = 0.5`.
    #[test]
    fn energies_equal_those_worked_by_hand() {
        let (bank, copies) = (outputs(&[-1.0, 0.0, 1.0]), outputs(&[4.0, 5.0, 6.0]));
        let bank = Bank { transformed: Some(&copies), ..Bank::of(&bank, &[0; 3]) };
        let part = Part::new("pc-knn-fisher")
            .number("k", 1.0)
            .number("w_cos", 0.0)
            .number("ridge", 1e-6)
            .number("weight", 2.0);
        let fitted = score::fit(&part, &bank).unwrap();
        let energy = fitted.energy(&outputs(&[3.0]))[0];
        assert!((energy - 3.0).abs() < 1e-4, "{energy}");
        let d = fitted.pullback(&outputs(&[3.0]));
        let slope = d.features[0].as_ref().unwrap().data()[0];
        assert!((slope - 3.0).abs() < 1e-4, "{slope}");
        let nearest = fitted.neighbours(&outputs(&[3.0])).unwrap()[0][0].distance;
        assert!((nearest - 2.0).abs() < 1e-5, "{nearest}");
    }
}
