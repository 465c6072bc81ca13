//! What discrete axes share: a few values of one number, and nothing between.

use crate::map::Map;

/// The values that a discrete axis may have.
#[derive(Debug)]
pub(super) struct Values {
    /// Never empty, ascending.
    values: Vec<f32>,
}

impl Values {
    /// Those of all values that lie in a domain; the nearest whole number if there are none.
    pub(super) fn within(all: &[f32], low: f32, high: f32) -> Self {
        let inside: Vec<f32> = all.iter().copied().filter(|v| (low..=high).contains(v)).collect();
        Values { values: if inside.is_empty() { vec![low.round()] } else { inside } }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = f32> {
        self.values.iter().copied()
    }

    /// The value at a number in 0..1, all equally often.
    pub(super) fn draw(&self, unit: f32) -> f32 {
        let n = self.values.len();
        self.values[((unit * n as f32) as usize).min(n - 1)]
    }

    pub(super) fn contains(&self, value: f32) -> bool {
        self.iter().any(|v| (v - value).abs() < 1e-6)
    }

    /// The value that is least apart by some measure; the first of equals.
    pub(super) fn nearest(&self, apart: impl Fn(f32) -> f32) -> f32 {
        let nearer = |a: f32, b: f32| if apart(b) < apart(a) { b } else { a };
        self.iter().reduce(nearer).unwrap_or(0.0)
    }

    /// The same by the distance around a circle of so many values; of what is no number, as if
    /// it were 0.
    pub(super) fn nearest_around(&self, value: f32, count: f32) -> f32 {
        let value = if value.is_finite() { value } else { 0.0 };
        self.nearest(|v| apart(v, value, count))
    }

    /// The pose that has a map, up to rounding.
    pub(super) fn pose(&self, map: &Map, of: impl Fn(&[f32]) -> Map) -> Option<Vec<f32>> {
        self.poses().into_iter().find(|pose| near(&of(pose), map))
    }

    /// Each value once, as poses.
    pub(super) fn poses(&self) -> Vec<Vec<f32>> {
        self.iter().map(|v| vec![v]).collect()
    }
}

/// How far two values are apart on a circle of so many, the short way.
pub(super) fn apart(a: f32, b: f32, count: f32) -> f32 {
    let d = (a - b).rem_euclid(count);
    d.min(count - d)
}

/// The next value in the direction of a step of at least a half, as a fraction of an extent.
pub(super) fn stepped(value: f32, step: f32) -> f32 {
    if step.abs() > 0.5 { value + step.signum() } else { value }
}

/// Whether two maps are the same up to rounding.
fn near(a: &Map, b: &Map) -> bool {
    let same = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-3;
    let (a, b) = (a.entries(), b.entries());
    a.len() == b.len() && a.iter().zip(b).all(same)
}
