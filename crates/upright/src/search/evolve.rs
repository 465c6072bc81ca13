//! Refinement without gradients: mirrored random steps around a few poses.
//!
//! Each basin holds its best pose and a radius. A round tries one random
//! direction per basin, forwards and backwards, at `radius` of each axis'
//! extent; directions are orthogonal to the basin's earlier ones until they
//! fill the space. A better pose moves the basin and widens the radius a
//! little (1.2), none narrows it (0.6). A view that the model gives to another basin's
//! class competes in that basin, so that rivals stay rivals.

use rand_chacha::ChaCha8Rng;

use super::design::stream;
use super::moves::{order, rank};
use super::{Ask, Seen};
use crate::seed;
use crate::space::Space;

const WIDEN: f32 = 1.2;
const NARROW: f32 = 0.6;
const WIDEST: f32 = 0.25;
/// How often a discrete axis is tried at its other value.
const FLIP: f32 = 0.25;

#[derive(Debug)]
struct Basin {
    pose: Vec<f32>,
    energy: f32,
    label: u32,
    radius: f32,
    directions: Vec<Vec<f32>>,
    better: bool,
}

/// Some poses under refinement.
#[derive(Debug)]
pub(super) struct Evolve<'a> {
    space: &'a Space,
    rng: ChaCha8Rng,
    basins: Vec<Basin>,
    asked: Vec<usize>,
}

impl<'a> Evolve<'a> {
    /// Starts from what was seen at some poses.
    pub(super) fn new(space: &'a Space, seed: u64, starts: &[Seen], radius: f32) -> Self {
        let basins = starts
            .iter()
            .map(|s| Basin {
                pose: s.pose.clone(),
                energy: rank(s.energy),
                label: s.label,
                radius,
                directions: Vec::new(),
                better: false,
            })
            .collect();
        Evolve { space, rng: stream(seed, 0x65_76), basins, asked: Vec::new() }
    }

    /// A pair of poses around each basin, the lowest basin first, as far as `room` goes.
    pub(super) fn ask(&mut self, room: usize) -> Vec<Ask> {
        let energies: Vec<f32> = self.basins.iter().map(|b| b.energy).collect();
        let mut asks = Vec::new();
        self.asked.clear();
        for i in order(&energies) {
            if asks.len() >= room {
                break;
            }
            let basin = &mut self.basins[i];
            let step = direction(self.space, &mut self.rng, basin);
            for sign in [1.0, -1.0] {
                let step: Vec<f32> = step.iter().map(|s| sign * s).collect();
                asks.push(Ask::plain(self.space.moved(&basin.pose, &step)));
                self.asked.push(i);
            }
        }
        asks.truncate(room);
        asks
    }

    /// Moves the basins to what was better.
    pub(super) fn tell(&mut self, seen: &[Seen]) {
        for (&parent, seen) in self.asked.iter().zip(seen) {
            let label = seen.label;
            let own = self.basins[parent].label == label;
            let rival = self.basins.iter().position(|b| b.label == label).filter(|_| !own);
            let basin = &mut self.basins[rival.unwrap_or(parent)];
            if rank(seen.energy) < basin.energy {
                basin.pose.clone_from(&seen.pose);
                basin.energy = seen.energy;
                basin.label = label;
                basin.better = true;
            }
        }
        for (i, basin) in self.basins.iter_mut().enumerate() {
            if basin.better {
                basin.radius = (basin.radius * WIDEN).min(WIDEST);
            } else if self.asked.contains(&i) {
                basin.radius *= NARROW;
            }
            basin.better = false;
        }
    }
}

/// A random step whose root mean square over the continuous numbers is the
/// basin's radius, orthogonal to the steps before it.
fn direction(space: &Space, rng: &mut ChaCha8Rng, basin: &mut Basin) -> Vec<f32> {
    let free: Vec<usize> = continuous(space);
    if basin.directions.len() >= free.len() {
        basin.directions.clear();
    }
    let mut draw: Vec<f32> =
        free.iter().map(|_| seed::unit(rng) + seed::unit(rng) + seed::unit(rng) - 1.5).collect();
    for used in &basin.directions {
        let along: f32 = used.iter().zip(&draw).map(|(a, b)| a * b).sum();
        draw.iter_mut().zip(used).for_each(|(d, u)| *d -= along * u);
    }
    let norm = draw.iter().map(|d| d * d).sum::<f32>().sqrt();
    if norm > 1e-6 {
        for d in &mut draw {
            *d /= norm;
        }
    }
    let mut step = vec![0.0; space.size()];
    for (axis, i) in space.axes().iter().zip(0..) {
        if axis.extent() <= 0.0 && seed::unit(rng) < FLIP {
            step[space.part(i)].fill(1.0);
        }
    }
    let length = basin.radius * (free.len() as f32).sqrt();
    for (&k, d) in free.iter().zip(&draw) {
        step[k] = d * length;
    }
    basin.directions.push(draw);
    step
}

/// The numbers of a pose that belong to continuous axes.
fn continuous(space: &Space) -> Vec<usize> {
    (0..space.axes().len())
        .filter(|&i| space.axes()[i].extent() > 0.0)
        .flat_map(|i| space.part(i))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    fn seen(pose: Vec<f32>, energy: f32, label: u32) -> Seen {
        Seen { pose, energy, label, gradient: None, follows: None }
    }

    #[test]
    fn directions_are_orthogonal_until_they_fill_the_space() {
        let space = SpaceConfig::parse("affine").unwrap().build().unwrap();
        let start = seen(space.identity(), 0.0, 0);
        let mut evolve = Evolve::new(&space, 1, &[start], 0.1);
        let steps: Vec<Vec<f32>> =
            (0..5).map(|_| direction(&space, &mut evolve.rng, &mut evolve.basins[0])).collect();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        for (i, a) in steps.iter().enumerate() {
            assert!((dot(a, a) - 5.0 * 0.01).abs() < 1e-5);
            assert!(steps[..i].iter().all(|b| dot(a, b).abs() < 1e-5));
        }
    }

    #[test]
    fn a_better_view_of_a_rivals_class_moves_the_rival_only() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let starts = [seen(vec![0.0], 1.0, 7), seen(vec![2.0], 2.0, 8)];
        let mut evolve = Evolve::new(&space, 1, &starts, 0.1);
        let asks = evolve.ask(1);
        evolve.tell(&[seen(asks[0].pose.clone(), 0.5, 8)]);
        assert_eq!(evolve.basins[0].pose, [0.0]);
        assert_eq!(evolve.basins[1].pose, asks[0].pose);
        assert!(evolve.basins[0].radius < 0.1 && evolve.basins[1].radius > 0.1);
    }
}
