//! Particle swarm (PSO, Kennedy & Eberhart 1995).
//!
//! Particles from Sobol poses, at rest. In each round, per number of the pose
//! and in fractions of its axis' extent,
//! `v <- inertia v + own r1 (p - x) + social r2 (g - x)` with uniform `r1`,
//! `r2`, `p` the best pose of the particle and `g` that of the swarm, the short
//! way round on a periodic axis; `v` is clamped to `speed`, then `x` moves by
//! `v` inside the domain. `s` particles of `k` moves cost `s (k + 1)`; what is left
//! over goes to the first particles. A discrete axis changes its value when
//! `|v| > 0.5`, for which `speed` does not count.

use rand_chacha::ChaCha8Rng;

use super::design::{Design, stream};
use super::moves::{rank, toward};
use super::{Ask, Brief, Make, Run, Search, Seen, lowest};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::seed;
use crate::space::Space;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "swarm",
    about: "particle swarm",
    params: &[
        Param::whole("particles", 10, 1, 65_536, "particles"),
        Param::real("inertia", 0.5, 0.0, 1.0, "part of its speed that a particle keeps"),
        Param::real("own", 1.5, 0.0, 4.0, "pull of a particle's own best pose"),
        Param::real("social", 1.5, 0.0, 4.0, "pull of the swarm's best pose"),
        Param::real("speed", 0.2, 1e-3, 1.0, "most a number moves, as a fraction of its extent"),
    ],
    make: Make { gradient: false, build },
};

#[derive(Debug)]
struct Swarm {
    particles: usize,
    inertia: f32,
    own: f32,
    social: f32,
    speed: f32,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Swarm {
        particles: settings.whole("particles"),
        inertia: settings.real("inertia") as f32,
        own: settings.real("own") as f32,
        social: settings.real("social") as f32,
        speed: settings.real("speed") as f32,
    }))
}

struct Particle {
    pose: Vec<f32>,
    speed: Vec<f32>,
    best: Vec<f32>,
    energy: f32,
}

struct Flight<'a> {
    settings: &'a Swarm,
    space: &'a Space,
    rng: ChaCha8Rng,
    particles: Vec<Particle>,
    moving: bool,
}

impl Search for Swarm {
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let count = self.particles.min(brief.budget);
        let particles = Design::Sobol
            .points(0..count, brief.space.cube(), brief.seed)
            .iter()
            .map(|p| brief.space.draw(p))
            .map(|pose| Particle {
                speed: vec![0.0; pose.len()],
                best: pose.clone(),
                pose,
                energy: f32::INFINITY,
            })
            .collect();
        Box::new(Flight {
            settings: self,
            space: brief.space,
            rng: stream(brief.seed, 0x70_73),
            particles,
            moving: false,
        })
    }
}

impl Run for Flight<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        if self.moving {
            self.fly();
        }
        self.particles.iter().take(room).map(|p| Ask::plain(p.pose.clone())).collect()
    }

    fn tell(&mut self, seen: &[Seen]) {
        self.moving = true;
        for (particle, seen) in self.particles.iter_mut().zip(seen) {
            if rank(seen.energy) < particle.energy {
                particle.best.clone_from(&seen.pose);
                particle.energy = seen.energy;
            }
        }
    }
}

impl Flight<'_> {
    fn fly(&mut self) {
        let Some(leader) = lowest(self.particles.iter().map(|p| p.energy)) else { return };
        let leader = self.particles[leader].best.clone();
        let discrete: Vec<bool> = (0..self.space.axes().len())
            .flat_map(|i| vec![self.space.axes()[i].extent() <= 0.0; self.space.part(i).len()])
            .collect();
        for particle in &mut self.particles {
            let own = toward(self.space, &particle.pose, &particle.best);
            let social = toward(self.space, &particle.pose, &leader);
            for (k, v) in particle.speed.iter_mut().enumerate() {
                let (r1, r2) = (seed::unit(&mut self.rng), seed::unit(&mut self.rng));
                let s = self.settings;
                let pull = s.own * r1 * own[k] + s.social * r2 * social[k];
                let most = if discrete[k] { 1.0 } else { s.speed };
                *v = (s.inertia * *v + pull).clamp(-most, most);
            }
            particle.pose = self.space.moved(&particle.pose, &particle.speed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    /// Two particles at 3 and -3 radians, the second the leader: the first flies
    /// forwards across the seam, by at most 0.02 of the circle, the leader stays.
    #[test]
    fn particles_fly_to_the_leader_the_short_way_round_and_not_too_fast() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let settings = Swarm { particles: 2, inertia: 0.0, own: 0.0, social: 4.0, speed: 0.02 };
        let at = |angle: f32, energy| Particle {
            pose: vec![angle],
            speed: vec![0.0],
            best: vec![angle],
            energy,
        };
        let mut flight = Flight {
            settings: &settings,
            space: &space,
            rng: stream(1, 1),
            particles: vec![at(3.0, 2.0), at(-3.0, 1.0)],
            moving: true,
        };
        flight.fly();
        let moved = flight.particles[0].pose[0] - 3.0;
        assert!(moved > 0.0 && moved <= 0.02 * std::f32::consts::TAU + 1e-5, "{moved}");
        assert!((flight.particles[1].pose[0] + 3.0).abs() < 1e-6);
    }
}
