//! Curves as lines.

use crate::skip::Unusable;
use crate::strokes::{POINT_CAP, Strokes};

/// How far lines may be from the curve they stand for, as a part of the
/// sketch's larger side.
const FLATNESS: f64 = 1.0 / 1000.0;

type Point = [f64; 2];

/// A piece of a path, from where the last one ended.
#[derive(Clone, Copy)]
pub(super) enum Segment {
    /// A new start.
    Move(Point),
    /// A line to a point.
    Line(Point),
    /// A curve with one control point.
    Quadratic(Point, Point),
    /// A curve with two control points.
    Cubic(Point, Point, Point),
    /// A line to the last start.
    Close,
}

/// Strokes that stay close to the segments.
pub(super) fn flatten(segments: &[Segment]) -> Result<Strokes, Unusable> {
    let tolerance = FLATNESS * extent(segments);
    if !tolerance.is_finite() {
        return Err("its coordinates are too large".into());
    }
    let mut strokes: Vec<Vec<[f32; 2]>> = Vec::new();
    let (mut start, mut last) = ([0.0; 2], [0.0; 2]);
    let mut points = 0;
    for &segment in segments {
        let curve: &[Point] = match segment {
            Segment::Move(p) => {
                (start, last) = (p, p);
                strokes.push(Vec::new());
                &[p]
            }
            Segment::Line(p) => &[last, p],
            Segment::Quadratic(a, p) => &[last, a, p],
            Segment::Cubic(a, b, p) => &[last, a, b, p],
            Segment::Close => &[last, start],
        };
        if strokes.is_empty() {
            strokes.push(Vec::new());
        }
        let Some(stroke) = strokes.last_mut() else { continue };
        let steps = steps(curve, tolerance);
        points += steps;
        if points > POINT_CAP {
            return Err(format!("more than {POINT_CAP} points, the limit").into());
        }
        stroke.extend(
            (1..=steps)
                .map(|i| bezier(curve, i as f64 / steps as f64))
                .map(|p| p.map(|v| v as f32)),
        );
        last = curve[curve.len() - 1];
    }
    Strokes::new(strokes)
}

/// Lines that stand for a curve (Wang's bound on the distance between them).
fn steps(curve: &[Point], tolerance: f64) -> usize {
    let degree = curve.len() as f64 - 1.0;
    let bend = curve
        .windows(3)
        .map(|w| [0, 1].map(|c| w[0][c] - 2.0 * w[1][c] + w[2][c]))
        .map(|[x, y]| (x * x + y * y).sqrt())
        .fold(0.0, f64::max);
    if bend == 0.0 {
        return 1;
    }
    let steps = (degree * (degree - 1.0) / 8.0 * bend / tolerance).sqrt().ceil();
    steps.clamp(1.0, 1000.0) as usize
}

/// The point of a Bezier curve at `t`, by de Casteljau.
fn bezier(curve: &[Point], t: f64) -> Point {
    let mut p = [[0.0; 2]; 4];
    p[..curve.len()].copy_from_slice(curve);
    for n in (1..curve.len()).rev() {
        for i in 0..n {
            p[i] = [0, 1].map(|c| p[i][c] + t * (p[i + 1][c] - p[i][c]));
        }
    }
    if t >= 1.0 { curve[curve.len() - 1] } else { p[0] }
}

/// The larger side of the box around all points, those that only bend curves included.
fn extent(segments: &[Segment]) -> f64 {
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    let mut see = |p: Point| {
        for c in 0..2 {
            low[c] = low[c].min(p[c]);
            high[c] = high[c].max(p[c]);
        }
    };
    for segment in segments {
        match *segment {
            Segment::Move(p) | Segment::Line(p) => see(p),
            Segment::Quadratic(a, p) => [a, p].into_iter().for_each(&mut see),
            Segment::Cubic(a, b, p) => [a, b, p].into_iter().for_each(&mut see),
            Segment::Close => {}
        }
    }
    (high[0] - low[0]).max(high[1] - low[1]).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_within_the_tolerance_of_their_curve() {
        let curve = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]];
        for tolerance in [0.1, 0.01, 0.001] {
            let n = steps(&curve, tolerance);
            let ends: Vec<Point> = (0..=n).map(|i| bezier(&curve, i as f64 / n as f64)).collect();
            let worst = (0..n * 50).map(|j| {
                let p = bezier(&curve, j as f64 / (n * 50) as f64);
                let (a, b) = (ends[j / 50], ends[j / 50 + 1]);
                let ab = [b[0] - a[0], b[1] - a[1]];
                ((p[0] - a[0]) * ab[1] - (p[1] - a[1]) * ab[0]).abs() / ab[0].hypot(ab[1])
            });
            let worst = worst.fold(0.0, f64::max);
            assert!(worst < tolerance && worst > tolerance / 20.0, "{worst} {tolerance}");
        }
    }
}
