//! How much work waits, in forward passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The share of the newest measurement in the smoothed pace.
const NEWEST: f64 = 0.1;

/// Work that waits or is under way, and how fast it is done.
#[derive(Debug)]
pub struct Load {
    cost: AtomicUsize,
    limit: usize,
    /// Seconds per forward pass, smoothed; the bits of an `f64`.
    pace: AtomicU64,
}

/// More work than may wait; how long it would take, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// Forward passes that wait.
    pub waiting: usize,
    /// Seconds until they are done, at least one.
    pub seconds: u64,
}

impl Load {
    /// No work so far, of which at most `limit` forward passes may wait.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Load { cost: AtomicUsize::new(0), limit, pace: AtomicU64::new(0) })
    }

    /// Forward passes that wait or are under way.
    pub fn cost(&self) -> usize {
        self.cost.load(Ordering::Relaxed)
    }

    /// Most forward passes that may wait.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Takes in so many inputs, all or none of them.
    pub fn admit(self: &Arc<Self>, inputs: usize) -> Result<Vec<Toll>, Full> {
        let taken = self.cost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |cost| {
            cost.checked_add(inputs).filter(|&cost| cost <= self.limit)
        });
        match taken {
            Ok(_) => Ok((0..inputs).map(|_| Toll { load: self.clone(), cost: 1 }).collect()),
            Err(waiting) => Err(Full { waiting, seconds: self.seconds(waiting) }),
        }
    }

    /// Tells how long so many forward passes took.
    pub fn measured(&self, passes: usize, took: Duration) {
        let new = took.as_secs_f64() / passes.max(1) as f64;
        let old = f64::from_bits(self.pace.load(Ordering::Relaxed));
        let smoothed = if old > 0.0 { old + NEWEST * (new - old) } else { new };
        self.pace.store(smoothed.to_bits(), Ordering::Relaxed);
    }

    fn seconds(&self, cost: usize) -> u64 {
        let pace = f64::from_bits(self.pace.load(Ordering::Relaxed));
        (pace * cost as f64).ceil().clamp(1.0, 60.0) as u64
    }
}

/// What one input costs, until this is dropped.
#[derive(Debug)]
pub struct Toll {
    load: Arc<Load>,
    cost: usize,
}

impl Toll {
    /// Changes what the input costs from now on.
    pub fn change(&mut self, cost: usize) {
        self.load.cost.fetch_add(cost, Ordering::Relaxed);
        self.load.cost.fetch_sub(self.cost, Ordering::Relaxed);
        self.cost = cost;
    }
}

impl Drop for Toll {
    fn drop(&mut self) {
        self.load.cost.fetch_sub(self.cost, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_admitted_all_or_none_until_their_cost_reaches_the_limit() {
        let load = Load::new(10);
        let mut tolls = load.admit(4).unwrap();
        assert_eq!(load.admit(7).unwrap_err(), Full { waiting: 4, seconds: 1 });
        tolls[0].change(7);
        assert_eq!(load.cost(), 10);
        assert!(load.admit(1).is_err());
        tolls.remove(0);
        assert_eq!(load.cost(), 3);
        assert!(load.admit(7).is_ok());
        drop(tolls);
        assert_eq!(load.cost(), 0);
    }

    #[test]
    fn the_time_to_wait_follows_the_pace() {
        let load = Load::new(100);
        load.measured(10, Duration::from_secs(1));
        let _tolls = load.admit(100).unwrap();
        assert_eq!(load.admit(1).unwrap_err().seconds, 10);
        (0..200).for_each(|_| load.measured(1, Duration::from_secs(9)));
        assert_eq!(load.admit(1).unwrap_err().seconds, 60);
    }
}
