//! Doing the same with many things at once.

use rayon::prelude::*;

/// So few are done one by one: calling other threads would take longer.
const FEW: usize = 8;

/// What `work` makes of each, in order.
pub(crate) fn map<T: Send, R: Send>(
    things: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync + Send,
) -> Vec<R> {
    let things: Vec<T> = things.into_iter().collect();
    if things.len() <= FEW {
        return things.into_iter().map(work).collect();
    }
    things.into_par_iter().map(work).collect()
}
