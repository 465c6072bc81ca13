//! The energy of one input over poses: along one line of its space, or over
//! two. The others stay where a given pose has them.

use std::f32::consts::PI;

use upright::axes::{self, Axis};
use upright::internal::dataset::CHUNK;
use upright::{Batch, Canonicalizer, Space, Trace, View, warp};

use crate::report::Result;

const DEGREES: f64 = 180.0 / std::f64::consts::PI;

/// A line through a space, and values along it: an axis of one number, or turns about one of
/// the directions of an axis of several.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is called.
    pub name: String,
    /// From a value to what is shown: degrees for angles.
    pub factor: f64,
    /// The unit of what is shown; empty for plain numbers.
    pub unit: &'static str,
    /// Values, evenly spaced: numbers of the pose, or radians from where the line starts.
    pub values: Vec<f32>,
    axis: usize,
    direction: usize,
    /// The numbers of the axis where turns start.
    from: Vec<f32>,
}

/// Names of the lines of an axis of several numbers, and their half lengths in radians.
const TURNS: [(&str, f32); 2] = [("turn about z", PI), ("turn about y", PI / 2.0)];

impl Line {
    fn number(name: &str, at: usize, axis: &dyn Axis, count: usize) -> Self {
        let angle = axes::row(name).is_ok_and(|row| row.make.unit == "radians");
        Line {
            name: name.into(),
            factor: if angle { DEGREES } else { 1.0 },
            unit: if angle { "°" } else { "" },
            values: axis.lattice(count, 0.5).into_iter().map(|v| v[0]).collect(),
            axis: at,
            direction: 0,
            from: Vec::new(),
        }
    }

    fn turn(line: usize, at: usize, from: &[f32], count: usize) -> Self {
        let (name, half) = TURNS[line];
        let step = 2.0 * half / count as f32;
        Line {
            name: name.into(),
            factor: DEGREES,
            unit: "°",
            values: (0..count).map(|i| (i as f32 + 0.5) * step - half).collect(),
            axis: at,
            direction: line,
            from: from.to_vec(),
        }
    }

    /// Puts a pose at a value of this line.
    fn put(&self, space: &Space, pose: &mut [f32], value: f32) {
        let part = &mut pose[space.part(self.axis)];
        match part {
            [one] => *one = value,
            several => {
                space.axes()[self.axis].along(self.direction, value / (2.0 * PI) + 0.5, several);
            }
        }
    }

    /// Where on this line a pose lies, as it is shown.
    pub fn shown(&self, space: &Space, pose: &[f32]) -> f64 {
        let part = &pose[space.part(self.axis)];
        let turned = || space.axes()[self.axis].turn(self.direction, &self.from, part);
        self.of(if self.from.is_empty() { part[0] } else { turned().unwrap_or(0.0) })
    }

    /// A value of this line, as it is shown.
    pub fn of(&self, value: f32) -> f64 {
        f64::from(value) * self.factor
    }

    /// The ends of the line: half a step beyond the outer values.
    pub fn ends(&self) -> (f64, f64) {
        match self.values[..] {
            [first, .., last] => {
                let step = f64::from(last - first) / (self.values.len() - 1) as f64 / 2.0;
                (self.of(first) - step * self.factor, self.of(last) + step * self.factor)
            }
            _ => (0.0, 1.0),
        }
    }

    /// What to write at the axis.
    pub fn title(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} in degrees", self.name) }
    }

    /// The lines of a space, with turns from a pose, angles first.
    pub fn of_space(c: &Canonicalizer, from: &[f32], count: usize) -> Vec<Line> {
        let (space, names) = (c.space(), &c.config().space.axes);
        let mut lines: Vec<Line> = Vec::new();
        for (i, (axis, named)) in space.axes().iter().zip(names).enumerate() {
            if axis.size() > 1 {
                let turns = 0..axis.lines().min(TURNS.len());
                lines.extend(turns.map(|line| Line::turn(line, i, &from[space.part(i)], count)));
            } else if axis.extent() > 0.0 {
                lines.push(Line::number(&named.axis, i, axis.as_ref(), count));
            }
        }
        lines.sort_by_key(|line| line.unit.is_empty());
        lines
    }
}

/// Energies and labels over two axes.
#[derive(Debug)]
pub struct Grid {
    /// Left to right.
    pub x: Line,
    /// Bottom to top.
    pub y: Line,
    /// Energies, row by row from the bottom.
    pub energies: Vec<f32>,
    /// The classes the model predicts, likewise.
    pub labels: Vec<u32>,
}

impl Grid {
    /// The share of cells with a lower energy, cell by cell; equal cells share the middle,
    /// energies that are no numbers come last.
    pub fn ranks(&self) -> Vec<f64> {
        let mut sorted = self.energies.clone();
        sorted.sort_by(f32::total_cmp);
        let last = (sorted.len().max(2) - 1) as f64;
        let rank = |e: f32| {
            let below = sorted.partition_point(|s| s.total_cmp(&e).is_lt());
            let upto = sorted.partition_point(|s| s.total_cmp(&e).is_le());
            (below + upto - 1) as f64 / 2.0 / last
        };
        self.energies.iter().map(|&e| rank(e)).collect()
    }
}

/// A grid, with the search that was done on the same input.
#[derive(Debug)]
pub struct Landscape {
    /// The grid through the answered view.
    pub grid: Grid,
    /// All that the search looked at.
    pub trace: Trace,
    /// Where on the grid the input as it is lies, then the views of the search.
    pub places: Vec<(f64, f64)>,
    /// Where on the grid the pose lies that it goes through.
    pub through: (f64, f64),
}

/// The landscape of one item over the first two lines of its space, through a pose. `None`
/// if the space has fewer than two.
pub fn landscape(
    c: &Canonicalizer,
    batch: &Batch,
    trace: Trace,
    pose: &[f32],
    (columns, rows): (usize, usize),
) -> Result<Option<Landscape>> {
    let space = c.space();
    let x = Line::of_space(c, pose, columns).into_iter().next();
    let y = Line::of_space(c, pose, rows).into_iter().nth(1);
    let (Some(x), Some(y)) = (x, y) else { return Ok(None) };
    let mut poses = Vec::with_capacity(columns * rows);
    for &b in &y.values {
        for &a in &x.values {
            let mut at = pose.to_vec();
            y.put(space, &mut at, b);
            x.put(space, &mut at, a);
            poses.push(at);
        }
    }
    let (energies, labels) = evaluate(c, batch, &poses)?;
    let place = |pose: &[f32]| (x.shown(space, pose), y.shown(space, pose));
    let seen = std::iter::once(&trace.raw).chain(&trace.seen);
    let (places, through) = (seen.map(|s| place(&s.pose)).collect(), place(pose));
    let grid = Grid { x, y, energies, labels };
    Ok(Some(Landscape { grid, trace, places, through }))
}

/// The energies and labels of one item along a line, through a pose.
pub fn slice(
    c: &Canonicalizer,
    batch: &Batch,
    line: &Line,
    pose: &[f32],
) -> Result<(Vec<f32>, Vec<u32>)> {
    let at = |&value: &f32| {
        let mut at = pose.to_vec();
        line.put(c.space(), &mut at, value);
        at
    };
    let poses: Vec<Vec<f32>> = line.values.iter().map(at).collect();
    evaluate(c, batch, &poses)
}

fn evaluate(c: &Canonicalizer, batch: &Batch, poses: &[Vec<f32>]) -> Result<(Vec<f32>, Vec<u32>)> {
    let (mut energies, mut labels) = (Vec::new(), Vec::new());
    for chunk in poses.chunks(CHUNK) {
        let views: Vec<View> =
            chunk.iter().map(|pose| View { item: 0, map: c.space().map(pose) }).collect();
        let (outputs, seen) = c.raw(&warp(batch, &views, &c.config().resample)?)?;
        energies.extend(seen);
        labels.extend(outputs.labels());
    }
    Ok((energies, labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use upright::SpaceConfig;

    #[test]
    fn ranks_run_from_0_to_1_and_equals_share_the_middle() {
        let line = Line { values: vec![0.0, 1.0], factor: 1.0, ..Line::turn(0, 0, &[], 2) };
        let grid = |energies: Vec<f32>| Grid {
            x: line.clone(),
            y: line.clone(),
            labels: vec![0; energies.len()],
            energies,
        };
        assert_eq!(grid(vec![3.0, 1.0, 2.0]).ranks(), [1.0, 0.0, 0.5]);
        assert_eq!(grid(vec![1.0, 1.0, f32::NAN]).ranks(), [0.25, 0.25, 1.0]);
        assert_eq!(line.ends(), (-0.5, 1.5));
    }

    /// A pose put 40 degrees up and 100 degrees round from another one is shown there.
    #[test]
    fn turns_in_space_are_shown_where_they_were_put() {
        let space = SpaceConfig::parse("so3").unwrap().build().unwrap();
        let from = space.draw(&[0.2, 0.7, 0.4]);
        let [x, y] = [0, 1].map(|line| Line::turn(line, 0, &from, 36));
        let mut pose = from.clone();
        y.put(&space, &mut pose, 40f32.to_radians());
        x.put(&space, &mut pose, 100f32.to_radians());
        assert!((x.shown(&space, &pose) - 100.0).abs() < 0.01, "{}", x.shown(&space, &pose));
        assert!((y.shown(&space, &pose) - 40.0).abs() < 0.01, "{}", y.shown(&space, &pose));
        assert!((y.ends().0 + 90.0).abs() < 1e-3 && (x.ends().1 - 180.0).abs() < 1e-3);
    }
}
