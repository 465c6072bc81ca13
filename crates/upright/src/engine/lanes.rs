//! Several runs of an engine at the same time.
//!
//! One thread per run beats many threads for one run by a third and more on
//! small networks: nobody waits for others between layers.
//!
//! However many callers there are, no more runs go on than there are lanes. A
//! caller takes every lane that is free and, when others wait, gives each back
//! after the piece of work it is busy with; it waits only while all are taken.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Scope, available_parallelism};
use std::time::Duration;

use crate::engine::Engine;
use crate::error::Result;

/// How long a worker of rayon that has nothing else to do rests before it checks again.
const REST: Duration = Duration::from_micros(20);

/// What a run may use of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Every thread of the engine: nothing else is to be done.
    Whole,
    /// One thread, that of this number; others run beside it.
    One(usize),
}

/// How many threads were asked for; by default one per core.
pub(super) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get)).max(1)
}

/// Lanes, and who has them. Engines with the same lanes never run more at a time than there
/// are.
#[derive(Debug)]
pub(crate) struct Lanes {
    count: usize,
    line: Mutex<Line>,
    changed: Condvar,
}

/// The free lanes, and those who wait for one: each draws a ticket.
#[derive(Debug)]
struct Line {
    free: Vec<usize>,
    /// The ticket of who comes next, and the one drawn next.
    first: u64,
    end: u64,
}

/// When all lanes together are better than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum All {
    Never,
    IfFree,
    Always,
}

/// Lanes that are in use until this is dropped.
#[derive(Debug)]
struct Held<'a> {
    lanes: &'a Lanes,
    lane: Lane,
}

impl Lanes {
    pub(crate) fn new(count: usize) -> Self {
        let free = (0..count.max(1)).rev().collect();
        let line = Mutex::new(Line { free, first: 0, end: 0 });
        Lanes { count: count.max(1), line, changed: Condvar::new() }
    }

    /// Lanes of one's own, of this number; by default those of the process, one per core.
    pub(crate) fn of(threads: Option<usize>) -> Arc<Self> {
        static PROCESS: OnceLock<Arc<Lanes>> = OnceLock::new();
        match threads {
            Some(count) => Arc::new(Lanes::new(count)),
            None => PROCESS.get_or_init(|| Arc::new(Lanes::new(self::threads(None)))).clone(),
        }
    }

    /// Does `count` pieces of work that each run `engine` on the lane they are told, several
    /// at a time, and gives what came of them in order; the first failure ends it. Where
    /// `whole` allows it and there are too few pieces for all lanes, they are done one by one
    /// on all threads.
    pub(crate) fn each<T: Send>(
        &self,
        engine: &dyn Engine,
        whole: bool,
        count: usize,
        work: impl Fn(Lane, usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let all = if engine.lanes() < 2 {
            All::Always
        } else if whole && 2 * count <= self.count {
            All::IfFree
        } else {
            All::Never
        };
        let done = Mutex::new((0..count).map(|_| None).collect());
        let job = Job { lanes: self, all, count, next: AtomicUsize::new(0), done, work };
        apart(|| thread::scope(|scope| job.lead(scope)));
        let done = job.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.into_iter().flatten().collect()
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane, or all of them, when it is this caller's turn.
    fn take(&self, all: All) -> Held<'_> {
        let mut line = self.line();
        let ticket = line.end;
        line.end += 1;
        let enough = if all == All::Always { self.count } else { 1 };
        while line.first != ticket || line.free.len() < enough {
            line = self.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        line.first += 1;
        let whole = all != All::Never && line.free.len() == self.count;
        let lane = if whole { None } else { line.free.pop() }.map_or(Lane::Whole, Lane::One);
        if lane == Lane::Whole {
            line.free.clear();
        }
        if !line.free.is_empty() {
            self.changed.notify_all();
        }
        Held { lanes: self, lane }
    }

    /// A lane that is free and that nobody waits for.
    fn take_free(&self) -> Option<Held<'_>> {
        let mut line = self.line();
        if line.first != line.end {
            return None;
        }
        line.free.pop().map(|lane| Held { lanes: self, lane: Lane::One(lane) })
    }

    fn wanted(&self) -> bool {
        let line = self.line();
        line.first != line.end
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut line = self.lanes.line();
        match self.lane {
            Lane::One(lane) => line.free.push(lane),
            Lane::Whole => line.free.extend((0..self.lanes.count).rev()),
        }
        if line.first != line.end {
            self.lanes.changed.notify_all();
        }
    }
}

/// Pieces of work of one caller.
struct Job<'a, T, F> {
    lanes: &'a Lanes,
    all: All,
    count: usize,
    next: AtomicUsize,
    done: Mutex<Vec<Option<Result<T>>>>,
    work: F,
}

impl<T: Send, F: Fn(Lane, usize) -> Result<T> + Sync> Job<'_, T, F> {
    /// Works until nothing is left, and lets others help on every lane that is free.
    fn lead<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        while self.is_left() {
            let held = self.lanes.take(self.all);
            while self.is_left() {
                if self.all == All::Always || held.lane == Lane::Whole {
                    self.one(held.lane);
                } else {
                    self.with_help(scope, held.lane);
                }
                if self.lanes.wanted() {
                    break;
                }
            }
        }
    }

    /// A piece of work, while others help on the lanes that are free.
    fn with_help<'s>(&'s self, scope: &'s Scope<'s, '_>, lane: Lane) {
        let Some(piece) = self.claim() else { return };
        while self.is_left() {
            let Some(held) = self.lanes.take_free() else { break };
            scope.spawn(move || self.help(&held));
        }
        self.run(lane, piece);
    }

    /// Works until nothing is left or others want the lane.
    fn help(&self, held: &Held<'_>) {
        while self.one(held.lane) && !self.lanes.wanted() {}
    }

    fn is_left(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.count
    }

    fn claim(&self) -> Option<usize> {
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|piece| *piece < self.count)
    }

    /// Does one piece, if any is left.
    fn one(&self, lane: Lane) -> bool {
        let piece = self.claim();
        piece.is_some_and(|piece| {
            self.run(lane, piece);
            true
        })
    }

    fn run(&self, lane: Lane, piece: usize) {
        let result = (self.work)(lane, piece);
        if result.is_err() {
            self.next.store(self.count, Ordering::Relaxed);
        }
        self.done.lock().unwrap_or_else(PoisonError::into_inner)[piece] = Some(result);
    }
}

/// Does what may wait for others on a thread that rayon does not know: a worker of rayon that
/// waits takes up other work, which may then wait for the worker itself. Where there are no
/// threads, as in a browser, nothing waits.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if cfg!(target_family = "wasm") || rayon::current_thread_index().is_none() {
        return work();
    }
    thread::scope(|scope| {
        let other = scope.spawn(work);
        while !other.is_finished() {
            if rayon::yield_now() != Some(rayon::Yield::Executed) {
                thread::sleep(REST);
            }
        }
        other.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests;
