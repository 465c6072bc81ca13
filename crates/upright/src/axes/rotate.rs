//! Rotations by one angle, in degrees at the edge, radians in a pose: in the
//! plane about the centre, in space about x, y or z.
//!
//! `R(t) = [[cos t, -sin t], [sin t, cos t]]` in the convention of
//! [`crate::map`]; about z the same with a third row and column of the
//! identity, about x and y with the coordinates in cyclic order. A full circle
//! wraps; a narrower domain reflects.

use std::f32::consts::{PI, TAU};

use super::{Axis, Interval, Make, NONE};
use crate::map::Map;
use crate::registry::Kind;

/// The row of the rotation in the plane.
pub(super) const KIND: Kind<Make> = Kind {
    name: "rotate",
    about: "rotation about the centre; periodic over a full circle",
    params: NONE,
    make: make(|low, high| Rotate::boxed(low, high, About::Centre)),
};

/// The row of the rotation about x.
pub(super) const KIND_X: Kind<Make> = Kind {
    name: "rotate-x",
    about: "rotation of a cloud about its x axis",
    params: NONE,
    make: make(|low, high| Rotate::boxed(low, high, About::Line(0))),
};

/// The row of the rotation about y.
pub(super) const KIND_Y: Kind<Make> = Kind {
    name: "rotate-y",
    about: "rotation of a cloud about its y axis",
    params: NONE,
    make: make(|low, high| Rotate::boxed(low, high, About::Line(1))),
};

/// The row of the rotation about z.
pub(super) const KIND_Z: Kind<Make> = Kind {
    name: "rotate-z",
    about: "rotation of a cloud about its z axis: a turn on the floor where z is up",
    params: NONE,
    make: make(|low, high| Rotate::boxed(low, high, About::Line(2))),
};

const fn make(build: fn(f32, f32) -> Box<dyn Axis>) -> Make {
    Make { unit: "radians", domain: (-PI, PI), limits: (-TAU, TAU), build }
}

/// How far the matrix of a rotation may be from the map it is to stand for.
const SLACK: f32 = 1e-3;

/// What a rotation keeps in place.
#[derive(Debug, Clone, Copy)]
pub(super) enum About {
    /// The centre of the plane.
    Centre,
    /// The first, second or third coordinate axis of space.
    Line(usize),
}

impl About {
    /// The matrix with these entries in the plane of rotation and `rest` on the axis.
    pub(super) fn matrix(self, sin: f64, cos: f64, rest: f32) -> Map {
        let (sin, cos) = (sin as f32, cos as f32);
        match self {
            About::Centre => Map::Plane([cos, 0.0 - sin, 0.0, sin, cos, 0.0]),
            About::Line(k) => {
                let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                let mut m = [0.0; 9];
                (m[4 * i], m[3 * i + j], m[3 * j + i], m[4 * j]) = (cos, 0.0 - sin, sin, cos);
                m[4 * k] = rest;
                Map::Space(m)
            }
        }
    }

    /// The angle of a map, if it is such a rotation.
    fn angle(self, map: &Map) -> Option<f32> {
        let (sin, cos) = match (self, map) {
            (About::Centre, Map::Plane(m)) => (m[3], m[0]),
            (About::Line(k), Map::Space(m)) => {
                let (i, j) = ((k + 1) % 3, (k + 2) % 3);
                (m[3 * j + i], m[4 * i])
            }
            _ => return None,
        };
        let angle = libm::atan2(f64::from(sin), f64::from(cos));
        let again = self.matrix(libm::sin(angle), libm::cos(angle), 1.0);
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= SLACK;
        again.entries().iter().zip(map.entries()).all(near).then_some(angle as f32)
    }
}

#[derive(Debug)]
struct Rotate {
    domain: Interval,
    periodic: bool,
    about: About,
}

impl Rotate {
    fn boxed(low: f32, high: f32, about: About) -> Box<dyn Axis> {
        let domain = Interval::new(low, high.min(low + TAU));
        Box::new(Rotate { domain, periodic: high - low >= TAU - 1e-4, about })
    }

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

    fn confine(&self, pose: &mut [f32]) {
        pose[0] = if self.periodic { self.wrap(pose[0]) } else { self.domain.confine(pose[0]) };
    }

    fn contains(&self, pose: &[f32]) -> bool {
        self.domain.contains(pose[0])
    }

    fn map(&self, pose: &[f32]) -> Map {
        let (sin, cos) = libm::sincos(f64::from(pose[0]));
        self.about.matrix(sin, cos, 1.0)
    }

    fn derivative(&self, pose: &[f32], _: usize) -> Map {
        let (sin, cos) = libm::sincos(f64::from(pose[0]));
        self.about.matrix(cos, -sin, 0.0)
    }

    fn pose(&self, map: &Map) -> Option<Vec<f32>> {
        let angle = self.about.angle(map)?;
        let inside = [angle, self.wrap(angle)].into_iter().find(|&a| self.domain.contains(a))?;
        Some(vec![inside])
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
        self.confine(pose);
    }
}
