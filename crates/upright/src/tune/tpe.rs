//! The tree-structured Parzen estimator (Bergstra, Bardenet, Bengio & Kégl
//! 2011, "Algorithms for Hyper-Parameter Optimization"), maximising.
//!
//! The best tenth of the trials gives a density `l`, the rest a density `g`
//! (`parzen`); of 24 points drawn from `l`, the one with the highest `l / g` is
//! proposed. The sizes follow Optuna 5: 10 random trials first,
//! `min(ceil(n / 10), 25)` good ones, a prior kernel of weight 1, kernels over
//! all knobs jointly (Watanabe 2023, "Tree-Structured Parzen Estimator:
//! Understanding Its Algorithm Components").
//!
//! Knobs that always exist together form a group. A group is drawn after those
//! it depends on; its densities are made of the trials in which it existed,
//! good ones being good among all trials, so that a branch without any is still
//! explored by the prior. Failed trials are never good ones. As values do not
//! change when a point is tried again, no point is proposed twice.

use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::knobs::{Knobs, Point, Range};
use super::parzen::{Parzen, even};
use super::trial::{Outcome, Trial};
use crate::seed;

/// Even draws after which a space counts as used up.
const DRAWS: usize = 256;

/// Settings of the sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tpe {
    /// Trials that did not fail before the model is used; until then points are
    /// drawn evenly.
    pub startup: usize,
    /// Points drawn for each that is proposed.
    pub candidates: usize,
}

impl Default for Tpe {
    fn default() -> Self {
        Tpe { startup: 10, candidates: 24 }
    }
}

impl Tpe {
    /// The next point to try, after all trials of a series in order; it follows
    /// from the arguments alone. `None` if nothing untried was found in 256
    /// even draws: the space is finite and (nearly) used up.
    pub fn suggest(&self, knobs: &Knobs, seed: u64, trials: &[Trial]) -> Option<Point> {
        let mut rng = seed::stream(seed::of_index(seed, "tune", trials.len()));
        let told = trials.iter().filter(|t| !matches!(t.outcome, Outcome::Failed(_))).count();
        let modelled =
            if told < self.startup.max(1) { None } else { self.propose(knobs, trials, &mut rng) };
        let untried = |point: &Point| trials.iter().all(|t| t.point != *point);
        modelled.or_else(|| (0..DRAWS).map(|_| spread(knobs, &mut rng)).find(untried))
    }

    /// A point by the model; `None` if all that were drawn have been tried.
    fn propose(&self, knobs: &Knobs, trials: &[Trial], rng: &mut ChaCha8Rng) -> Option<Point> {
        let mut point = Point::new();
        for (at, group) in knobs.groups().iter().enumerate() {
            let when = knobs.all()[group[0]].when.as_ref();
            if !Knobs::holds(when, &point) {
                continue;
            }
            let ranges: Vec<&Range> = group.iter().map(|&k| &knobs.all()[k].range).collect();
            let (good, rest) = split(knobs, group, trials);
            let (good, rest) = (Parzen::new(&ranges, &good), Parzen::new(&ranges, &rest));
            let later = &knobs.groups()[at + 1..];
            let mut best: Option<(f64, Point)> = None;
            for _ in 0..self.candidates.max(1) {
                let places = good.draw(rng);
                let mut longer = point.clone();
                for (&k, place) in group.iter().zip(&places) {
                    let knob = &knobs.all()[k];
                    longer.insert(knob.name.clone(), knob.range.value(*place));
                }
                let whole =
                    later.iter().all(|g| !Knobs::holds(knobs.all()[g[0]].when.as_ref(), &longer));
                if whole && trials.iter().any(|t| t.point == longer) {
                    continue;
                }
                let gain = good.ln_density(&places) - rest.ln_density(&places);
                if best.as_ref().is_none_or(|(highest, _)| gain > *highest) {
                    best = Some((gain, longer));
                }
            }
            point = best?.1;
        }
        Some(point)
    }
}

/// How many of `n` trials are good ones.
fn good_ones(n: usize) -> usize {
    n.div_ceil(10).min(25)
}

/// The places of a group in the good trials and in the rest, oldest first;
/// trials in which it did not exist are left out.
fn split(knobs: &Knobs, group: &[usize], trials: &[Trial]) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let place = |trial: &Trial| -> Option<Vec<f64>> {
        let knobs = group.iter().map(|&k| &knobs.all()[k]);
        knobs.map(|knob| knob.range.place(trial.point.get(&knob.name)?)).collect()
    };
    let seen: Vec<(&Trial, Vec<f64>)> =
        trials.iter().filter_map(|t| place(t).map(|p| (t, p))).collect();
    let mut ranked: Vec<&Trial> =
        trials.iter().filter(|t| !matches!(t.outcome, Outcome::Failed(_))).collect();
    ranked.sort_by(|a, b| a.rank(b));
    ranked.truncate(good_ones(ranked.len()));
    let (mut good, mut rest) = (Vec::new(), Vec::new());
    for (trial, places) in seen {
        let side =
            if ranked.iter().any(|t| t.number == trial.number) { &mut good } else { &mut rest };
        side.push(places);
    }
    (good, rest)
}

/// A point drawn evenly.
fn spread(knobs: &Knobs, rng: &mut ChaCha8Rng) -> Point {
    let mut point = Point::new();
    for knob in knobs.all() {
        if Knobs::holds(knob.when.as_ref(), &point) {
            point.insert(knob.name.clone(), knob.range.value(even(&knob.range, rng)));
        }
    }
    point
}
