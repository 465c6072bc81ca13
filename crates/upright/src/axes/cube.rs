//! The 24 rotations that take a cube onto itself: every turn of a cloud by
//! quarters about any coordinate axes. Discrete: a pose is a number from 0 to
//! 23, and 0 changes nothing. Exact: coordinates are exchanged and negated.

use std::f64::consts::PI;
use std::sync::LazyLock;

use super::discrete::{Values, stepped};
use super::{Axis, Make, NONE};
use crate::map::Map;
use crate::registry::Kind;
use crate::rotation::{angle, product, transpose};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "cube",
    about: "turns of a cloud by quarters about any of its axes, exactly: the 24 rotations of a \
            cube; discrete",
    params: NONE,
    make: Make {
        unit: "(the number of a rotation, 0 = as is)",
        domain: (0.0, LAST),
        limits: (0.0, LAST),
        build: |low, high| {
            let all: Vec<f32> = (0..24u8).map(f32::from).collect();
            Box::new(Cube { values: Values::within(&all, low, high) })
        },
    },
};

const LAST: f32 = 23.0;

/// Matrices with one entry of 1 or -1 in every row and column and determinant 1.
static ROTATIONS: LazyLock<Vec<[f32; 9]>> = LazyLock::new(|| {
    let mut all = Vec::with_capacity(24);
    for (order, sign) in [
        ([0, 1, 2], 1.0),
        ([1, 2, 0], 1.0),
        ([2, 0, 1], 1.0),
        ([0, 2, 1], -1.0),
        ([1, 0, 2], -1.0),
        ([2, 1, 0], -1.0),
    ] {
        for bits in 0..4u8 {
            let [a, b] = [bits & 1, bits >> 1].map(|bit| if bit == 0 { 1.0 } else { -1.0 });
            let mut m = [0.0; 9];
            for (row, (column, entry)) in order.into_iter().zip([a, b, sign * a * b]).enumerate() {
                m[3 * row + column] = entry;
            }
            all.push(m);
        }
    }
    all
});

#[derive(Debug)]
struct Cube {
    values: Values,
}

/// The rotation of a number.
fn rotation(number: f32) -> [f32; 9] {
    ROTATIONS[number.rem_euclid(24.0).round() as usize % 24]
}

impl Axis for Cube {
    fn identity(&self) -> Vec<f32> {
        vec![0.0]
    }

    fn draw(&self, unit: &[f32], pose: &mut [f32]) {
        pose[0] = self.values.draw(unit[0]);
    }

    fn confine(&self, pose: &mut [f32]) {
        pose[0] = self.values.nearest_around(pose[0], 24.0);
    }

    fn contains(&self, pose: &[f32]) -> bool {
        self.values.contains(pose[0])
    }

    fn map(&self, pose: &[f32]) -> Map {
        Map::Space(rotation(pose[0]))
    }

    fn derivative(&self, _: &[f32], _: usize) -> Map {
        Map::Space([0.0; 9])
    }

    fn pose(&self, map: &Map) -> Option<Vec<f32>> {
        self.values.pose(map, |pose| self.map(pose))
    }

    fn lattice(&self, _: usize, _: f32) -> Vec<Vec<f32>> {
        self.values.poses()
    }

    /// By the angle of the rotation from one to the other.
    fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        let [a, b] = [a, b].map(|p| rotation(p[0]).map(f64::from));
        (angle(&product(&transpose(&a), &b)) / PI) as f32
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
    use crate::space::SpaceConfig;
    use crate::tensor::{Batch, Signal};
    use crate::warp::{Resample, View, warp};

    #[test]
    fn there_are_24_rotations_which_only_exchange_and_negate() {
        let axis = (KIND.make.build)(0.0, LAST);
        let cloud = Batch::new(Signal::Cloud { points: 1 }, vec![0.1, 0.02, 0.003]).unwrap();
        let mut seen: Vec<Vec<u32>> = Vec::new();
        for pose in axis.lattice(1, 0.5) {
            let map = axis.map(&pose);
            assert_eq!(axis.pose(&map), Some(pose));
            let m = rotation(seen.len() as f32).map(f64::from);
            assert!(angle(&product(&m, &transpose(&m))) < 1e-6);
            let view = warp(&cloud, &[View { item: 0, map }], &Resample::default()).unwrap();
            let mut sizes: Vec<u32> = view.item(0).iter().map(|v| v.abs().to_bits()).collect();
            seen.push(view.item(0).iter().map(|v| v.to_bits()).collect());
            sizes.sort_unstable();
            assert_eq!(sizes, [0.003f32, 0.02, 0.1].map(f32::to_bits));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 24);
        assert!(axis.map(&axis.identity()).is_identity());
    }

    /// Turns about two axes lead to all of them.
    #[test]
    fn turns_about_single_axes_are_among_them() {
        let axis = (KIND.make.build)(0.0, LAST);
        let space = SpaceConfig::parse("quarter-x,quarter-y,quarter-z").unwrap().build().unwrap();
        let mut found = std::collections::BTreeSet::new();
        for i in 0..64u8 {
            let pose = [i % 4, i / 4 % 4, i / 16].map(f32::from);
            found.insert(axis.pose(&space.map(&pose)).unwrap()[0] as u8);
        }
        assert_eq!(found.len(), 24);
    }
}
