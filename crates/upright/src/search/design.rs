//! Designs: well-spread points of the unit cube.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;

use crate::seed;

/// A way to spread points over the unit cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Design {
    /// [`sobol`].
    Sobol,
    /// Latin hypercube: in each dimension one point a stratum, at a random place in it.
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

/// Point `i` of a scrambled Sobol net in the unit cube, moved by a digital
/// shift that `seed` fixes.
///
/// All inputs share one Owen-scrambled net (Burley 2020); the shift (bitwise
/// exclusive or, per dimension) keeps the net's balance and makes it each
/// input's own. At most 65,536 points and 256 dimensions.
pub fn sobol(i: u32, dimensions: usize, seed: u64) -> Vec<f32> {
    const SCRAMBLE: u32 = 0x7570_7269;
    const BITS: u32 = 24;
    (0..dimensions as u32)
        .map(|d| {
            let v = sobol_burley::sample(i, d, SCRAMBLE);
            let shift = (mix(seed ^ u64::from(d).wrapping_mul(0x9E37_79B9_7F4A_7C15)) >> 40) as u32;
            let bits = (v * (1 << BITS) as f32) as u32 ^ shift;
            bits as f32 / (1 << BITS) as f32
        })
        .collect()
}

/// A number in 0..1 that `seed` and `stream` fix.
pub(crate) fn unit(seed: u64, stream: u64) -> f32 {
    (sub(seed, stream) >> 40) as f32 / (1u64 << 24) as f32
}

/// `SplitMix64`'s finaliser (Steele et al. 2014).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifted_nets_keep_one_point_in_each_of_their_strata() {
        for seed in [0, 1, 99] {
            for d in 0..5 {
                let mut strata = [0; 64];
                for i in 0..64 {
                    strata[(sobol(i, 5, seed)[d] * 64.0) as usize] += 1;
                }
                assert_eq!(strata, [1; 64], "seed {seed} dimension {d}");
            }
        }
    }

    #[test]
    fn seeds_give_different_points_and_the_same_seed_the_same() {
        assert_eq!(sobol(3, 5, 7), sobol(3, 5, 7));
        assert_ne!(sobol(3, 5, 7), sobol(3, 5, 8));
    }

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
