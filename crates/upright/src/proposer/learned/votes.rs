//! Votes: where inputs have no normal form, their views by exact quarter turns
//! are read as well. Nothing is resampled, and what each of them says of the
//! pose, moved into the input's frame, joins.

use super::Learned;
use super::cells::{Cells, Place};
use super::frame::Frames;
use crate::map::Map;
use crate::proposer::Viewed;
use crate::proposer::shapes::linear;
use crate::proposer::shapes::plane::{angle, inverse};
use crate::space::Space;
use crate::stats::{log_softmax, log_sum};
use crate::tensor::argmax;

/// Angles within an eighth of a turn, which models hardly mind, in cells.
const NEARLY: usize = 4;
/// Angles whose views are weighed against each other, in cells.
const CLOSE: usize = 1;

/// The poses of the quarter turns, with the input as it is first.
#[derive(Debug)]
pub(super) struct Quarters {
    turns: Vec<Turn>,
}

/// A quarter turn.
#[derive(Debug)]
struct Turn {
    pose: Vec<f32>,
    /// For each cell of the input, the cell of the view that means the same.
    moved: Vec<usize>,
}

impl Quarters {
    /// Those of a space; `None` if it lacks one, or if cells do not turn into cells.
    pub(super) fn of(space: &Space, frames: &Frames, cells: &Cells) -> Option<Self> {
        if matches!(frames, Frames::Plane { upright: Some(_), .. } | Frames::Solid) {
            return None;
        }
        let quarter = |(sin, cos): (f32, f32)| {
            let map = Map::Plane([cos, -sin, 0.0, sin, cos, 0.0]);
            let pose = space.pose(&map)?;
            Some(Turn { moved: moved(space, cells, &map)?, pose })
        };
        let turns = [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)];
        Some(Quarters { turns: turns.into_iter().map(quarter).collect::<Option<_>>()? })
    }

    /// The number of the turn that has a pose.
    pub(super) fn number(&self, pose: &[f32]) -> Option<usize> {
        self.turns.iter().position(|t| t.pose == pose)
    }

    /// The poses of all turns but the input as it is.
    pub(super) fn others(&self) -> impl Iterator<Item = &Vec<f32>> {
        self.turns[1..].iter().map(|t| &t.pose)
    }

    pub(super) fn pose(&self, turn: usize) -> &[f32] {
        &self.turns[turn].pose
    }

    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    /// The cell of a turned view that means the same as a cell of the input.
    pub(super) fn cell(&self, turn: usize, cell: usize) -> usize {
        self.turns[turn].moved[cell]
    }
}

/// What views say together.
pub(super) struct Votes {
    /// The reading of each turn's view, once it was seen.
    readings: Vec<Option<Vec<f32>>>,
    /// For each cell, the mean log-probability that it is the right one; empty before any view.
    pub(super) cells: Vec<f32>,
    /// The views seen, the input as it is first.
    views: Vec<Voter>,
    /// Log-probabilities of the classes over all views, each as far as it is likely upright.
    classes: Vec<f32>,
}

/// A view that was seen.
struct Voter {
    pose: Vec<f32>,
    class: usize,
    /// Log-probabilities of the classes.
    said: Vec<f64>,
    /// The log-probability that it is nearly upright, by its own reading.
    upright: f32,
}

impl Votes {
    pub(super) fn new(quarters: &Quarters) -> Self {
        let readings = vec![None; quarters.turns.len()];
        Votes { readings, cells: Vec::new(), views: Vec::new(), classes: Vec::new() }
    }

    /// Whether the view of a turn has voted.
    pub(super) fn has(&self, turn: usize) -> bool {
        self.readings[turn].is_some()
    }

    /// Whether a view was seen.
    pub(super) fn saw(&self, pose: &[f32]) -> bool {
        self.views.iter().any(|v| v.pose == pose)
    }

    /// How far a class is likelier than the one of the input as it is.
    pub(super) fn lead(&self, class: usize) -> f32 {
        let said = |class: usize| self.classes.get(class).copied().unwrap_or(0.0);
        self.views.first().map_or(0.0, |raw| said(class) - said(raw.class))
    }

    /// How far a view looks more upright than the input as it is; 0 if it was not seen.
    pub(super) fn upright(&self, pose: &[f32]) -> f32 {
        let own = self.views.iter().find(|v| v.pose == pose);
        own.zip(self.views.first()).map_or(0.0, |(own, raw)| own.upright - raw.upright)
    }

    /// Takes some views, the input as it is first, and joins the readings of all turns so far
    /// into one in the input's frame; `None` if none of them was read. `place` is where a pose
    /// lies in the input's frame.
    pub(super) fn take(
        &mut self,
        learned: &Learned,
        space: &Space,
        place: impl Fn(&[f32]) -> Option<Place>,
        views: &[Viewed<'_>],
    ) -> Option<Vec<f32>> {
        let quarters = learned.quarters.as_ref()?;
        let cells = learned.cells.len();
        let likely = |reading: &[f32]| {
            let over: Vec<f32> = (0..cells).map(|c| learned.over_classes(reading, c)).collect();
            log_softmax(&over, 1.0 / f64::from(learned.heat))
        };
        let upright = place(&space.identity());
        let mut voted = false;
        for view in views {
            let Some(reading) = view.reading else { continue };
            let said: Vec<f32> = likely(reading).iter().map(|v| *v as f32).collect();
            self.views.push(Voter {
                pose: view.pose.to_vec(),
                class: argmax(view.logits),
                said: log_softmax(view.logits, 1.0),
                upright: upright
                    .as_ref()
                    .map_or(0.0, |u| log_mass(&said, &learned.cells.around(u, space, NEARLY))),
            });
            if let Some(turn) = quarters.number(view.pose) {
                self.readings[turn] = Some(reading.to_vec());
                voted = true;
            }
        }
        let read = || self.readings.iter().enumerate().filter_map(|(t, r)| Some((t, r.as_ref()?)));
        let share = 1.0 / read().count().max(1) as f32;
        let mut poses = vec![0.0; cells];
        let mut joined = vec![0.0; learned.outputs()];
        for (turn, own) in read() {
            let likely = likely(own);
            for (c, sum) in poses.iter_mut().enumerate() {
                *sum += share * likely[quarters.cell(turn, c)] as f32;
            }
            for (t, sum) in joined.iter_mut().enumerate() {
                *sum += share * own[learned.turned(t, |c| quarters.cell(turn, c))];
            }
        }
        self.cells = poses;
        let weights: Vec<f32> = self
            .views
            .iter()
            .map(|v| {
                let close = |p| log_mass(&self.cells, &learned.cells.around(&p, space, CLOSE));
                place(&v.pose).map_or(0.0, close)
            })
            .collect();
        self.classes = mixed(&weights, &self.views);
        voted.then_some(joined)
    }

    /// The log-probability that the right pose is nearly the one at a place.
    pub(super) fn near(&self, cells: &Cells, place: &Place, space: &Space) -> f32 {
        if self.cells.is_empty() {
            return 0.0;
        }
        log_mass(&self.cells, &cells.around(place, space, NEARLY))
    }
}

/// The logarithm of what some cells hold together.
fn log_mass(logs: &[f32], cells: &[usize]) -> f32 {
    log_sum(cells.iter().map(|&c| f64::from(logs[c]))) as f32
}

/// The log-probabilities of classes that views say together, weighted by log-weights.
fn mixed(weights: &[f32], views: &[Voter]) -> Vec<f32> {
    let all = log_sum(weights.iter().map(|w| f64::from(*w)));
    let classes = views.first().map_or(0, |v| v.said.len());
    let of = |class: usize| {
        let each = weights.iter().zip(views).map(|(w, v)| f64::from(*w) - all + v.said[class]);
        log_sum(each) as f32
    };
    (0..classes).map(of).collect()
}

/// For each cell of the input, the cell of its view under a map that means the same: an input
/// that is upright under `P` has a view under `Q` that is upright under `Q^-1 P`.
fn moved(space: &Space, cells: &Cells, map: &Map) -> Option<Vec<usize>> {
    match cells {
        Cells::Angles => {
            let count = cells.len();
            let by = angle(&inverse(&linear(map)?)?)? / std::f64::consts::TAU * count as f64;
            let by = (by.round() as i64).rem_euclid(count as i64) as usize;
            Some((0..count).map(|c| (c + count - by) % count).collect())
        }
        Cells::Poses { poses, .. } => {
            let back = map.inverse()?;
            let of_view = |pose: &Vec<f32>| {
                let wanted = space.pose(&space.map(pose).then(&back)?)?;
                poses.iter().position(|p| space.distance(p, &wanted) < 1e-4)
            };
            poses.iter().map(of_view).collect()
        }
        Cells::Turns(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposer::shapes::Inverter;
    use crate::space::SpaceConfig;

    /// Two views that are equally likely upright: (0.8 + 0.4) / 2 and (0.2 + 0.6) / 2; one that
    /// is three times as likely: (3 * 0.8 + 0.4) / 4.
    #[test]
    fn classes_are_mixed_by_how_likely_views_are_upright() {
        let view = |p: f64| Voter {
            pose: vec![],
            class: 0,
            said: vec![p.ln(), (1.0 - p).ln()],
            upright: 0.0,
        };
        let views = [view(0.8), view(0.4)];
        let share = |weights: [f32; 2], class: usize| mixed(&weights, &views)[class].exp();
        assert!((share([-1.0, -1.0], 0) - 0.6).abs() < 1e-6);
        assert!((share([-1.0, -1.0], 1) - 0.4).abs() < 1e-6);
        assert!((share([3f32.ln(), 0.0], 0) - 0.7).abs() < 1e-6);
    }

    /// An input upright under P, seen under Q, is upright under Q^-1 P: the view's cell leads
    /// to a pose that, after Q, is the input's.
    #[test]
    fn cells_of_turned_views_mean_the_same() {
        for name in ["quarters", "rotate"] {
            let space = SpaceConfig::parse(name).unwrap().build().unwrap();
            let (frames, cells) = if name == "rotate" {
                let inverter = Inverter::new(&space).unwrap();
                (Frames::Plane { inverter, upright: None }, Cells::Angles)
            } else {
                (Frames::Bare, Cells::of_space(&space))
            };
            let quarters = Quarters::of(&space, &frames, &cells).unwrap();
            let input = frames.of(&space, crate::tensor::Signal::image(1, 4, 4), &[0.0; 16]);
            let pose = |cell: usize| {
                let place = cells.place(cell, |c| if c == cell { 1.0 } else { 0.0 });
                space.map(&frames.pose(&space, &input, &place, 0).unwrap())
            };
            for turn in 0..4 {
                let q = space.map(&quarters.turns[turn].pose);
                for cell in 0..cells.len() {
                    let via = pose(quarters.cell(turn, cell)).then(&q).unwrap();
                    for (a, b) in via.entries().iter().zip(pose(cell).entries()) {
                        assert!((a - b).abs() < 2e-3, "{name} {turn} {cell}");
                    }
                }
            }
        }
    }
}
