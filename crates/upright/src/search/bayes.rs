//! Bayesian optimisation: a Gaussian process is fitted to what was seen and
//! asked where the energy is expected to fall most. Needs no gradient.
//!
//! A part of the budget goes to the poses that the proposer suggests
//! ([`crate::proposer`]) and, where there are not enough of them, to Sobol
//! poses. Then each round fits a process over the poses' maps
//! ([`process::Process`]), draws candidates (Sobol poses, and poses around the
//! lowest ones of different predicted classes, the rivals) and asks for `batch`
//! of them: for each rival in turn the one near it, for the lowest rival also
//! one anywhere, of largest expected improvement on it (Jones, Schonlau &
//! Welch 1998), chosen as if the ones before had brought what was expected of
//! them (kriging believer: Ginsbourger, Le Riche & Carraro 2010).

use rand_chacha::ChaCha8Rng;

use super::design::{Design, stream};
use super::moves::{opening, order, part, rank, rivals};
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::seed;
use crate::space::Space;

mod process;

use process::Process;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "bayes",
    about: "Gaussian process over the views' maps, expected improvement",
    params: &[
        Param::real("first", 0.5, 0.0, 1.0, "part of the budget for the first poses")
            .tuned(0.3, 0.95),
        Param::flag("proposals", true, "take the first poses from what the proposer suggests"),
        Param::whole("batch", 4, 1, 64, "poses asked for at a time"),
        Param::whole("rivals", 3, 1, 64, "classes whose lowest poses are improved in turn")
            .tuned(1.0, 6.0),
    ],
    make: Make { gradient: false, build },
};

/// Candidates of a round over the whole domain, and around each of the lowest poses.
const WIDE: usize = 128;
const NEAR: usize = 48;

/// Largest step of a near candidate, as a fraction of each axis' extent.
const REACH: f32 = 0.2;

/// Most poses a process is fitted to: those of lowest energy. The cost of a round grows with
/// their cube.
const MOST: usize = 128;

#[derive(Debug)]
struct Bayes {
    first: f64,
    proposals: bool,
    batch: usize,
    rivals: usize,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Bayes {
        first: settings.real("first"),
        proposals: settings.flag("proposals"),
        batch: settings.whole("batch"),
        rivals: settings.whole("rivals"),
    }))
}

struct Guessing<'a> {
    settings: &'a Bayes,
    space: &'a Space,
    seed: u64,
    rng: ChaCha8Rng,
    points: Vec<Ask>,
    seen: Vec<Seen>,
    /// Sobol poses drawn so far.
    drawn: usize,
}

impl Search for Bayes {
    fn first(&self, budget: usize) -> usize {
        if self.proposals { part(budget, self.first) } else { 0 }
    }

    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let brief = &if self.proposals { *brief } else { Brief { proposals: &[], ..*brief } };
        let (points, drawn) = opening(brief, part(brief.budget, self.first), Design::Sobol);
        Box::new(Guessing {
            settings: self,
            space: brief.space,
            seed: brief.seed,
            rng: stream(brief.seed, 0x62_61),
            points,
            seen: Vec::new(),
            drawn,
        })
    }
}

impl Run for Guessing<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        if self.seen.is_empty() {
            self.points.truncate(room);
            return self.points.clone();
        }
        if room == 0 {
            return Vec::new();
        }
        let rivals = rivals(self.space, &self.seen, self.settings.rivals);
        let candidates = self.candidates(&rivals);
        self.choose(&rivals, candidates, self.settings.batch.min(room))
    }

    fn tell(&mut self, seen: &[Seen]) {
        self.seen.extend_from_slice(seen);
    }
}

/// A pose that may be asked for.
struct Candidate {
    pose: Vec<f32>,
    /// The rival it lies near to; `None` for those of the whole domain.
    rival: Option<usize>,
}

impl Guessing<'_> {
    fn candidates(&mut self, rivals: &[Seen]) -> Vec<Candidate> {
        let wide = self.drawn..self.drawn + WIDE;
        self.drawn = wide.end;
        let wide = Design::Sobol.points(wide, self.space.cube(), self.seed);
        let mut candidates: Vec<Candidate> =
            wide.iter().map(|p| Candidate { pose: self.space.draw(p), rival: None }).collect();
        for (rival, low) in rivals.iter().enumerate() {
            for i in 0..NEAR {
                let reach = REACH * (i + 1) as f32 / NEAR as f32;
                let step: Vec<f32> = (0..self.space.size())
                    .map(|_| reach * (2.0 * seed::unit(&mut self.rng) - 1.0))
                    .collect();
                let pose = self.space.moved(&low.pose, &step);
                candidates.push(Candidate { pose, rival: Some(rival) });
            }
        }
        candidates
    }

    /// For each rival in turn the candidate of largest expected improvement on it; the first
    /// ones where nothing can be expected.
    fn choose(&self, rivals: &[Seen], mut free: Vec<Candidate>, count: usize) -> Vec<Ask> {
        let energies: Vec<f32> = self.seen.iter().map(|s| s.energy).collect();
        let mut kept = order(&energies);
        kept.truncate(MOST);
        let entries = |pose: &[f32]| self.space.map(pose).entries().to_vec();
        let points: Vec<Vec<f32>> = kept.iter().map(|&i| entries(&self.seen[i].pose)).collect();
        let scale = Scale::of(&kept.iter().map(|&i| rank(energies[i])).collect::<Vec<f32>>());
        let fitted = scale.and_then(|scale| {
            let values: Vec<f64> = kept.iter().map(|&i| scale.tame(energies[i])).collect();
            Some((scale, Process::fit(&points, &values)?))
        });
        let Some((scale, mut process)) = fitted else {
            return free.into_iter().take(count).map(|c| Ask::plain(c.pose)).collect();
        };
        let mut asks = Vec::new();
        for turn in (0..rivals.len()).cycle().take(count) {
            let goal = scale.tame(rivals[turn].energy);
            let hope = |c: &Candidate| {
                let (mean, deviation) = process.expect(&entries(&c.pose));
                improvement(mean - goal, deviation)
            };
            let of_turn = |c: &Candidate| c.rival.map_or(turn == 0, |rival| rival == turn);
            let hopes =
                free.iter().enumerate().filter(|(_, c)| of_turn(c)).map(|(i, c)| (i, hope(c)));
            let best = hopes.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
            let Some((at, _)) = best else { break };
            let chosen = free.remove(at);
            process.believe(entries(&chosen.pose));
            asks.push(Ask::plain(chosen.pose));
        }
        asks
    }
}

/// How the process takes energies: the lowest is 0, the median 1, and what lies above twice
/// that is cut, since how bad a bad pose is says nothing of where good ones are.
#[derive(Debug, Clone, Copy)]
struct Scale {
    lowest: f64,
    spread: f64,
}

impl Scale {
    /// From rising energies. `None` where all are equal or none is a number.
    fn of(rising: &[f32]) -> Option<Self> {
        let lowest = f64::from(*rising.first()?);
        let spread = f64::from(rising[rising.len() / 2]) - lowest;
        let usable = lowest.is_finite() && spread > 0.0;
        let spread = if spread.is_finite() { spread } else { 1.0 };
        usable.then_some(Scale { lowest, spread })
    }

    fn tame(&self, energy: f32) -> f64 {
        ((f64::from(rank(energy)) - self.lowest) / self.spread).min(2.0)
    }
}

/// Expected improvement below 0.
fn improvement(mean: f64, deviation: f64) -> f64 {
    let z = -mean / deviation;
    let below = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
    let density = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
    -mean * below + deviation * density
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At a mean of 0 half of a normal curve lies below: `deviation / sqrt(2 pi)`. Far below,
    /// the improvement is the mean itself.
    #[test]
    fn improvement_is_that_of_the_normal_curve() {
        assert!((improvement(0.0, 2.0) - 2.0 * 0.398_942_280).abs() < 1e-8);
        assert!((improvement(-5.0, 0.1) - 5.0).abs() < 1e-9);
        assert!(improvement(5.0, 0.1) < 1e-12);
    }

    #[test]
    fn energies_are_tamed() {
        let tamed = |rising: &[f32]| -> Option<Vec<f64>> {
            let scale = Scale::of(rising)?;
            Some(rising.iter().map(|&e| scale.tame(e)).collect())
        };
        assert_eq!(tamed(&[1.0, 2.0, 3.0, 4.0, 100.0]).unwrap(), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(tamed(&[1.0, 2.0, f32::INFINITY]).unwrap(), [0.0, 1.0, 2.0]);
        assert_eq!(tamed(&[1.0, f32::INFINITY, f32::INFINITY]).unwrap(), [0.0, 2.0, 2.0]);
        assert!(tamed(&[1.0, 1.0, 1.0]).is_none() && tamed(&[f32::INFINITY]).is_none());
    }
}
