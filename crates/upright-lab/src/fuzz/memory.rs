//! An allocator that counts what a thread holds, or all threads together.

#![allow(unsafe_code, reason = "an allocator is unsafe by its nature; this one only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

/// Whether all threads are counted together. Tests run side by side, so they count by thread.
static ALL: AtomicBool = AtomicBool::new(false);
static ALL_HELD: AtomicIsize = AtomicIsize::new(0);
static ALL_MOST: AtomicIsize = AtomicIsize::new(0);
static ALL_LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static LIMIT: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// The system's allocator, counted. Above a limit it fails, which ends the process.
pub(crate) struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

/// From now on counts what all threads hold together.
pub(crate) fn count_all_threads() {
    ALL.store(true, Relaxed);
}

fn count_all(change: isize) -> bool {
    let held = ALL_HELD.fetch_add(change, Relaxed) + change;
    let fits = change < 0 || held <= ALL_LIMIT.load(Relaxed);
    if fits {
        ALL_MOST.fetch_max(held, Relaxed);
    } else {
        ALL_HELD.fetch_sub(change, Relaxed);
    }
    fits
}

fn count(change: isize) -> bool {
    if ALL.load(Relaxed) {
        return count_all(change);
    }
    let held = HELD.get() + change;
    let fits = held <= LIMIT.get();
    if fits || change < 0 {
        HELD.set(held);
        MOST.set(MOST.get().max(held));
    }
    fits || change < 0
}

// SAFETY: every call is passed on to the system's allocator unchanged, or fails.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size() as isize) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size() as isize) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Does some work, and says how many bytes more than before it held at most.
/// More than `limit` ends the process.
pub(crate) fn measured<T>(limit: usize, work: impl FnOnce() -> T) -> (T, usize) {
    if ALL.load(Relaxed) {
        let before = ALL_HELD.load(Relaxed);
        ALL_MOST.store(before, Relaxed);
        ALL_LIMIT.store(before.saturating_add_unsigned(limit), Relaxed);
        let done = work();
        ALL_LIMIT.store(isize::MAX, Relaxed);
        return (done, (ALL_MOST.load(Relaxed) - before).unsigned_abs());
    }
    let before = HELD.get();
    MOST.set(before);
    LIMIT.set(before.saturating_add_unsigned(limit));
    let done = work();
    LIMIT.set(isize::MAX);
    (done, (MOST.get() - before).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_was_held_is_counted() {
        let (_, most) = measured(1 << 30, || {
            drop(std::hint::black_box(vec![1u8; 1000]));
            drop(std::hint::black_box(vec![0u8; 5000]));
            std::hint::black_box(vec![1u8; 2000])
        });
        assert!((5000..5500).contains(&most), "{most}");
    }
}
