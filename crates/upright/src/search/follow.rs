//! Follow: look at what the proposer suggests, the best first, and stop when
//! the score is sure of a view. Needs no gradient.
//!
//! First come the views that the proposer has to see before it can say more,
//! together; then its suggestions in their order, one at a time. Once they are used up,
//! what is left of a large budget refines the best pose of each of a few predicted
//! classes by mirrored random steps ([`super::evolve`]), as `rivals` does; where
//! nothing was suggested at all, poses are drawn from a design first.
//!
//! The lowest of many steps is low by chance, too. So only a part of what refining lowers
//! the energy of a class by counts when classes are compared:
//! `E(class) = first + late (refined - first)`, from the lowest views of that class before and
//! after refining began; a class that is new then begins with the highest energy that was
//! seen before. The lowest view of the best class answers.

use std::collections::BTreeMap;

use super::design::Design;
use super::evolve::Evolve;
use super::moves::{part, rank, rivals};
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::proposer::Proposal;
use crate::registry::Kind;
use crate::space::Space;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "follow",
    about: "what the proposer suggests, best first, until the score is sure",
    params: &[
        Param::whole("most", 12, 1, 64, "suggestions that are followed").tuned(2.0, 16.0),
        Param::flag("early", true, "stop when the score is sure of a view"),
        Param::whole("refine", 12, 1, 100_000, "least budget whose rest refines what was found"),
        Param::whole("rivals", 3, 1, 64, "basins refined when suggestions are used up")
            .tuned(1.0, 6.0),
        Param::real("radius", 0.04, 1e-3, 0.5, "first steps then, as a share of each axis' extent")
            .tuned_log(0.01, 0.25),
        Param::real("late", 0.75, 0.0, 1.0, "part that counts of what refining lowers a class by"),
    ],
    make: Make { gradient: false, build },
};

#[derive(Debug)]
struct Follow {
    most: usize,
    early: bool,
    refine: usize,
    rivals: usize,
    radius: f32,
    late: f32,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Follow {
        most: settings.whole("most"),
        early: settings.flag("early"),
        refine: settings.whole("refine"),
        rivals: settings.whole("rivals"),
        radius: settings.real("radius") as f32,
        late: settings.real("late") as f32,
    }))
}

struct Following<'a> {
    settings: &'a Follow,
    space: &'a Space,
    seed: u64,
    budget: usize,
    /// Suggestions that were not looked at, best last, with their numbers.
    waiting: Vec<(usize, Proposal)>,
    suggested: usize,
    followed: usize,
    seen: Vec<Seen>,
    sure: f32,
    evolve: Option<Evolve<'a>>,
    /// Views that were seen before refining began.
    opened: usize,
    /// Whether the last ask was the refinement's.
    refining: bool,
}

impl Search for Follow {
    fn first(&self, _: usize) -> usize {
        1
    }

    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let mut run = Following {
            settings: self,
            space: brief.space,
            seed: brief.seed,
            budget: brief.budget,
            waiting: Vec::new(),
            suggested: 0,
            followed: 0,
            seen: Vec::new(),
            sure: brief.sure.filter(|_| self.early).unwrap_or(f32::NEG_INFINITY),
            evolve: None,
            opened: 0,
            refining: false,
        };
        run.suggest(brief.proposals);
        Box::new(run)
    }
}

impl Run for Following<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        if self.seen.iter().any(|s| rank(s.energy) <= self.sure) {
            return Vec::new();
        }
        self.refining = false;
        if self.followed < self.settings.most
            && let Some((number, proposal)) = self.waiting.pop()
        {
            let mut asks = vec![Ask::following(proposal.pose, number)];
            while proposal.probe && asks.len() < room {
                let Some((number, next)) = self.waiting.pop_if(|(_, next)| next.probe) else {
                    break;
                };
                asks.push(Ask::following(next.pose, number));
            }
            self.followed += asks.len();
            return asks;
        }
        if self.suggested == 0 && self.seen.is_empty() {
            let count = part(self.budget, 0.5).min(room);
            let points = Design::Sobol.points(0..count, self.space.cube(), self.seed);
            return points.iter().map(|p| Ask::plain(self.space.draw(p))).collect();
        }
        let small = self.suggested > 0 && self.budget < self.settings.refine;
        // Discrete poses have no neighbourhood to refine in.
        if small || self.space.axes().iter().all(|axis| axis.extent() <= 0.0) {
            return Vec::new();
        }
        let Following { settings, space, seed, seen, opened, .. } = self;
        let evolve = self.evolve.get_or_insert_with(|| {
            *opened = seen.len();
            Evolve::new(space, *seed, &rivals(space, seen, settings.rivals), settings.radius)
        });
        self.refining = true;
        evolve.ask(room)
    }

    fn tell(&mut self, seen: &[Seen]) {
        if let Some(evolve) = self.evolve.as_mut().filter(|_| self.refining) {
            evolve.tell(seen);
        }
        self.seen.extend_from_slice(seen);
    }

    fn pick(&self) -> Option<usize> {
        self.evolve.as_ref()?;
        compared(&self.seen, self.opened, self.settings.late)
    }

    /// New suggestions come before older ones: they rest on more views.
    fn suggest(&mut self, proposals: &[Proposal]) {
        let numbered = proposals.iter().enumerate().map(|(i, p)| (self.suggested + i, p.clone()));
        let mut more: Vec<(usize, Proposal)> = numbered.collect();
        self.suggested += more.len();
        more.reverse();
        self.waiting.append(&mut more);
    }
}

/// The lowest view of the best class, when of what views from `opened` on lower the energy of
/// their class by only the part `late` counts; `None` if nothing was seen before.
fn compared(seen: &[Seen], opened: usize, late: f32) -> Option<usize> {
    let before = seen[..opened].iter().map(|s| rank(s.energy)).filter(|e| e.is_finite());
    let highest = before.reduce(f32::max)?;
    // Of each class the lowest energy before, and the lowest of all with its view.
    let mut classes: BTreeMap<u32, (Option<f32>, f32, usize)> = BTreeMap::new();
    for (i, view) in seen.iter().enumerate() {
        let energy = rank(view.energy);
        let own = classes.entry(view.label).or_insert((None, energy, i));
        if energy < own.1 {
            (own.1, own.2) = (energy, i);
        }
        if i < opened {
            own.0 = Some(own.1);
        }
    }
    let counted = |&(before, lowest, at): &(Option<f32>, f32, usize)| {
        let before = before.unwrap_or(highest);
        (if lowest < before { before + late * (lowest - before) } else { before }, at)
    };
    let best = classes.values().map(counted).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    best.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class 1 falls from 1 to 0.2 and class 2 from 2 to 0 by refining. Half of it counts:
    /// 0.6 against 1.0. Class 3 is new and begins with 2, the highest before: -0.4 counts as 0.8.
    #[test]
    fn only_a_part_of_what_refining_gains_counts_between_classes() {
        let view =
            |energy, label| Seen { pose: vec![0.0], energy, label, gradient: None, follows: None };
        let first = [view(1.0, 1), view(2.0, 2)];
        let refined = [view(0.2, 1), view(0.0, 2), view(-0.4, 3)];
        let all = [&first[..], &refined].concat();
        assert_eq!(compared(&all, 2, 0.5), Some(2));
        assert_eq!(compared(&all, 2, 1.0), Some(4));
        assert_eq!(compared(&all, 2, 0.0), Some(2));
        assert_eq!(compared(&[view(f32::NAN, 1), view(0.5, 2)], 1, 0.5), None);
        assert_eq!(compared(&all, 0, 0.5), None);
    }
}
