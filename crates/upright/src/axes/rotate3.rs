//! Rotation of a cloud about any axis through the origin: all of SO(3).
//!
//! A pose is the first two columns of the matrix, `a` and `b`, as six numbers
//! (Zhou et al., CVPR 2019). Any six numbers give a rotation by Gram-Schmidt:
//! `b1 = a / |a|`, `b2 = normalised(b - <b1, b> b1)`, `b3 = b1 x b2`; confining
//! replaces `a`, `b` by `b1`, `b2`. Vectors without direction are replaced by
//! coordinate axes.
//!
//! Drawing is uniform with respect to the Haar measure: the three numbers in
//! 0..1 make a unit quaternion (Shoemake, Graphics Gems III). A domain limits
//! the *angle* of the rotation, in degrees at the edge; drawing then takes the
//! angle from its marginal `(1 - cos t) / pi` by the inverse of its
//! distribution, and the axis uniformly from the sphere. Angles reflect at the
//! ends of the domain.
//!
//! A lattice over the whole group is Alexa's super-Fibonacci spiral (CVPR
//! 2022). Searches that sweep line by line turn a pose about z, then y, then
//! x: each multiplies the map from the left.

use std::f32::consts::PI;
use std::f64::consts::{PI as PI_64, SQRT_2, TAU};

use super::{Axis, Interval, Make, NONE};
use crate::map::Map;
use crate::registry::Kind;
use crate::rotation::{
    Matrix3, about, angle, around, aside, columns, cross, dot, from_quaternion, product, transpose,
    unit, with_angle, without,
};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "rotate3",
    about: "rotation of a cloud about any axis, uniform over SO(3); the domain limits its angle",
    params: NONE,
    make: Make {
        unit: "radians",
        domain: (0.0, PI),
        limits: (0.0, PI),
        build: |low, high| {
            Box::new(Rotate3 {
                angles: Interval::new(low, high),
                whole: low <= 0.0 && high >= PI - 1e-4,
            })
        },
    },
};

/// The second irrational of the super-Fibonacci spiral, the root of `x^4 = x + 4`.
const SPIRAL: f64 = 1.533_751_168_755_204_3;

/// What is left of a vector without its part along another is rounding below this fraction.
const ROUNDING: f64 = 1e-9;

/// How far the columns of a rotation may be from orthonormal.
const SLACK: f64 = 1e-4;

/// A step of `s` in each of the six numbers, of random signs, turns by about `1.5 s` radians;
/// with this extent a fraction `s` of it in each turns by `s sqrt(3) pi`, as three axes of their own
/// would. The paper's neighbourhood, 0.1 to either side, is a box of 0.055 of it.
const EXTENT: f32 = 3.6;

#[derive(Debug)]
struct Rotate3 {
    angles: Interval,
    /// Whether every angle is allowed.
    whole: bool,
}

fn halves(pose: &[f32]) -> [[f64; 3]; 2] {
    let at = |k: usize| f64::from(pose[k]);
    [[at(0), at(1), at(2)], [at(3), at(4), at(5)]]
}

/// Gram-Schmidt; also the lengths that were divided by, if both vectors had a direction.
fn frame(pose: &[f32]) -> ([[f64; 3]; 3], Option<(f64, f64)>) {
    let [a, b] = halves(pose);
    let first = unit(a);
    let b1 = first.map_or([1.0, 0.0, 0.0], |(v, _)| v);
    let apart = |length: f64| length > ROUNDING * dot(b, b).sqrt();
    let second = unit(without(b, b1)).filter(|&(_, length)| apart(length));
    let b2 = second.or_else(|| unit(without(aside(b1), b1))).map_or([0.0, 1.0, 0.0], |(v, _)| v);
    let lengths = first.zip(second).map(|((_, l), (_, m))| (l, m));
    ([b1, b2, cross(b1, b2)], lengths)
}

fn matrix(pose: &[f32]) -> Matrix3 {
    columns(frame(pose).0)
}

fn write(m: &Matrix3, pose: &mut [f32]) {
    for (k, v) in pose.iter_mut().enumerate() {
        *v = m[k % 3 * 3 + k / 3] as f32;
    }
}

/// The angle `t` with `t - sin t = share`, for a share in 0..pi.
fn inverse(share: f64) -> f64 {
    let (mut low, mut high) = (0.0, PI_64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if middle - libm::sin(middle) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

impl Rotate3 {
    fn bounds(&self) -> (f64, f64) {
        (f64::from(self.angles.draw(0.0)), f64::from(self.angles.draw(1.0)))
    }
}

impl Axis for Rotate3 {
    fn size(&self) -> usize {
        6
    }

    fn cube(&self) -> usize {
        3
    }

    fn identity(&self) -> Vec<f32> {
        vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    }

    fn draw(&self, unit: &[f32], pose: &mut [f32]) {
        let [u, v, w] = [unit[0], unit[1], unit[2]].map(f64::from);
        let (sin_v, cos_v) = libm::sincos(TAU * v);
        let (sin_w, cos_w) = libm::sincos(TAU * w);
        if self.whole {
            let (small, large) = (u.max(0.0).sqrt(), (1.0 - u).max(0.0).sqrt());
            let q = [small * cos_w, large * sin_v, large * cos_v, small * sin_w];
            return write(&from_quaternion(q), pose);
        }
        let (low, high) = self.bounds();
        let (from, to) = (low - libm::sin(low), high - libm::sin(high));
        let angle = inverse(from + u * (to - from)).clamp(low, high);
        let z = 2.0 * w - 1.0;
        let ring = (1.0 - z * z).max(0.0).sqrt();
        write(&around([ring * cos_v, ring * sin_v, z], angle), pose);
    }

    fn confine(&self, pose: &mut [f32]) {
        let m = matrix(pose);
        if self.whole || self.angles.contains(angle(&m) as f32) {
            return write(&m, pose);
        }
        let inside = self.angles.confine(angle(&m) as f32);
        write(&with_angle(&m, f64::from(inside)), pose);
    }

    fn contains(&self, pose: &[f32]) -> bool {
        let [a, b] = halves(pose);
        let one = |v| (dot(v, v) - 1.0).abs() < SLACK;
        let inside = |m: &Matrix3| self.whole || self.angles.contains(angle(m) as f32);
        one(a) && one(b) && dot(a, b).abs() < SLACK && inside(&matrix(pose))
    }

    fn map(&self, pose: &[f32]) -> Map {
        Map::Space(matrix(pose).map(|v| v as f32))
    }

    /// `db1 = (e - <b1, e> b1) / |a|` along `e`, a direction of `a`; with `u = b - <b1, b> b1`,
    /// `du = db - <db1, b> b1 - <b1, db> b1 - <b1, b> db1`, `db2 = (du - <b2, du> b2) / |u|`;
    /// `db3 = db1 x b2 + b1 x db2`.
    fn derivative(&self, pose: &[f32], k: usize) -> Map {
        let ([b1, b2, _], Some((first, second))) = frame(pose) else {
            return Map::Space([0.0; 9]);
        };
        let [_, b] = halves(pose);
        let e: [f64; 3] = std::array::from_fn(|i| if i == k % 3 { 1.0 } else { 0.0 });
        let (d1, db) =
            if k < 3 { (without(e, b1).map(|v| v / first), [0.0; 3]) } else { ([0.0; 3], e) };
        let (along, turned) = (dot(b1, b), dot(d1, b) + dot(b1, db));
        let du = std::array::from_fn(|i| db[i] - turned * b1[i] - along * d1[i]);
        let d2 = without(du, b2).map(|v| v / second);
        let (left, right) = (cross(d1, b2), cross(b1, d2));
        let d3 = std::array::from_fn(|i| left[i] + right[i]);
        Map::Space(columns([d1, d2, d3]).map(|v| v as f32))
    }

    fn pose(&self, map: &Map) -> Option<Vec<f32>> {
        let Map::Space(m) = map else { return None };
        let pose = vec![m[0], m[3], m[6], m[1], m[4], m[7]];
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= SLACK as f32;
        let rotation = self.map(&pose).entries().iter().zip(m).all(near);
        (rotation && self.contains(&pose)).then_some(pose)
    }

    fn lattice(&self, count: usize, offset: f32) -> Vec<Vec<f32>> {
        (0..count)
            .map(|j| {
                let at = j as f64 + f64::from(offset);
                let unit = [at / count as f64, (at / SPIRAL).fract(), (at / SQRT_2).fract()];
                let mut pose = vec![0.0; 6];
                self.draw(&unit.map(|v| v as f32), &mut pose);
                pose
            })
            .collect()
    }

    fn lines(&self) -> usize {
        3
    }

    fn along(&self, line: usize, unit: f32, pose: &mut [f32]) {
        let turn = about(2 - line.min(2), TAU * (f64::from(unit) - 0.5));
        write(&product(&turn, &matrix(pose)), pose);
        if !self.whole {
            self.confine(pose);
        }
    }

    /// Tait-Bryan angles of the rotation from one pose to the other, about z, then y, then x;
    /// the second is at most a quarter turn.
    fn turn(&self, line: usize, from: &[f32], pose: &[f32]) -> Option<f32> {
        let m = product(&matrix(pose), &transpose(&matrix(from)));
        let angle = match line {
            0 => libm::atan2(m[3], m[0]),
            1 => libm::asin((-m[6]).clamp(-1.0, 1.0)),
            _ => libm::atan2(m[7], m[8]),
        };
        Some(angle as f32)
    }

    /// The angle between two rotations, as a fraction of pi.
    fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        let squares: f64 = matrix(a).iter().zip(matrix(b)).map(|(a, b)| (a - b) * (a - b)).sum();
        let sine = (squares / 8.0).sqrt().min(1.0);
        (2.0 * libm::asin(sine) / PI_64) as f32
    }

    fn extent(&self) -> f32 {
        EXTENT
    }

    fn step(&self, pose: &mut [f32], step: &[f32]) {
        for (v, s) in pose.iter_mut().zip(step) {
            *v += s * self.extent();
        }
        self.confine(pose);
    }
}
