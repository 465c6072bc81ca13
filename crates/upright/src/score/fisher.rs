//! Fisher's linear discriminant between the bank and transformed copies of it:
//! `E = w . f - w . (u + t) / 2`, `w = (S + ridge tr(S) / D)^-1 (t - u)`.
//!
//! `u` and `t` are the means of the bank's features and of the copies', `S` the
//! mean of their two covariances. Where both are normal with the same
//! covariance, `E` is the log odds that an input came transformed: negative on
//! the bank's side. Unlike a distance it learns which directions tell a pose,
//! not only how far an input lies from the familiar ones. Fisher 1936, "The
//! Use of Multiple Measurements in Taxonomic Problems". Features of the first
//! tap.

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::linalg::{dot, eigen, mean, scatter};
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::{features, finite, lack, nothing, on_features, tap, undefined};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// What keeps the covariances invertible.
pub(super) const RIDGE: Param =
    Param::real("ridge", 0.01, 1e-6, 1e3, "added to the covariances' diagonal, in mean variances")
        .untuned();

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "fisher",
    about: "linear discriminant between the bank and transformed copies of it",
    params: &[RIDGE],
    make: Make {
        needs: |_| Needs { features: true, transformed: true, ..Needs::default() },
        fit,
        load,
    },
};

#[derive(Debug)]
struct Fisher {
    weight: Vec<f32>,
    offset: f64,
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    fitted(KIND.name, settings, bank)
}

/// As [`fit`], for a score of another name.
pub(super) fn fitted(
    name: &'static str,
    settings: &Settings,
    bank: &Bank,
) -> Result<Box<dyn Score>> {
    let upright = features(bank, name)?;
    let width = upright.cols();
    let copies = bank.transformed.and_then(|t| tap(t, 0, width)).ok_or_else(|| {
        lack(name, "transformed samples of the bank's features", "choose another score")
    })?;
    finite(copies, name, "features of transformed samples")?;
    let (u, t) = (mean(upright.iter(), width), mean(copies.iter(), width));
    let spread = |m: &Matrix, centre: &[f64]| -> Vec<f64> {
        let n = (m.rows().max(2) - 1) as f64;
        scatter(m, |_| centre).iter().map(|v| v / n / 2.0).collect()
    };
    let mut covariance = spread(upright, &u);
    covariance.iter_mut().zip(spread(copies, &t)).for_each(|(a, b)| *a += b);
    let e = eigen(&covariance, width).ok_or_else(|| {
        lack(name, "features whose covariance can be inverted", "choose another score")
    })?;
    let level = e.values.iter().sum::<f64>() / width as f64;
    let ridge = (settings.real("ridge") * level).max(f64::MIN_POSITIVE);
    let gap: Vec<f64> = t.iter().zip(&u).map(|(t, u)| t - u).collect();
    let mut weight = vec![0.0; width];
    for (value, vector) in e.values.iter().zip(e.vectors.chunks(width)) {
        let along = vector.iter().zip(&gap).map(|(v, g)| v * g).sum::<f64>();
        let along = along / (value.max(0.0) + ridge);
        weight.iter_mut().zip(vector).for_each(|(w, v)| *w += along * v);
    }
    let weight: Vec<f32> = weight.into_iter().map(|w| w as f32).collect();
    if weight.iter().any(|w| !w.is_finite()) || weight.iter().all(|w| *w == 0.0) {
        return Err(lack(
            name,
            "features that differ between upright and transformed samples",
            "tap another tensor, or choose another score",
        ));
    }
    let middle = u.iter().zip(&t).map(|(u, t)| f64::midpoint(*u, *t));
    let offset = weight.iter().zip(middle).map(|(w, m)| f64::from(*w) * m).sum();
    Ok(Box::new(Fisher { weight, offset }))
}

pub(super) fn load(_: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let (weight, offset) = (state.read_f32("weight")?, state.read_f64("offset")?);
    match offset.as_slice() {
        &[offset] if !weight.is_empty() => Ok(Box::new(Fisher { weight, offset })),
        _ => Err(damaged("`weight` or `offset` is empty".into())),
    }
}

impl Score for Fisher {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let Some(features) = tap(outputs, 0, self.weight.len()) else {
            return undefined(outputs);
        };
        features.iter().map(|f| (dot(f, &self.weight) - self.offset) as f32).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        if tap(outputs, 0, self.weight.len()).is_none() {
            return nothing(outputs);
        }
        let mut d = Matrix::zeros(outputs.len(), self.weight.len());
        for i in 0..outputs.len() {
            d.row_mut(i).copy_from_slice(&self.weight);
        }
        on_features(outputs, d)
    }

    fn state(&self) -> State {
        State::new().f32("weight", &self.weight).f64("offset", &[self.offset])
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Part;
    use crate::outputs::Outputs;
    use crate::score::{self, Bank};
    use crate::tensor::Matrix;

    fn outputs(features: &[[f32; 2]]) -> Outputs {
        let data: Vec<f32> = features.concat();
        let features = Matrix::new(features.len(), 2, data).unwrap();
        Outputs::new(Matrix::zeros(features.rows(), 2), vec![features]).unwrap()
    }

    /// Both sets have the covariance diag(2, 8) about (0, 0) and (4, 4). With a ridge of a
    /// millionth of the mean variance 5, `w = (4 / 2, 4 / 8) = (2, 0.5)` but for rounding, and
    /// the offset is `w . (2, 2) = 5`.
    #[test]
    fn the_discriminant_is_the_one_worked_out_by_hand() {
        let at = |x: f32, y: f32| {
            let (a, b) = (3f32.sqrt(), 12f32.sqrt());
            outputs(&[[x - a, y], [x + a, y], [x, y - b], [x, y + b]])
        };
        let (upright, copies) = (at(0.0, 0.0), at(4.0, 4.0));
        let bank = Bank { transformed: Some(&copies), ..Bank::of(&upright, &[]) };
        let part = Part::new("fisher").number("ridge", 1e-6);
        let score = score::fit(&part, &bank).unwrap();
        let energy = score.energy(&outputs(&[[0.0, 0.0], [4.0, 4.0], [1.0, 6.0]]));
        for (energy, expected) in energy.into_iter().zip([-5.0, 5.0, 0.0]) {
            assert!((energy - expected).abs() < 1e-3, "{energy} {expected}");
        }
    }

    #[test]
    fn sets_that_do_not_differ_are_refused() {
        let upright = outputs(&[[0.0, 1.0], [1.0, 0.0]]);
        let bank = Bank { transformed: Some(&upright), ..Bank::of(&upright, &[]) };
        let e = score::fit(&Part::new("fisher"), &bank).unwrap_err().to_string();
        assert!(e.contains("differ"), "{e}");
    }
}
