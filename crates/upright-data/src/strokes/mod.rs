//! Strokess made of pen strokes, and how they become rows of (x, y, pen).
//!
//! Coordinates stay in the units of the file, y growing as it does there
//! (downwards in SVG and `QuickDraw`).

mod simplify;

use crate::skip::Unusable;

/// Most points a sketch may have before it is simplified.
pub(crate) const POINT_CAP: usize = 100_000;

/// Strokes in the order they were drawn; every point is finite, no stroke is
/// empty, and at least two points differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Strokes {
    strokes: Vec<Vec<[f32; 2]>>,
}

impl Strokes {
    /// Checks strokes; empty ones are left out.
    pub fn new(mut strokes: Vec<Vec<[f32; 2]>>) -> Result<Self, Unusable> {
        strokes.retain(|s| !s.is_empty());
        let total: usize = strokes.iter().map(Vec::len).sum();
        if total > POINT_CAP {
            return Err(format!("{total} points, the limit is {POINT_CAP}").into());
        }
        let Some(first) = strokes.first().and_then(|s| s.first()).copied() else {
            return Err("an empty sketch".into());
        };
        let mut points = strokes.iter().flatten();
        if let Some(bad) = points.clone().flatten().find(|v| !v.is_finite()) {
            return Err(format!("holds {bad}").into());
        }
        if points.all(|p| same(p[0], first[0]) && same(p[1], first[1])) {
            return Err(format!("{total} points, all equal; need 2 that differ").into());
        }
        Ok(Strokes { strokes })
    }

    /// Splits rows of (x, y, pen) or (x, y). Pen 1 starts a stroke, 0 continues
    /// it, below 0 is padding. Without a pen it is one stroke, and rows of NaN
    /// at its end are padding.
    pub fn from_rows(rows: &[f32], columns: usize) -> Result<Self, Unusable> {
        let mut strokes: Vec<Vec<[f32; 2]>> = Vec::new();
        let mut over = None;
        for (i, row) in rows.chunks_exact(columns.max(2)).enumerate() {
            let pen = match row {
                [x, y] if x.is_nan() && y.is_nan() => -1.0,
                [_, _] => 0.0,
                _ => row[2],
            };
            if pen < 0.0 {
                over = over.or(Some(i));
                continue;
            }
            if let Some(end) = over {
                return Err(format!("point {i} follows the padding that starts at {end}").into());
            }
            if same(pen, 1.0) || pen == 0.0 && strokes.is_empty() {
                strokes.push(Vec::new());
            } else if pen != 0.0 {
                return Err(format!(
                    "pen {pen} at point {i}; 1 starts a stroke, 0 continues it, -1 is padding"
                )
                .into());
            }
            if let Some(stroke) = strokes.last_mut() {
                stroke.push([row[0], row[1]]);
            }
        }
        Strokes::new(strokes)
    }

    /// The strokes in the order they were drawn.
    pub fn strokes(&self) -> &[Vec<[f32; 2]>] {
        &self.strokes
    }

    /// `length` rows of (x, y, pen), padded with (0, 0, -1), and how many strokes
    /// had to be left out. Up to `length` points stay exactly as they are;
    /// sketches with more are simplified first.
    pub fn rows(&self, length: usize) -> (Vec<f32>, usize) {
        let (kept, dropped) = simplify::to_fit(&self.strokes, length);
        let mut rows = Vec::with_capacity(3 * length);
        for stroke in &kept {
            for (i, [x, y]) in stroke.iter().enumerate() {
                rows.extend([*x, *y, if i == 0 { 1.0 } else { 0.0 }]);
            }
        }
        rows.truncate(3 * length);
        while rows.len() < 3 * length {
            rows.extend([0.0, 0.0, -1.0]);
        }
        (rows, dropped)
    }
}

fn same(a: f32, b: f32) -> bool {
    a.total_cmp(&b).is_eq()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Strokes {
        Strokes::new(vec![vec![[1.0, 2.0], [3.0, 4.0]], vec![], vec![[5.0, 6.0]]]).unwrap()
    }

    #[test]
    fn strokes_become_rows_and_come_back() {
        let (rows, dropped) = two().rows(4);
        assert_eq!(rows, [1., 2., 1., 3., 4., 0., 5., 6., 1., 0., 0., -1.]);
        assert_eq!(dropped, 0);
        assert_eq!(Strokes::from_rows(&rows, 3).unwrap(), two());
    }

    #[test]
    fn padding_never_changes_a_result() {
        let (rows, _) = two().rows(9);
        for more in 0..5 {
            let mut padded = rows.clone();
            padded.extend([7.0, f32::NAN, -1.0].repeat(more));
            assert_eq!(Strokes::from_rows(&padded, 3).unwrap().rows(9).0, rows);
        }
    }

    #[test]
    fn rows_without_a_pen_are_one_stroke() {
        let nan = f32::NAN;
        let sketch = Strokes::from_rows(&[0., 0., 1., 0., nan, nan], 2).unwrap();
        assert_eq!(sketch.strokes(), [[[0., 0.], [1., 0.]]]);
        assert_eq!(
            Strokes::from_rows(&[0., 0., nan, 0., 1., 1.], 2).unwrap_err().to_string(),
            "holds NaN"
        );
    }

    #[test]
    fn degenerate_sketches_say_what_is_wrong() {
        let inf = f32::INFINITY;
        for (rows, why) in [
            (vec![], "an empty sketch"),
            (vec![0., 0., -1.], "an empty sketch"),
            (vec![3., 3., 1., 3., 3., 0.], "2 points, all equal; need 2 that differ"),
            (vec![inf, 3., 1., 3., 3., 0.], "holds inf"),
            (vec![1., 3., 1., 3., 3., 0.5], "pen 0.5 at point 1"),
            (vec![1., 3., 1., 3., 3., f32::NAN], "pen NaN at point 1"),
            (
                vec![1., 3., 1., 0., 0., -1., 3., 3., 0.],
                "point 2 follows the padding that starts at 1",
            ),
        ] {
            let e = Strokes::from_rows(&rows, 3).unwrap_err().to_string();
            assert!(e.starts_with(why), "{why}: {e}");
        }
        let long = vec![(0..=POINT_CAP).map(|i| [i as f32, 0.0]).collect()];
        assert!(Strokes::new(long).unwrap_err().to_string().contains("the limit is 100000"));
    }
}
