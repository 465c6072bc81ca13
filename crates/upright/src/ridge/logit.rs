//! Logistic regression and the conditional logit, by Newton's method.

use faer::linalg::solvers::Solve;
use faer::{MatRef, Side};

/// Rounds of Newton's method.
const NEWTON: usize = 30;

/// The logistic regression of a label on a few numbers and a constant, which comes last:
/// maximum likelihood with the penalty `lambda` on squares of the weights, the constant apart.
/// Numbers should be of the order of one.
pub(crate) fn logistic(rows: &[Vec<f64>], labels: &[bool], lambda: f64) -> Vec<f64> {
    let width = rows.first().map_or(0, Vec::len) + 1;
    newton(width, width - 1, lambda, &|w| {
        let mut step = Step::new(width);
        for (row, &label) in rows.iter().zip(labels) {
            let x = || row.iter().copied().chain([1.0]);
            let z: f64 = x().zip(w).map(|(x, w)| x * w).sum();
            let p = 1.0 / (1.0 + libm::exp(-z));
            let x: Vec<f64> = x().collect();
            step.add(&x, p - f64::from(u8::from(label)), p * (1.0 - p));
        }
        step
    })
}

/// The conditional logit: of several candidates, each with a few numbers, some are right, and
/// the weights make the log of the summed probability of those largest. Groups without a right
/// or without a wrong candidate tell nothing.
pub(crate) fn conditional(groups: &[Vec<(Vec<f64>, bool)>], lambda: f64) -> Vec<f64> {
    let width = groups.iter().flatten().next().map_or(0, |(row, _)| row.len());
    newton(width, width, lambda, &|w| {
        let mut step = Step::new(width);
        for group in groups {
            let right = group.iter().filter(|(_, right)| *right).count();
            if right == 0 || right == group.len() {
                continue;
            }
            let z: Vec<f64> =
                group.iter().map(|(row, _)| row.iter().zip(w).map(|(x, w)| x * w).sum()).collect();
            let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let e: Vec<f64> = z.iter().map(|z| libm::exp(z - top)).collect();
            let all: f64 = e.iter().sum();
            let good: f64 =
                e.iter().zip(group).filter(|(_, (_, right))| *right).map(|(e, _)| e).sum();
            let mut centre = vec![0.0; width];
            for (e, (row, _)) in e.iter().zip(group) {
                for (c, x) in centre.iter_mut().zip(row) {
                    *c += e / all * x;
                }
            }
            for (e, (row, right)) in e.iter().zip(group) {
                let p = e / all;
                let q = if *right { e / good.max(1e-300) } else { 0.0 };
                let away: Vec<f64> = row.iter().zip(&centre).map(|(x, c)| x - c).collect();
                step.gradient(row, p - q);
                step.curve(&away, p);
            }
        }
        step
    })
}

/// Gradient and curvature of a convex loss.
struct Step {
    gradient: Vec<f64>,
    curvature: Vec<f64>,
}

impl Step {
    fn new(width: usize) -> Self {
        Step { gradient: vec![0.0; width], curvature: vec![0.0; width * width] }
    }

    fn add(&mut self, x: &[f64], slope: f64, weight: f64) {
        self.gradient(x, slope);
        self.curve(x, weight);
    }

    fn gradient(&mut self, x: &[f64], slope: f64) {
        for (g, x) in self.gradient.iter_mut().zip(x) {
            *g += slope * x;
        }
    }

    fn curve(&mut self, x: &[f64], weight: f64) {
        let n = x.len();
        for i in 0..n {
            for j in 0..n {
                self.curvature[i * n + j] += weight * x[i] * x[j];
            }
        }
    }
}

/// Newton's method for a convex loss with a penalty on the first `penalised` weights.
fn newton(width: usize, penalised: usize, lambda: f64, at: &dyn Fn(&[f64]) -> Step) -> Vec<f64> {
    let mut w = vec![0.0; width];
    for _ in 0..NEWTON {
        let Step { mut gradient, mut curvature } = at(&w);
        for i in 0..width {
            let own = if i < penalised { lambda } else { 0.0 };
            gradient[i] += own * w[i];
            curvature[i * width + i] += own.max(1e-9);
        }
        let Ok(factor) = MatRef::from_row_major_slice(&curvature, width, width).llt(Side::Lower)
        else {
            break;
        };
        let mut step = faer::Mat::<f64>::from_fn(width, 1, |i, _| gradient[i]);
        factor.solve_in_place(&mut step);
        // A full step may leave the region where the curvature tells anything.
        let length = (0..width).map(|i| step[(i, 0)].abs()).fold(0.0, f64::max);
        if (0..width).any(|i| !step[(i, 0)].is_finite()) {
            break;
        }
        let share = if length > 2.0 { 2.0 / length } else { 1.0 };
        for (i, w) in w.iter_mut().enumerate() {
            *w -= share * step[(i, 0)];
        }
        if length < 1e-9 {
            break;
        }
    }
    w
}
