//! Scaling along x, along y, or both alike. A pose is the factor, drawn
//! log-uniformly; values reflect at the ends of the domain on the log scale.
//!
//! Maps go from view to input, so a factor above 1 shows the input smaller.

use super::{Axis, Interval, Make, NONE};
use crate::map::Map;
use crate::registry::Kind;

const DOMAIN: (f32, f32) = (1.0 / 1.8, 1.8);
const LIMITS: (f32, f32) = (0.01, 100.0);

/// The row of the scaling along x.
pub(super) const KIND_X: Kind<Make> = Kind {
    name: "scale-x",
    about: "scaling along x by a factor",
    params: NONE,
    make: Make {
        unit: "(factor)",
        domain: DOMAIN,
        limits: LIMITS,
        build: |low, high| Box::new(Scale::new(low, high, true, false)),
    },
};

/// The row of the scaling along y.
pub(super) const KIND_Y: Kind<Make> = Kind {
    name: "scale-y",
    about: "scaling along y by a factor",
    params: NONE,
    make: Make {
        unit: "(factor)",
        domain: DOMAIN,
        limits: LIMITS,
        build: |low, high| Box::new(Scale::new(low, high, false, true)),
    },
};

/// The row of the uniform scaling.
pub(super) const KIND_BOTH: Kind<Make> = Kind {
    name: "scale",
    about: "uniform scaling by a factor",
    params: NONE,
    make: Make {
        unit: "(factor)",
        domain: DOMAIN,
        limits: LIMITS,
        build: |low, high| Box::new(Scale::new(low, high, true, true)),
    },
};

/// The domain is held in logarithms.
#[derive(Debug)]
struct Scale {
    domain: Interval,
    x: bool,
    y: bool,
}

fn ln(v: f32) -> f32 {
    libm::log(f64::from(v)) as f32
}

fn exp(v: f32) -> f32 {
    libm::exp(f64::from(v)) as f32
}

impl Scale {
    fn new(low: f32, high: f32, x: bool, y: bool) -> Self {
        Scale { domain: Interval::new(ln(low), ln(high)), x, y }
    }
}

impl Axis for Scale {
    fn identity(&self) -> Vec<f32> {
        vec![1.0]
    }

    fn draw(&self, unit: &[f32], pose: &mut [f32]) {
        pose[0] = exp(self.domain.draw(unit[0]));
    }

    fn confine(&self, pose: &mut [f32]) {
        pose[0] = exp(self.domain.confine(ln(pose[0].max(1e-6))));
    }

    fn contains(&self, pose: &[f32]) -> bool {
        pose[0] > 0.0 && self.domain.contains(ln(pose[0]))
    }

    fn map(&self, pose: &[f32]) -> Map {
        let x = if self.x { pose[0] } else { 1.0 };
        let y = if self.y { pose[0] } else { 1.0 };
        Map::Plane([x, 0.0, 0.0, 0.0, y, 0.0])
    }

    fn derivative(&self, _: &[f32], _: usize) -> Map {
        let one = |on: bool| if on { 1.0 } else { 0.0 };
        Map::Plane([one(self.x), 0.0, 0.0, 0.0, one(self.y), 0.0])
    }

    fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        self.domain.distance(ln(a[0].max(1e-6)), ln(b[0].max(1e-6)))
    }

    fn extent(&self) -> f32 {
        self.domain.extent()
    }

    fn step(&self, pose: &mut [f32], step: &[f32]) {
        let v = ln(pose[0].max(1e-6)) + step[0] * self.extent();
        pose[0] = exp(self.domain.confine(v));
    }
}
