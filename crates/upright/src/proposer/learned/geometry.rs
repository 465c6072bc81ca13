//! Numbers of a cloud itself: how its points lie in its frame, which says much
//! about its class and direction without any network.

use crate::tensor::Signal;

/// Bins per side of the histogram.
const BINS: usize = 7;
/// Moments up to this order.
const ORDER: u32 = 6;

/// Whether such signals have numbers of their own.
pub(super) fn wanted(signal: Signal) -> bool {
    matches!(signal, Signal::Cloud { .. })
}

/// Moments of order 2 to 6 about the mean, and the share of points in each of 7 x 7 x 7 cells
/// of the cube around the mean; nothing for other signals.
pub(super) fn of(signal: Signal, item: &[f32]) -> Vec<f32> {
    if !wanted(signal) {
        return Vec::new();
    }
    let points = item.chunks_exact(3);
    let n = points.len().max(1) as f64;
    let mut mean = [0.0; 3];
    for p in points.clone() {
        for (m, &v) in mean.iter_mut().zip(p) {
            *m += f64::from(v) / n;
        }
    }
    let centred: Vec<[f64; 3]> =
        points.map(|p| std::array::from_fn(|k| f64::from(p[k]) - mean[k])).collect();
    let size = centred.iter().flatten().fold(0.0f64, |a, v| a.max(v.abs())).max(1e-9);
    let mut numbers = Vec::new();
    for order in 2..=ORDER {
        for i in 0..=order {
            for j in 0..=order - i {
                let k = order - i - j;
                let term = |p: &[f64; 3]| {
                    let [x, y, z] = p.map(|v| v / size);
                    x.powi(i as i32) * y.powi(j as i32) * z.powi(k as i32)
                };
                numbers.push((centred.iter().map(term).sum::<f64>() / n) as f32);
            }
        }
    }
    let mut cells = vec![0.0f32; BINS * BINS * BINS];
    for p in &centred {
        let bin = |v: f64| ((f64::midpoint(v / size, 1.0) * BINS as f64) as usize).min(BINS - 1);
        let [x, y, z] = p.map(bin);
        cells[(x * BINS + y) * BINS + z] += 1.0 / n as f32;
    }
    numbers.extend(cells);
    numbers
}
