//! A small network from a row of numbers to log-odds: linear, or one hidden
//! layer of `tanh`, trained by Adam on the cross entropy. Everything runs in one
//! order, so that the same rows and seed give the same bits.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::error::Result;
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// Passes over the rows, and the fewest steps however few rows there are.
const EPOCHS: usize = 12;
const STEPS: usize = 1000;
const BATCH: usize = 64;
/// The first rate; it falls to nothing along a cosine.
const RATE: f64 = 3e-3;
/// What is taken off weights in each step, times the rate.
const DECAY: f64 = 1e-2;
const BETAS: (f64, f64) = (0.9, 0.999);

/// Standardised numbers further out than this count as this.
const FAR: f32 = 10.0;

/// The network, with what standardises its inputs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Net {
    mean: Vec<f32>,
    /// One over the standard deviation; 0 where a number never varies.
    scale: Vec<f32>,
    /// A row per hidden unit: weights, then the constant. None if it is linear.
    hidden: Matrix,
    /// A weight per hidden unit or, if there are none, per number; then the constant.
    last: Vec<f32>,
}

/// A sum of products in eight lanes, the same for any length of what is beside it.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a8.remainder().iter().zip(b8.remainder()).map(|(a, b)| a * b).sum();
    let mut lanes = [0f32; 8];
    for (a, b) in a8.zip(b8) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

impl Net {
    /// Fitted on rows, some of which have the label.
    pub(super) fn fit(rows: &Matrix, labels: &[bool], hidden: usize, seed: u64) -> Self {
        let width = rows.cols();
        let (mean, scale) = standard(rows);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut first = Matrix::zeros(hidden, width + 1);
        let spread = 1.0 / (width as f32).sqrt();
        for row in 0..hidden {
            for w in &mut first.row_mut(row)[..width] {
                *w =
                    spread * (2.0 * ((random.next_u64() >> 40) as f32 / (1u64 << 24) as f32) - 1.0);
            }
        }
        let units = if hidden > 0 { hidden } else { width };
        let last = vec![0.0; units + 1];
        let mut net = Net { mean, scale, hidden: first, last };
        let standardised: Vec<Vec<f32>> = rows.iter().map(|row| net.standardised(row)).collect();
        let mut steps = Steps::of(&net);
        let mut order: Vec<usize> = (0..rows.rows()).collect();
        let per_epoch = order.len().div_ceil(BATCH).max(1);
        let epochs = EPOCHS.max(STEPS.div_ceil(per_epoch));
        for epoch in 0..epochs {
            for i in (1..order.len()).rev() {
                order.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
            }
            for (n, batch) in order.chunks(BATCH).enumerate() {
                let mut d = net.like();
                for &i in batch {
                    net.add_slopes(&standardised[i], labels[i], &mut d);
                }
                let at = (epoch * per_epoch + n) as f64 / (epochs * per_epoch) as f64;
                let rate = RATE * 0.5 * (1.0 + libm::cos(std::f64::consts::PI * at));
                steps.take(&mut net, &d, batch.len(), rate);
            }
        }
        net
    }

    /// The number of numbers that it reads.
    pub(super) fn width(&self) -> usize {
        self.mean.len()
    }

    fn standardised(&self, row: &[f32]) -> Vec<f32> {
        let each = row.iter().zip(&self.mean).zip(&self.scale);
        each.map(|((x, m), s)| ((x - m) * s).clamp(-FAR, FAR)).collect()
    }

    fn units(&self, x: &[f32]) -> Vec<f32> {
        let width = self.width();
        self.hidden.iter().map(|w| libm::tanhf(dot(&w[..width], x) + w[width])).collect()
    }

    fn sum(&self, x: &[f32]) -> f32 {
        let (weights, constant) = self.last.split_at(self.last.len() - 1);
        dot(weights, x) + constant[0]
    }

    /// The log-odds of the label.
    pub(super) fn odds(&self, row: &[f32]) -> f32 {
        let x = self.standardised(row);
        if self.hidden.rows() == 0 { self.sum(&x) } else { self.sum(&self.units(&x)) }
    }

    /// Their derivative with respect to the row.
    pub(super) fn slope(&self, row: &[f32]) -> Vec<f32> {
        let x = self.standardised(row);
        let mut d = if self.hidden.rows() == 0 {
            self.last[..x.len()].to_vec()
        } else {
            let mut d = vec![0.0; x.len()];
            for ((w, u), last) in self.hidden.iter().zip(self.units(&x)).zip(&self.last) {
                let by = last * (1.0 - u * u);
                d.iter_mut().zip(w).for_each(|(d, w)| *d += by * w);
            }
            d
        };
        for ((d, x), scale) in d.iter_mut().zip(&x).zip(&self.scale) {
            *d *= if x.abs() < FAR { *scale } else { 0.0 };
        }
        d
    }

    /// Zeros in its shape.
    fn like(&self) -> Weights {
        let (rows, cols) = (self.hidden.rows(), self.hidden.cols());
        Weights { hidden: Matrix::zeros(rows, cols), last: vec![0.0; self.last.len()] }
    }

    /// Adds the derivatives of one row's cross entropy.
    fn add_slopes(&self, x: &[f32], label: bool, d: &mut Weights) {
        let linear = self.hidden.rows() == 0;
        let units = if linear { x.to_vec() } else { self.units(x) };
        let p = 1.0 / (1.0 + libm::expf(-self.sum(&units)));
        let by = p - f32::from(u8::from(label));
        let (weights, constant) = d.last.split_at_mut(units.len());
        weights.iter_mut().zip(&units).for_each(|(d, u)| *d += by * u);
        constant[0] += by;
        for (row, (u, last)) in units.iter().zip(&self.last).enumerate().filter(|_| !linear) {
            let by = by * last * (1.0 - u * u);
            let (weights, constant) = d.hidden.row_mut(row).split_at_mut(x.len());
            weights.iter_mut().zip(x).for_each(|(d, x)| *d += by * x);
            constant[0] += by;
        }
    }

    pub(super) fn state(&self) -> State {
        State::new()
            .f32("mean", &self.mean)
            .f32("scale", &self.scale)
            .matrix("hidden", &self.hidden)
            .f32("last", &self.last)
    }

    pub(super) fn load(state: &State) -> Result<Self> {
        let net = Net {
            mean: state.read_f32("mean")?,
            scale: state.read_f32("scale")?,
            hidden: state.read_matrix("hidden")?,
            last: state.read_f32("last")?,
        };
        let (width, hidden) = (net.mean.len(), net.hidden.rows());
        let units = if hidden > 0 { hidden } else { width };
        let fits = net.scale.len() == width
            && (hidden == 0 || net.hidden.cols() == width + 1)
            && net.last.len() == units + 1;
        if fits { Ok(net) } else { Err(damaged("the weights of `wrong` do not fit".into())) }
    }
}

/// The mean of every column, and one over its standard deviation.
fn standard(rows: &Matrix) -> (Vec<f32>, Vec<f32>) {
    let n = rows.rows().max(1) as f64;
    let mut mean = vec![0f64; rows.cols()];
    for row in rows.iter() {
        mean.iter_mut().zip(row).for_each(|(m, v)| *m += f64::from(*v) / n);
    }
    let mut square = vec![0f64; rows.cols()];
    for row in rows.iter() {
        for ((s, v), m) in square.iter_mut().zip(row).zip(&mean) {
            *s += (f64::from(*v) - m).powi(2) / n;
        }
    }
    let least = 1e-12 * square.iter().copied().fold(0.0, f64::max);
    let scale = square.iter().map(|s| if *s > least { (1.0 / s.sqrt()) as f32 } else { 0.0 });
    (mean.iter().map(|m| *m as f32).collect(), scale.collect())
}

/// Derivatives, or means of them, in the shape of a network's weights.
struct Weights {
    hidden: Matrix,
    last: Vec<f32>,
}

/// What Adam remembers.
struct Steps {
    first: Weights,
    second: Weights,
    taken: i32,
}

impl Steps {
    fn of(net: &Net) -> Self {
        Steps { first: net.like(), second: net.like(), taken: 0 }
    }

    /// A step against the derivatives' sum over so many rows.
    fn take(&mut self, net: &mut Net, d: &Weights, rows: usize, rate: f64) {
        self.taken += 1;
        let (a, b) = BETAS;
        let unbiased = |beta: f64| 1.0 - libm::pow(beta, f64::from(self.taken));
        let (ua, ub) = (unbiased(a), unbiased(b));
        let step = |w: &mut [f32], m: &mut [f32], v: &mut [f32], d: &[f32]| {
            for (((w, m), v), d) in w.iter_mut().zip(m).zip(v).zip(d) {
                let d = f64::from(*d) / rows as f64;
                *m = (a * f64::from(*m) + (1.0 - a) * d) as f32;
                *v = (b * f64::from(*v) + (1.0 - b) * d * d) as f32;
                let by = f64::from(*m) / ua / (libm::sqrt(f64::from(*v) / ub) + 1e-8);
                *w -= (rate * (by + DECAY * f64::from(*w))) as f32;
            }
        };
        let Steps { first, second, .. } = self;
        let [hidden, m, v] = [&mut net.hidden, &mut first.hidden, &mut second.hidden];
        step(hidden.data_mut(), m.data_mut(), v.data_mut(), d.hidden.data());
        step(&mut net.last, &mut first.last, &mut second.last, &d.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two units on two numbers, worked by hand.
    #[test]
    fn odds_and_slopes_are_those_of_the_formula() {
        let net = Net {
            mean: vec![1.0, 0.0],
            scale: vec![2.0, 0.5],
            hidden: Matrix::new(2, 3, vec![0.5, 0.0, 0.0, 0.0, 1.0, -1.0]).unwrap(),
            last: vec![3.0, -2.0, 0.25],
        };
        // Standardised (1, 2); units tanh(0.5) and tanh(1).
        let (u, v) = (libm::tanhf(0.5), libm::tanhf(1.0));
        let row = [1.5, 4.0];
        assert!((net.odds(&row) - (3.0 * u - 2.0 * v + 0.25)).abs() < 1e-6);
        let slope = net.slope(&row);
        assert!((slope[0] - 3.0 * (1.0 - u * u) * 0.5 * 2.0).abs() < 1e-6);
        assert!((slope[1] + 2.0 * (1.0 - v * v) * 0.5).abs() < 1e-6);
    }

    /// What no line parts is learnt with hidden units, and not without.
    #[test]
    fn hidden_units_learn_what_is_not_linear() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut number = || (random.next_u64() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        let data: Vec<f32> = (0..4000).map(|_| number()).collect();
        let rows = Matrix::new(2000, 2, data).unwrap();
        let labels: Vec<bool> = rows.iter().map(|r| r[0] * r[1] > 0.0).collect();
        let share = |hidden: usize| {
            let net = Net::fit(&rows, &labels, hidden, 1);
            let right = rows.iter().zip(&labels).filter(|(r, l)| (net.odds(r) > 0.0) == **l);
            right.count() as f64 / 2000.0
        };
        let (without, with) = (share(0), share(32));
        assert!(without < 0.65 && with > 0.9, "{without} {with}");
    }
}
