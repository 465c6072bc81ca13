//! Votes: where inputs have no normal form, their views by exact quarter turns
//! are read as well. Nothing is resampled, and what each of them says of the
//! pose, moved into the input's frame, joins.

use super::Learned;
use super::cells::Cells;
use super::frame::Frames;
use crate::map::Map;
use crate::proposer::Viewed;
use crate::proposer::shapes::linear;
use crate::proposer::shapes::plane::{angle, inverse};
use crate::space::Space;
use crate::stats::log_softmax;
use crate::tensor::argmax;

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

/// What the views by quarter turns say together.
pub(super) struct Votes {
    /// The reading of each turn's view, once it was seen.
    readings: Vec<Option<Vec<f32>>>,
    /// For each cell, the mean log-probability that it is the right one; empty before any view.
    pub(super) cells: Vec<f32>,
    /// The class predicted for the input as it is.
    raw: usize,
    /// Log-probabilities of the classes, summed over the views seen, and their number.
    classes: Vec<f32>,
    seen: usize,
}

impl Votes {
    pub(super) fn new(quarters: &Quarters) -> Self {
        let readings = vec![None; quarters.turns.len()];
        Votes { readings, cells: Vec::new(), raw: 0, classes: Vec::new(), seen: 0 }
    }

    /// Whether the view of a turn has voted.
    pub(super) fn has(&self, turn: usize) -> bool {
        self.readings[turn].is_some()
    }

    /// How far the views agree on a class, compared with the one of the input as it is.
    pub(super) fn agreed(&self, class: usize) -> f32 {
        let share = 1.0 / self.seen.max(1) as f32;
        let said = |class: usize| self.classes.get(class).map_or(0.0, |v| v * share);
        said(class) - said(self.raw)
    }

    /// Takes some views, the input as it is first, and joins the readings of all turns so far
    /// into one in the input's frame; `None` if none of them was read.
    pub(super) fn take(
        &mut self,
        learned: &Learned,
        quarters: &Quarters,
        views: &[Viewed<'_>],
    ) -> Option<Vec<f32>> {
        for view in views {
            let said = log_softmax(view.logits, 1.0);
            if self.seen == 0 {
                self.raw = argmax(view.logits);
                self.classes = vec![0.0; said.len()];
            }
            self.seen += 1;
            for (sum, v) in self.classes.iter_mut().zip(said) {
                *sum += v as f32;
            }
            if let (Some(turn), Some(reading)) = (quarters.number(view.pose), view.reading) {
                self.readings[turn] = Some(reading.to_vec());
            }
        }
        views.iter().find_map(|v| v.reading)?;
        let read = || self.readings.iter().enumerate().filter_map(|(t, r)| Some((t, r.as_ref()?)));
        let share = 1.0 / read().count() as f32;
        let cells = learned.cells.len();
        let mut poses = vec![0.0; cells];
        let mut joined = vec![0.0; learned.outputs()];
        for (turn, own) in read() {
            let over: Vec<f32> = (0..cells).map(|c| learned.over_classes(own, c)).collect();
            let likely = log_softmax(&over, 1.0 / f64::from(learned.heat));
            for (c, sum) in poses.iter_mut().enumerate() {
                *sum += share * likely[quarters.cell(turn, c)] as f32;
            }
            for (t, sum) in joined.iter_mut().enumerate() {
                *sum += share * own[learned.turned(t, |c| quarters.cell(turn, c))];
            }
        }
        self.cells = poses;
        Some(joined)
    }
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
