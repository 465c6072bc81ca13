//! Random search, then Adam from its best poses (RS-LR).
//!
//! `n` Sobol poses; from the best `runs` of them, or from the lowest local
//! minima of their k-nearest-neighbour graph (`k = min(max(2 d, 12), n - 1)`,
//! circular distance), `steps` steps of Adam on the raw numbers of the pose
//! ([`super::adam`]). Costs `n + runs (2 steps + 1)`: 46 + 2 (2 * 3 + 1) = 60.
//!
//! Unless `points` is set, `n` is what the runs leave; runs are given up until
//! they take at most half of the budget. `acceptance` says which poses may
//! answer: `step` every pose visited, `final` the random ones and where the
//! runs end, `always` only where the runs end.
//!
//! Where no gradient can be had, the rest of the budget refines the same poses
//! by mirrored random steps ([`super::evolve`]).

use super::adam::Chains;
use super::design::Design;
use super::evolve::Evolve;
use super::moves::{order, rank};
use super::{Ask, Brief, Make, Run, Search, Seen, lowest};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "random-refine",
    about: "random search, then Adam from its best poses; without gradients, small steps",
    params: &[
        Param::auto("points", 1.0, 65_536.0, "random poses; auto: what the runs leave"),
        Param::whole("runs", 2, 0, 64, "poses refined").tuned(1.0, 4.0),
        Param::whole("steps", 3, 1, 1000, "steps of Adam a run").tuned(1.0, 8.0),
        Param::real("rate", 0.1, 1e-4, 10.0, "rate of Adam on the numbers of a pose")
            .tuned_log(0.02, 0.3),
        Param::word("selection", &["topk", "knn"], "lowest poses, or lowest local minima"),
        Param::word("acceptance", &["step", "final", "always"], "which poses may answer").untuned(),
        Param::word("design", Design::WORDS, "how the random poses are spread").untuned(),
    ],
    make: Make { gradient: true, build },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acceptance {
    Step,
    Final,
    Always,
}

#[derive(Debug)]
struct Refine {
    points: Option<usize>,
    runs: usize,
    steps: usize,
    rate: f64,
    minima: bool,
    acceptance: Acceptance,
    design: Design,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Refine {
        points: settings.auto("points").map(|n| n as usize),
        runs: settings.whole("runs"),
        steps: settings.whole("steps"),
        rate: settings.real("rate"),
        minima: settings.word("selection") == "knn",
        acceptance: match settings.word("acceptance") {
            "final" => Acceptance::Final,
            "always" => Acceptance::Always,
            _ => Acceptance::Step,
        },
        design: Design::parse(settings.word("design")),
    }))
}

impl Refine {
    /// How many random poses and how many runs a budget pays for.
    fn plan(&self, budget: usize) -> (usize, usize) {
        let run = 2 * self.steps + 1;
        if let Some(points) = self.points {
            let points = points.min(budget);
            return (points, self.runs.min((budget - points) / run).min(points));
        }
        let runs = self.runs.min(budget / 2 / run);
        (budget - runs * run, runs)
    }
}

impl Search for Refine {
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let (points, runs) = self.plan(brief.budget);
        let points = self
            .design
            .points(0..points, brief.space.cube(), brief.seed)
            .iter()
            .map(|p| Ask::plain(brief.space.draw(p)))
            .collect();
        Box::new(Refining {
            settings: self,
            space: brief.space,
            seed: brief.seed,
            runs,
            stage: Stage::Random(points),
            seen: Vec::new(),
            ends: Vec::new(),
        })
    }
}

enum Stage<'a> {
    Random(Vec<Ask>),
    Adam(Chains<'a>),
    Steps(Box<Evolve<'a>>),
}

struct Refining<'a> {
    settings: &'a Refine,
    space: &'a Space,
    seed: u64,
    runs: usize,
    stage: Stage<'a>,
    seen: Vec<Seen>,
    /// Evaluations that may answer unless every step may.
    ends: Vec<usize>,
}

impl Run for Refining<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        match &mut self.stage {
            Stage::Random(points) => {
                points.truncate(room);
                points.clone()
            }
            Stage::Adam(chains) => chains.ask(room),
            Stage::Steps(evolve) => evolve.ask(room),
        }
    }

    fn tell(&mut self, seen: &[Seen]) {
        let first = self.seen.len();
        self.seen.extend_from_slice(seen);
        match &mut self.stage {
            Stage::Random(_) => {
                let best = select(self.space, &self.seen, self.runs, self.settings.minima);
                let steps = self.settings.steps;
                let starts = best.into_iter().map(|i| (self.seen[i].pose.clone(), steps));
                self.stage = Stage::Adam(Chains::new(self.space, starts, self.settings.rate, 1.0));
                if self.settings.acceptance == Acceptance::Final {
                    self.ends.extend(0..seen.len());
                }
            }
            Stage::Adam(chains) => {
                self.ends.extend((0..seen.len()).filter(|&i| chains.ends(i)).map(|i| first + i));
                if !chains.tell(seen) {
                    let evolve = Evolve::new(self.space, self.seed, seen, RADIUS);
                    self.stage = Stage::Steps(Box::new(evolve));
                }
            }
            Stage::Steps(evolve) => evolve.tell(seen),
        }
    }

    fn pick(&self) -> Option<usize> {
        if self.settings.acceptance == Acceptance::Step || matches!(self.stage, Stage::Steps(_)) {
            return None;
        }
        lowest(self.ends.iter().map(|&i| self.seen[i].energy)).map(|i| self.ends[i])
    }
}

/// Radius of the first steps without gradients, as a fraction of each axis' extent.
pub(super) const RADIUS: f32 = 0.08;

/// The poses to refine: the lowest, or the lowest of those that no near
/// neighbour undercuts, filled up with the rest.
fn select(space: &Space, seen: &[Seen], count: usize, minima: bool) -> Vec<usize> {
    let energies: Vec<f32> = seen.iter().map(|s| s.energy).collect();
    let mut indices = order(&energies);
    if minima {
        let neighbours = (2 * space.size()).max(12).min(seen.len().saturating_sub(1));
        let (low, rest): (Vec<usize>, Vec<usize>) =
            indices.iter().partition(|&&i| is_minimum(space, seen, i, neighbours));
        indices = [low, rest].concat();
    }
    indices.truncate(count);
    indices
}

fn is_minimum(space: &Space, seen: &[Seen], i: usize, neighbours: usize) -> bool {
    let mut near: Vec<(f32, usize)> = (0..seen.len())
        .filter(|&j| j != i)
        .map(|j| (space.distance(&seen[i].pose, &seen[j].pose), j))
        .collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    near.iter().take(neighbours).all(|&(_, j)| rank(seen[i].energy) <= rank(seen[j].energy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::space::SpaceConfig;

    fn refine(part: &Part) -> Refine {
        let s = part.resolve(KIND.params).unwrap();
        Refine {
            points: s.auto("points").map(|n| n as usize),
            runs: s.whole("runs"),
            steps: s.whole("steps"),
            rate: s.real("rate"),
            minima: false,
            acceptance: Acceptance::Step,
            design: Design::Sobol,
        }
    }

    /// 60 - 2 (2 * 3 + 1) = 46; at 20 only one run of 7 takes at most half, at 13 none.
    #[test]
    fn random_poses_get_what_the_runs_leave() {
        let auto = refine(&Part::new("random-refine"));
        assert_eq!(auto.plan(60), (46, 2));
        assert_eq!(auto.plan(20), (13, 1));
        assert_eq!(auto.plan(13), (13, 0));
        assert_eq!(auto.plan(0), (0, 0));
        let set = refine(&Part::new("random-refine").number("points", 50.0).number("runs", 4.0));
        assert_eq!(set.plan(60), (50, 1));
        assert_eq!(set.plan(20), (20, 0));
    }

    /// On the circle, -3.1 is a neighbour of 3.1 and undercut by it; the second basin at
    /// 0.1 is higher than both but the lowest around.
    #[test]
    fn local_minima_are_chosen_by_circular_distance() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let mut seen: Vec<Seen> = Vec::new();
        for i in 0..31 {
            let pose = -3.1 + 6.2 * i as f32 / 30.0;
            let energy = match i {
                0 => 0.2,
                30 => 0.1,
                15 => 0.5,
                _ => 1.0 + 0.01 * i as f32,
            };
            seen.push(Seen { pose: vec![pose], energy, label: 0, gradient: None, follows: None });
        }
        assert_eq!(select(&space, &seen, 2, false), [30, 0]);
        assert_eq!(select(&space, &seen, 2, true), [30, 15]);
        assert_eq!(select(&space, &seen, 3, true)[2], 0);
    }

    /// Six poses, one run of one step (cost 3); the run starts at the lowest pose (2) and
    /// ends (7) above it but below the others: `always` answers with its end, `final`
    /// and `step` with the start. If the start's second visit (6) is lower still, only
    /// `step` sees it.
    #[test]
    fn acceptance_says_which_poses_may_answer() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let raw = Seen { pose: vec![0.0], energy: 9.0, label: 0, gradient: None, follows: None };
        for (acceptance, want) in [("always", Some(7)), ("final", Some(2)), ("step", None)] {
            let part = Part::new("random-refine")
                .word("acceptance", acceptance)
                .number("points", 6.0)
                .number("runs", 1.0)
                .number("steps", 1.0);
            let search = build(&part.resolve(KIND.params).unwrap()).unwrap();
            let mut run = search.start(&Brief {
                space: &space,
                seed: 1,
                budget: 9,
                raw: &raw,
                proposals: &[],
                sure: None,
            });
            let mut energies = [5.0, 6.0, 1.0, 7.0, 8.0, 9.0, 0.5, 3.0].into_iter();
            let mut room = 9;
            loop {
                let asks = run.ask(room);
                room -= asks.iter().map(Ask::cost).sum::<usize>();
                let told: Vec<Seen> = asks
                    .into_iter()
                    .map(|a| Seen {
                        pose: a.pose,
                        energy: energies.next().unwrap(),
                        label: 0,
                        gradient: a.gradient.then(|| vec![1.0]),
                        follows: None,
                    })
                    .collect();
                if told.is_empty() {
                    break;
                }
                run.tell(&told);
            }
            assert_eq!((run.pick(), room), (want, 0), "{acceptance}");
        }
    }
}
