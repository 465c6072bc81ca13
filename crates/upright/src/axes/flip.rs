//! Mirror along x. Discrete: a pose is 0 (as is) or 1 (mirrored).

use super::discrete::Values;
use super::{Axis, Make, NONE};
use crate::map::Map;
use crate::registry::Kind;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "flip",
    about: "mirror along x; discrete",
    params: NONE,
    make: Make {
        unit: "(0 = as is, 1 = mirrored)",
        domain: (0.0, 1.0),
        limits: (0.0, 1.0),
        build: |low, high| Box::new(Flip { values: Values::within(&[0.0, 1.0], low, high) }),
    },
};

#[derive(Debug)]
struct Flip {
    values: Values,
}

impl Axis for Flip {
    fn identity(&self) -> Vec<f32> {
        vec![0.0]
    }

    fn draw(&self, unit: &[f32], pose: &mut [f32]) {
        pose[0] = self.values.draw(unit[0]);
    }

    fn confine(&self, pose: &mut [f32]) {
        let mirrored = f32::from(u8::from(pose[0] >= 0.5));
        pose[0] = self.values.nearest(|v| (v - mirrored).abs());
    }

    fn contains(&self, pose: &[f32]) -> bool {
        self.values.contains(pose[0])
    }

    fn map(&self, pose: &[f32]) -> Map {
        let sign = if pose[0] < 0.5 { 1.0 } else { -1.0 };
        Map::Plane([sign, 0.0, 0.0, 0.0, 1.0, 0.0])
    }

    fn derivative(&self, _: &[f32], _: usize) -> Map {
        Map::Plane([0.0; 6])
    }

    fn lattice(&self, _: usize, _: f32) -> Vec<Vec<f32>> {
        self.values.poses()
    }

    fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        if (a[0] - b[0]).abs() < 0.5 { 0.0 } else { 1.0 }
    }

    fn extent(&self) -> f32 {
        0.0
    }

    fn step(&self, pose: &mut [f32], step: &[f32]) {
        if step[0].abs() > 0.5 {
            pose[0] = 1.0 - pose[0];
        }
        self.confine(pose);
    }
}
