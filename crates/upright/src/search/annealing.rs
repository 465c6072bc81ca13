//! Simulated annealing (SA).
//!
//! Chains from Sobol poses, in step. A proposal lies in a box around the
//! chain's pose whose side is `size` of each axis' extent; it is taken if it
//! is better, or with probability `exp((now - new) / T)`. `T` starts at
//! `temperature` times the interquartile range of the chains' first energies
//! (the scale of a score is arbitrary) and is multiplied by `cooling` after
//! each round; a temperature of 0 climbs only. A discrete axis takes a random
//! value with probability `size`. With `within` below 1 chains start, and steps are
//! measured, in that fraction of each axis around its middle, a full turn aside: the
//! rest of the space is there to walk into. `r` chains of `k` proposals cost `r (k + 1)`;
//! what is left over goes to the first chains.

use rand_chacha::ChaCha8Rng;

use super::design::{Design, stream};
use super::moves::{order, rank};
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::axes::Axis;
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::seed;
use crate::space::Space;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "annealing",
    about: "simulated annealing in parallel chains",
    params: &[
        Param::whole("chains", 5, 1, 65_536, "chains"),
        Param::real("temperature", 0.02, 0.0, 1e3, "first temperature, in interquartile ranges")
            .tuned_log(0.002, 0.2),
        Param::real("cooling", 0.9, 0.0, 1.0, "what the temperature is multiplied with"),
        Param::real("size", 0.25, 1e-3, 1.0, "side of the box of proposals, as a fraction"),
        Param::real("within", 1.0, 1e-3, 1.0, "fraction of each axis that chains start in")
            .untuned(),
    ],
    make: Make { gradient: false, build },
};

#[derive(Debug)]
struct Annealing {
    chains: usize,
    temperature: f32,
    cooling: f32,
    size: f32,
    within: f32,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Annealing {
        chains: settings.whole("chains"),
        temperature: settings.real("temperature") as f32,
        cooling: settings.real("cooling") as f32,
        size: settings.real("size") as f32,
        within: settings.real("within") as f32,
    }))
}

struct Chain {
    pose: Vec<f32>,
    energy: f32,
}

struct Walk<'a> {
    settings: &'a Annealing,
    space: &'a Space,
    rng: ChaCha8Rng,
    /// The fraction of each axis that chains start in.
    home: Vec<f32>,
    starts: Vec<Ask>,
    chains: Vec<Chain>,
    temperature: f32,
}

impl Search for Annealing {
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let count = self.chains.min(brief.budget);
        let home = home(brief.space, self.within);
        let starts = Design::Sobol.points(0..count, brief.space.cube(), brief.seed);
        let starts = starts.iter().map(|p| Ask::plain(start(brief.space, &home, p)));
        Box::new(Walk {
            settings: self,
            space: brief.space,
            rng: stream(brief.seed, 0x73_61),
            starts: starts.collect(),
            home,
            chains: Vec::new(),
            temperature: 0.0,
        })
    }
}

impl Run for Walk<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        if self.chains.is_empty() {
            self.starts.truncate(room);
            return self.starts.clone();
        }
        let (space, size, rng) = (self.space, self.settings.size, &mut self.rng);
        let home = &self.home;
        self.chains
            .iter()
            .take(room)
            .map(|c| Ask::plain(space.moved(&c.pose, &proposal(space, home, size, rng))))
            .collect()
    }

    fn tell(&mut self, seen: &[Seen]) {
        if self.chains.is_empty() {
            let energies: Vec<f32> = seen.iter().map(|s| s.energy).collect();
            self.temperature = self.settings.temperature * spread(&energies);
            self.chains = seen
                .iter()
                .map(|s| Chain { pose: s.pose.clone(), energy: rank(s.energy) })
                .collect();
            return;
        }
        for (chain, seen) in self.chains.iter_mut().zip(seen) {
            let draw = seed::unit(&mut self.rng);
            if accepts(chain.energy, rank(seen.energy), self.temperature, draw) {
                chain.pose.clone_from(&seen.pose);
                chain.energy = rank(seen.energy);
            }
        }
        self.temperature *= self.settings.cooling;
    }
}

/// Whether to go from one energy to another, given a uniform `draw` in 0..1.
fn accepts(now: f32, new: f32, temperature: f32, draw: f32) -> bool {
    new < now
        || (temperature > 0.0
            && libm::exp(f64::from(now - new) / f64::from(temperature)) > f64::from(draw))
}

/// The fraction of each axis that chains start in: all of one that comes round.
fn home(space: &Space, within: f32) -> Vec<f32> {
    let round = |axis: &dyn Axis| {
        let at = |unit: f32| {
            let mut pose = vec![0.0; axis.size()];
            axis.draw(&vec![unit; axis.cube()], &mut pose);
            axis.map(&pose)
        };
        let (first, last) = (at(0.0), at(1.0));
        first.entries().iter().zip(last.entries()).all(|(a, b)| (a - b).abs() < 1e-4)
    };
    let line = |axis: &dyn Axis| axis.cube() == 1 && axis.extent() > 0.0 && !round(axis);
    space.axes().iter().map(|a| if line(a.as_ref()) { within } else { 1.0 }).collect()
}

/// The pose of a point of the unit cube, drawn in to where chains start.
fn start(space: &Space, home: &[f32], point: &[f32]) -> Vec<f32> {
    let fractions = space.axes().iter().zip(home);
    let fractions = fractions.flat_map(|(axis, h)| std::iter::repeat_n(*h, axis.cube()));
    let drawn_in =
        point.iter().zip(fractions).map(|(u, h)| if h < 1.0 { 0.5 + h * (u - 0.5) } else { *u });
    space.draw(&drawn_in.collect::<Vec<f32>>())
}

/// A uniform step in the box.
fn proposal(space: &Space, home: &[f32], size: f32, rng: &mut ChaCha8Rng) -> Vec<f32> {
    let mut step = vec![0.0; space.size()];
    for (i, axis) in space.axes().iter().enumerate() {
        for s in &mut step[space.part(i)] {
            let draw = seed::unit(rng);
            *s = if axis.extent() > 0.0 {
                (draw - 0.5) * size * home[i]
            } else {
                f32::from(u8::from(draw < size / 2.0))
            };
        }
    }
    step
}

/// Interquartile range of the finite energies, quartiles by linear interpolation.
fn spread(energies: &[f32]) -> f32 {
    let finite: Vec<f32> = energies.iter().copied().filter(|e| e.is_finite()).collect();
    let sorted: Vec<f32> = order(&finite).into_iter().map(|i| finite[i]).collect();
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let quantile = |q: f32| {
        let at = q * last as f32;
        let low = sorted[at as usize];
        let high = sorted[(at as usize + 1).min(last)];
        low + (high - low) * at.fract()
    };
    let spread = quantile(0.75) - quantile(0.25);
    if spread.is_finite() { spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    /// Of 1, 2, 3, 4, 10 the quartiles are 2 and 4.
    #[test]
    fn the_temperature_scale_is_the_interquartile_range() {
        assert!((spread(&[10.0, 1.0, f32::NAN, 3.0, 2.0, 4.0]) - 2.0).abs() < 1e-6);
        assert!(spread(&[]).abs() < 1e-6 && spread(&[3.0]).abs() < 1e-6);
        assert!(spread(&[f32::MAX, f32::MIN]).abs() < 1e-6);
    }

    /// exp(-1 / 2) = 0.6065.
    #[test]
    fn worse_energies_are_taken_with_boltzmanns_probability() {
        assert!(accepts(1.0, 2.0, 2.0, 0.60) && !accepts(1.0, 2.0, 2.0, 0.61));
        assert!(accepts(1.0, 0.9, 0.0, 0.99) && !accepts(1.0, 1.1, 0.0, 0.0));
        let inf = f32::INFINITY;
        assert!(!accepts(1.0, inf, 2.0, 0.0) && !accepts(inf, inf, 2.0, 0.0));
    }

    #[test]
    fn chains_start_in_their_fraction_of_an_axis_unless_it_comes_round() {
        let space = SpaceConfig::parse("rotate,shear-x=-1.5..1.5").unwrap().build().unwrap();
        let home = home(&space, 1.0 / 3.0);
        assert!((home[0] - 1.0).abs() < 1e-6 && (home[1] - 1.0 / 3.0).abs() < 1e-6);
        let (low, high) = (start(&space, &home, &[0.1, 0.0]), start(&space, &home, &[0.1, 1.0]));
        assert!((low[1] + 0.5).abs() < 1e-5 && (high[1] - 0.5).abs() < 1e-5, "{low:?} {high:?}");
        assert!((low[0] - space.draw(&[0.1, 0.0])[0]).abs() < 1e-6);
    }
}
