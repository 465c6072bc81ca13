//! Numbers that look random and depend on nothing but their arguments.

/// The bits of the `SplitMix64` stream of a seed at a place.
pub(crate) fn bits(seed: u64, place: u64) -> u64 {
    let mix = |mut z: u64| {
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let step = 0x9e37_79b9_7f4a_7c15u64;
    mix(mix(seed.wrapping_add(step)).wrapping_add(step.wrapping_mul(place.wrapping_add(1))))
}

/// A number in 0..1, 1 excluded.
pub(crate) fn unit(seed: u64, place: u64) -> f64 {
    (bits(seed, place) >> 11) as f64 / (1u64 << 53) as f64
}

/// A whole number below `end`, which must not be 0.
pub(crate) fn below(seed: u64, place: u64, end: usize) -> usize {
    ((u128::from(bits(seed, place)) * end as u128) >> 64) as usize
}
