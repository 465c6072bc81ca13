//! One energy from several taps: a weighted sum of the taps' Mahalanobis
//! energies.
//!
//! `combine = average` takes the plain average. `combine = from-transformed`
//! learns non-negative weights, summing to one, from the bank and the outputs
//! of transformed samples, which it therefore needs: a logistic regression
//! that tells the two apart by the taps' energies, each divided by its spread
//! over both, with a small quadratic penalty, by projected gradient steps. If
//! no tap tells them apart, it is the average.

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::score::gaussian::Classes;
use crate::score::inputs::{chosen, lack, nothing, tap, undefined};
use crate::score::{Bank, Score};
use crate::state::{State, damaged};

/// Parameters of both Mahalanobis scores.
pub(super) const PARAMS: &[Param] = &[
    Param::real("ridge", 0.0, 0.0, 1e6, "added to the covariances' diagonal; 0 adds nothing")
        .untuned(),
    Param::flag("correct_only", false, "fit on correctly classified samples only"),
    Param::word(
        "combine",
        &["average", "from-transformed"],
        "how several taps join; the latter needs transformed samples",
    )
    .untuned(),
];

/// Whether the taps' weights are learnt from transformed samples.
pub(super) fn learns(settings: &Settings) -> bool {
    settings.word("combine") == "from-transformed"
}

#[derive(Debug)]
struct Layers {
    taps: Vec<Classes>,
    weights: Vec<f64>,
}

/// Fits every tap's Gaussians and joins them.
pub(super) fn fit(
    settings: &Settings,
    bank: &Bank,
    score: &str,
    relative: bool,
) -> Result<Box<dyn Score>> {
    let rows = chosen(bank, settings.flag("correct_only"), score)?;
    let labels: Vec<u32> = rows.iter().map(|&i| bank.labels[i]).collect();
    let classes = bank.outputs.logits.cols();
    let ridge = settings.real("ridge");
    let fit = |f: &crate::tensor::Matrix| {
        if rows.len() == f.rows() {
            Classes::fit(f, &labels, classes, ridge, relative, score)
        } else {
            Classes::fit(&f.select(&rows), &labels, classes, ridge, relative, score)
        }
    };
    let taps = bank.outputs.features.iter().map(fit).collect::<Result<Vec<_>>>()?;
    let mut layers = Layers { weights: vec![1.0 / taps.len() as f64; taps.len()], taps };
    if learns(settings) {
        let fitting = |t: &&Outputs| layers.each(t).is_some() && !t.is_empty();
        let transformed = bank.transformed.filter(fitting).ok_or_else(|| {
            lack(
                score,
                "outputs of transformed samples for `combine = from-transformed`",
                "use `combine = average`, which needs none",
            )
        })?;
        let (familiar, unfamiliar) = (layers.each(bank.outputs), layers.each(transformed));
        if let (Some(familiar), Some(unfamiliar)) = (familiar, unfamiliar) {
            layers.weights = learn(&familiar, &unfamiliar);
        }
    }
    Ok(Box::new(layers))
}

/// Restores what [`fit`] made.
pub(super) fn load(state: &State, relative: bool) -> Result<Box<dyn Score>> {
    let weights = state.read_f64("weights")?;
    if weights.is_empty() {
        return Err(damaged("`weights` is empty".into()));
    }
    let one = |i| Classes::load(state, &format!("tap{i}"), relative);
    let taps = (0..weights.len()).map(one).collect::<Result<Vec<_>>>()?;
    Ok(Box::new(Layers { taps, weights }))
}

impl Layers {
    /// Energies by tap, then by row.
    fn each(&self, outputs: &Outputs) -> Option<Vec<Vec<f64>>> {
        if outputs.features.len() != self.taps.len() {
            return None;
        }
        let one = |(i, t): (usize, &Classes)| Some(t.energy(tap(outputs, i, t.width())?));
        self.taps.iter().enumerate().map(one).collect()
    }
}

impl Score for Layers {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let Some(each) = self.each(outputs) else {
            return undefined(outputs);
        };
        let energy = |i| each.iter().zip(&self.weights).map(|(e, w)| e[i] * w).sum::<f64>() as f32;
        (0..outputs.len()).map(energy).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let mut d = nothing(outputs);
        for (i, (classes, &weight)) in self.taps.iter().zip(&self.weights).enumerate() {
            if let Some(features) = tap(outputs, i, classes.width()) {
                let mut one = classes.pullback(features);
                one.data_mut().iter_mut().for_each(|v| *v = (f64::from(*v) * weight) as f32);
                d.features[i] = Some(one);
            }
        }
        d
    }

    fn state(&self) -> State {
        let state = State::new().f64("weights", &self.weights);
        let store = |s, (i, t): (usize, &Classes)| t.store(s, &format!("tap{i}"));
        self.taps.iter().enumerate().fold(state, store)
    }
}

/// Weights for raw energies, by tap and row, that are low for the familiar.
fn learn(familiar: &[Vec<f64>], unfamiliar: &[Vec<f64>]) -> Vec<f64> {
    const STEPS: usize = 500;
    const PENALTY: f64 = 1e-3;
    let count = familiar.len();
    let mut columns = Vec::new();
    let mut spreads = Vec::new();
    for (a, b) in familiar.iter().zip(unfamiliar) {
        let n = (a.len() + b.len()) as f64;
        let all = || a.iter().chain(b).copied();
        let mean = all().sum::<f64>() / n;
        let spread = (all().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt();
        spreads.push(spread);
        let scale = if spread > 0.0 { 1.0 / spread } else { 0.0 };
        columns.push(all().map(|v| (v - mean) * scale).collect::<Vec<_>>());
    }
    let rows = columns.first().map_or(0, Vec::len);
    let split = familiar.first().map_or(0, Vec::len);
    // Either side counts half, however many samples it has.
    let share = |i| 0.5 / if i < split { split } else { rows - split } as f64;
    let mut w = vec![0.0; count];
    let mut offset = 0.0;
    // The loss curves at most (count + 1) / 4 plus the penalty: this step always descends.
    let step = 1.0 / ((count + 1) as f64 / 4.0 + PENALTY);
    for _ in 0..STEPS {
        let mut slope: Vec<f64> = w.iter().map(|w| PENALTY * w).collect();
        let mut offset_slope = 0.0;
        for i in 0..rows {
            let sum = offset + columns.iter().zip(&w).map(|(c, w)| c[i] * w).sum::<f64>();
            let target = if i < split { 0.0 } else { 1.0 };
            let error = share(i) * (1.0 / (1.0 + libm::exp(-sum)) - target);
            offset_slope += error;
            slope.iter_mut().zip(&columns).for_each(|(s, c)| *s += error * c[i]);
        }
        offset -= step * offset_slope;
        w.iter_mut().zip(&slope).for_each(|(w, s)| *w = (*w - step * s).max(0.0));
    }
    let raw = |(w, s): (&f64, &f64)| if *s > 0.0 { w / s } else { 0.0 };
    let raw: Vec<f64> = w.iter().zip(&spreads).map(raw).collect();
    let total: f64 = raw.iter().sum();
    if total > 0.0 && total.is_finite() {
        raw.iter().map(|w| w / total).collect()
    } else {
        vec![1.0 / count as f64; count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_that_tells_nothing_gets_no_weight() {
        // Each value of the useful tap meets both values of the other.
        let useful = (vec![1.0, 1.0, 2.0, 2.0, 4.0, 4.0], vec![3.0, 3.0, 5.0, 5.0, 6.0, 6.0]);
        let noise = ([0.0, 1.0].repeat(3), [0.0, 1.0].repeat(3));
        let w = learn(&[useful.0, noise.0], &[useful.1, noise.1]);
        assert!((w[0] + w[1] - 1.0).abs() < 1e-12 && w[1].abs() < 1e-9, "{w:?}");
    }

    #[test]
    fn misleading_taps_leave_the_average() {
        let w = learn(&[vec![5.0, 6.0], vec![7.0, 7.0]], &[vec![1.0, 2.0], vec![7.0, 7.0]]);
        assert_eq!(w, [0.5, 0.5]);
    }
}
