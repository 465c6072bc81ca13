//! Last-layer Laplace: the head's weights become a Gaussian around what was
//! trained, hence the logits a Gaussian for each input; the four scores here
//! take its mean or fixed samples of it.
//!
//! Posterior precision `GGN + prior * I` with Kronecker factors, weights and
//! bias apart: `A = (1/N) sum f f^T = U_A diag(a) U_A^T` and
//! `B = sum (diag p - p p^T) = U_B diag(b) U_B^T` over the bank, `p` of the
//! head's own logits. In closed form, without sampling weights:
//!
//! ```text
//! mean logits        m = W f + bias
//! logit covariance   U_B diag_i( sum_j (u_j . f)^2 / (b_i a_j + prior) + 1 / (b_i + prior) ) U_B^T
//! ```
//!
//! An input costs one `D x D` product, `C D` and, for the sampled scores,
//! `samples C^2 / 2`. The standard normals are drawn once at fit, in pairs of
//! opposite sign: energies are smooth and deterministic, and the mean of the
//! sampled logits is `m`. Daxberger et al. 2021, "Laplace Redux - Effortless
//! Bayesian Deep Learning" (`kron`, last layer, prior precision not tuned).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::linalg::{eigen, matmul, matmul_t, scatter, single};
use crate::outputs::{Cotangents, Head, Outputs};
use crate::score::inputs::{head, lack, narrow, nothing, on_features, tap, undefined};
use crate::score::rectify::{Base, logits, stored_head};
use crate::score::softmax::softmax;
use crate::score::{Bank, Score};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

pub(super) mod energy;
pub(super) mod entropy;
pub(super) mod mi;
mod sampled;
pub(super) mod weighted;

const PRIOR: Param =
    Param::real("prior", 1.0, 1e-6, 1e6, "precision of the weights before the bank was seen");
const SAMPLES: Param =
    Param::whole("samples", 64, 2, 65_536, "logit samples per input; odd numbers round up")
        .tuned_log(16.0, 256.0);

/// What is taken of the sampled probabilities: `base * partner + mi * MI_norm - offset`.
#[derive(Debug, Clone, Copy)]
struct Blend {
    partner: Base,
    base: f64,
    mi: f64,
    offset: f64,
}

#[derive(Debug)]
struct Laplace {
    head: Head,
    /// Eigenvectors of `A` as rows.
    inner: Matrix,
    inner_values: Vec<f64>,
    /// Eigenvectors of `B` as rows.
    outer: Matrix,
    outer_values: Vec<f64>,
    /// `1 / (b_i a_j + prior)`, one row an `i`.
    inverse: Matrix,
    /// `1 / (b_i + prior)`.
    bias_variance: Vec<f64>,
    /// One row a pair of samples.
    normals: Matrix,
    blend: Blend,
}

fn fit(settings: &Settings, bank: &Bank, score: &str, blend: Blend) -> Result<Box<dyn Score>> {
    let (features, head) = head(bank, score)?;
    let (classes, width) = (head.weight.rows(), features.cols());
    let mut a = scatter(features, |_| &[]);
    for v in &mut a {
        *v /= features.rows() as f64;
    }
    let mut b = vec![0.0; classes * classes];
    for z in logits(features, &head.weight, &head.bias).iter() {
        let p = softmax(z, 1.0);
        for i in 0..classes {
            b[i * classes + i] += p[i];
            for j in 0..classes {
                b[i * classes + j] -= p[i] * p[j];
            }
        }
    }
    let unusable = || lack(score, "finite logits and features", "choose another tap or score");
    let a = eigen(&a, width).ok_or_else(unusable)?;
    let b = eigen(&b, classes).ok_or_else(unusable)?;
    // Both are positive semidefinite: what lies below zero is rounding.
    let clip = |v: Vec<f64>| v.into_iter().map(|v| v.max(0.0)).collect::<Vec<_>>();
    let pairs = settings.whole("samples").div_ceil(2);
    let laplace = Laplace::new(
        settings.real("prior"),
        head.clone(),
        (single(width, width, &a.vectors), clip(a.values)),
        (single(classes, classes, &b.vectors), clip(b.values)),
        normals(pairs, classes, bank.seed),
        blend,
    );
    Ok(Box::new(laplace))
}

fn load(settings: &Settings, state: &State, blend: Blend) -> Result<Box<dyn Score>> {
    let head = stored_head(state)?;
    let inner = (state.read_matrix("inner")?, state.read_f64("inner_values")?);
    let outer = (state.read_matrix("outer")?, state.read_f64("outer_values")?);
    let normals = state.read_matrix("normals")?;
    let (classes, width) = (head.weight.rows(), head.weight.cols());
    let square = |(m, v): &(Matrix, Vec<f64>), n| (m.rows(), m.cols(), v.len()) == (n, n, n);
    if !square(&inner, width) || !square(&outer, classes) || normals.cols() != classes {
        return Err(damaged("the factors and the head disagree".into()));
    }
    Ok(Box::new(Laplace::new(settings.real("prior"), head, inner, outer, normals, blend)))
}

/// Standard normals by Box and Muller.
fn normals(rows: usize, cols: usize, seed: u64) -> Matrix {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // In (0, 1], so that its logarithm is finite.
    let mut uniform = || ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let mut m = Matrix::zeros(rows, cols);
    for v in m.data_mut() {
        let radius = (-2.0 * libm::log(uniform())).sqrt();
        *v = (radius * libm::cos(std::f64::consts::TAU * uniform())) as f32;
    }
    m
}

impl Laplace {
    fn new(
        prior: f64,
        head: Head,
        (inner, inner_values): (Matrix, Vec<f64>),
        (outer, outer_values): (Matrix, Vec<f64>),
        normals: Matrix,
        blend: Blend,
    ) -> Laplace {
        let inverse: Vec<f64> = outer_values
            .iter()
            .flat_map(|b| inner_values.iter().map(move |a| 1.0 / (b * a + prior)))
            .collect();
        let inverse = single(outer_values.len(), inner_values.len(), &inverse);
        let bias_variance = outer_values.iter().map(|b| 1.0 / (b + prior)).collect();
        Laplace {
            head,
            inner,
            inner_values,
            outer,
            outer_values,
            inverse,
            bias_variance,
            normals,
            blend,
        }
    }

    /// For each row: mean logits, coordinates along `U_A`, and the standard
    /// deviations along `U_B`.
    fn gaussians(&self, features: &Matrix) -> (Matrix, Matrix, Matrix) {
        let means = logits(features, &self.head.weight, &self.head.bias);
        let along = matmul_t(features, &self.inner);
        let mut squares = along.clone();
        squares.data_mut().iter_mut().for_each(|v| *v *= *v);
        let mut deviations = matmul_t(&squares, &self.inverse);
        for i in 0..deviations.rows() {
            for (v, b) in deviations.row_mut(i).iter_mut().zip(&self.bias_variance) {
                *v = (f64::from(*v) + b).sqrt() as f32;
            }
        }
        (means, along, deviations)
    }

    /// Deviations of the samples from the mean logits, one row per pair.
    fn offsets(&self, deviations: &[f32]) -> Matrix {
        let mut scaled = self.normals.clone();
        for i in 0..scaled.rows() {
            scaled.row_mut(i).iter_mut().zip(deviations).for_each(|(v, s)| *v *= s);
        }
        matmul(&scaled, &self.outer)
    }

    fn row_energy(&self, mean: &[f32], deviations: &[f32]) -> f64 {
        let of_mean = match self.blend.partner {
            Base::Energy if self.blend.base != 0.0 => self.blend.base * Base::Energy.of(mean),
            _ => 0.0,
        };
        if !self.blend.sampled() {
            return of_mean - self.blend.offset;
        }
        let seen = sampled::Seen::new(mean, &self.offsets(deviations));
        of_mean + self.blend.of_samples(&seen) - self.blend.offset
    }

    /// Derivatives with respect to the mean logits and the standard deviations.
    fn row_gradient(&self, mean: &[f32], deviations: &[f32]) -> (Vec<f64>, Vec<f64>) {
        let classes = mean.len();
        let mut by_mean = vec![0.0; classes];
        let mut by_deviation = vec![0.0; classes];
        if self.blend.partner == Base::Energy && self.blend.base != 0.0 {
            for (d, g) in by_mean.iter_mut().zip(Base::Energy.gradient(mean)) {
                *d += self.blend.base * g;
            }
        }
        if !self.blend.sampled() {
            return (by_mean, by_deviation);
        }
        let seen = sampled::Seen::new(mean, &self.offsets(deviations));
        let (sum, difference) = self.blend.gradient(&seen);
        by_mean.iter_mut().zip(&sum).for_each(|(d, s)| *d += s);
        let turned = matmul_t(&difference, &self.outer);
        for (turned, normal) in turned.iter().zip(self.normals.iter()) {
            for ((d, &t), &e) in by_deviation.iter_mut().zip(turned).zip(normal) {
                *d += f64::from(t) * f64::from(e);
            }
        }
        (by_mean, by_deviation)
    }
}

impl Blend {
    fn sampled(&self) -> bool {
        self.mi != 0.0 || self.entropy() != 0.0
    }

    /// Weight of the entropy of the mean probabilities.
    fn entropy(&self) -> f64 {
        if self.partner == Base::Entropy { self.base } else { 0.0 }
    }

    fn of_samples(&self, seen: &sampled::Seen) -> f64 {
        self.entropy() * seen.entropy() + self.mi * seen.mutual_information()
    }

    fn gradient(&self, seen: &sampled::Seen) -> (Vec<f64>, Matrix) {
        seen.gradient(self.entropy(), self.mi)
    }
}

impl Score for Laplace {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let Some(features) = tap(outputs, 0, self.inner.cols()) else {
            return undefined(outputs);
        };
        if !self.blend.sampled() {
            let means = logits(features, &self.head.weight, &self.head.bias);
            return means.iter().map(|m| self.row_energy(m, &[]) as f32).collect();
        }
        let (means, _, deviations) = self.gaussians(features);
        (0..features.rows())
            .into_par_iter()
            .map(|i| self.row_energy(means.row(i), deviations.row(i)) as f32)
            .collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let Some(features) = tap(outputs, 0, self.inner.cols()) else {
            return nothing(outputs);
        };
        let (means, mut along, deviations) = self.gaussians(features);
        let rows: Vec<_> = (0..features.rows())
            .into_par_iter()
            .map(|i| self.row_gradient(means.row(i), deviations.row(i)))
            .collect();
        let mut by_mean = Matrix::zeros(means.rows(), means.cols());
        let mut by_variance = Matrix::zeros(means.rows(), means.cols());
        for (i, (mean, deviation)) in rows.iter().enumerate() {
            by_mean.row_mut(i).iter_mut().zip(mean).for_each(|(o, v)| *o = narrow(*v));
            let half = deviation.iter().zip(deviations.row(i)).map(|(d, &s)| d / f64::from(s));
            by_variance.row_mut(i).iter_mut().zip(half).for_each(|(o, v)| *o = narrow(v));
        }
        // d energy / d (u_j . f) = 2 (u_j . f) sum_i inverse_ij * (d energy / d s_i) / (2 s_i)
        let slopes = matmul(&by_variance, &self.inverse);
        along.data_mut().iter_mut().zip(slopes.data()).for_each(|(a, s)| *a *= s);
        let mut d = matmul(&by_mean, &self.head.weight);
        let spread = matmul(&along, &self.inner);
        d.data_mut().iter_mut().zip(spread.data()).for_each(|(d, s)| *d += s);
        on_features(outputs, d)
    }

    fn state(&self) -> State {
        State::new()
            .matrix("weight", &self.head.weight)
            .f32("bias", &self.head.bias)
            .matrix("inner", &self.inner)
            .f64("inner_values", &self.inner_values)
            .matrix("outer", &self.outer)
            .f64("outer_values", &self.outer_values)
            .matrix("normals", &self.normals)
    }
}

#[cfg(test)]
mod tests;
