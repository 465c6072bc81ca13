//! Strokes and clouds: rows of three numbers moved exactly, by the inverse of
//! the map from view to input. Maps have been checked: plane maps have an
//! inverse, space maps are rotations.

use crate::map::Map;

/// Moves the points of one item in place.
pub(super) fn warp(map: &Map, points: &mut [f32]) {
    if map.is_identity() {
        return;
    }
    match map {
        Map::Plane(m) => {
            let back = Back::new(m, points);
            for point in points.chunks_exact_mut(3).filter(|p| !is_padding(p)) {
                let (x, y) = back.apply(point);
                (point[0], point[1]) = ((x + back.x) as f32, (y + back.y) as f32);
            }
        }
        Map::Space(m) => {
            let m = m.map(f64::from);
            for point in points.chunks_exact_mut(3) {
                let p = [point[0], point[1], point[2]].map(f64::from);
                for (j, v) in point.iter_mut().enumerate() {
                    *v = (m[j] * p[0] + m[3 + j] * p[1] + m[6 + j] * p[2]) as f32;
                }
            }
        }
    }
}

/// Derivatives with respect to the map's entries.
///
/// In the plane, with `c` the centre and `s` half the longer side of the box,
/// `v = c + A^-1 (p - c - s t)`, hence `dv = -A^-1 (dA (v - c) + s dt)` and the
/// derivative is `-h (v - c, s)^T` with `h = A^-T cotangent`. In space
/// `v = M^T p`, hence `dE / dM[k][j] = p[k] cotangent[j]`.
pub(super) fn pullback(map: &Map, points: &[f32], cotangent: &[f32], out: &mut [f32]) {
    let mut sum = [0.0_f64; 9];
    let rows = points.chunks_exact(3).zip(cotangent.chunks_exact(3));
    match map {
        Map::Plane(m) => {
            let back = Back::new(m, points);
            for (point, g) in rows.filter(|(p, _)| !is_padding(p)) {
                let (x, y) = back.apply(point);
                let (gx, gy) = (f64::from(g[0]), f64::from(g[1]));
                let hx = back.a * gx + back.c * gy;
                let hy = back.b * gx + back.d * gy;
                let terms = [hx * x, hx * y, hx * back.unit, hy * x, hy * y, hy * back.unit];
                for (sum, term) in sum.iter_mut().zip(terms) {
                    *sum -= term;
                }
            }
        }
        Map::Space(_) => {
            for (point, g) in rows {
                for (k, sum) in sum.iter_mut().enumerate() {
                    *sum += f64::from(point[k / 3]) * f64::from(g[k % 3]);
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

/// The inverse of a plane map about the centre of strokes, unrounded.
struct Back {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
    tx: f64,
    ty: f64,
    /// The box's centre.
    x: f64,
    y: f64,
    /// Half the box's longer side.
    unit: f64,
}

impl Back {
    fn new(map: &[f32; 6], points: &[f32]) -> Self {
        let [a, b, tx, c, d, ty] = map.map(f64::from);
        let det = a * d - b * c;
        let (x, width) = middle(points, 0);
        let (y, height) = middle(points, 1);
        let unit = width.max(height) / 2.0;
        Back {
            a: d / det,
            b: -b / det,
            c: -c / det,
            d: a / det,
            tx: tx * unit,
            ty: ty * unit,
            x,
            y,
            unit,
        }
    }

    /// Where a point is seen, measured from the centre.
    fn apply(&self, point: &[f32]) -> (f64, f64) {
        let x = f64::from(point[0]) - self.x - self.tx;
        let y = f64::from(point[1]) - self.y - self.ty;
        (self.a * x + self.b * y, self.c * x + self.d * y)
    }
}

/// Middle and extent of one coordinate of the points that are not padding; zeros if all are.
fn middle(points: &[f32], coordinate: usize) -> (f64, f64) {
    let values = points.chunks_exact(3).filter(|p| !is_padding(p)).map(|p| p[coordinate]);
    let (low, high) = values
        .map(f64::from)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low <= high { (f64::midpoint(low, high), high - low) } else { (0.0, 0.0) }
}
