//! Several runs of an engine at the same time.
//!
//! One thread a run beats many threads for one run by a third and more on
//! small networks: nobody waits for others between layers.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use crate::engine::Engine;
use crate::error::Result;

/// What a run may use of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Every thread of the engine: nothing else is to be done.
    Whole,
    /// One thread, that of this number; others run beside it.
    One(usize),
}

/// How many threads were asked for; by default one a core.
pub(super) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get)).max(1)
}

/// Does `count` pieces of work that each run `engine` on the lane they are told, several at
/// a time, and gives what came of them in order; the first failure ends it. Where there are
/// too few pieces to go round, they are done one by one on all threads.
pub fn share<T: Send>(
    engine: &dyn Engine,
    count: usize,
    work: impl Fn(Lane, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let lanes = engine.lanes().min(count);
    if lanes < 2 || 2 * count <= engine.lanes() {
        return (0..count).map(|piece| work(Lane::Whole, piece)).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<T>>>> = Mutex::new((0..count).map(|_| None).collect());
    let toil = |lane: usize| {
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= count {
                break;
            }
            let result = work(Lane::One(lane), piece);
            if result.is_err() {
                next.store(count, Ordering::Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner)[piece] = Some(result);
        }
    };
    thread::scope(|scope| {
        for lane in 1..lanes {
            let toil = &toil;
            scope.spawn(move || toil(lane));
        }
        toil(0);
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}
