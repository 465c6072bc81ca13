//! The line of inputs that wait for their first look. Requests take turns, so
//! that one of many inputs does not hold up those of few.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Things that wait, those that came together in one group.
#[derive(Debug)]
pub struct Line<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    groups: VecDeque<VecDeque<T>>,
    closed: bool,
}

impl<T> Line<T> {
    /// An empty line.
    pub fn new() -> Self {
        let inner = Inner { groups: VecDeque::new(), closed: false };
        Line { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    /// Adds a group.
    pub fn add(&self, group: impl IntoIterator<Item = T>) {
        let group: VecDeque<T> = group.into_iter().collect();
        if !group.is_empty() {
            self.inner().groups.push_back(group);
            self.changed.notify_one();
        }
    }

    /// Lets [`Line::next`] end once nothing is left.
    pub fn close(&self) {
        self.inner().closed = true;
        self.changed.notify_all();
    }

    /// Up to `most` things, one of each group in turn; waits for the first. `None` once the
    /// line is closed and empty.
    pub fn next(&self, most: usize) -> Option<Vec<T>> {
        let mut inner = self.inner();
        while inner.groups.is_empty() {
            if inner.closed {
                return None;
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(mut group) = inner.groups.pop_front()
        {
            taken.extend(group.pop_front());
            if !group.is_empty() {
                inner.groups.push_back(group);
            }
        }
        Some(taken)
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_turns() {
        let line = Line::new();
        line.add([1, 2, 3, 4]);
        line.add([10]);
        line.add([]);
        line.add([20, 21]);
        assert_eq!(line.next(4), Some(vec![1, 10, 20, 2]));
        line.add([30]);
        line.close();
        assert_eq!(line.next(9), Some(vec![21, 3, 30, 4]));
        assert_eq!(line.next(9), None);
    }
}
