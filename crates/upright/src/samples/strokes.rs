//! Glyphs as stroke sequences: what the pen did instead of what it left.
//!
//! The strokes of a glyph follow each other as rows `(x, y, pen)`: absolute
//! coordinates, and 1 where a stroke starts, 0 where it goes on, -1 in the
//! rows of padding at the end. Points lie about [`STEP`] apart, further if the
//! glyph would not fit otherwise.

use super::glyphs::{DIGITS, Glyph, draw};
use super::hand::balanced;
use crate::dataset::Samples;
use crate::error::Result;
use crate::tensor::{Batch, Signal};

/// Rows of the sequences of [`strokes`], padding included.
pub const STROKE_LENGTH: usize = 64;

/// Distance between neighbouring points of a stroke, in half image sides.
const STEP: f32 = 0.06;

/// `count` handwritten-looking digits as stroke sequences of 64 rows; item `i`
/// is the digit that [`digits`](super::digits) draws as its item `i` for the same seed.
pub fn strokes(count: usize, seed: u64) -> Result<Samples<'static>> {
    let mut batch = Batch::with_capacity(Signal::Strokes { length: STROKE_LENGTH }, count);
    let mut labels = Vec::with_capacity(count);
    for (label, own) in balanced(count, seed, DIGITS) {
        batch.push(&sequence(&draw(label, own), STROKE_LENGTH))?;
        labels.push(label);
    }
    Samples::labelled(batch, labels)
}

/// A glyph as `length` rows `(x, y, pen)` in the coordinates of [`Glyph::strokes`]; pen is 1 at
/// a stroke's first point, 0 at its others and -1 in the padding, whose x and y are 0. Strokes
/// that do not fit even as their two ends are left out.
pub fn sequence(glyph: &Glyph, length: usize) -> Vec<f32> {
    let lengths: Vec<f32> = glyph.strokes.iter().map(|s| path_length(s)).collect();
    let parts = |step: f32| lengths.iter().map(move |l| 1.max((l / step).round() as usize));
    let mut step = STEP;
    while parts(step).map(|p| p + 1).sum::<usize>() > length && parts(step).any(|p| p > 1) {
        step *= 1.05;
    }
    let mut rows = Vec::with_capacity(length * 3);
    for (stroke, parts) in glyph.strokes.iter().zip(parts(step)) {
        if stroke.is_empty() || rows.len() / 3 + parts + 1 > length {
            continue;
        }
        for (i, [x, y]) in evenly(stroke, parts).into_iter().enumerate() {
            rows.extend([x, y, if i == 0 { 1.0 } else { 0.0 }]);
        }
    }
    while rows.len() < length * 3 {
        rows.extend([0.0, 0.0, -1.0]);
    }
    rows
}

fn path_length(path: &[[f32; 2]]) -> f32 {
    path.windows(2).map(|pair| distance(pair[0], pair[1])).sum()
}

fn distance(p: [f32; 2], q: [f32; 2]) -> f32 {
    libm::hypotf(q[0] - p[0], q[1] - p[1])
}

/// `parts + 1` points that cut a path into parts of equal length, its ends among them.
fn evenly(path: &[[f32; 2]], parts: usize) -> Vec<[f32; 2]> {
    let total = path_length(path);
    let mut points = vec![path[0]];
    let (mut at, mut passed) = (0, 0.0);
    for part in 1..parts {
        let due = total * part as f32 / parts as f32;
        while at + 2 < path.len() && passed + distance(path[at], path[at + 1]) < due {
            passed += distance(path[at], path[at + 1]);
            at += 1;
        }
        let (p, q) = (path[at], path[(at + 1).min(path.len() - 1)]);
        let length = distance(p, q);
        let t = if length > 0.0 { ((due - passed) / length).min(1.0) } else { 0.0 };
        points.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]);
    }
    points.push(path[path.len() - 1]);
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::samples::digits;

    #[test]
    fn a_sequence_marks_starts_and_pads_its_end() {
        let glyph = Glyph {
            label: 0,
            strokes: vec![
                vec![[0.0, 0.0], [0.12, 0.0]],
                vec![[0.5, 0.1], [0.5, 0.02], [0.5, 0.06]],
            ],
            nib: vec![vec![0.1; 2], vec![0.1; 3]],
        };
        // Both strokes are two steps of 0.06 long; the second turns back on the way.
        let rows = sequence(&glyph, 8);
        let expected = [
            [0.0, 0.0, 1.0],
            [0.06, 0.0, 0.0],
            [0.12, 0.0, 0.0],
            [0.5, 0.1, 1.0],
            [0.5, 0.04, 0.0],
            [0.5, 0.06, 0.0],
            [0.0, 0.0, -1.0],
            [0.0, 0.0, -1.0],
        ];
        assert_eq!(rows.len(), 24);
        for (row, expected) in rows.iter().zip(expected.iter().flatten()) {
            assert!((row - expected).abs() < 1e-6, "{rows:?}");
        }
    }

    #[test]
    fn a_sequence_that_is_too_long_takes_longer_steps() {
        let line = Glyph {
            label: 1,
            strokes: vec![vec![[-0.8, 0.0], [0.8, 0.0]], vec![[0.0, 0.0], [0.0, 0.8]]],
            nib: vec![vec![0.1; 2]; 2],
        };
        let rows = sequence(&line, 12);
        assert_eq!(rows[rows.len() - 3..], [0.0, 0.8, 0.0], "the last point stays");
        assert_eq!(rows.chunks_exact(3).filter(|r| r[2] > 0.5).count(), 2);
        let only_ends = sequence(&line, 3);
        assert_eq!(only_ends, [-0.8, 0.0, 1.0, 0.8, 0.0, 0.0, 0.0, 0.0, -1.0]);
    }

    #[test]
    fn strokes_and_images_show_the_same_digits() {
        let (strokes, images) = (strokes(30, 5).unwrap(), digits(30, 5).unwrap());
        assert_eq!(strokes.labels(), images.labels());
        let half = crate::samples::glyphs::SIZE as f32 / 2.0;
        let pixel = |v: f32| ((v + 1.0) * half) as usize;
        for i in 0..30 {
            for row in strokes.batch().item(i).chunks_exact(3).filter(|r| r[2] >= 0.0) {
                let at = pixel(row[1]) * crate::samples::glyphs::SIZE + pixel(row[0]);
                assert!(images.batch().item(i)[at] > 0.0, "item {i} has no ink at {row:?}");
            }
        }
    }

    #[test]
    fn every_sequence_starts_a_stroke_and_ends_in_padding() {
        let samples = strokes(300, 3).unwrap();
        let mut longest = 0;
        for i in 0..samples.len() {
            let pens: Vec<f32> = samples.batch().item(i).chunks_exact(3).map(|r| r[2]).collect();
            let used = pens.iter().filter(|p| **p >= 0.0).count();
            assert!(pens[0] > 0.5 && used >= 10, "item {i}: {used}");
            assert!(pens[used..].iter().all(|p| *p < 0.0), "padding is at the end");
            longest = longest.max(used);
        }
        assert!(longest > STROKE_LENGTH / 2, "{longest}");
    }

    #[test]
    fn the_strokes_are_those_the_built_in_model_was_trained_on() {
        let samples = strokes(50, 1).unwrap();
        let mut hash = blake3::Hasher::new();
        for v in samples.batch().data() {
            hash.update(&v.to_le_bytes());
        }
        let hash = hash.finalize().to_hex();
        assert_eq!(&hash[..16], "b1d2d654abefb786", "train the model again when strokes change");
    }
}
