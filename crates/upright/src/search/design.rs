//! Designs: well-spread points of the unit cube.

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
    (mix(seed ^ mix(stream)) >> 40) as f32 / (1u64 << 24) as f32
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
}
