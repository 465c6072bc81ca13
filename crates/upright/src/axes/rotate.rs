//! Rotation about the centre by an angle in degrees at the edge, radians in a pose.
//!
//! `R(t) = [[cos t, -sin t], [sin t, cos t]]` in the convention of
//! [`crate::map`]. A full circle wraps; a narrower domain reflects.

use std::f32::consts::{PI, TAU};

use super::{Axis, Interval, Make, NONE};
use crate::map::Map;
use crate::registry::Kind;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "rotate",
    about: "rotation about the centre; periodic over a full circle",
    params: NONE,
    make: Make {
        unit: "radians",
        domain: (-PI, PI),
        limits: (-TAU, TAU),
        build: |low, high| {
            Box::new(Rotate {
                domain: Interval::new(low, high.min(low + TAU)),
                periodic: high - low >= TAU - 1e-4,
            })
        },
    },
};

#[derive(Debug)]
struct Rotate {
    domain: Interval,
    periodic: bool,
}

impl Rotate {
    fn wrap(&self, v: f32) -> f32 {
        let low = self.domain.draw(0.0);
        if !v.is_finite() {
            return low;
        }
        let t = (v - low).rem_euclid(TAU);
        low + if t >= TAU { 0.0 } else { t }
    }
}

impl Axis for Rotate {
    fn identity(&self) -> Vec<f32> {
        vec![0.0]
    }

    fn draw(&self, unit: &[f32], pose: &mut [f32]) {
        pose[0] = self.domain.draw(unit[0]);
        if self.periodic {
            pose[0] = self.wrap(pose[0]);
        }
    }

    fn settle(&self, pose: &mut [f32]) {
        pose[0] = if self.periodic { self.wrap(pose[0]) } else { self.domain.settle(pose[0]) };
    }

    fn contains(&self, pose: &[f32]) -> bool {
        self.domain.contains(pose[0])
    }

    fn map(&self, pose: &[f32]) -> Map {
        let (sin, cos) = libm::sincos(f64::from(pose[0]));
        let (sin, cos) = (sin as f32, cos as f32);
        Map::Plane([cos, -sin, 0.0, sin, cos, 0.0])
    }

    fn derivative(&self, pose: &[f32], _: usize) -> Map {
        let (sin, cos) = libm::sincos(f64::from(pose[0]));
        let (sin, cos) = (sin as f32, cos as f32);
        Map::Plane([-sin, -cos, 0.0, cos, -sin, 0.0])
    }

    fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        if !self.periodic {
            return self.domain.distance(a[0], b[0]);
        }
        let d = (a[0] - b[0]).rem_euclid(TAU);
        d.min(TAU - d) / TAU
    }

    fn extent(&self) -> f32 {
        self.domain.extent()
    }

    fn step(&self, pose: &mut [f32], step: &[f32]) {
        pose[0] += step[0] * self.extent();
        self.settle(pose);
    }
}
