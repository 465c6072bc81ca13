//! Descent by Adam from random starts (GD).
//!
//! Starts on a permuted lattice, which spreads a few better than a Sobol net;
//! from each, steps of Adam on the raw numbers of the pose ([`super::adam`])
//! with an exponentially decaying rate. The lowest pose visited answers. `r` starts with `k` steps cost `r (2 k + 1)`; the steps
//! follow from the budget, and what is left over makes the first runs a step
//! longer.
//!
//! Where no gradient can be had, the rest of the budget refines the starts by
//! mirrored random steps ([`super::evolve`]).

use super::adam::Chains;
use super::design::Design;
use super::evolve::Evolve;
use super::random_refine::RADIUS;
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "descent",
    about: "Adam from random starts; without gradients, small steps",
    params: &[
        Param::auto("starts", 1.0, 65_536.0, "starts; auto: one for each 15 of the budget"),
        Param::real("rate", 0.2, 1e-4, 10.0, "rate of Adam on the numbers of a pose")
            .tuned_log(0.02, 0.3),
        Param::real("decay", 0.9, 0.1, 1.0, "what the rate is multiplied with after a step"),
        Param::word("design", &["lattice", "sobol", "latin", "iid"], "how the starts are spread")
            .untuned(),
    ],
    make: Make { gradient: true, build },
};

/// Budget a start takes unless the number of starts is set: 7 steps.
const COST: usize = 15;

#[derive(Debug)]
struct Descent {
    starts: Option<usize>,
    rate: f64,
    decay: f64,
    design: Design,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Descent {
        starts: settings.auto("starts").map(|n| n as usize),
        rate: settings.real("rate"),
        decay: settings.real("decay"),
        design: Design::parse(settings.word("design")),
    }))
}

impl Search for Descent {
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let steps = plan(brief.budget, self.starts);
        let points = self.design.points(0..steps.len(), brief.space.cube(), brief.seed);
        let starts = points.iter().map(|p| brief.space.draw(p)).zip(steps);
        Box::new(Descending {
            space: brief.space,
            seed: brief.seed,
            chains: Chains::new(brief.space, starts, self.rate, self.decay),
            instead: None,
        })
    }
}

/// Steps of each run.
fn plan(budget: usize, starts: Option<usize>) -> Vec<usize> {
    let runs = starts.unwrap_or((budget / COST).max(1)).min(budget);
    let steps = (budget - runs) / 2;
    (0..runs).map(|i| steps / runs + usize::from(i < steps % runs)).collect()
}

struct Descending<'a> {
    space: &'a Space,
    seed: u64,
    chains: Chains<'a>,
    instead: Option<Evolve<'a>>,
}

impl Run for Descending<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        match &mut self.instead {
            Some(evolve) => evolve.ask(room),
            None => self.chains.ask(room),
        }
    }

    fn tell(&mut self, seen: &[Seen]) {
        if let Some(evolve) = &mut self.instead {
            evolve.tell(seen);
        } else if !self.chains.tell(seen) {
            self.instead = Some(Evolve::new(self.space, self.seed, seen, RADIUS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// r (2 k + 1): 4 * 15 = 60; at 64 two steps are left over, at 7 one start has three.
    #[test]
    fn steps_follow_from_the_budget() {
        assert_eq!(plan(60, None), [7; 4]);
        assert_eq!(plan(64, None), [8, 8, 7, 7]);
        assert_eq!(plan(7, None), [3]);
        assert_eq!(plan(60, Some(12)), [2; 12]);
        assert_eq!(plan(2, Some(5)), [0, 0]);
        assert!(plan(0, None).is_empty());
    }
}
