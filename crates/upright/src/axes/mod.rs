//! Axes: the directions in which an input may have been transformed. An axis
//! turns a few numbers of a pose into a [`Map`] and says where they live.
//!
//! One file per axis or family of axes; [`rows`] lists them, [`add`] takes a
//! row of one's own.

use crate::config::Param;
use crate::error::{Error, Result};
use crate::map::Map;
use crate::registry::{self, Kind, Open, Requires, Row};

mod cube;
mod discrete;
mod entry;
mod flip;
mod quarter;
mod rotate;
mod rotate3;
mod scale;
mod shear;
mod shift;

/// One axis of a space, with its domain.
pub trait Axis: Send + Sync + std::fmt::Debug {
    /// How many numbers of a pose belong to it.
    fn size(&self) -> usize {
        1
    }

    /// How many numbers in 0..1 are needed to draw one point of it.
    fn cube(&self) -> usize {
        self.size()
    }

    /// The pose that changes nothing. It may lie outside a narrowed domain.
    fn identity(&self) -> Vec<f32>;

    /// Draws a pose inside the domain from numbers in 0..1: uniform numbers give the
    /// axis' own distribution.
    fn draw(&self, unit: &[f32], pose: &mut [f32]);

    /// Brings a pose back into the domain by the axis' own rule: wrap, reflect or round.
    fn confine(&self, pose: &mut [f32]);

    /// Whether a pose lies in the domain, up to rounding.
    fn contains(&self, pose: &[f32]) -> bool;

    /// The map of a pose.
    fn map(&self, pose: &[f32]) -> Map;

    /// Derivative of the map's entries with respect to number `k` of the pose.
    /// Zero everywhere for a discrete axis.
    fn derivative(&self, pose: &[f32], k: usize) -> Map;

    /// The pose inside the domain that has this map, if there is one and the axis can tell.
    fn pose(&self, map: &Map) -> Option<Vec<f32>> {
        let _ = map;
        None
    }

    /// `count` poses equally spaced over the domain, moved along by `offset` in 0..1 of
    /// one step; ends are not doubled on a periodic axis. A discrete axis gives each of
    /// its values once, whatever the count.
    fn lattice(&self, count: usize, offset: f32) -> Vec<Vec<f32>> {
        (0..count)
            .map(|j| {
                let unit = vec![(j as f32 + offset) / count.max(1) as f32; self.cube()];
                let mut pose = vec![0.0; self.size()];
                self.draw(&unit, &mut pose);
                pose
            })
            .collect()
    }

    /// How many lines searches sweep one after the other on this axis: 1, unless a pose has
    /// more freedom than one number.
    fn lines(&self) -> usize {
        1
    }

    /// Moves a pose along one of the lines, to the place that `unit` in 0..1 says: equal steps
    /// of `unit` are equal steps along the line, and 0..1 covers the domain once.
    fn along(&self, line: usize, unit: f32, pose: &mut [f32]) {
        let _ = line;
        self.draw(&[unit], pose);
    }

    /// By which angle in radians a pose is turned along one of the lines from another: what
    /// [`Axis::along`] turned by `unit` of a whole turn from the middle, where the later lines
    /// were walked before the earlier ones. `None` where a line is the axis' one number.
    fn turn(&self, line: usize, from: &[f32], pose: &[f32]) -> Option<f32> {
        let _ = (line, from, pose);
        None
    }

    /// Distance of two poses on the axis, as a fraction of the domain's extent;
    /// circular on a periodic axis.
    fn distance(&self, a: &[f32], b: &[f32]) -> f32;

    /// Extent of the domain in the axis' own linear scale (radians, logarithms, ...);
    /// zero for a discrete axis.
    fn extent(&self) -> f32;

    /// Moves a pose by `step`, a fraction of the extent, and confines it.
    fn step(&self, pose: &mut [f32], step: &[f32]);
}

/// How to make an axis: from its lower and upper bound, in the axis' unit.
#[derive(Debug)]
pub struct Make {
    /// The unit the bounds are given in; where bounds are text, `radians` are written in degrees.
    pub unit: &'static str,
    /// The domain when none is set.
    pub domain: (f32, f32),
    /// The smallest and largest bounds that make sense.
    pub limits: (f32, f32),
    /// Makes the axis; the bounds are finite, ordered and within the limits.
    pub build: fn(f32, f32) -> Box<dyn Axis>,
}

const NONE: &[Param] = &[];

impl Requires for Make {}

/// Every axis.
#[doc(hidden)]
pub const TABLE: &[Kind<Make>] = &[
    rotate::KIND,
    shear::KIND_X,
    shear::KIND_Y,
    scale::KIND_X,
    scale::KIND_Y,
    scale::KIND_BOTH,
    shift::KIND_X,
    shift::KIND_Y,
    flip::KIND,
    quarter::KIND,
    rotate3::KIND,
    rotate::KIND_X,
    rotate::KIND_Y,
    rotate::KIND_Z,
    quarter::KIND_X,
    quarter::KIND_Y,
    quarter::KIND_Z,
    cube::KIND,
];

static ROWS: Open<Make> = Open::new("axis", TABLE);

/// Every axis, with those that were added.
pub fn rows() -> Vec<Row> {
    registry::rows(ROWS.rows())
}

/// Adds an axis of one's own, which is then known by its name in
/// [`SpaceConfig::parse`](crate::SpaceConfig::parse) and in artifacts. It has no settings but
/// its domain.
pub fn add(row: &'static Kind<Make>) -> Result<()> {
    ROWS.add(row)
}

/// The row of an axis.
#[doc(hidden)]
pub fn row(name: &str) -> Result<&'static Kind<Make>> {
    ROWS.find(name)
}

/// Makes the named axis, on its default domain or the one given.
#[doc(hidden)]
pub fn make(name: &str, domain: Option<(f32, f32)>) -> Result<Box<dyn Axis>> {
    let row = row(name)?;
    let (low, high) = domain.unwrap_or(row.make.domain);
    let (least, most) = row.make.limits;
    if low.is_finite() && high.is_finite() && least <= low && low <= high && high <= most {
        return Ok((row.make.build)(low, high));
    }
    Err(Error::BadSetting {
        part: format!("axis {name}"),
        name: "domain".into(),
        value: format!("{low}..{high}"),
        range: format!("low..high within {least}..{most} {}", row.make.unit),
    })
}

/// Reflects `v` at the ends of `low..=high` until it lies between them.
pub(crate) fn reflect(v: f32, low: f32, high: f32) -> f32 {
    let span = high - low;
    if !v.is_finite() || span <= 0.0 {
        return v.max(low).min(high);
    }
    let t = (v - low).rem_euclid(2.0 * span);
    (low + if t > span { 2.0 * span - t } else { t }).clamp(low, high)
}

/// An interval of reals, on a linear scale, whose poses reflect at its ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    low: f32,
    high: f32,
}

impl Interval {
    pub(crate) fn new(low: f32, high: f32) -> Self {
        Interval { low, high }
    }

    pub(crate) fn draw(self, unit: f32) -> f32 {
        (self.low + (self.high - self.low) * unit).clamp(self.low, self.high)
    }

    pub(crate) fn confine(self, v: f32) -> f32 {
        reflect(v, self.low, self.high)
    }

    pub(crate) fn contains(self, v: f32) -> bool {
        let slack = 1e-5 * (1.0 + self.extent());
        v >= self.low - slack && v <= self.high + slack
    }

    pub(crate) fn distance(self, a: f32, b: f32) -> f32 {
        if self.extent() > 0.0 { (a - b).abs() / self.extent() } else { 0.0 }
    }

    pub(crate) fn extent(self) -> f32 {
        self.high - self.low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflection_folds_values_back_at_both_ends() {
        for (v, want) in [(0.3, 0.3), (1.2, 0.8), (-0.2, 0.2), (2.3, 0.3), (-1.4, 0.6)] {
            assert!((reflect(v, 0.0, 1.0) - want).abs() < 1e-6, "{v}");
        }
        assert!((reflect(5.0, 1.0, 1.0) - 1.0).abs() < 1e-6);
        assert!((reflect(f32::INFINITY, 0.0, 1.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_domain_outside_the_limits_is_refused_with_the_limits() {
        let e = make("scale-x", Some((-1.0, 2.0))).unwrap_err();
        assert!(e.to_string().contains("within 0.01..100"), "{e}");
        assert!(make("rotate", Some((1.0, -1.0))).is_err());
        assert!(make("shear-x", Some((f32::NAN, 1.0))).is_err());
    }
}
