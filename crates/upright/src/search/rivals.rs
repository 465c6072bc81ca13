//! Rivals: refine the best pose of each of a few predicted classes before
//! comparing them. Needs no gradient.
//!
//! A part of the budget goes to poses that the proposer suggests
//! ([`crate::proposer`]) and, where there are not enough of them, to Sobol poses
//! (or another design). Of what was seen, the lowest pose of each of the lowest
//! `rivals` predicted classes becomes a basin; where fewer classes were
//! predicted, the lowest poses that lie apart fill up. The rest of the budget refines all basins in turn by
//! mirrored random steps ([`super::evolve`]). A wrong class that happens to be
//! sampled close to its optimum thus does not beat the right one that was
//! sampled further from its own.

use super::design::Design;
use super::evolve::Evolve;
use super::moves::{opening, part, rivals};
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "rivals",
    about: "proposed poses, then small steps around the best pose of each of a few classes",
    params: &[
        Param::whole("rivals", 3, 1, 64, "basins refined").tuned(1.0, 6.0),
        Param::real(
            "first",
            0.7,
            0.0,
            1.0,
            "part of the budget for the first poses; at most half where nothing is proposed",
        )
        .tuned(0.3, 0.95),
        Param::flag("proposals", true, "take the first poses from what the proposer suggests"),
        Param::real("radius", 0.08, 1e-3, 0.5, "first steps, as a fraction of each axis' extent")
            .tuned_log(0.02, 0.25),
        Param::word("design", Design::WORDS, "how the random poses are spread").untuned(),
    ],
    make: Make { gradient: false, build },
};

#[derive(Debug)]
struct Rivals {
    count: usize,
    first: f64,
    proposals: bool,
    radius: f32,
    design: Design,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Rivals {
        count: settings.whole("rivals"),
        first: settings.real("first"),
        proposals: settings.flag("proposals"),
        radius: settings.real("radius") as f32,
        design: Design::parse(settings.word("design")),
    }))
}

struct Refining<'a> {
    settings: &'a Rivals,
    space: &'a Space,
    seed: u64,
    points: Vec<Ask>,
    evolve: Option<Evolve<'a>>,
}

impl Search for Rivals {
    fn first(&self, budget: usize) -> usize {
        if self.proposals { part(budget, self.first) } else { 0 }
    }

    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let brief = &if self.proposals { *brief } else { Brief { proposals: &[], ..*brief } };
        let mut count = part(brief.budget, self.first);
        if brief.proposals.is_empty() {
            count = count.min(brief.budget.div_ceil(2));
        }
        Box::new(Refining {
            settings: self,
            space: brief.space,
            seed: brief.seed,
            points: opening(brief, count, self.design).0,
            evolve: None,
        })
    }
}

impl Run for Refining<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        if let Some(evolve) = &mut self.evolve {
            return evolve.ask(room);
        }
        self.points.truncate(room);
        self.points.clone()
    }

    fn tell(&mut self, seen: &[Seen]) {
        if let Some(evolve) = &mut self.evolve {
            evolve.tell(seen);
            return;
        }
        let starts = rivals(self.space, seen, self.settings.count);
        self.evolve = Some(Evolve::new(self.space, self.seed, &starts, self.settings.radius));
    }
}
