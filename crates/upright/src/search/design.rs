//! Designs: well-spread points of the unit cube.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;

use crate::seed::{self, mix, sobol};

/// A way to spread points over the unit cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// [`crate::seed::sobol`].
    Sobol,
    /// Latin hypercube: in each dimension one point per stratum, at a random place in it.
    Latin,
    /// Permuted lattice: in each dimension equally spaced points with one random offset,
    /// in random order.
    Lattice,
    /// Independent uniform points.
    Iid,
}

/// Most points of a design.
const MOST: usize = 1 << 16;

impl Design {
    /// The designs' names.
    pub(super) const WORDS: &'static [&'static str] = &["sobol", "latin", "lattice", "iid"];

    /// The design of a name.
    pub(super) fn parse(word: &str) -> Self {
        match word {
            "latin" => Design::Latin,
            "lattice" => Design::Lattice,
            "iid" => Design::Iid,
            _ => Design::Sobol,
        }
    }

    /// The numbered points. A Sobol net continues where an earlier range ended; the
    /// other designs make a new one of each range.
    pub(super) fn points(self, range: Range<usize>, cube: usize, seed: u64) -> Vec<Vec<f32>> {
        let range = range.start.min(MOST)..range.end.min(MOST);
        if self == Design::Sobol {
            return range.map(|i| sobol(i as u32, cube, seed)).collect();
        }
        let n = range.len();
        let mut rng = stream(seed, range.start as u64);
        let mut points = vec![vec![0.0; cube]; n];
        for d in 0..cube {
            let order = shuffled(n, &mut rng);
            let offset = seed::unit(&mut rng);
            for (point, at) in points.iter_mut().zip(order) {
                let within = seed::unit(&mut rng);
                let v = match self {
                    Design::Iid => within,
                    Design::Latin => (at as f32 + within) / n as f32,
                    _ => (at as f32 + offset) / n as f32,
                };
                point[d] = v.min(1.0 - f32::EPSILON);
            }
        }
        points
    }
}

/// The numbers below `n` in random order.
fn shuffled(n: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        let j = (seed::unit(rng) * (i + 1) as f32) as usize;
        order.swap(i, j.min(i));
    }
    order
}

/// A stream of random numbers that `seed` and `purpose` fix.
pub(super) fn stream(seed: u64, purpose: u64) -> ChaCha8Rng {
    seed::stream(sub(seed, purpose))
}

/// A seed that `seed` and `purpose` fix.
pub(super) fn sub(seed: u64, purpose: u64) -> u64 {
    mix(seed ^ mix(purpose))
}

/// A number in 0..1 that `seed` and `stream` fix.
pub(crate) fn unit(seed: u64, stream: u64) -> f32 {
    (sub(seed, stream) >> 40) as f32 / (1u64 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_is_reproducible_and_inside_the_cube() {
        for word in Design::WORDS {
            let design = Design::parse(word);
            let points = design.points(0..50, 5, 3);
            assert_eq!(points, design.points(0..50, 5, 3), "{word}");
            assert_ne!(points, design.points(0..50, 5, 4), "{word}");
            assert!(points.iter().flatten().all(|v| (0.0..1.0).contains(v)), "{word}");
            assert!(design.points(0..0, 5, 3).is_empty() && points.len() == 50);
        }
    }

    #[test]
    fn latin_and_lattice_have_one_point_in_each_stratum_and_a_lattice_equal_gaps() {
        for design in [Design::Latin, Design::Lattice] {
            let points = design.points(0..20, 3, 8);
            for d in 0..3 {
                let mut values: Vec<f32> = points.iter().map(|p| p[d]).collect();
                values.sort_by(f32::total_cmp);
                for (i, v) in values.iter().enumerate() {
                    assert_eq!((v * 20.0) as usize, i, "{design:?}");
                }
                let even = values.windows(2).all(|w| (w[1] - w[0] - 0.05).abs() < 1e-5);
                assert_eq!(even, design == Design::Lattice);
            }
        }
    }
}
