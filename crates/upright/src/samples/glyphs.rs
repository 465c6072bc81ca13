//! Digits and letters written by nobody: strokes through fixed knots, bent
//! the way a hand bends them, then drawn with a pen of varying width.
//!
//! A glyph starts from one of its class's ways to be written. The knots are
//! displaced, joined by a Catmull-Rom curve, rounded as by a fast hand, bent by
//! slow waves, and turned, slanted and stretched a little. Everything comes
//! from a seeded stream and `libm`, so the same seed gives the same bits on
//! every machine.

use super::alphabet::{Knot, WAYS};
use super::hand::{Hand, balanced};
use crate::dataset::Samples;
use crate::error::Result;
use crate::tensor::{Batch, Signal};

/// The classes, by label: the ten digits, then the capital letters.
pub const NAMES: &[&str] = &[
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G", "H", "I",
    "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z",
];

/// Rows and columns of the images of [`digits`].
pub const SIZE: usize = 40;

/// Number of digit classes, the first of [`NAMES`].
pub(super) const DIGITS: usize = 10;

/// How far from the centre a stroke may go, in half image sides.
const REACH: f32 = 0.9;

/// Distance between neighbouring points of a stroke, in unit-box heights.
const STEP: f32 = 0.04;

/// One written character.
#[derive(Debug, Clone, PartialEq)]
pub struct Glyph {
    /// Its class, an index into [`NAMES`].
    pub label: u32,
    /// The pen's paths: points `(x, y)` in the coordinates of [`Map`](crate::map::Map), from the
    /// centre, x to the right and y down, within `-0.9..0.9`; a character is about 1 high.
    pub strokes: Vec<Vec<[f32; 2]>>,
    /// Half the width of the line at every point of [`strokes`](Self::strokes), same unit.
    pub nib: Vec<Vec<f32>>,
}

/// Writes a character of class `label % 36`. The same arguments give the same bits.
pub fn draw(label: u32, seed: u64) -> Glyph {
    let label = label % NAMES.len() as u32;
    let mut hand = Hand::new(seed, u64::from(label), 0);
    let ways = WAYS[label as usize];
    let way = ways[hand.below(ways.len())];
    let style = Style::new(&mut hand);

    let mut glyph = Glyph { label, strokes: Vec::new(), nib: Vec::new() };
    for stroke in way {
        let knots: Vec<Knot> = stroke.iter().map(|k| style.displace(*k, &mut hand)).collect();
        let path = round(&spaced(&curve(&knots)), style.haste);
        let phase = hand.within(std::f32::consts::PI);
        let press = hand.within(0.25);
        let mut points = Vec::with_capacity(path.len());
        let mut nib = Vec::with_capacity(path.len());
        for (i, p) in path.iter().enumerate() {
            points.push(style.place(*p));
            nib.push(style.nib * (1.0 + press * libm::sinf(phase + 6.0 * STEP * i as f32)));
        }
        glyph.strokes.push(points);
        glyph.nib.push(nib);
    }
    glyph
}

/// Draws a glyph bright on dark into a square image of `size` rows: row-major values in 0..1,
/// each the part of the pixel that the line covers.
pub fn render(glyph: &Glyph, size: usize) -> Vec<f32> {
    let mut image = vec![0.0; size * size];
    let half = size as f32 / 2.0;
    let pixel = |v: f32| (v + 1.0) * half - 0.5;
    for (points, nib) in glyph.strokes.iter().zip(&glyph.nib) {
        let spot = |i: usize| [pixel(points[i][0]), pixel(points[i][1]), nib[i] * half];
        let count = points.len().min(nib.len());
        for i in 0..count {
            dab(&mut image, size, spot(i), spot((i + 1).min(count - 1)));
        }
    }
    image
}

/// `count` handwritten-looking digits of 40 x 40 pixels with labels 0 to 9, every ten
/// consecutive ones a random order of all ten classes. Item `i` depends on `seed` and `i` only.
pub fn digits(count: usize, seed: u64) -> Result<Samples<'static>> {
    samples(count, seed, DIGITS)
}

fn samples(count: usize, seed: u64, classes: usize) -> Result<Samples<'static>> {
    let mut batch = Batch::with_capacity(Signal::image(1, SIZE, SIZE), count);
    let mut labels = Vec::with_capacity(count);
    for (label, own) in balanced(count, seed, classes) {
        batch.push(&render(&draw(label, own), SIZE))?;
        labels.push(label);
    }
    Samples::labelled(batch, labels)
}

/// What all strokes of one glyph share.
struct Style {
    /// Standard deviation of a knot's displacement.
    tremor: f32,
    /// How many neighbours on each side a point is averaged with.
    haste: usize,
    /// Waves that bend the glyph: displaced coordinate's amplitude, frequency, phase.
    waves: [[f32; 3]; 4],
    /// From the unit box, centred, to the page.
    matrix: [f32; 4],
    shift: [f32; 2],
    nib: f32,
}

impl Style {
    fn new(hand: &mut Hand) -> Self {
        let mess = hand.between(0.2, 1.0);
        let tremor = 0.075 * mess * mess;
        let haste = hand.below(2 + (6.0 * mess) as usize);
        let waves = std::array::from_fn(|_| {
            [hand.bell(0.05 * mess), hand.between(2.0, 7.0), hand.within(std::f32::consts::PI)]
        });
        let (sin, cos) = libm::sincosf(hand.bell(0.10));
        let slant = 0.08 + hand.bell(0.17);
        let height = hand.between(0.72, 1.08);
        let width = height * hand.between(0.65, 1.25);
        // Slant, then stretch, then turn.
        let matrix = [
            cos * width,
            -cos * width * slant - sin * height,
            sin * width,
            -sin * width * slant + cos * height,
        ];
        let shift = [hand.within(0.08), hand.within(0.08)];
        let nib = hand.between(0.035, 0.09);
        Style { tremor, haste, waves, matrix, shift, nib }
    }

    fn displace(&self, k: Knot, hand: &mut Hand) -> Knot {
        Knot { x: k.x + hand.bell(self.tremor), y: k.y + hand.bell(self.tremor), ..k }
    }

    /// From the unit box to the page.
    fn place(&self, [x, y]: [f32; 2]) -> [f32; 2] {
        let wave = |[a, f, p]: [f32; 3], t: f32| a * libm::sinf(f * t + p);
        let [w0, w1, w2, w3] = self.waves;
        let (x, y) = (x - 0.5 + wave(w0, y) + wave(w1, x), y - 0.5 + wave(w2, x) + wave(w3, y));
        let [a, b, c, d] = self.matrix;
        [a * x + b * y + self.shift[0], c * x + d * y + self.shift[1]]
            .map(|v| v.clamp(-REACH, REACH))
    }
}

/// A polyline through the knots: Catmull-Rom between corners.
fn curve(knots: &[Knot]) -> Vec<[f32; 2]> {
    const PARTS: usize = 12;
    let at = |i: usize| [knots[i].x, knots[i].y];
    let mut path = vec![at(0)];
    for i in 1..knots.len() {
        let (p, q) = (at(i - 1), at(i));
        // A reflected neighbour makes the curve leave a corner or an end straight.
        let reflect = |a: [f32; 2], b: [f32; 2]| [2.0 * a[0] - b[0], 2.0 * a[1] - b[1]];
        let before = if i < 2 || knots[i - 1].corner { reflect(p, q) } else { at(i - 2) };
        let after = if i + 1 == knots.len() || knots[i].corner { reflect(q, p) } else { at(i + 1) };
        for part in 1..=PARTS {
            let t = part as f32 / PARTS as f32;
            path.push([0, 1].map(|d| {
                let (a, b, c, e) = (before[d], p[d], q[d], after[d]);
                b + 0.5
                    * t
                    * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - e + t * (3.0 * (b - c) + e - a)))
            }));
        }
    }
    path
}

/// The same path with points [`STEP`] apart, its end kept.
fn spaced(path: &[[f32; 2]]) -> Vec<[f32; 2]> {
    let mut points = vec![path[0]];
    let mut due = STEP;
    for pair in path.windows(2) {
        let (p, q) = (pair[0], pair[1]);
        let length = libm::hypotf(q[0] - p[0], q[1] - p[1]);
        while due <= length {
            let t = due / length;
            points.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]);
            due += STEP;
        }
        due -= length;
    }
    points.push(path[path.len() - 1]);
    points
}

/// Averages every point with up to `reach` neighbours on each side; ends stay.
fn round(path: &[[f32; 2]], reach: usize) -> Vec<[f32; 2]> {
    (0..path.len())
        .map(|i| {
            let r = reach.min(i).min(path.len() - 1 - i);
            let near = &path[i - r..=i + r];
            [0, 1].map(|d| near.iter().map(|p| p[d]).sum::<f32>() / near.len() as f32)
        })
        .collect()
}

/// Draws a line from `a` to `b`, each `[x, y, half width]` in pixels. A pixel's value is its
/// coverage, approximated by the distance of its centre from the line's edge.
fn dab(image: &mut [f32], size: usize, a: [f32; 3], b: [f32; 3]) {
    let reach = a[2].max(b[2]) + 1.0;
    let range = |d: usize| {
        let low = (a[d].min(b[d]) - reach).max(0.0) as usize;
        let high = (a[d].max(b[d]) + reach + 1.0).clamp(0.0, size as f32) as usize;
        low..high
    };
    let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
    let squared = dx * dx + dy * dy;
    for row in range(1) {
        for col in range(0) {
            let (x, y) = (col as f32 - a[0], row as f32 - a[1]);
            let t = if squared > 0.0 { ((x * dx + y * dy) / squared).clamp(0.0, 1.0) } else { 0.0 };
            let distance = libm::hypotf(x - t * dx, y - t * dy);
            let edge = a[2] + t * (b[2] - a[2]);
            let value = (edge - distance + 0.5).clamp(0.0, 1.0);
            let cell = &mut image[row * size + col];
            *cell = cell.max(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As [`digits`], of every class.
    fn glyphs(count: usize, seed: u64) -> Result<Samples<'static>> {
        samples(count, seed, NAMES.len())
    }
    use crate::dataset::Dataset;

    #[test]
    fn the_same_seed_gives_the_same_bits_and_another_seed_others() {
        assert_eq!(draw(7, 3), draw(7, 3));
        assert_ne!(draw(7, 3), draw(7, 4));
        assert_eq!(digits(20, 5).unwrap(), digits(20, 5).unwrap());
        assert_ne!(digits(20, 5).unwrap(), digits(20, 6).unwrap());
    }

    #[test]
    fn the_digits_are_those_the_built_in_model_was_trained_on() {
        let samples = digits(50, 1).unwrap();
        let mut hash = blake3::Hasher::new();
        for v in samples.batch().data() {
            hash.update(&v.to_le_bytes());
        }
        let hash = hash.finalize().to_hex();
        assert_eq!(&hash[..16], "0c734a23654a250d", "train the model again when digits change");
    }

    #[test]
    fn an_item_does_not_depend_on_how_many_there_are() {
        let few = glyphs(40, 9).unwrap();
        let many = glyphs(75, 9).unwrap();
        for i in 0..40 {
            assert_eq!(few.batch().item(i), many.batch().item(i));
            assert_eq!(few.label(i), many.label(i));
        }
    }

    #[test]
    fn every_run_of_all_classes_is_balanced_and_shuffled() {
        let samples = digits(200, 4).unwrap();
        let labels = samples.labels().unwrap();
        for run in labels.chunks(10) {
            let mut sorted = run.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<u32>>());
        }
        assert!(labels.chunks(10).any(|run| run != &labels[..10]));
        assert_eq!(glyphs(36, 4).unwrap().labels().unwrap().iter().sum::<u32>(), 35 * 18);
    }

    #[test]
    fn images_are_bright_lines_on_a_dark_page() {
        let samples = glyphs(144, 2).unwrap();
        for i in 0..samples.len() {
            let image = samples.batch().item(i);
            assert!(image.iter().all(|v| (0.0..=1.0).contains(v)));
            assert!(image.iter().any(|v| *v > 0.99));
            let ink = image.iter().sum::<f32>() / image.len() as f32;
            assert!((0.01..0.25).contains(&ink), "item {i}: {ink}");
        }
    }

    #[test]
    fn strokes_stay_on_the_page_and_every_point_has_a_width() {
        for label in 0..36 {
            for seed in 0..60 {
                let glyph = draw(label, seed);
                assert_eq!(glyph.label, label);
                for (points, nib) in glyph.strokes.iter().zip(&glyph.nib) {
                    assert_eq!(points.len(), nib.len());
                    assert!(points.len() > 1);
                    assert!(points.iter().flatten().all(|v| v.abs() <= REACH));
                    assert!(nib.iter().all(|w| *w > 0.02 && *w < 0.12));
                }
            }
        }
    }

    #[test]
    fn a_line_covers_its_width() {
        let glyph = Glyph {
            label: 0,
            strokes: vec![vec![[-1.0, 0.0], [1.0, 0.0]]],
            nib: vec![vec![0.1, 0.1]],
        };
        let image = render(&glyph, 40);
        // 0.1 of half the side is 2 pixels to each side of the middle, which lies between rows.
        let column: Vec<f32> = (16..24).map(|row| image[row * 40 + 20]).collect();
        assert_eq!(column, [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
        assert!(render(&glyph, 0).is_empty());
    }

    #[test]
    fn classes_differ_but_not_trivially() {
        let (mean, test) = (digits(400, 1).unwrap(), digits(300, 2).unwrap());
        let mut means = vec![vec![0.0; SIZE * SIZE]; DIGITS];
        for i in 0..mean.len() {
            let sum = &mut means[mean.label(i).unwrap() as usize];
            sum.iter_mut().zip(mean.batch().item(i)).for_each(|(m, v)| *m += v / 40.0);
        }
        let right = (0..test.len()).filter(|&i| {
            let far = |m: &[f32]| -> f32 {
                m.iter().zip(test.batch().item(i)).map(|(a, b)| (a - b) * (a - b)).sum()
            };
            let nearest = (0..DIGITS).min_by(|&a, &b| far(&means[a]).total_cmp(&far(&means[b])));
            nearest == test.label(i).map(|l| l as usize)
        });
        let share = right.count() as f32 / test.len() as f32;
        assert!((0.5..0.95).contains(&share), "nearest class mean is right for {share}");
    }
}
