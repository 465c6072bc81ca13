//! The first look at every input: one forward pass, after which the gate
//! decides.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::time::Instant;

use upright::internal::canonicalizer::Looked;
use upright::{Batch, Canonicalizer};

use super::searches::{Newcomer, Whose, fault};
use super::ticket::Answer;
use super::{Shared, Waiting};

/// Micro-batches that are looked at together: few enough that the first input does not wait
/// long for the last.
const TOGETHER: usize = 2;

/// Looks at what comes until the line is closed, beside as many others as there are threads.
pub(super) fn run<'c>(c: &'c Canonicalizer, shared: &Shared, searches: &Sender<Newcomer<'c>>) {
    let most = TOGETHER * c.model().micro_batch();
    while let Some(mut waiting) = shared.line.next(most) {
        waiting.retain(|one| !one.ticket.is_given_up());
        if waiting.is_empty() {
            continue;
        }
        let start = Instant::now();
        for one in &waiting {
            shared.metrics.queue_seconds.record(start - one.ticket.since);
        }
        let look = || {
            let mut numbers = Vec::with_capacity(waiting.len() * c.model().signal().size());
            for one in &waiting {
                numbers.extend_from_slice(&one.item);
            }
            c.look_at(&Batch::new(c.model().signal(), numbers)?)
        };
        let looked = catch_unwind(AssertUnwindSafe(look));
        shared.load.measured(waiting.len() * shared.threads, start.elapsed());
        match looked {
            Ok(Ok(looked)) => {
                for (one, looked) in waiting.into_iter().zip(looked) {
                    decide(one, looked, shared, searches);
                }
            }
            _ => waiting.into_iter().for_each(|one| alone(c, one)),
        }
    }
}

/// Answers an input, or sends it to be searched.
fn decide<'c>(one: Waiting, looked: Looked<'c>, shared: &Shared, searches: &Sender<Newcomer<'c>>) {
    let Waiting { item, mut ticket } = one;
    let bare = looked.bare();
    shared.metrics.energy.record(f64::from(bare.energy_before));
    let opens = looked.opens();
    if shared.shadow {
        let whose = Whose::Shadow { request: ticket.request.clone(), since: Instant::now() };
        ticket.answer(Ok(Answer { prediction: bare.clone(), truncated: false }));
        if opens {
            // Nobody is there to receive it only when the server ends.
            let _ = searches.send(Newcomer { item, looked, whose });
        } else {
            shared.metrics.shadowed(&bare);
        }
    } else if !opens {
        ticket.answer(Ok(Answer { prediction: bare, truncated: false }));
    } else if ticket.is_late() {
        ticket.answer(Ok(Answer { prediction: looked.unsearched(), truncated: true }));
    } else {
        if ticket.is_nearly_late() {
            ticket.keep(looked.unsearched());
        }
        ticket.toll.change(shared.budget);
        let _ = searches.send(Newcomer { item, looked, whose: Whose::Client(ticket) });
    }
}

/// Answers an input on its own, after looking at several at a time has failed.
fn alone(c: &Canonicalizer, one: Waiting) {
    let answer = match c.alone(&one.item) {
        Some(Ok(prediction)) => Ok(Answer { prediction, truncated: false }),
        outcome => Err(fault(&one.ticket.request, outcome.and_then(Result::err))),
    };
    one.ticket.answer(answer);
}
