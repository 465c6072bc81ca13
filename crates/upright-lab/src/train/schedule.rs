//! What all trainings share: the learning rate's course and the order of samples.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

const PEAK_RATE: f64 = 1e-2;
/// Part of the training during which the learning rate rises.
const WARM_UP: f64 = 0.25;

/// One cycle: a cosine up to the peak, then a cosine down to nothing.
pub(super) fn rate(step: usize, total: usize) -> f64 {
    let at = step as f64 / total as f64;
    let wave = |t: f64| 0.5 * (1.0 - libm::cos(std::f64::consts::PI * t));
    let part = if at < WARM_UP {
        0.04 + 0.96 * wave(at / WARM_UP)
    } else {
        1.0 - wave((at - WARM_UP) / (1.0 - WARM_UP))
    };
    PEAK_RATE * part
}

pub(super) fn shuffle(order: &mut [usize], random: &mut ChaCha8Rng) {
    for i in (1..order.len()).rev() {
        order.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
}
