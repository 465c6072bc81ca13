use std::sync::Barrier;

use rayon::prelude::*;

use super::*;
use crate::engine::{Input, Value};
use crate::error::Error;

/// An engine of so many lanes that gives nothing.
#[derive(Debug)]
struct Idle(usize);

impl Engine for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn lanes(&self) -> usize {
        self.0
    }

    fn run_on(&self, _: Lane, _: &[Input<'_>], _: &[usize]) -> Result<Vec<Value>> {
        Ok(Vec::new())
    }
}

/// Counts what goes on at the same time, and on which lanes.
#[derive(Default)]
struct Count {
    now: AtomicUsize,
    most: AtomicUsize,
    busy: Mutex<Vec<usize>>,
}

impl Count {
    fn during<T>(&self, lane: Lane, work: impl FnOnce() -> T) -> T {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        if let Lane::One(lane) = lane {
            let mut busy = self.busy.lock().unwrap();
            assert!(!busy.contains(&lane), "lane {lane} runs twice");
            busy.push(lane);
        }
        let done = work();
        self.now.fetch_sub(1, Ordering::SeqCst);
        self.busy.lock().unwrap().retain(|other| Lane::One(*other) != lane);
        done
    }
}

fn nap() {
    thread::sleep(Duration::from_millis(1));
}

#[test]
fn pieces_are_done_at_the_same_time_and_come_back_in_order() {
    // Neither of two pieces ends before both have begun.
    let together = Barrier::new(2);
    let work = |lane, piece| {
        together.wait();
        Ok((lane, piece))
    };
    let done = Lanes::new(2).each(&Idle(2), true, 4, work).unwrap();
    assert_eq!(done.iter().map(|d| d.1).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(done.iter().all(|d| matches!(d.0, Lane::One(0 | 1))), "{done:?}");
}

#[test]
fn too_few_pieces_to_go_round_get_every_thread() {
    let lanes = |engine: usize, whole: bool, count: usize| {
        Lanes::new(engine).each(&Idle(engine), whole, count, |lane, _| Ok(lane)).unwrap()
    };
    assert_eq!(lanes(1, true, 2), [Lane::Whole; 2]);
    assert_eq!(lanes(8, true, 4), [Lane::Whole; 4]);
    assert!(lanes(8, true, 5).iter().all(|l| *l != Lane::Whole));
    assert!(lanes(8, false, 4).iter().all(|l| *l != Lane::Whole));
    assert!(lanes(8, true, 0).is_empty());
}

#[test]
fn a_failure_ends_it() {
    let begun = AtomicUsize::new(0);
    let failed = Lanes::new(2).each(&Idle(2), true, 1000, |_, piece| {
        begun.fetch_add(1, Ordering::Relaxed);
        if piece == 3 { Err(Error::shape("piece", 0, piece)) } else { Ok(piece) }
    });
    assert!(failed.is_err());
    assert!(begun.into_inner() < 1000);
}

/// All go on at the same time, more callers than lanes or not.
#[test]
fn callers_share_the_lanes() {
    for callers in [2, 5] {
        let (lanes, count) = (Lanes::new(2), Count::default());
        let left: Vec<_> = (0..callers).map(|_| AtomicUsize::new(40)).collect();
        let (met, start) = (AtomicUsize::new(0), Barrier::new(callers));
        thread::scope(|scope| {
            for (i, mine) in left.iter().enumerate() {
                let (lanes, count, left, met, start) = (&lanes, &count, &left, &met, &start);
                scope.spawn(move || {
                    start.wait();
                    let done = lanes.each(&Idle(2), true, 40, |lane, piece| {
                        count.during(lane, nap);
                        mine.fetch_sub(1, Ordering::SeqCst);
                        let others = left.iter().map(|n| n.load(Ordering::SeqCst));
                        let under_way = others.filter(|n| (1..40).contains(n)).count();
                        met.fetch_max(under_way, Ordering::SeqCst);
                        Ok((i, piece))
                    });
                    let want: Vec<_> = (0..40).map(|piece| (i, piece)).collect();
                    assert_eq!(done.unwrap(), want);
                });
            }
        });
        assert_eq!(count.most.into_inner(), 2, "{callers} callers");
        assert_eq!(met.into_inner(), callers, "some waited until others were done");
        let free = lanes.line().free.len();
        assert_eq!(free, 2);
    }
}

/// What one caller leaves, another takes up before its next piece of work.
#[test]
fn a_caller_that_is_left_alone_takes_every_lane() {
    let (lanes, count) = (Lanes::new(2), Count::default());
    let other = Mutex::new(Some(lanes.take(All::Never)));
    let work = |lane, piece| {
        count.during(lane, nap);
        if piece == 2 {
            assert_eq!(count.most.load(Ordering::SeqCst), 1);
            drop(other.lock().unwrap().take());
        }
        Ok(lane)
    };
    let ran = lanes.each(&Idle(2), true, 40, work).unwrap();
    assert_eq!(count.most.load(Ordering::SeqCst), 2);
    assert!(ran.contains(&Lane::One(0)) && ran.contains(&Lane::One(1)));
}

/// A run on all threads waits for the others, and they for it.
#[test]
fn runs_on_all_threads_have_no_company() {
    let (lanes, count) = (Lanes::new(3), Count::default());
    thread::scope(|scope| {
        for engine in [1, 3, 1, 3] {
            let (lanes, count) = (&lanes, &count);
            scope.spawn(move || {
                let work = |lane, _| {
                    let alone = lane == Lane::Whole;
                    count.during(lane, || {
                        nap();
                        assert!(!alone || count.now.load(Ordering::SeqCst) == 1);
                    });
                    Ok(lane)
                };
                let ran = lanes.each(&Idle(engine), false, 20, work).unwrap();
                assert!(ran.iter().all(|lane| (*lane == Lane::Whole) == (engine == 1)));
            });
        }
    });
    assert!(count.most.into_inner() <= 3);
}

/// Work that needs rayon's workers, asked for by all of them at once.
#[test]
fn workers_of_rayon_do_not_wait_for_themselves() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let (lanes, count) = (Lanes::new(2), Count::default());
    let sums: Vec<usize> = pool.install(|| {
        let ask = |i: usize| -> usize {
            let work = |lane, piece: usize| {
                let sum = || (0..100).into_par_iter().map(|n| n + piece + i).sum::<usize>();
                Ok(count.during(lane, || pool.install(sum)))
            };
            lanes.each(&Idle(2), true, 4, work).unwrap().into_iter().sum()
        };
        (0..64).into_par_iter().map(ask).collect()
    });
    let want: Vec<usize> = (0..64).map(|i| 4 * 4950 + 600 + 400 * i).collect();
    assert_eq!(sums, want);
    assert!(count.most.into_inner() <= 2);
}

#[test]
fn engines_share_the_lanes_of_the_process_unless_told() {
    assert!(Arc::ptr_eq(&Lanes::of(None), &Lanes::of(None)));
    assert!(!Arc::ptr_eq(&Lanes::of(Some(2)), &Lanes::of(Some(2))));
    assert_eq!(Lanes::of(Some(0)).count, 1);
}
