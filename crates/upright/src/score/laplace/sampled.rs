//! Sampled probabilities of one input, and what is taken of them.

use crate::score::softmax::{log_softmax, plogp};
use crate::tensor::Matrix;

/// The sampled log-probabilities and their mean probabilities.
pub(super) struct Seen {
    /// For each pair of samples, mean plus and mean minus the offset.
    pairs: Vec<[Vec<f64>; 2]>,
    /// Logarithms of the mean probabilities.
    mean: Vec<f64>,
}

impl Seen {
    /// Samples around the mean logits, one row of offsets a pair.
    pub(super) fn new(mean: &[f32], offsets: &Matrix) -> Seen {
        let shifted = |o: &[f32], sign: f32| {
            let z: Vec<f32> = mean.iter().zip(o).map(|(m, o)| m + sign * o).collect();
            log_softmax(&z, 1.0)
        };
        let pairs: Vec<[Vec<f64>; 2]> =
            offsets.iter().map(|o| [shifted(o, 1.0), shifted(o, -1.0)]).collect();
        let mut sum = vec![0.0; mean.len()];
        for logs in pairs.iter().flatten() {
            sum.iter_mut().zip(logs).for_each(|(s, &l)| *s += libm::exp(l));
        }
        let count = (2 * pairs.len()) as f64;
        Seen { pairs, mean: sum.iter().map(|s| libm::log(s / count)).collect() }
    }

    fn count(&self) -> f64 {
        (2 * self.pairs.len()) as f64
    }

    /// Entropy of the mean probabilities, in nats.
    pub(super) fn entropy(&self) -> f64 {
        -self.mean.iter().map(|&l| plogp(l)).sum::<f64>()
    }

    /// Logarithm of the number of classes; 1 for one class, where all entropies vanish.
    fn unit(&self) -> f64 {
        if self.mean.len() > 1 { libm::log(self.mean.len() as f64) } else { 1.0 }
    }

    /// Entropy of the mean less mean of the entropies, over its largest value.
    pub(super) fn mutual_information(&self) -> f64 {
        let each: f64 = self.pairs.iter().flatten().flatten().map(|&l| plogp(l)).sum();
        (self.entropy() + each / self.count()) / self.unit()
    }

    /// Derivative of `entropy * H + mi * MI` with respect to the logits of each
    /// sample: summed over all samples, and, for each pair, plus less minus.
    pub(super) fn gradient(&self, entropy: f64, mi: f64) -> (Vec<f64>, Matrix) {
        let classes = self.mean.len();
        let of_mean = (entropy + mi / self.unit()) / self.count();
        let of_each = mi / self.unit() / self.count();
        // A probability that vanished in every sample pulls at nothing.
        let pull: Vec<f64> =
            self.mean.iter().map(|l| if l.is_finite() { -(l + 1.0) } else { 0.0 }).collect();
        let mut sum = vec![0.0; classes];
        let mut difference = Matrix::zeros(self.pairs.len(), classes);
        for (i, pair) in self.pairs.iter().enumerate() {
            let out = difference.row_mut(i);
            for (logs, sign) in pair.iter().zip([1.0, -1.0]) {
                let p: Vec<f64> = logs.iter().map(|&l| libm::exp(l)).collect();
                let mean_pull: f64 = p.iter().zip(&pull).map(|(p, a)| p * a).sum();
                let negative: f64 = logs.iter().map(|&l| plogp(l)).sum();
                for k in 0..classes {
                    let slope = of_mean * p[k] * (pull[k] - mean_pull)
                        + of_each * (plogp(logs[k]) - p[k] * negative);
                    sum[k] += slope;
                    out[k] += (sign * slope) as f32;
                }
            }
        }
        (sum, difference)
    }
}
