//! Where the time of one decision goes. Inputs are answered one by one; model
//! and score are timed again on the views that the decision looked at, in one
//! batch, and what remains of the whole is the search's.

use std::time::{Duration, Instant};

use serde::Serialize;
use upright::{Canonicalizer, Prediction, View, warp};

use super::Inputs;
use super::budget::sample;
use crate::progress::Progress;
use crate::report::Result;

/// Most inputs of each kind that are timed.
const SAMPLE: usize = 60;

/// Time after which no further input of a kind is timed.
const PATIENCE: Duration = Duration::from_secs(8);

/// Fewer decisions have no 99th percentile.
const MANY: usize = 100;

/// The parts of a decision, in order.
pub const PARTS: [&str; 5] = ["decode", "warp", "model", "score", "search"];

/// The times of one decision, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Those of [`PARTS`].
    pub parts: [f64; 5],
    /// All of it.
    pub total: f64,
    /// Whether the input was searched.
    pub searched: bool,
}

/// The times of some decisions.
#[derive(Debug, Clone, Default)]
pub struct Latency {
    /// One per timed input.
    pub splits: Vec<Split>,
}

/// Percentiles of one part, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// Which part; `total` for all of a decision.
    pub part: &'static str,
    /// Half of all decisions take no longer.
    pub p50: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
}

impl Latency {
    /// Times single inputs, evenly spread over the data: up to 60, or what 8 seconds allow.
    pub fn measure(c: &Canonicalizer, inputs: &Inputs, quiet: bool) -> Result<Self> {
        let (start, mut splits) = (Instant::now(), Vec::new());
        let rows = sample(inputs.data, SAMPLE);
        let bar = Progress::start("timing", rows.len(), quiet);
        for row in rows {
            if splits.len() >= 3 && start.elapsed() > PATIENCE {
                break;
            }
            splits.extend(decision(c, inputs, row)?);
            bar.advance(1);
        }
        Ok(Latency { splits })
    }

    /// These and other times together.
    #[must_use]
    pub fn with(&self, other: &Latency) -> Latency {
        Latency { splits: self.splits.iter().chain(&other.splits).copied().collect() }
    }

    /// Percentiles of every part and of the whole; none of fewer than 100 decisions.
    pub fn percentiles(&self) -> Vec<Percentiles> {
        if self.splits.len() < MANY {
            return Vec::new();
        }
        let of = |part: &'static str, read: &dyn Fn(&Split) -> f64| {
            let mut times: Vec<f64> = self.splits.iter().map(read).collect();
            times.sort_by(f64::total_cmp);
            let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| percentile(&times, share));
            Percentiles { part, p50, p95, p99 }
        };
        let parts = PARTS.iter().enumerate();
        let mut all: Vec<_> = parts.map(|(i, &part)| of(part, &move |s| s.parts[i])).collect();
        all.push(of("total", &|s| s.total));
        all
    }

    /// Mean times of the parts over the searched or the other inputs, and how many there are.
    pub fn means(&self, searched: bool) -> ([f64; 5], usize) {
        let splits: Vec<_> = self.splits.iter().filter(|s| s.searched == searched).collect();
        let mean =
            |i: usize| splits.iter().map(|s| s.parts[i]).sum::<f64>() / splits.len().max(1) as f64;
        (std::array::from_fn(mean), splits.len())
    }
}

/// The smallest of sorted numbers that at least a share of them does not exceed; NaN of none.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

fn decision(c: &Canonicalizer, inputs: &Inputs, row: usize) -> Result<Option<Split>> {
    let (loaded, decode) = timed(|| inputs.data.read(&[row]));
    let batch = inputs.posed().pose(c, loaded?.batch)?;
    if batch.is_empty() {
        return Ok(None);
    }
    let (predictions, whole) = timed(|| c.predict(&batch));
    let predictions = predictions?;
    let searched = predictions.iter().any(Prediction::searched);
    let mut views = Vec::new();
    if searched {
        for trace in c.trace(&batch)? {
            views.extend(trace.seen.iter().map(|s| View { item: 0, map: c.space().map(&s.pose) }));
        }
    }
    let (raw, mut model) = timed(|| c.model().run(&batch));
    let (_, mut score) = timed(|| raw.map(|o| c.score().energy(&o)));
    let mut bend = 0.0;
    if !views.is_empty() {
        let (warped, time) = timed(|| warp(&batch, &views, &c.config().resample));
        bend = time;
        let (outputs, time) = timed(|| warped.and_then(|w| c.model().run(&w)));
        model += time;
        let (energies, time) = timed(|| outputs.map(|o| c.score().energy(&o)));
        energies?;
        score += time;
    }
    let rest = (whole - bend - model - score).max(0.0);
    let parts = [decode, bend, model, score, rest];
    Ok(Some(Split { parts, total: decode + whole, searched }))
}

/// A result and how long it took, in milliseconds.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let done = work();
    (done, 1000.0 * start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1..=100 the 50th, 95th and 99th; of 150 the 75th, 143rd and 149th; of fewer none.
    #[test]
    fn percentiles_are_values_that_occurred() {
        let split =
            |total: f64, searched| Split { parts: [total, 0.0, 0.0, 0.0, 1.0], total, searched };
        let of = |n: u32| {
            let splits = (1..=n).rev().map(|i| split(f64::from(i), i > 2)).collect();
            Latency { splits }
        };
        let total = |n: u32| {
            let p = of(n).percentiles()[5];
            [p.p50, p.p95, p.p99].map(|v| v.to_string())
        };
        assert_eq!(total(100), ["50", "95", "99"]);
        assert_eq!(total(150), ["75", "143", "149"]);
        assert_eq!(of(99).percentiles(), []);
        let (means, count) = of(4).means(true);
        assert_eq!((means[0], means[4], count), (3.5, 1.0, 2));
    }
}
