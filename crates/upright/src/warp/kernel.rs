//! The weights of the kernels along one direction and their derivatives.

/// Keys' parameter, as in torch.
const A: f32 = -0.75;

/// A separable kernel over `N` neighbouring pixels.
pub(super) trait Taps<const N: usize> {
    /// The first pixel read at a coordinate of at least 1, and the fraction the weights need.
    fn split(at: f64) -> (usize, f32);
    /// Weights of the pixels.
    fn weights(t: f32) -> [f32; N];
    /// Derivatives of the weights with respect to the coordinate.
    fn slopes(t: f32) -> [f32; N];
}

pub(super) struct Bicubic;
pub(super) struct Bilinear;
pub(super) struct Nearest;

#[inline]
fn floor(at: f64) -> (usize, f32) {
    let whole = at as u32;
    (whole as usize, (at - f64::from(whole)) as f32)
}

impl Taps<4> for Bicubic {
    #[inline]
    fn split(at: f64) -> (usize, f32) {
        let (whole, t) = floor(at);
        (whole - 1, t)
    }

    #[inline]
    fn weights(t: f32) -> [f32; 4] {
        let s = 1.0 - t;
        let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
        [A * t * s * s, near(t), near(s), A * s * t * t]
    }

    #[inline]
    fn slopes(t: f32) -> [f32; 4] {
        let s = 1.0 - t;
        let near = |x: f32| (3.0 * (A + 2.0) * x - 2.0 * (A + 3.0)) * x;
        [A * s * (1.0 - 3.0 * t), near(t), -near(s), -A * t * (1.0 - 3.0 * s)]
    }
}

impl Taps<2> for Bilinear {
    #[inline]
    fn split(at: f64) -> (usize, f32) {
        floor(at)
    }

    #[inline]
    fn weights(t: f32) -> [f32; 2] {
        [1.0 - t, t]
    }

    #[inline]
    fn slopes(_: f32) -> [f32; 2] {
        [-1.0, 1.0]
    }
}

impl Taps<1> for Nearest {
    /// The margin is even, so that a pixel has the parity of its place in the frame.
    #[inline]
    fn split(at: f64) -> (usize, f32) {
        let (whole, t) = floor(at + 0.5);
        (if t == 0.0 { whole & !1 } else { whole }, 0.0)
    }

    #[inline]
    fn weights(_: f32) -> [f32; 1] {
        [1.0]
    }

    #[inline]
    fn slopes(_: f32) -> [f32; 1] {
        [0.0]
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the numbers are exact in binary
mod tests {
    use super::*;

    #[test]
    fn halfway_cubic_weights_are_those_of_keys_with_minus_three_quarters() {
        assert_eq!(Bicubic::weights(0.5), [-0.09375, 0.59375, 0.59375, -0.09375]);
        assert_eq!(Bicubic::weights(0.0), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(Bicubic::slopes(0.0), [A, 0.0, -A, 0.0]);
    }

    #[test]
    fn weights_sum_to_one_and_slopes_are_their_derivative() {
        for k in 1..100 {
            let t = k as f32 / 100.0;
            assert!((Bicubic::weights(t).iter().sum::<f32>() - 1.0).abs() < 1e-6);
            let (low, high) = (Bicubic::weights(t - 0.005), Bicubic::weights(t + 0.005));
            for ((low, high), slope) in low.iter().zip(high).zip(Bicubic::slopes(t)) {
                assert!(((high - low) / 0.01 - slope).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn nearest_rounds_ties_to_even() {
        let at = |v| Nearest::split(v).0;
        assert_eq!([at(4.5), at(5.5), at(5.49), at(5.51), at(6.0)], [4, 6, 5, 6, 6]);
    }
}
