//! Things of every day as point clouds: furniture and household goods put
//! together from boxes, cylinders, cones and a bent tube.
//!
//! Every class stands upright, z up, and faces the same way, against y; its
//! proportions vary from item to item, and it is put down a little askew.
//! Points are spread over the surface by area, hidden faces included, and
//! displaced a little.

use std::f32::consts::PI;

use super::hand::{Hand, balanced};
use super::surface::Surface;
use crate::dataset::Samples;
use crate::error::Result;
use crate::tensor::{Batch, Signal};

/// The classes of [`solids`], by label.
pub const SOLID_NAMES: &[&str] =
    &["bed", "bottle", "chair", "cone", "lamp", "mug", "plane", "sofa", "stairs", "table"];

/// Points in the clouds of [`solids`].
pub const CLOUD_POINTS: usize = 256;

/// Standard deviation of a point's displacement, where the largest extent is about 2.
const NOISE: f32 = 0.02;

/// Standard deviation of the turn about each axis, in radians.
const ASKEW: f32 = 0.06;

/// `count` clouds of 256 points on chairs, tables and eight other things, with labels 0 to 9,
/// every ten consecutive ones a random order of all ten classes. Item `i` depends on `seed` and
/// `i` only.
pub fn solids(count: usize, seed: u64) -> Result<Samples<'static>> {
    let mut batch = Batch::with_capacity(Signal::Cloud { points: CLOUD_POINTS }, count);
    let mut labels = Vec::with_capacity(count);
    for (label, own) in balanced(count, seed, SOLID_NAMES.len()) {
        batch.push(&solid(label, own, CLOUD_POINTS))?;
        labels.push(label);
    }
    Samples::labelled(batch, labels)
}

/// Points on a solid of class `label % 10` as rows `(x, y, z)`, z up, centred on its box, its
/// largest extent between 1.6 and 2. The same arguments give the same bits.
pub fn solid(label: u32, seed: u64, points: usize) -> Vec<f32> {
    let label = label % SOLID_NAMES.len() as u32;
    let mut hand = Hand::new(seed, u64::from(label), 3);
    let surface = SHAPES[label as usize](&mut hand);
    let mut cloud = surface.points(points, &mut hand);
    for axis in 0..3 {
        let (sin, cos) = libm::sincosf(hand.bell(ASKEW));
        let (i, j) = ((axis + 1) % 3, (axis + 2) % 3);
        for p in &mut cloud {
            (p[i], p[j]) = (cos * p[i] - sin * p[j], sin * p[i] + cos * p[j]);
        }
    }
    let range = |d: usize| {
        let values = cloud.iter().map(|p| p[d]);
        values.fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
    };
    let ranges = [range(0), range(1), range(2)];
    let largest = ranges.iter().map(|(low, high)| high - low).fold(1e-6, f32::max);
    let scale = hand.between(1.6, 2.0) / largest;
    for point in &mut cloud {
        for (v, (low, high)) in point.iter_mut().zip(ranges) {
            *v = (*v - 0.5 * (low + high)) * scale + hand.bell(NOISE);
        }
    }
    cloud.into_iter().flatten().collect()
}

/// How the classes are built, in the order of [`SOLID_NAMES`].
const SHAPES: [fn(&mut Hand) -> Surface; 10] =
    [bed, bottle, chair, cone, lamp, mug, plane, sofa, stairs, table];

/// Four square legs under a rectangle of half sides `x`, `y`, from the floor up to `height`.
fn legs(surface: &mut Surface, [x, y]: [f32; 2], thick: f32, height: f32) {
    for (sx, sy) in [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)] {
        let corner = |s: f32, half: f32| if s < 0.0 { -half } else { half - thick };
        let low = [corner(sx, x), corner(sy, y), 0.0];
        surface.cuboid(low, [low[0] + thick, low[1] + thick, height]);
    }
}

/// A mattress on legs, a high head and a low foot; the head is at the back.
fn bed(hand: &mut Hand) -> Surface {
    let (x, y) = (hand.between(0.40, 0.65), hand.between(0.9, 1.05));
    let (low, high) = (hand.between(0.15, 0.25), hand.between(0.40, 0.50));
    let (head, foot) = (high + hand.between(0.3, 0.55), high + hand.between(0.02, 0.12));
    let mut s = Surface::default();
    s.cuboid([-x, -y, low], [x, y, high]);
    s.cuboid([-x, y, 0.0], [x, y + 0.08, head]);
    s.cuboid([-x, -y - 0.08, 0.0], [x, -y, foot]);
    let pillow = hand.between(0.6, 0.85) * x;
    s.cuboid([-pillow, 0.65 * y, high], [pillow, 0.95 * y, high + 0.1]);
    s
}

/// A body, a shoulder and a neck.
fn bottle(hand: &mut Hand) -> Surface {
    let (wide, body) = (hand.between(0.25, 0.42), hand.between(0.9, 1.3));
    let (thin, neck) = (wide * hand.between(0.28, 0.45), hand.between(0.3, 0.6));
    let shoulder = hand.between(0.15, 0.4);
    let mut s = Surface::default();
    s.disc([0.0; 3], wide);
    s.side([0.0; 3], 2, body, [wide, wide]);
    s.side([0.0, 0.0, body], 2, shoulder, [wide, thin]);
    s.side([0.0, 0.0, body + shoulder], 2, neck, [thin, thin]);
    s.disc([0.0, 0.0, body + shoulder + neck], thin);
    s
}

/// A seat on four legs, and a back.
fn chair(hand: &mut Hand) -> Surface {
    let (x, y) = (hand.between(0.38, 0.5), hand.between(0.38, 0.5));
    let (seat, back) = (hand.between(0.75, 1.0), hand.between(0.75, 1.05));
    let thick = hand.between(0.06, 0.12);
    let mut s = Surface::default();
    s.cuboid([-x, -y, seat], [x, y, seat + thick]);
    legs(&mut s, [x, y], hand.between(0.07, 0.13), seat);
    let from = seat + thick + hand.between(0.0, 0.25);
    s.cuboid([-x, y - 0.09, from], [x, y, seat + back]);
    for side in [-x, x - 0.09] {
        s.cuboid([side, y - 0.09, seat], [side + 0.09, y, from]);
    }
    s
}

/// A traffic cone on its square foot.
fn cone(hand: &mut Hand) -> Surface {
    let (foot, height) = (hand.between(0.5, 0.75), hand.between(1.2, 1.9));
    let wide = foot * hand.between(0.7, 0.95);
    let thick = hand.between(0.08, 0.16);
    let tip = hand.between(0.03, 0.12);
    let mut s = Surface::default();
    s.cuboid([-foot, -foot, 0.0], [foot, foot, thick]);
    s.side([0.0, 0.0, thick], 2, height, [wide, tip]);
    s.disc([0.0, 0.0, thick + height], tip);
    s
}

/// A foot, a pole and a shade that opens downwards.
fn lamp(hand: &mut Hand) -> Surface {
    let (foot, pole) = (hand.between(0.28, 0.42), hand.between(0.9, 1.4));
    let (low, shade) = (hand.between(0.42, 0.62), hand.between(0.4, 0.65));
    let high = low * hand.between(0.35, 0.65);
    let thin = hand.between(0.04, 0.08);
    let mut s = Surface::default();
    s.disc([0.0; 3], foot);
    s.side([0.0; 3], 2, 0.08, [foot, foot]);
    s.disc([0.0, 0.0, 0.08], foot);
    s.side([0.0, 0.0, 0.08], 2, pole, [thin, thin]);
    s.side([0.0, 0.0, pole - 0.15], 2, shade, [low, high]);
    s
}

/// An open cylinder with a bottom, and a handle to the right.
fn mug(hand: &mut Hand) -> Surface {
    let (radius, height) = (hand.between(0.5, 0.65), hand.between(1.1, 1.5));
    let top = radius * hand.between(1.0, 1.15);
    let wide = height * hand.between(0.24, 0.34);
    let mut s = Surface::default();
    s.disc([0.0; 3], radius);
    s.side([0.0; 3], 2, height, [radius, top]);
    let centre = [radius, 0.0, height * hand.between(0.45, 0.6)];
    s.arc(centre, wide, hand.between(0.06, 0.1), [-PI / 2.0, PI / 2.0]);
    s
}

/// A body with its nose in front, two wings, and a tail with a fin.
fn plane(hand: &mut Hand) -> Surface {
    let (radius, body) = (hand.between(0.11, 0.17), hand.between(1.3, 1.7));
    let (span, chord) = (hand.between(0.8, 1.05), hand.between(0.28, 0.42));
    let wing = hand.between(0.42, 0.58) * body;
    let (fin, tail) = (hand.between(0.35, 0.5), hand.between(0.3, 0.45));
    let mut s = Surface::default();
    s.side([0.0, 0.0, 0.0], 1, body, [radius, radius]);
    s.side([0.0, -2.0 * radius, 0.0], 1, 2.0 * radius, [0.02, radius]);
    s.side([0.0, body, 0.0], 1, 1.5 * radius, [radius, 0.02]);
    let low = -0.5 * radius;
    s.cuboid([-span, wing - chord / 2.0, low - 0.025], [span, wing + chord / 2.0, low + 0.025]);
    s.cuboid([-tail, body - 0.2, -0.02], [tail, body, 0.02]);
    s.cuboid([-0.02, body - 0.28, radius], [0.02, body, radius + fin]);
    s
}

/// A seat between two arms, and a back.
fn sofa(hand: &mut Hand) -> Surface {
    let (x, y) = (hand.between(0.85, 1.05), hand.between(0.38, 0.5));
    let (seat, back) = (hand.between(0.35, 0.48), hand.between(0.8, 1.0));
    let arm = seat + hand.between(0.12, 0.25);
    let (thick, wide) = (hand.between(0.16, 0.26), hand.between(0.14, 0.22));
    let mut s = Surface::default();
    s.cuboid([-x, -y, 0.08], [x, y - thick, seat]);
    s.cuboid([-x, y - thick, 0.08], [x, y, back]);
    for side in [-x - wide, x] {
        s.cuboid([side, -y, 0.0], [side + wide, y, arm]);
    }
    s
}

/// Steps that rise towards the back.
fn stairs(hand: &mut Hand) -> Surface {
    let steps = 3 + hand.below(3);
    let (x, depth) = (hand.between(0.4, 0.65), hand.between(1.3, 1.8));
    let height = depth * hand.between(0.6, 0.9);
    let mut s = Surface::default();
    let (tread, rise) = (depth / steps as f32, height / steps as f32);
    for i in 0..steps {
        let (y, z) = (tread * i as f32, rise * (i + 1) as f32);
        s.rectangle([-x, y, z], [2.0 * x, 0.0, 0.0], [0.0, tread, 0.0]);
        s.rectangle([-x, y, z - rise], [2.0 * x, 0.0, 0.0], [0.0, 0.0, rise]);
        for side in [-x, x] {
            s.rectangle([side, y, 0.0], [0.0, tread, 0.0], [0.0, 0.0, z]);
        }
    }
    s.rectangle([-x, 0.0, 0.0], [2.0 * x, 0.0, 0.0], [0.0, depth, 0.0]);
    s.rectangle([-x, depth, 0.0], [2.0 * x, 0.0, 0.0], [0.0, 0.0, height]);
    s
}

/// A top on four legs.
fn table(hand: &mut Hand) -> Surface {
    let (x, y) = (hand.between(0.75, 1.05), hand.between(0.5, 0.7));
    let height = hand.between(0.7, 1.0);
    let thick = hand.between(0.06, 0.12);
    let mut s = Surface::default();
    s.cuboid([-x, -y, height], [x, y, height + thick]);
    legs(&mut s, [0.94 * x, 0.94 * y], hand.between(0.09, 0.16), height);
    s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;

    #[test]
    fn the_same_seed_gives_the_same_bits_and_another_seed_others() {
        assert_eq!(solids(20, 5).unwrap(), solids(20, 5).unwrap());
        assert_ne!(solids(20, 5).unwrap(), solids(20, 6).unwrap());
        let (few, many) = (solids(10, 9).unwrap(), solids(25, 9).unwrap());
        assert_eq!(few.batch().data(), &many.batch().data()[..few.batch().data().len()]);
    }

    #[test]
    fn every_run_of_all_classes_is_balanced_and_shuffled() {
        let samples = solids(100, 4).unwrap();
        let labels = samples.labels().unwrap();
        for run in labels.chunks(10) {
            let mut sorted = run.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<u32>>());
        }
        assert!(labels.chunks(10).any(|run| run != &labels[..10]));
    }

    #[test]
    fn clouds_are_centred_and_of_one_size() {
        let samples = solids(100, 2).unwrap();
        for i in 0..samples.len() {
            let cloud = samples.batch().item(i);
            let mut largest = 0.0_f32;
            for d in 0..3 {
                let values = || cloud.chunks_exact(3).map(|p| p[d]);
                let low = values().fold(f32::INFINITY, f32::min);
                let high = values().fold(f32::NEG_INFINITY, f32::max);
                assert!((low + high).abs() < 0.2, "item {i} axis {d}: {low}..{high}");
                largest = largest.max(high - low);
            }
            assert!((1.55..2.25).contains(&largest), "item {i}: {largest}");
        }
    }

    /// Share of a solid's points above a height.
    fn share_above(label: u32, height: f32) -> f32 {
        let points = 4000;
        let cloud = solid(label, 1, points);
        cloud.chunks_exact(3).filter(|p| p[2] > height).count() as f32 / points as f32
    }

    #[test]
    fn things_stand_on_their_feet() {
        // A cone is wide at its foot, a table at its top, a bottle thin at its top.
        assert!(share_above(3, 0.0) < 0.3);
        assert!(share_above(9, 0.0) > 0.5);
        assert!(share_above(1, 0.5) < 0.2);
        // Backs of chairs and sofas and heads of beds are at the back and on top.
        for label in [0, 2, 7] {
            let cloud = solid(label, 1, 4000);
            let top = cloud.chunks_exact(3).map(|p| p[2]).fold(f32::NEG_INFINITY, f32::max);
            let high = cloud.chunks_exact(3).filter(|p| p[2] > 0.9 * top);
            assert!(high.clone().count() > 0 && high.clone().all(|p| p[1] > 0.0), "class {label}");
        }
    }

    #[test]
    fn the_solids_are_those_the_built_in_model_was_trained_on() {
        let samples = solids(50, 1).unwrap();
        let mut hash = blake3::Hasher::new();
        for v in samples.batch().data() {
            hash.update(&v.to_le_bytes());
        }
        let hash = hash.finalize().to_hex();
        assert_eq!(&hash[..16], "c7d0c86e95a9d7ac", "train the model again when solids change");
    }
}
