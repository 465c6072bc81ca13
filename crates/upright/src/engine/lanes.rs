//! Several runs of an engine at the same time.
//!
//! One thread a run beats many threads for one run by a third and more on
//! small networks: nobody waits for others between layers.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
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

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::engine::{Input, Value};
    use crate::error::Error;

    #[derive(Debug)]
    struct Lanes(usize);

    impl Engine for Lanes {
        fn name(&self) -> &'static str {
            "lanes"
        }

        fn lanes(&self) -> usize {
            self.0
        }

        fn run_on(&self, _: Lane, _: &[Input<'_>], _: &[usize]) -> Result<Vec<Value>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn pieces_are_done_at_the_same_time_and_come_back_in_order() {
        // Neither of two pieces ends before both have begun.
        let together = Barrier::new(2);
        let done = share(&Lanes(2), 4, |lane, piece| {
            together.wait();
            Ok((lane, piece))
        })
        .unwrap();
        assert_eq!(done.iter().map(|d| d.1).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(done.iter().all(|d| matches!(d.0, Lane::One(0 | 1))), "{done:?}");
    }

    #[test]
    fn too_few_pieces_to_go_round_get_every_thread() {
        let lanes =
            |engine: usize, count: usize| share(&Lanes(engine), count, |lane, _| Ok(lane)).unwrap();
        assert_eq!(lanes(1, 2), [Lane::Whole; 2]);
        assert_eq!(lanes(8, 4), [Lane::Whole; 4]);
        assert!(lanes(8, 5).iter().all(|l| *l != Lane::Whole));
        assert!(lanes(8, 0).is_empty());
    }

    #[test]
    fn a_failure_ends_it() {
        let begun = AtomicUsize::new(0);
        let failed = share(&Lanes(2), 1000, |_, piece| {
            begun.fetch_add(1, Ordering::Relaxed);
            if piece == 3 { Err(Error::shape("piece", 0, piece)) } else { Ok(piece) }
        });
        assert!(failed.is_err());
        assert!(begun.into_inner() < 1000);
    }
}
