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
}
