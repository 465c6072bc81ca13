//! Softmax and what derives from it, in double precision and without overflow.

use crate::config::Param;
pub(super) use crate::stats::log_softmax;

/// What softens the probabilities.
pub(super) const TEMPERATURE: Param =
    Param::real("temperature", 1.0, 1e-3, 1e3, "divides the logits").tuned_log(0.1, 10.0);

/// `T log sum exp(z / T)`.
pub(super) fn log_sum_exp(z: &[f32], temperature: f64) -> f64 {
    let top = f64::from(z.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = z.iter().map(|&v| libm::exp((f64::from(v) - top) / temperature)).sum();
    top + temperature * libm::log(sum)
}

/// Softmax of `z / T`.
pub(super) fn softmax(z: &[f32], temperature: f64) -> Vec<f64> {
    log_softmax(z, temperature).iter().map(|&l| libm::exp(l)).collect()
}

/// Entropy of softmax(`z / T`) in nats; vanished probabilities count nothing.
pub(super) fn entropy(z: &[f32], temperature: f64) -> f64 {
    -log_softmax(z, temperature).iter().map(|&l| plogp(l)).sum::<f64>()
}

/// `d entropy / d z_k = -p_k (log p_k + H) / T`.
pub(super) fn entropy_gradient(z: &[f32], temperature: f64) -> Vec<f64> {
    let logs = log_softmax(z, temperature);
    let h = -logs.iter().map(|&l| plogp(l)).sum::<f64>();
    logs.iter().map(|&l| -(plogp(l) + libm::exp(l) * h) / temperature).collect()
}

/// `p log p`, given `log p`.
pub(super) fn plogp(log: f64) -> f64 {
    let p = libm::exp(log);
    if p == 0.0 { 0.0 } else { p * log }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_logits_neither_overflow_nor_vanish() {
        assert!((log_sum_exp(&[1e4, 1e4], 1.0) - (1e4 + 2f64.ln())).abs() < 1e-9);
        assert!((log_sum_exp(&[-1e4, -1e4], 1.0) + 1e4 - 2f64.ln()).abs() < 1e-9);
        assert!((entropy(&[1e30, 1e30], 1.0) - 2f64.ln()).abs() < 1e-12);
        assert!(entropy(&[1e4, -1e4, 0.0], 1.0).abs() < 1e-300);
        assert!(entropy_gradient(&[1e4, -1e4, 0.0], 1.0).iter().all(|g| g.is_finite()));
    }
}
