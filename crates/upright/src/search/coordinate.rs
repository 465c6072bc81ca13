//! Coordinate descent in four forms (CD, CD-S, WCD, WCD-L).
//!
//! From the identity, one axis after the other: poses over the whole domain of
//! the axis, the other axes fixed at the incumbent; the best of them replaces
//! the incumbent if it is lower. The identity's energy is known already, so it
//! is the first incumbent.
//!
//! `cd` sweeps over the axes `cycles` times, `cd-s` once; `wcd` gives the
//! first axis `weight` times as many poses as the others; `wcd-l` does so on
//! equally spaced poses with a random offset. A sweep of `b` poses per axis
//! costs `b (d - 1 + weight)`; what is left over is spread one by one over the
//! continuous axes. A discrete axis takes each of its values once. An axis of
//! several lines ([`crate::axes::Axis::lines`]) counts as several axes.

use super::design::{Design, sub};
use super::moves::{home, rank};
use super::{Ask, Brief, Make, Run, Search, Seen, lowest};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;

const DESIGN: Param =
    Param::word("design", Design::WORDS, "how the poses of an axis are spread").untuned();
const WEIGHT: Param = Param::real("weight", 2.0, 1.0, 16.0, "poses of the first axis, relative");
const SWEEPS: Param = Param::whole("cycles", 1, 1, 100, "sweeps over the axes");

/// The row of CD.
pub(super) const CD: Kind<Make> = Kind {
    name: "cd",
    about: "coordinate descent: one axis after the other, in several sweeps",
    params: &[Param::whole("cycles", 2, 1, 100, "sweeps over the axes"), DESIGN],
    make: Make {
        gradient: false,
        build: |s| make(s.whole("cycles"), 1.0, Design::parse(s.word("design"))),
    },
};

/// The row of CD-S.
pub(super) const CD_S: Kind<Make> = Kind {
    name: "cd-s",
    about: "coordinate descent in a single sweep",
    params: &[DESIGN],
    make: Make { gradient: false, build: |s| make(1, 1.0, Design::parse(s.word("design"))) },
};

/// The row of WCD.
pub(super) const WCD: Kind<Make> = Kind {
    name: "wcd",
    about: "coordinate descent with more poses for the first axis",
    params: &[WEIGHT, SWEEPS, DESIGN],
    make: Make {
        gradient: false,
        build: |s: &Settings| {
            make(s.whole("cycles"), s.real("weight"), Design::parse(s.word("design")))
        },
    },
};

/// The row of WCD-L.
pub(super) const WCD_L: Kind<Make> = Kind {
    name: "wcd-l",
    about: "coordinate descent with more poses for the first axis, equally spaced",
    params: &[WEIGHT, SWEEPS],
    make: Make {
        gradient: false,
        build: |s| make(s.whole("cycles"), s.real("weight"), Design::Lattice),
    },
};

#[derive(Debug)]
struct Coordinate {
    cycles: usize,
    weight: f64,
    design: Design,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn make(cycles: usize, weight: f64, design: Design) -> Result<Box<dyn Search>> {
    Ok(Box::new(Coordinate { cycles, weight, design }))
}

impl Search for Coordinate {
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let share = |c| brief.budget / self.cycles + usize::from(c < brief.budget % self.cycles);
        let turns = (0..self.cycles)
            .flat_map(|c| allocate(brief.space, share(c), self.weight).into_iter().enumerate())
            .collect();
        let (pose, energy) = home(brief);
        Box::new(Descending {
            design: self.design,
            space: brief.space,
            seed: brief.seed,
            turns,
            next: 0,
            used: vec![0; brief.space.lines().len()],
            lines: brief.space.lines(),
            pose,
            energy,
        })
    }
}

/// Poses of each line in a sweep that may cost `budget`.
fn allocate(space: &Space, budget: usize, weight: f64) -> Vec<usize> {
    let lines = space.lines();
    let discrete = |i: usize| {
        let axis = &space.axes()[lines[i].0];
        (axis.extent() <= 0.0).then(|| axis.lattice(1, 0.0).len())
    };
    let mut counts: Vec<usize> = (0..lines.len()).map(|i| discrete(i).unwrap_or(0)).collect();
    let free: Vec<usize> = (0..counts.len()).filter(|&i| discrete(i).is_none()).collect();
    let Some(&first) = free.first() else { return counts };
    let room = budget.saturating_sub(counts.iter().sum());
    let base = (room as f64 / ((free.len() - 1) as f64 + weight)).floor();
    for &i in &free {
        counts[i] = (base * if i == first { weight } else { 1.0 }) as usize;
    }
    let left = room - free.iter().map(|&i| counts[i]).sum::<usize>();
    for k in 0..left {
        counts[free[k % free.len()]] += 1;
    }
    counts
}

struct Descending<'a> {
    design: Design,
    space: &'a Space,
    seed: u64,
    /// Axes and their lines.
    lines: Vec<(usize, usize)>,
    /// Line and number of poses, in order.
    turns: Vec<(usize, usize)>,
    next: usize,
    /// Poses of each line that earlier turns have used.
    used: Vec<usize>,
    pose: Vec<f32>,
    energy: f32,
}

impl Descending<'_> {
    /// The places on a line that are tried, in 0..1.
    fn places(&mut self, line: usize, count: usize) -> Vec<f32> {
        let axis = &self.space.axes()[self.lines[line].0];
        if axis.extent() <= 0.0 {
            let all = axis.lattice(1, 0.0).len();
            return (0..all).map(|i| (i as f32 + 0.5) / all as f32).collect();
        }
        let range = self.used[line]..self.used[line] + count;
        self.used[line] = range.end;
        let points = self.design.points(range, 1, sub(self.seed, line as u64));
        points.into_iter().flatten().collect()
    }
}

impl Run for Descending<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        while room > 0
            && let Some(&(line, count)) = self.turns.get(self.next)
        {
            self.next += 1;
            let mut places = self.places(line, count);
            places.truncate(room);
            if places.is_empty() {
                continue;
            }
            let (axis, line) = self.lines[line];
            let part = self.space.part(axis);
            return places
                .into_iter()
                .map(|place| {
                    let mut pose = self.pose.clone();
                    self.space.axes()[axis].along(line, place, &mut pose[part.clone()]);
                    Ask::plain(pose)
                })
                .collect();
        }
        Vec::new()
    }

    fn tell(&mut self, seen: &[Seen]) {
        let best = lowest(seen.iter().map(|s| s.energy)).map(|i| &seen[i]);
        if let Some(best) = best.filter(|b| rank(b.energy) < self.energy) {
            self.pose.clone_from(&best.pose);
            self.energy = best.energy;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    /// 60 / 5 = 12; 60 / (4 + 2) = 10, so 20 and 10 each; of 64 the four left over go to
    /// the first four axes; a flip takes its two values and leaves 58.
    #[test]
    fn the_budget_is_spread_over_the_axes() {
        let space = |t: &str| SpaceConfig::parse(t).unwrap().build().unwrap();
        assert_eq!(allocate(&space("affine"), 60, 1.0), [12; 5]);
        assert_eq!(allocate(&space("affine"), 60, 2.0), [20, 10, 10, 10, 10]);
        assert_eq!(allocate(&space("affine"), 64, 2.0), [21, 11, 11, 11, 10]);
        assert_eq!(allocate(&space("flip,rotate,scale"), 60, 1.0), [2, 29, 29]);
        assert_eq!(allocate(&space("affine"), 3, 2.0), [1, 1, 1, 0, 0]);
        assert_eq!(allocate(&space("flip"), 60, 2.0), [2]);
        assert_eq!(allocate(&space("affine"), 0, 2.0), [0; 5]);
        assert_eq!(allocate(&space("so3"), 60, 2.0), [30, 15, 15]);
    }
}
