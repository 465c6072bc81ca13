//! Sampled probabilities of one input, and what is taken of them.

use crate::score::inputs::narrow;
use crate::tensor::Matrix;

/// The sampled probabilities, two samples a pair, and their mean.
pub(super) struct Seen {
    classes: usize,
    /// Probabilities, sample after sample; those of a pair are neighbours.
    p: Vec<f64>,
    /// Their logarithms.
    log: Vec<f64>,
    mean: Vec<f64>,
}

/// `p log p`; a vanished probability counts nothing.
fn plogp(p: f64, log: f64) -> f64 {
    if p == 0.0 { 0.0 } else { p * log }
}

impl Seen {
    /// Samples around the mean logits, one row of offsets a pair.
    pub(super) fn new(mean: &[f32], offsets: &Matrix) -> Seen {
        let classes = mean.len();
        let size = 2 * offsets.rows() * classes;
        let (mut p, mut log) = (Vec::with_capacity(size), Vec::with_capacity(size));
        let mut sums = vec![0.0; classes];
        for offset in offsets.iter() {
            for sign in [1.0, -1.0] {
                let first = log.len();
                let z = mean.iter().zip(offset).map(|(&m, &o)| f64::from(m) + sign * f64::from(o));
                log.extend(z);
                let log = &mut log[first..];
                let top = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                p.extend(log.iter().map(|z| libm::exp(z - top)));
                let p = &mut p[first..];
                let sum: f64 = p.iter().sum();
                let whole = libm::log(sum);
                for ((p, log), total) in p.iter_mut().zip(log).zip(&mut sums) {
                    *p /= sum;
                    *log = *log - top - whole;
                    *total += *p;
                }
            }
        }
        let count = (2 * offsets.rows()) as f64;
        Seen { classes, p, log, mean: sums.iter().map(|s| s / count).collect() }
    }

    fn count(&self) -> f64 {
        (self.p.len() / self.classes.max(1)) as f64
    }

    /// Entropy of the mean probabilities, in nats.
    pub(super) fn entropy(&self) -> f64 {
        -self.mean.iter().map(|&p| plogp(p, libm::log(p))).sum::<f64>()
    }

    /// Logarithm of the number of classes; 1 for one class, where all entropies vanish.
    fn unit(&self) -> f64 {
        if self.classes > 1 { libm::log(self.classes as f64) } else { 1.0 }
    }

    /// Entropy of the mean less mean of the entropies, over its largest value.
    pub(super) fn mutual_information(&self) -> f64 {
        let each: f64 = self.p.iter().zip(&self.log).map(|(&p, &log)| plogp(p, log)).sum();
        (self.entropy() + each / self.count()) / self.unit()
    }

    /// Derivative of `entropy * H + mi * MI` with respect to the logits of each
    /// sample: summed over all samples, and, for each pair, plus less minus.
    pub(super) fn gradient(&self, entropy: f64, mi: f64) -> (Vec<f64>, Matrix) {
        let classes = self.classes;
        let of_mean = (entropy + mi / self.unit()) / self.count();
        let of_each = mi / self.unit() / self.count();
        // A probability that vanished in every sample pulls at nothing.
        let pull: Vec<f64> =
            self.mean.iter().map(|&p| if p > 0.0 { -libm::log(p) - 1.0 } else { 0.0 }).collect();
        let samples = self.p.len() / classes.max(1);
        let mut sum = vec![0.0; classes];
        let mut difference = Matrix::zeros(samples / 2, classes);
        for s in 0..samples {
            let p = &self.p[s * classes..(s + 1) * classes];
            let log = &self.log[s * classes..(s + 1) * classes];
            let sign = if s % 2 == 0 { 1.0 } else { -1.0 };
            let mean_pull: f64 = p.iter().zip(&pull).map(|(p, a)| p * a).sum();
            let negative: f64 = p.iter().zip(log).map(|(&p, &log)| plogp(p, log)).sum();
            let out = difference.row_mut(s / 2);
            for k in 0..classes {
                let slope = of_mean * p[k] * (pull[k] - mean_pull)
                    + of_each * (plogp(p[k], log[k]) - p[k] * negative);
                sum[k] += slope;
                out[k] += narrow(sign * slope);
            }
        }
        (sum, difference)
    }
}
