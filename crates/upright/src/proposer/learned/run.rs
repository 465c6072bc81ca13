//! What is known of one input: its frame, and after the view of it, a score
//! for every class in every cell.

use std::sync::OnceLock;

use super::cells::{Cells, Place};
use super::frame::{Framed, Frames};
use super::votes::{Quarters, Votes};
use super::{Learned, Targets, geometry, steps};
use crate::map::Map;
use crate::proposer::shapes::Covariance;
use crate::proposer::{Brief, Proposal, Rating, Run, Viewed};
use crate::tensor::{Batch, argmax};
use crate::warp::{Resample, View, warp};

/// Most proposals made.
const MOST: usize = 16;
/// Cells of one class closer than this are one proposal; of different classes, than this.
const SAME: f32 = 2.6;
const OTHER: f32 = 1.1;
/// Where only angles are told apart: how far beside the best one more is looked at, and how far
/// from it the next best is; in cells.
const BESIDE: f64 = 3.0;
const FAR: f32 = 4.5;

pub(super) struct Known<'a> {
    learned: &'a Learned,
    brief: Brief<'a>,
    /// Made when it is first asked for: inputs that are not searched need none.
    framed: OnceLock<Framed>,
    own: Option<Covariance>,
    reading: Option<Vec<f32>>,
    /// The best score of every class, once read.
    best: Vec<f32>,
    /// What the model names in the input as it is.
    said: Option<usize>,
    /// The score of that class under the identity and under its best pose, once read.
    raw: [f32; 2],
    /// Whether the frame was named to the search.
    named: bool,
    /// What was suggested and may be stepped from.
    suggested: Vec<Proposal>,
    votes: Option<Votes>,
}

impl<'a> Known<'a> {
    pub(super) fn new(learned: &'a Learned, brief: Brief<'a>) -> Self {
        let own = learned.frames.shape(brief.signal, &brief.item);
        Known {
            learned,
            brief,
            framed: OnceLock::new(),
            own,
            reading: None,
            best: Vec::new(),
            said: None,
            raw: [0.0; 2],
            named: false,
            suggested: Vec::new(),
            votes: learned.quarters.as_ref().map(Votes::new),
        }
    }

    fn framed(&self) -> &Framed {
        let Brief { space, signal, item, .. } = &self.brief;
        self.framed.get_or_init(|| self.learned.frames.of(space, *signal, item))
    }

    /// Whether the view to read is the input as it is.
    fn bare(&self) -> bool {
        match self.learned.frames {
            Frames::Plane { upright: Some(_), .. } => self.own.is_none(),
            Frames::Plane { .. } | Frames::Bare => true,
            Frames::Solid => false,
        }
    }

    /// Whether a view is the one to read. Where there are frames, the input as it is can only be
    /// once the frame was named, so that inputs that are not searched need none.
    fn is_frame(&self, pose: &[f32]) -> bool {
        (self.named || pose != self.brief.space.identity()) && pose == self.framed().pose()
    }

    /// Where a step from a suggestion leads, once.
    fn step(&mut self, view: &Viewed<'_>) -> Option<Proposal> {
        let ridge = self.learned.step.as_ref()?;
        let from = self.suggested.iter().position(|p| p.pose == view.pose)?;
        let Proposal { class, score, .. } = self.suggested.swap_remove(from);
        let features: Vec<f32> = view.features.iter().flat_map(|f| *f).copied().collect();
        let pose = steps::moved(self.learned, self.brief.space, ridge, view.pose, &features)?;
        Some(Proposal { pose, class, score, probe: false })
    }

    /// Where only angles are told apart: the best, one on each side of it and the best of those
    /// far from it. They are looked at together, so that what the model names in them joins.
    fn angles(&self, reading: &[f32]) -> Vec<Proposal> {
        let Known { learned, brief, .. } = self;
        let cells = &learned.cells;
        let score = |cell: usize| learned.over_classes(reading, cell);
        let best_of = |some: &mut dyn Iterator<Item = usize>| {
            some.max_by(|&a, &b| score(a).total_cmp(&score(b)).then(b.cmp(&a)))
        };
        let Some(best) = best_of(&mut (0..cells.len())) else { return Vec::new() };
        let far = |cell: &usize| cells.apart(*cell, best, brief.space) >= FAR;
        let next = best_of(&mut (0..cells.len()).filter(far));
        let top = cells.place(best, score);
        let beside = cells.beside(&top, BESIDE);
        let places = [top].into_iter().chain(beside).chain(next.map(|c| cells.place(c, score)));
        places
            .filter_map(|place| {
                let pose = learned.frames.pose(brief.space, self.framed(), &place, 0)?;
                let score = cells.at(&place, brief.space, score);
                let fresh = !self.voted(&pose);
                fresh.then_some(Proposal { pose, class: None, score, probe: true })
            })
            .collect()
    }

    /// The best cells, at most one per class and neighbourhood.
    pub(super) fn proposals(&self, reading: &[f32]) -> Vec<Proposal> {
        let Known { learned, brief, .. } = self;
        if learned.targets == Targets::Poses && learned.cells == Cells::Angles {
            return self.angles(reading);
        }
        let framed = self.framed();
        let cells = learned.cells.len();
        let over: Vec<f32> = (0..cells).map(|c| learned.over_classes(reading, c)).collect();
        let score = |class: usize, cell: usize| {
            learned.score(reading, class, cell) + learned.pooled * over[cell]
        };
        // Without scores of their own, classes share their poses, of which one more is enough.
        let (classes, most) = match learned.targets {
            Targets::Poses => (1, 1),
            Targets::Joint | Targets::Apart => (learned.classes, MOST),
        };
        let mut order: Vec<(f32, usize, usize)> = (0..classes)
            .flat_map(|class| (0..cells).map(move |cell| (class, cell)))
            .map(|(class, cell)| (score(class, cell), class, cell))
            .collect();
        let keep = (40 * MOST).min(order.len());
        if keep < order.len() {
            order.select_nth_unstable_by(keep, |a, b| {
                b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2)))
            });
            order.truncate(keep);
        }
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let mut taken: Vec<(usize, usize)> = Vec::new();
        let mut found = Vec::new();
        for (value, class, cell) in order {
            let near = |&(c, other): &(usize, usize)| {
                let apart = learned.cells.apart(cell, other, brief.space);
                apart < if c == class { SAME } else { OTHER }
            };
            if taken.iter().any(near) {
                continue;
            }
            let place = learned.cells.place(cell, |c| score(class, c));
            let pose = learned.frames.pose(brief.space, framed, &place, class);
            let Some(pose) = pose else { continue };
            if self.voted(&pose) {
                taken.push((class, cell));
                continue;
            }
            taken.push((class, cell));
            let told = learned.targets != Targets::Poses;
            let class = told.then_some(class as u32);
            found.push(Proposal { pose, class, score: value, probe: false });
            if found.len() == most {
                break;
            }
        }
        found
    }
}

impl Known<'_> {
    /// Whether a pose is nearly that of a turn whose view has voted.
    fn voted(&self, pose: &[f32]) -> bool {
        let (Some(votes), Some(quarters)) = (&self.votes, &self.learned.quarters) else {
            return false;
        };
        (0..quarters.len()).filter(|&turn| votes.has(turn)).any(|turn| {
            let apart = self.brief.space.distance(quarters.pose(turn), pose);
            apart < 1.0 / self.learned.cells.len() as f32
        })
    }

    /// The turns that have not voted, the likeliest first.
    fn turns(&self) -> Vec<Proposal> {
        let (Some(votes), Some(quarters)) = (&self.votes, &self.learned.quarters) else {
            return Vec::new();
        };
        let mut found: Vec<Proposal> = (1..quarters.len())
            .filter(|&turn| !votes.has(turn))
            .map(|turn| {
                let pose = quarters.pose(turn).to_vec();
                let score = self.likely(&pose);
                Proposal { score, probe: true, ..Proposal::new(pose) }
            })
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }

    /// Where a pose lies in the input's frame, whatever the class.
    fn place(&self, pose: &[f32]) -> Option<Place> {
        self.learned.frames.place_of(self.brief.space, self.framed(), pose, 0)
    }

    /// The log-probability in the votes so far that the right pose is nearly this one.
    fn likely(&self, pose: &[f32]) -> f32 {
        let Some(votes) = &self.votes else { return 0.0 };
        let place = self.place(pose);
        place.map_or(0.0, |p| votes.near(&self.learned.cells, &p, self.brief.space))
    }

    /// How the votes rate a class under a pose, compared with the input as it is; its `best` is
    /// how upright the view itself looks.
    fn rate_by_votes(&self, votes: &Votes, pose: &[f32], class: usize) -> Rating {
        let here = self.likely(pose);
        let identity = self.brief.space.identity();
        if pose == identity {
            return Rating { here, ..Rating::default() };
        }
        let raw = self.likely(&identity);
        let others = self.learned.quarters.iter().flat_map(Quarters::others);
        let rival = others.filter(|p| *p != pose).map(|p| self.likely(p)).fold(raw, f32::max);
        Rating {
            here: here - raw,
            best: votes.upright(pose),
            class: votes.lead(class),
            lead: here - rival,
            unlike: 0.0,
            raw: [0.0; 2],
        }
    }

    /// The score of a class under a pose.
    fn here(&self, reading: &[f32], pose: &[f32], class: usize) -> f32 {
        let Known { learned, brief, .. } = self;
        let score = |cell: usize| learned.score(reading, class, cell);
        let place = learned.frames.place_of(brief.space, self.framed(), pose, class);
        place.map_or(0.0, |place| learned.cells.at(&place, brief.space, score))
    }
}

impl Run for Known<'_> {
    fn first(&mut self, count: usize) -> Vec<Proposal> {
        if count == 0 || self.reading.is_some() || self.bare() {
            return Vec::new();
        }
        self.named = true;
        vec![Proposal { probe: true, ..Proposal::new(self.framed().pose().to_vec()) }]
    }

    fn reads(&self, pose: &[f32]) -> Option<Vec<f32>> {
        let Brief { signal, ref item, space, .. } = self.brief;
        if let Some(votes) = &self.votes {
            return (!votes.saw(pose)).then(Vec::new);
        }
        let read = if self.bare() { pose == space.identity() } else { self.is_frame(pose) };
        if self.reading.is_some() || !read {
            return None;
        }
        if !geometry::wanted(signal) {
            return Some(Vec::new());
        }
        let map: Map = space.map(pose);
        let view = Batch::borrowed(signal, item)
            .and_then(|batch| warp(&batch, &[View { item: 0, map }], &Resample::default()))
            .ok()?;
        Some(geometry::of(signal, view.item(0)))
    }

    fn tell(&mut self, views: &[Viewed<'_>]) -> Vec<Proposal> {
        if let Some(mut votes) = self.votes.take() {
            let joined = votes.take(self.learned, self.brief.space, |pose| self.place(pose), views);
            self.votes = Some(votes);
            let Some(joined) = joined else { return Vec::new() };
            let turns = self.turns();
            return if turns.is_empty() { self.proposals(&joined) } else { turns };
        }
        let identity = self.brief.space.identity();
        if let Some(raw) = views.iter().find(|v| v.pose == identity) {
            self.said.get_or_insert(argmax(raw.logits));
        }
        let Some(reading) = views.iter().find_map(|v| v.reading) else {
            return views.iter().filter_map(|view| self.step(view)).collect();
        };
        let proposals = self.proposals(reading);
        let cells = self.learned.cells.len();
        let best = |class: usize| {
            let scores = (0..cells).map(|cell| self.learned.score(reading, class, cell));
            scores.fold(f32::NEG_INFINITY, f32::max)
        };
        self.best = (0..self.learned.classes).map(best).collect();
        if let Some(class) = self.said.filter(|c| *c < self.learned.classes) {
            self.raw = [self.here(reading, &identity, class), self.best[class]];
        }
        self.reading = Some(reading.to_vec());
        if self.learned.step.is_some() {
            self.suggested.clone_from(&proposals);
        }
        proposals
    }

    fn rate(&self, pose: &[f32], class: u32) -> Option<Rating> {
        let Known { learned, brief, own, reading, .. } = self;
        let class = class as usize;
        if class >= learned.classes {
            return None;
        }
        if let Some(votes) = &self.votes {
            return Some(self.rate_by_votes(votes, pose, class));
        }
        let unlike = learned.frames.unlike(brief.space, own.as_ref(), pose, class);
        let Some(reading) = reading else { return Some(Rating { unlike, ..Rating::default() }) };
        let score = |cell: usize| learned.score(reading, class, cell);
        let cells = learned.cells.len();
        let here = self.here(reading, pose, class);
        let best = self.best[class];
        let others = self.best.iter().enumerate().filter(|(c, _)| *c != class);
        let rival = others.map(|(_, b)| *b).fold(f32::NEG_INFINITY, f32::max);
        let lead = if rival.is_finite() { best - rival } else { 0.0 };
        let class = (0..cells).map(score).sum();
        Some(Rating { here, best, class, lead, unlike, raw: self.raw })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposer::shapes::Inverter;
    use crate::space::{Space, SpaceConfig};
    use crate::tensor::Signal;

    /// Of photographs under rotation, whose poses alone are told apart.
    fn photographs(space: &Space) -> Learned {
        let inverter = Inverter::new(space).unwrap();
        let frames = Frames::Plane { inverter, upright: None };
        Learned {
            quarters: Quarters::of(space, &frames, &Cells::Angles),
            frames,
            cells: Cells::Angles,
            reader: None,
            whole: None,
            step: None,
            classes: 3,
            targets: Targets::Poses,
            heat: 1.0,
            photographs: true,
            kinds: true,
            pooled: 0.25,
            note: None,
        }
    }

    fn brief(space: &Space) -> Brief<'_> {
        Brief { space, signal: Signal::image(1, 4, 4), item: vec![0.0; 16].into(), seed: 0 }
    }

    /// Cells are 10 degrees wide. The best one is at 50, so 80 and 20 are beside it; 70 is next
    /// best but near, 200 is far. What undoes a turn is the turn back.
    #[test]
    fn of_photographs_the_best_angle_its_sides_and_the_best_far_one_are_proposed() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let learned = photographs(&space);
        let known = Known::new(&learned, brief(&space));
        let read = |peaks: &[(usize, f32)]| {
            let mut reading = vec![0.0; Cells::Angles.len()];
            for &(cell, score) in peaks {
                reading[cell] = score;
            }
            let found = known.proposals(&reading);
            assert!(found.iter().all(|p| p.probe && p.class.is_none()));
            let mut degrees = Vec::new();
            for p in &found {
                let place = known.place(&p.pose);
                let Some(Place::Angle(a)) = place else { panic!("{place:?}") };
                degrees.push(a.to_degrees().round().rem_euclid(360.0));
            }
            degrees
        };
        assert_eq!(read(&[(5, 3.0), (7, 2.0), (20, 1.0)]), [50.0, 80.0, 20.0, 200.0]);
        assert_eq!(read(&[(35, 3.0), (9, 1.0)]), [350.0, 20.0, 320.0, 90.0]);
    }

    /// The view of a quarter that has voted is not looked at again, those beside it are.
    #[test]
    fn turns_that_have_voted_are_not_proposed_again() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let learned = photographs(&space);
        let mut known = Known::new(&learned, brief(&space));
        let mut reading = vec![0.0; Cells::Angles.len()];
        reading[0] = 3.0;
        let view = Viewed {
            pose: &space.identity(),
            logits: &[0.0, 1.0, 0.0],
            features: &[],
            reading: Some(&reading),
        };
        let turns = known.tell(&[view]);
        assert_eq!(turns.len(), 3);
        let found = known.proposals(&reading);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|p| p.pose != space.identity()));
    }
}
