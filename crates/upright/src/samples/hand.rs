//! Seeded random numbers for samples: the same seed gives the same bits on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of random numbers that belongs to one item.
pub(super) struct Hand(ChaCha8Rng);

impl Hand {
    pub(super) fn new(seed: u64, item: u64, purpose: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&item.to_le_bytes());
        key[16..24].copy_from_slice(&purpose.to_le_bytes());
        Hand(ChaCha8Rng::from_seed(key))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in 0..1.
    pub(super) fn unit(&mut self) -> f32 {
        (self.0.next_u32() >> 8) as f32 / 16_777_216.0
    }

    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Uniform in `-reach..reach`.
    pub(super) fn within(&mut self, reach: f32) -> f32 {
        self.between(-reach, reach)
    }

    /// Bell-shaped in `-3 sd..3 sd`, standard deviation `sd`: the sum of three uniforms.
    pub(super) fn bell(&mut self, sd: f32) -> f32 {
        self.within(sd) + self.within(sd) + self.within(sd)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f32) as usize
    }

    /// The numbers below `n` in random order.
    fn order(&mut self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// The label and the own seed of each of `count` items: every `classes` consecutive ones are a
/// random order of all classes, and item `i` depends on `seed` and `i` only.
pub(super) fn balanced(count: usize, seed: u64, classes: usize) -> Vec<(u32, u64)> {
    let mut order = Vec::new();
    (0..count)
        .map(|i| {
            if i % classes == 0 {
                order = Hand::new(seed, (i / classes) as u64, 1).order(classes);
            }
            (order[i % classes], Hand::new(seed, i as u64, 2).next())
        })
        .collect()
}
