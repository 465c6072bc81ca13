//! Strokes and clouds: rows of three numbers moved exactly. Maps have been
//! checked: plane maps have an inverse.

use crate::map::Map;

/// Moves the points of one item in place.
pub(super) fn warp(map: &Map, points: &mut [f32]) {
    if map.is_identity() {
        return;
    }
    match map {
        Map::Plane(m) => {
            let back = Back::new(m);
            for point in points.chunks_exact_mut(3).filter(|p| !is_padding(p)) {
                let (x, y) = back.apply(point);
                (point[0], point[1]) = (x as f32, y as f32);
            }
        }
        Map::Space(m) => {
            for point in points.chunks_exact_mut(3) {
                let p = [point[0], point[1], point[2]].map(f64::from);
                for (v, row) in point.iter_mut().zip(m.chunks_exact(3)) {
                    let row = [row[0], row[1], row[2]].map(f64::from);
                    *v = (row[0] * p[0] + row[1] * p[1] + row[2] * p[2]) as f32;
                }
            }
        }
    }
}

/// Derivatives with respect to the map's entries.
///
/// In the plane `v = A^-1 (p - t)`, hence `dv = -A^-1 (dA v + dt)` and the
/// derivative is `-h (v, 1)^T` with `h = A^-T cotangent`.
pub(super) fn pullback(map: &Map, points: &[f32], cotangent: &[f32], out: &mut [f32]) {
    let mut sum = [0.0_f64; 9];
    let rows = points.chunks_exact(3).zip(cotangent.chunks_exact(3));
    match map {
        Map::Plane(m) => {
            let back = Back::new(m);
            for (point, g) in rows.filter(|(p, _)| !is_padding(p)) {
                let (x, y) = back.apply(point);
                let (gx, gy) = (f64::from(g[0]), f64::from(g[1]));
                let hx = back.a * gx + back.c * gy;
                let hy = back.b * gx + back.d * gy;
                let terms = [hx * x, hx * y, hx, hy * x, hy * y, hy];
                for (sum, term) in sum.iter_mut().zip(terms) {
                    *sum -= term;
                }
            }
        }
        Map::Space(_) => {
            for (point, g) in rows {
                for (k, sum) in sum.iter_mut().enumerate() {
                    *sum += f64::from(g[k / 3]) * f64::from(point[k % 3]);
                }
            }
        }
    }
    for (out, sum) in out.iter_mut().zip(sum) {
        *out = sum as f32;
    }
}

fn is_padding(point: &[f32]) -> bool {
    point[2] < 0.0
}

/// The inverse of a plane map, unrounded: `(x, y) -> A^-1 ((x, y) - t)`.
struct Back {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
    tx: f64,
    ty: f64,
}

impl Back {
    fn new(map: &[f32; 6]) -> Self {
        let [a, b, tx, c, d, ty] = map.map(f64::from);
        let det = a * d - b * c;
        Back { a: d / det, b: -b / det, c: -c / det, d: a / det, tx, ty }
    }

    fn apply(&self, point: &[f32]) -> (f64, f64) {
        let (x, y) = (f64::from(point[0]) - self.tx, f64::from(point[1]) - self.ty);
        (self.a * x + self.b * y, self.c * x + self.d * y)
    }
}
