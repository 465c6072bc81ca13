//! Surfaces made of simple patches, and points spread over them by area.

use std::f32::consts::PI;

use super::hand::Hand;

/// A point or direction in space.
pub(super) type Point = [f32; 3];

/// A piece of a surface with a formula for its points.
#[derive(Debug, Clone, Copy)]
enum Patch {
    /// `corner + s a + t b` for s and t in 0..1; `a` and `b` are perpendicular.
    Rectangle { corner: Point, a: Point, b: Point },
    /// The side of a cone cut off at both ends: around `start` of radius `radii[0]`, then along
    /// `axis` by `length` with a radius growing evenly to `radii[1]`. A ring if `length` is 0.
    Side { start: Point, axis: usize, length: f32, radii: [f32; 2] },
    /// A tube of radius `thin` bent along a circle of radius `wide` around `centre` in the plane
    /// of x and z, between two angles from the direction of x.
    Arc { centre: Point, wide: f32, thin: f32, angles: [f32; 2] },
}

impl Patch {
    fn area(&self) -> f32 {
        match *self {
            Patch::Rectangle { a, b, .. } => norm(a) * norm(b),
            Patch::Side { length, radii: [r, s], .. } => PI * (r + s) * libm::hypotf(length, s - r),
            Patch::Arc { wide, thin, angles: [from, to], .. } => {
                2.0 * PI * thin * wide * (to - from)
            }
        }
    }

    /// A point, uniform by area.
    fn point(&self, hand: &mut Hand) -> Point {
        match *self {
            Patch::Rectangle { corner, a, b } => {
                let (s, t) = (hand.unit(), hand.unit());
                std::array::from_fn(|d| corner[d] + s * a[d] + t * b[d])
            }
            Patch::Side { start, axis, length, radii: [r, s] } => {
                // The area up to a radius grows with the radius squared.
                let radius = libm::sqrtf(r * r + hand.unit() * (s * s - r * r));
                let t = if (s - r).abs() > 1e-6 { (radius - r) / (s - r) } else { hand.unit() };
                let (sin, cos) = libm::sincosf(hand.within(PI));
                let mut point = start;
                point[axis] += t * length;
                point[(axis + 1) % 3] += radius * cos;
                point[(axis + 2) % 3] += radius * sin;
                point
            }
            Patch::Arc { centre, wide, thin, angles: [from, to] } => {
                let (sin, cos) = libm::sincosf(hand.between(from, to));
                // The outer half of a bent tube has more area than the inner one.
                let (across, out) = loop {
                    let (across, out) = libm::sincosf(hand.within(PI));
                    if hand.unit() * (wide + thin) < wide + thin * out {
                        break (across, out);
                    }
                };
                let radius = wide + thin * out;
                [centre[0] + radius * cos, centre[1] + thin * across, centre[2] + radius * sin]
            }
        }
    }
}

fn norm(v: Point) -> f32 {
    libm::sqrtf(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
}

/// A surface made of patches.
#[derive(Debug, Clone, Default)]
pub(super) struct Surface(Vec<Patch>);

impl Surface {
    /// Adds a rectangle from a corner along two perpendicular edges.
    pub(super) fn rectangle(&mut self, corner: Point, a: Point, b: Point) {
        self.0.push(Patch::Rectangle { corner, a, b });
    }

    /// Adds the six faces of a box between two opposite corners.
    pub(super) fn cuboid(&mut self, low: Point, high: Point) {
        for axis in 0..3 {
            let mut a = [0.0; 3];
            let mut b = [0.0; 3];
            let (i, j) = ((axis + 1) % 3, (axis + 2) % 3);
            a[i] = high[i] - low[i];
            b[j] = high[j] - low[j];
            let mut far = low;
            far[axis] = high[axis];
            self.rectangle(low, a, b);
            self.rectangle(far, a, b);
        }
    }

    /// Adds the side of a cylinder or cone: from radius `radii[0]` around `start` along an axis
    /// (0 x, 1 y, 2 z) by `length` to radius `radii[1]`.
    pub(super) fn side(&mut self, start: Point, axis: usize, length: f32, radii: [f32; 2]) {
        self.0.push(Patch::Side { start, axis, length, radii });
    }

    /// Adds a disc across the z axis.
    pub(super) fn disc(&mut self, centre: Point, radius: f32) {
        self.side(centre, 2, 0.0, [0.0, radius]);
    }

    /// Adds a bent tube of radius `thin` along part of a circle in the plane of x and z.
    pub(super) fn arc(&mut self, centre: Point, wide: f32, thin: f32, angles: [f32; 2]) {
        self.0.push(Patch::Arc { centre, wide, thin, angles });
    }

    /// `count` points spread independently and uniformly by area.
    pub(super) fn points(&self, count: usize, hand: &mut Hand) -> Vec<Point> {
        let mut ends = Vec::with_capacity(self.0.len());
        let mut total = 0.0;
        for patch in &self.0 {
            total += patch.area();
            ends.push(total);
        }
        (0..count)
            .map(|_| {
                let due = hand.unit() * total;
                let at = ends.partition_point(|end| *end <= due).min(self.0.len() - 1);
                self.0[at].point(hand)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hand() -> Hand {
        Hand::new(1, 2, 3)
    }

    fn close(a: f32, b: f32, by: f32) {
        assert!((a - b).abs() < by, "{a} is not {b}");
    }

    #[test]
    fn areas_are_those_of_the_textbook() {
        let cylinder = Patch::Side { start: [0.0; 3], axis: 2, length: 2.0, radii: [0.5, 0.5] };
        close(cylinder.area(), 2.0 * PI, 1e-5);
        let disc = Patch::Side { start: [0.0; 3], axis: 2, length: 0.0, radii: [0.0, 2.0] };
        close(disc.area(), 4.0 * PI, 1e-5);
        // pi r times the slant height: 3, 4, 5.
        let cone = Patch::Side { start: [0.0; 3], axis: 0, length: 4.0, radii: [3.0, 0.0] };
        close(cone.area(), 15.0 * PI, 1e-4);
        let torus = Patch::Arc { centre: [0.0; 3], wide: 2.0, thin: 0.5, angles: [-PI, PI] };
        close(torus.area(), 4.0 * PI * PI, 1e-4);
        let mut cuboid = Surface::default();
        cuboid.cuboid([0.0; 3], [1.0, 2.0, 3.0]);
        close(cuboid.0.iter().map(Patch::area).sum(), 22.0, 1e-5);
    }

    #[test]
    fn points_lie_on_their_patch() {
        let mut hand = hand();
        for _ in 0..200 {
            let cone =
                Patch::Side { start: [1.0, 0.0, 0.0], axis: 2, length: 2.0, radii: [1.0, 0.0] };
            let [x, y, z] = cone.point(&mut hand);
            close(libm::hypotf(x - 1.0, y), 1.0 - z / 2.0, 1e-5);
            let arc =
                Patch::Arc { centre: [0.0; 3], wide: 2.0, thin: 0.5, angles: [0.0, PI / 2.0] };
            let [x, y, z] = arc.point(&mut hand);
            close(libm::hypotf(libm::hypotf(x, z) - 2.0, y), 0.5, 1e-5);
            assert!(x >= -1e-5 && z >= -1e-5);
        }
    }

    #[test]
    fn points_are_spread_by_area() {
        let mut hand = hand();
        // Half the radius of a disc holds a quarter of its area.
        let mut disc = Surface::default();
        disc.disc([0.0; 3], 1.0);
        let inner = disc.points(4000, &mut hand);
        let inner = inner.iter().filter(|p| libm::hypotf(p[0], p[1]) < 0.5).count();
        close(inner as f32 / 4000.0, 0.25, 0.03);
        // A box of 1 x 1 x 2 has a tenth of its area on each small end.
        let mut cuboid = Surface::default();
        cuboid.cuboid([0.0; 3], [1.0, 1.0, 2.0]);
        let top = cuboid.points(4000, &mut hand);
        let top = top.iter().filter(|p| p[2] > 2.0 - 1e-6).count();
        close(top as f32 / 4000.0, 0.1, 0.02);
        // Of a torus of radii 2 and 1 the outer half holds 1/2 + 1/(2 pi) of the area.
        let mut torus = Surface::default();
        torus.arc([0.0; 3], 2.0, 1.0, [-PI, PI]);
        let outer = torus.points(4000, &mut hand);
        let outer = outer.iter().filter(|p| libm::hypotf(p[0], p[2]) > 2.0).count();
        close(outer as f32 / 4000.0, 0.5 + 1.0 / (2.0 * PI), 0.03);
    }
}
