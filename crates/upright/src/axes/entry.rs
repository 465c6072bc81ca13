//! An axis that sets one entry of the map: the shared form of shears and shifts.
//! Values reflect at the ends of the domain.

use super::{Axis, Interval};
use crate::map::Map;

/// `entry` is the place among the map's six entries.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) domain: Interval,
    pub(super) entry: usize,
}

impl Axis for Entry {
    fn identity(&self) -> Vec<f32> {
        vec![0.0]
    }

    fn draw(&self, unit: &[f32], pose: &mut [f32]) {
        pose[0] = self.domain.draw(unit[0]);
    }

    fn confine(&self, pose: &mut [f32]) {
        pose[0] = self.domain.confine(pose[0]);
    }

    fn contains(&self, pose: &[f32]) -> bool {
        self.domain.contains(pose[0])
    }

    fn map(&self, pose: &[f32]) -> Map {
        let mut m = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        m[self.entry] = pose[0];
        Map::Plane(m)
    }

    fn derivative(&self, _: &[f32], _: usize) -> Map {
        let mut m = [0.0; 6];
        m[self.entry] = 1.0;
        Map::Plane(m)
    }

    fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        self.domain.distance(a[0], b[0])
    }

    fn extent(&self) -> f32 {
        self.domain.extent()
    }

    fn step(&self, pose: &mut [f32], step: &[f32]) {
        pose[0] = self.domain.confine(pose[0] + step[0] * self.extent());
    }
}
