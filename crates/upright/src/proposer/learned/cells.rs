//! Cells: a few poses that stand for all, which a regression can tell apart.

use std::f64::consts::TAU;

use crate::rotation::{Matrix3, angle, product, transpose};
use crate::seed::sobol;
use crate::space::Space;
use crate::state::State;

/// Angles around the circle.
const ANGLES: usize = 36;
/// How sharply an angle belongs to its cells (von Mises).
const KAPPA: f64 = 20.0;
/// Rotations in space.
const TURNS: usize = 64;
/// Poses along one axis, and in a space of several.
const LINE: usize = 36;
const POINTS: usize = 96;
/// Spacing of poses that have nothing between them, as a fraction of what it is.
const DISCRETE: f32 = 0.2;
/// Weights below this are left out.
const FAINT: f64 = 0.01;

/// Poses that stand for all.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cells {
    /// Equally spaced angles of a rotation in the plane.
    Angles,
    /// Rotations in space.
    Turns(Vec<Matrix3>),
    /// Poses of the space.
    Poses { poses: Vec<Vec<f32>>, spacing: f32 },
}

/// What lies in cells: what has to be told of a copy.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    Angle(f64),
    Turn(Matrix3),
    Pose(Vec<f32>),
}

impl Cells {
    /// Poses spread over a space, all of them where it has few.
    pub(super) fn of_space(space: &Space) -> Self {
        let poses: Vec<Vec<f32>> = match space.axes() {
            [one] => one.lattice(LINE, 0.5),
            _ => (0..POINTS).map(|i| space.draw(&sobol(i as u32, space.cube(), 0))).collect(),
        };
        let nearest = |a: &Vec<f32>| {
            let others = poses.iter().filter(|b| *b != a).map(|b| space.distance(a, b));
            others.fold(f32::INFINITY, f32::min)
        };
        let sum: f32 = poses.iter().map(nearest).filter(|d| d.is_finite()).sum();
        let mut spacing = (sum / poses.len().max(1) as f32).max(1e-6);
        if space.axes().iter().all(|axis| axis.extent() == 0.0) {
            // Nothing lies between the poses of discrete axes.
            spacing *= DISCRETE;
        }
        Cells::Poses { poses, spacing }
    }

    /// Rotations that stand for the given ones: each is the one farthest from those before it,
    /// then the middle of what is nearest to it.
    pub(super) fn of_turns(all: &[Matrix3]) -> Option<Self> {
        let apart = |a: &Matrix3, b: &Matrix3| angle(&product(&transpose(a), b));
        let mut chosen: Vec<Matrix3> = vec![*all.first()?];
        let mut nearest: Vec<f64> = all.iter().map(|t| apart(&chosen[0], t)).collect();
        while chosen.len() < TURNS {
            let far = (0..all.len()).max_by(|&a, &b| nearest[a].total_cmp(&nearest[b]))?;
            if nearest[far] < 0.05 {
                break;
            }
            chosen.push(all[far]);
            for (n, t) in nearest.iter_mut().zip(all) {
                *n = n.min(apart(&all[far], t));
            }
        }
        for _ in 0..8 {
            let mut groups: Vec<Vec<Matrix3>> = vec![Vec::new(); chosen.len()];
            for t in all {
                let own = (0..chosen.len())
                    .min_by(|&a, &b| apart(&chosen[a], t).total_cmp(&apart(&chosen[b], t)))?;
                groups[own].push(*t);
            }
            for (c, group) in chosen.iter_mut().zip(&groups) {
                if let Some(mean) = crate::rotation::mean(group) {
                    *c = mean;
                }
            }
        }
        Some(Cells::Turns(chosen))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Cells::Angles => ANGLES,
            Cells::Turns(turns) => turns.len(),
            Cells::Poses { poses, .. } => poses.len(),
        }
    }

    /// The cells that a place belongs to, with weights that sum to one.
    pub(super) fn weights(&self, place: &Place, space: &Space) -> Vec<(usize, f32)> {
        let raw: Vec<f64> = (0..self.len())
            .map(|i| match (self, place) {
                (Cells::Angles, Place::Angle(a)) => {
                    libm::exp(KAPPA * (libm::cos(a - centre(i)) - 1.0))
                }
                (Cells::Turns(turns), Place::Turn(t)) => {
                    bump(angle(&product(&transpose(&turns[i]), t)) / 0.35)
                }
                (Cells::Poses { poses, spacing }, Place::Pose(p)) => {
                    bump(f64::from(space.distance(&poses[i], p) / spacing))
                }
                _ => 0.0,
            })
            .collect();
        let most = raw.iter().copied().fold(0.0, f64::max);
        let kept = || raw.iter().enumerate().filter(|(_, w)| **w > FAINT * most);
        let sum: f64 = kept().map(|(_, w)| w).sum();
        kept().map(|(i, w)| (i, (w / sum) as f32)).collect()
    }

    /// How far two cells are apart, in steps from one cell to the next.
    pub(super) fn apart(&self, a: usize, b: usize, space: &Space) -> f32 {
        match self {
            Cells::Angles => {
                let d = a.abs_diff(b);
                d.min(ANGLES - d) as f32
            }
            Cells::Turns(turns) => {
                (angle(&product(&transpose(&turns[a]), &turns[b])) / 0.25) as f32
            }
            Cells::Poses { poses, spacing } => space.distance(&poses[a], &poses[b]) / spacing,
        }
    }

    /// The place of a cell, moved to the top of the parabola through it and its neighbours
    /// where cells have an order.
    pub(super) fn place(&self, cell: usize, value: impl Fn(usize) -> f32) -> Place {
        match self {
            Cells::Angles => {
                let [before, here, after] =
                    [ANGLES - 1, 0, 1].map(|step| f64::from(value((cell + step) % ANGLES)));
                let bend = before - 2.0 * here + after;
                let off = if bend < -1e-12 { (before - after) / (2.0 * bend) } else { 0.0 };
                let step = TAU / ANGLES as f64;
                Place::Angle(centre(cell) + off.clamp(-0.5, 0.5) * step)
            }
            Cells::Turns(turns) => Place::Turn(turns[cell]),
            Cells::Poses { poses, .. } => Place::Pose(poses[cell].clone()),
        }
    }

    /// A value at a place, between the cells around it.
    pub(super) fn at(&self, place: &Place, space: &Space, value: impl Fn(usize) -> f32) -> f32 {
        if let (Cells::Angles, Place::Angle(a)) = (self, place) {
            let at = (a / TAU).rem_euclid(1.0) * ANGLES as f64;
            let (low, part) = (at as usize % ANGLES, at.fract() as f32);
            return (1.0 - part) * value(low) + part * value((low + 1) % ANGLES);
        }
        self.weights(place, space).into_iter().map(|(i, w)| w * value(i)).sum()
    }

    /// The cells around a place: of angles, so many on each side of the nearest; otherwise those
    /// that it belongs to.
    pub(super) fn around(&self, place: &Place, space: &Space, reach: usize) -> Vec<usize> {
        if let (Cells::Angles, Place::Angle(a)) = (self, place) {
            let nearest = ((a / TAU).rem_euclid(1.0) * ANGLES as f64).round() as usize;
            return (nearest + ANGLES - reach..=nearest + ANGLES + reach)
                .map(|cell| cell % ANGLES)
                .collect();
        }
        self.weights(place, space).into_iter().map(|(i, _)| i).collect()
    }

    /// The places on both sides of an angle, so many cells away.
    pub(super) fn beside(&self, place: &Place, steps: f64) -> Vec<Place> {
        match (self, place) {
            (Cells::Angles, Place::Angle(a)) => {
                let by = steps * TAU / ANGLES as f64;
                vec![Place::Angle(a + by), Place::Angle(a - by)]
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn state(&self) -> State {
        match self {
            Cells::Angles | Cells::Poses { .. } => State::new(),
            Cells::Turns(turns) => State::new().f64("turns", turns.as_flattened()),
        }
    }
}

/// The angle in the middle of a cell.
fn centre(cell: usize) -> f64 {
    TAU * cell as f64 / ANGLES as f64
}

fn bump(distance: f64) -> f64 {
    libm::exp(-0.5 * distance * distance)
}
