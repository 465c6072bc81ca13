//! Inverse transformation search (ITS, Schmidt & Stober, ICML 2024): a tree
//! over the axes, or over their lines ([`crate::axes::Axis::lines`]) where
//! they have several.
//!
//! Level by level, each hypothesis sweeps the orbit of the next axis, the
//! earlier axes fixed at what it chose, the later ones at the identity. An
//! orbit is equally spaced and includes its ends; on a periodic axis the ends
//! are one pose and the orbit is moved by a random part of a step. On the
//! first level the best `hypotheses` poses each found a hypothesis, on later
//! ones each takes its own best. `d` axes cost `m (1 + H (d - 1))` at `m` poses
//! an orbit; hypotheses are given up until `m >= H`, then the last axes until
//! `m >= 3`.
//!
//! The score of a pose on its orbit is its energy (`plain`, lower is better)
//! or its curvature: the second difference of the energies along the orbit
//! after smoothing by a Gaussian (sigma 2, radius 3, ends repeated; central
//! differences, one-sided at the ends), higher is better. `smoothing = mixed`
//! adds up the curves of all hypotheses, as the published code does, instead
//! of smoothing each on its own.
//!
//! With `unique`, hypotheses must predict different classes. The hypothesis
//! that was first on the first level answers; with `mind` (change of mind) the
//! one whose scores add up to the most over the levels, and for plain scores
//! the lowest energy seen.

use super::design::unit;
use super::moves::home;
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::axes::Axis;
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "its",
    about: "inverse transformation search: a tree over the axes with several hypotheses",
    params: &[
        Param::whole("hypotheses", 2, 1, 64, "poses of the first axis that are followed"),
        Param::word("score", &["plain", "curvature"], "what is best on an orbit"),
        Param::word("smoothing", &["own", "mixed"], "smooth each hypothesis or their sum"),
        Param::flag("unique", false, "hypotheses must predict different classes"),
        Param::flag("mind", true, "a later hypothesis may overtake the first"),
        Param::flag("offset", true, "shift periodic orbits by a random part of a step"),
    ],
    make: Make { gradient: false, build },
};

/// What is best on an orbit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scoring {
    /// The lowest energy.
    Plain,
    /// The highest curvature of the hypothesis' own curve.
    Own,
    /// The highest curvature of the sum of all hypotheses' curves.
    Mixed,
}

impl Scoring {
    fn read(settings: &Settings) -> Self {
        match (settings.word("score"), settings.word("smoothing")) {
            ("plain", _) => Scoring::Plain,
            (_, "mixed") => Scoring::Mixed,
            _ => Scoring::Own,
        }
    }
}

#[derive(Debug)]
struct Its {
    hypotheses: usize,
    scoring: Scoring,
    unique: bool,
    mind: bool,
    offset: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Its {
        hypotheses: settings.whole("hypotheses"),
        scoring: Scoring::read(settings),
        unique: settings.flag("unique"),
        mind: settings.flag("mind"),
        offset: settings.flag("offset"),
    }))
}

impl Search for Its {
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let (hypotheses, counts) = plan(brief.space, brief.budget, self.hypotheses);
        let offset = |i| if self.offset { unit(brief.seed, i) } else { 0.0 };
        let lines = brief.space.lines();
        let orbits = lines
            .iter()
            .zip(counts)
            .enumerate()
            .map(|(i, (&(axis, line), count))| {
                orbit(brief.space.axes()[axis].as_ref(), line, count, offset(i as u64))
            })
            .collect();
        let root = Hypothesis { pose: home(brief).0, total: 0.0, at: 0 };
        Box::new(Tree {
            settings: self,
            space: brief.space,
            hypotheses,
            lines,
            orbits,
            level: 0,
            told: 0,
            leaves: vec![root],
        })
    }
}

/// How many hypotheses a budget can follow, and the poses of each orbit.
fn plan(space: &Space, budget: usize, wanted: usize) -> (usize, Vec<usize>) {
    let axes = space.lines().into_iter().map(|(axis, _)| &space.axes()[axis]);
    let fixed: Vec<usize> =
        axes.map(|a| if a.extent() > 0.0 { 0 } else { a.lattice(1, 0.0).len() }).collect();
    let count = |hypotheses: usize, levels: usize| {
        let times = |level: usize| if level == 0 { 1 } else { hypotheses };
        let discrete: usize = (0..levels).map(|l| times(l) * fixed[l]).sum();
        let free: usize = (0..levels).filter(|&l| fixed[l] == 0).map(times).sum();
        budget.checked_sub(discrete).map(|room| room.checked_div(free).unwrap_or(room))
    };
    let mut levels = fixed.len();
    let mut hypotheses = wanted;
    while hypotheses > 1 && count(hypotheses, levels).is_none_or(|m| m < hypotheses) {
        hypotheses -= 1;
    }
    while levels > 1 && count(hypotheses, levels).is_none_or(|m| m < 3) {
        levels -= 1;
    }
    let m = count(hypotheses, levels).unwrap_or(0);
    let counts = fixed[..levels].iter().map(|&f| if f > 0 { f } else { m }).collect();
    (hypotheses, counts)
}

/// The places of an orbit on a line, in 0..1.
fn orbit(axis: &dyn Axis, line: usize, count: usize, offset: f32) -> Vec<f32> {
    let even = |n: usize, offset| (0..n).map(|j| (j as f32 + offset) / n as f32).collect();
    let end = |unit: f32| {
        let mut pose = axis.identity();
        axis.along(line, unit, &mut pose);
        pose
    };
    if axis.extent() <= 0.0 {
        even(axis.lattice(1, 0.0).len(), 0.5)
    } else if count < 2 {
        even(count, 0.5)
    } else if axis.distance(&end(0.0), &end(1.0)) < 1e-4 {
        even(count, offset)
    } else {
        (0..count).map(|j| j as f32 / (count - 1) as f32).collect()
    }
}

#[derive(Debug, Clone)]
struct Hypothesis {
    pose: Vec<f32>,
    total: f64,
    /// The evaluation that its pose comes from.
    at: usize,
}

struct Tree<'a> {
    settings: &'a Its,
    space: &'a Space,
    hypotheses: usize,
    /// Axes and their lines, a level each.
    lines: Vec<(usize, usize)>,
    orbits: Vec<Vec<f32>>,
    level: usize,
    told: usize,
    leaves: Vec<Hypothesis>,
}

impl Run for Tree<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        let Some(orbit) = self.orbits.get(self.level) else { return Vec::new() };
        let (axis, line) = self.lines[self.level];
        let part = self.space.part(axis);
        self.leaves
            .iter()
            .flat_map(|h| {
                orbit.iter().map(|&place| {
                    let mut pose = h.pose.clone();
                    self.space.axes()[axis].along(line, place, &mut pose[part.clone()]);
                    Ask::plain(pose)
                })
            })
            .take(room)
            .collect()
    }

    fn tell(&mut self, seen: &[Seen]) {
        let Some(orbit) = self.orbits.get(self.level).filter(|_| !seen.is_empty()) else { return };
        let count = orbit.len().max(1);
        let curves: Vec<&[Seen]> = seen.chunks(count).collect();
        let scores = scores(self.settings.scoring, &curves);
        self.leaves = if self.level == 0 {
            let wanted = self.hypotheses.min(count);
            let mut taken: Vec<usize> = Vec::new();
            while taken.len() < wanted {
                let mut barred = vec![false; seen.len()];
                for &i in &taken {
                    barred[i] = true;
                }
                let Some(best) = self.best(&scores[0], seen, &barred, &taken_labels(&taken, seen))
                else {
                    break;
                };
                taken.push(best);
            }
            taken.iter().map(|&i| self.child(0, &scores[0], seen, i, self.told)).collect()
        } else {
            let mut labels = Vec::new();
            let mut leaves = Vec::new();
            for (h, curve) in curves.iter().enumerate() {
                let open = vec![false; curve.len()];
                let Some(best) = self.best(&scores[h], curve, &open, &labels) else { continue };
                labels.push(curve[best].label);
                leaves.push(self.child(h, &scores[h], curve, best, self.told + h * count));
            }
            leaves
        };
        self.told += seen.len();
        self.level += 1;
    }

    fn pick(&self) -> Option<usize> {
        if self.told == 0 || (self.settings.mind && self.settings.scoring == Scoring::Plain) {
            return None;
        }
        let mut best = self.leaves.first()?;
        if self.settings.mind {
            for h in &self.leaves {
                if h.total > best.total {
                    best = h;
                }
            }
        }
        Some(best.at)
    }
}

fn taken_labels(taken: &[usize], seen: &[Seen]) -> Vec<u32> {
    taken.iter().map(|&i| seen[i].label).collect()
}

impl Tree<'_> {
    /// The highest score that is not barred and, with unique classes, of a new class; of
    /// any class if none is new.
    fn best(
        &self,
        scores: &[f64],
        seen: &[Seen],
        barred: &[bool],
        labels: &[u32],
    ) -> Option<usize> {
        let highest = |fresh: bool| {
            let mut best: Option<usize> = None;
            for i in (0..seen.len()).filter(|&i| !barred[i]) {
                let new = !fresh || !labels.contains(&seen[i].label);
                if new && best.is_none_or(|b| scores[i] > scores[b]) {
                    best = Some(i);
                }
            }
            best
        };
        highest(self.settings.unique).or_else(|| highest(false))
    }

    fn child(
        &self,
        parent: usize,
        scores: &[f64],
        seen: &[Seen],
        i: usize,
        first: usize,
    ) -> Hypothesis {
        let total = self.leaves.get(parent).map_or(0.0, |h| h.total) + scores[i];
        Hypothesis { pose: seen[i].pose.clone(), total, at: first + i }
    }
}

/// The score of each pose of each hypothesis' orbit; higher is better.
fn scores(scoring: Scoring, curves: &[&[Seen]]) -> Vec<Vec<f64>> {
    let energies: Vec<Vec<f64>> = curves.iter().map(|c| finite(c)).collect();
    if scoring == Scoring::Plain {
        return energies.iter().map(|c| c.iter().map(|e| -e).collect()).collect();
    }
    let mut smoothed: Vec<Vec<f64>> = energies.iter().map(|c| smooth(c)).collect();
    if scoring == Scoring::Mixed {
        let length = smoothed.iter().map(Vec::len).max().unwrap_or(0);
        let sum: Vec<f64> =
            (0..length).map(|i| smoothed.iter().filter_map(|c| c.get(i)).sum()).collect();
        for c in &mut smoothed {
            *c = sum[..c.len()].to_vec();
        }
    }
    smoothed.iter().map(|c| difference(&difference(c))).collect()
}

/// The energies of a curve; those that are not finite count as its highest.
fn finite(curve: &[Seen]) -> Vec<f64> {
    let highest = curve
        .iter()
        .map(|s| s.energy)
        .filter(|e| e.is_finite())
        .max_by(f32::total_cmp)
        .unwrap_or(0.0);
    curve.iter().map(|s| f64::from(if s.energy.is_finite() { s.energy } else { highest })).collect()
}

/// Gaussian smoothing with sigma 2, radius 3 and repeated ends.
fn smooth(curve: &[f64]) -> Vec<f64> {
    const RADIUS: isize = 3;
    let weight = |k: isize| libm::exp(-((k * k) as f64) / 8.0);
    let total: f64 = (-RADIUS..=RADIUS).map(weight).sum();
    let last = curve.len() as isize - 1;
    (0..=last)
        .map(|i| {
            let at = |k: isize| curve[(i + k).clamp(0, last) as usize];
            (-RADIUS..=RADIUS).map(|k| weight(k) * at(k)).sum::<f64>() / total
        })
        .collect()
}

/// Central differences, one-sided at the ends.
fn difference(curve: &[f64]) -> Vec<f64> {
    let last = curve.len().saturating_sub(1);
    (0..curve.len())
        .map(|i| {
            let (low, high) = (i.saturating_sub(1), (i + 1).min(last));
            if high > low { (curve[high] - curve[low]) / (high - low) as f64 } else { 0.0 }
        })
        .collect()
}

#[cfg(test)]
mod tests;
