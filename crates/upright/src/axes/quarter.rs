//! Turns by a quarter of the circle, in the plane or about a coordinate axis of
//! space. Discrete: a pose is 0, 1, 2 or 3, the number of quarters. Exact: on a
//! square image every pixel of a view is a pixel of the input, unmixed; every
//! coordinate of a cloud is one of the input's, perhaps negated.

use super::discrete::{Values, apart, stepped};
use super::rotate::About;
use super::{Axis, Make, NONE};
use crate::map::Map;
use crate::registry::Kind;

/// The row of the turns in the plane.
pub(super) const KIND: Kind<Make> = Kind {
    name: "quarter",
    about: "turn by 0, 90, 180 or 270 degrees, exactly; discrete; for clouds it is `cube`",
    params: NONE,
    make: make(|low, high| Quarter::boxed(low, high, About::Centre)),
};

/// The row of the turns about x.
pub(super) const KIND_X: Kind<Make> = Kind {
    name: "quarter-x",
    about: "turn of a cloud about its x axis by 0, 90, 180 or 270 degrees, exactly; discrete",
    params: NONE,
    make: make(|low, high| Quarter::boxed(low, high, About::Line(0))),
};

/// The row of the turns about y.
pub(super) const KIND_Y: Kind<Make> = Kind {
    name: "quarter-y",
    about: "turn of a cloud about its y axis by 0, 90, 180 or 270 degrees, exactly; discrete",
    params: NONE,
    make: make(|low, high| Quarter::boxed(low, high, About::Line(1))),
};

/// The row of the turns about z.
pub(super) const KIND_Z: Kind<Make> = Kind {
    name: "quarter-z",
    about: "turn of a cloud about its z axis by 0, 90, 180 or 270 degrees, exactly; discrete",
    params: NONE,
    make: make(|low, high| Quarter::boxed(low, high, About::Line(2))),
};

const fn make(build: fn(f32, f32) -> Box<dyn Axis>) -> Make {
    Make { unit: "quarters of a circle", domain: (0.0, 3.0), limits: (0.0, 3.0), build }
}

#[derive(Debug)]
struct Quarter {
    values: Values,
    about: About,
}

impl Quarter {
    fn boxed(low: f32, high: f32, about: About) -> Box<dyn Axis> {
        Box::new(Quarter { values: Values::within(&ALL, low, high), about })
    }
}

const ALL: [f32; 4] = [0.0, 1.0, 2.0, 3.0];

impl Axis for Quarter {
    fn identity(&self) -> Vec<f32> {
        vec![0.0]
    }

    fn draw(&self, unit: &[f32], pose: &mut [f32]) {
        pose[0] = self.values.draw(unit[0]);
    }

    fn confine(&self, pose: &mut [f32]) {
        pose[0] = self.values.nearest_around(pose[0], 4.0);
    }

    fn contains(&self, pose: &[f32]) -> bool {
        self.values.contains(pose[0])
    }

    fn map(&self, pose: &[f32]) -> Map {
        let (sin, cos) = match pose[0].rem_euclid(4.0).round() as u8 {
            1 => (1.0, 0.0),
            2 => (0.0, -1.0),
            3 => (-1.0, 0.0),
            _ => (0.0, 1.0),
        };
        self.about.matrix(sin, cos, 1.0)
    }

    fn derivative(&self, _: &[f32], _: usize) -> Map {
        self.about.matrix(0.0, 0.0, 0.0)
    }

    fn pose(&self, map: &Map) -> Option<Vec<f32>> {
        self.values.pose(map, |pose| self.map(pose))
    }

    fn lattice(&self, _: usize, _: f32) -> Vec<Vec<f32>> {
        self.values.poses()
    }

    fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        apart(a[0], b[0], 4.0) / 2.0
    }

    fn extent(&self) -> f32 {
        0.0
    }

    fn step(&self, pose: &mut [f32], step: &[f32]) {
        pose[0] = stepped(pose[0], step[0]);
        self.confine(pose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{Batch, Signal};
    use crate::warp::{Resample, View, warp};

    /// `[1 2; 3 4]` seen turned by a quarter: the map takes a view's point to the input's at
    /// the angle, so the view's upper left shows the input's upper right.
    #[test]
    fn a_quarter_moves_pixels_and_mixes_none() {
        let axis = Quarter::boxed(0.0, 3.0, About::Centre);
        let batch = Batch::new(Signal::image(1, 2, 2), vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        let seen = |k: f32| {
            let view = View { item: 0, map: axis.map(&[k]) };
            warp(&batch, &[view], &Resample::default()).unwrap().item(0).to_vec()
        };
        assert_eq!(seen(1.0), [2.0, 4.0, 1.0, 3.0]);
        assert_eq!(seen(2.0), [4.0, 3.0, 2.0, 1.0]);
        assert_eq!(seen(3.0), [3.0, 1.0, 4.0, 2.0]);
        for k in [0.0, 1.0, 2.0, 3.0] {
            assert_eq!(axis.pose(&axis.map(&[k])), Some(vec![k]));
        }
        assert_eq!(axis.pose(&Map::Plane([0.7, -0.7, 0.0, 0.7, 0.7, 0.0])), None);
    }
}
