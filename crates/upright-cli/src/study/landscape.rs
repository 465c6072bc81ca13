//! The energy of one input over poses: along one axis, or over two. The other
//! axes stay where a given pose has them.

use upright::axes::{self, Axis};
use upright::canonicalizer::Canonicalizer;
use upright::tensor::Batch;
use upright::trace::Trace;
use upright::warp::{View, warp};

use crate::report::Result;

/// Views evaluated at a time.
const CHUNK: usize = 256;

/// One axis of a space, and values along it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The axis.
    pub name: String,
    /// The place of its number in a pose.
    pub place: usize,
    /// From pose to what is shown: degrees for angles.
    pub factor: f64,
    /// The unit of what is shown; empty for plain numbers.
    pub unit: &'static str,
    /// Values in pose units, evenly spaced.
    pub values: Vec<f32>,
}

impl Line {
    fn new(name: &str, place: usize, axis: &dyn Axis, count: usize) -> Self {
        let angle = axes::row(name).is_ok_and(|row| row.make.unit == "radians");
        Line {
            name: name.into(),
            place,
            factor: if angle { 180.0 / std::f64::consts::PI } else { 1.0 },
            unit: if angle { "°" } else { "" },
            values: axis.lattice(count, 0.5).into_iter().map(|v| v[0]).collect(),
        }
    }

    /// A pose's number on this axis, as it is shown.
    pub fn shown(&self, pose: &[f32]) -> f64 {
        self.of(pose[self.place])
    }

    /// A number on this axis, as it is shown.
    pub fn of(&self, value: f32) -> f64 {
        f64::from(value) * self.factor
    }

    /// The ends of the axis: half a step beyond the outer values.
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

    /// The axes of a space that are one number each, angles first.
    pub fn of_space(c: &Canonicalizer, count: usize) -> Vec<Line> {
        let (space, names) = (c.space(), &c.config().space.axes);
        let mut lines: Vec<Line> = space
            .axes()
            .iter()
            .zip(names)
            .enumerate()
            .filter(|(_, (axis, _))| axis.size() == 1 && axis.extent() > 0.0)
            .map(|(i, (axis, named))| {
                Line::new(&named.axis, space.part(i).start, axis.as_ref(), count)
            })
            .collect();
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
    /// The pose that the grid goes through.
    pub pose: Vec<f32>,
}

/// The landscape of one item over the first two axes of its space, through a pose. `None`
/// if the space has fewer than two axes of one number.
pub fn landscape(
    c: &Canonicalizer,
    batch: &Batch,
    trace: Trace,
    pose: &[f32],
    (columns, rows): (usize, usize),
) -> Result<Option<Landscape>> {
    let lines = Line::of_space(c, columns);
    let [x, y, ..] = &lines[..] else { return Ok(None) };
    let (x, mut y) = (x.clone(), y.clone());
    if let Some(line) = Line::of_space(c, rows).into_iter().find(|l| l.place == y.place) {
        y = line;
    }
    let mut poses = Vec::with_capacity(columns * rows);
    for &b in &y.values {
        for &a in &x.values {
            let mut at = pose.to_vec();
            at[x.place] = a;
            at[y.place] = b;
            poses.push(at);
        }
    }
    let (energies, labels) = evaluate(c, batch, &poses)?;
    let grid = Grid { x, y, energies, labels };
    Ok(Some(Landscape { grid, trace, pose: pose.to_vec() }))
}

/// The energies and labels of one item along an axis, through a pose.
pub fn slice(
    c: &Canonicalizer,
    batch: &Batch,
    line: &Line,
    pose: &[f32],
) -> Result<(Vec<f32>, Vec<u32>)> {
    let poses: Vec<Vec<f32>> = line
        .values
        .iter()
        .map(|&v| {
            let mut at = pose.to_vec();
            at[line.place] = v;
            at
        })
        .collect();
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

    #[test]
    fn ranks_run_from_0_to_1_and_equals_share_the_middle() {
        let line =
            Line { name: "a".into(), place: 0, factor: 1.0, unit: "", values: vec![0.0, 1.0] };
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
}
