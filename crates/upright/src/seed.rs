//! Seeds: everything random follows from a run's seed and the content of the
//! input, so that an input gets the same answer wherever it appears.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The seed of one input: BLAKE3 over the run's seed and the input's numbers.
pub fn of_content(seed: u64, item: &[f32]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    for chunk in item.chunks(256) {
        let mut bytes = [0; 1024];
        for (b, v) in bytes.chunks_exact_mut(4).zip(chunk) {
            b.copy_from_slice(&v.to_le_bytes());
        }
        hasher.update(&bytes[..chunk.len() * 4]);
    }
    first_word(&hasher.finalize())
}

/// The seed of a numbered thing within a run, e.g. a row of a data set.
pub fn of_index(seed: u64, purpose: &str, index: usize) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(purpose.as_bytes());
    hasher.update(&(index as u64).to_le_bytes());
    first_word(&hasher.finalize())
}

/// A portable stream of random numbers.
pub fn stream(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A uniform number in 0..1 from a stream.
pub fn unit(rng: &mut ChaCha8Rng) -> f32 {
    use rand_chacha::rand_core::Rng;
    (rng.next_u32() >> 8) as f32 / (1u32 << 24) as f32
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

/// `SplitMix64`'s finaliser (Steele et al. 2014).
pub(crate) fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn first_word(hash: &blake3::Hash) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_seeds_differ_by_content_and_by_run_seed() {
        let a = vec![0.5; 1600];
        let mut b = a.clone();
        b[1599] = 0.25;
        assert_eq!(of_content(1, &a), of_content(1, &a));
        assert_ne!(of_content(1, &a), of_content(1, &b));
        assert_ne!(of_content(1, &a), of_content(2, &a));
    }

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
}
