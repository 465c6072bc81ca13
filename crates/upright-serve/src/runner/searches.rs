//! The searches of all unfamiliar inputs, which advance in step.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use upright::Canonicalizer;
use upright::internal::canonicalizer::{Looked, Outcome, Session};
use upright_job::word;

use super::Shared;
use super::ticket::{Answer, Fault, Ticket};

/// Micro-batches per thread that a step is made of: between steps newcomers join, and whoever
/// left is forgotten.
const STEP: usize = 4;

/// An input whose search is to begin.
pub(super) struct Newcomer<'c> {
    pub(super) item: Vec<f32>,
    pub(super) looked: Looked<'c>,
    pub(super) whose: Whose,
}

/// Whose search it is.
pub(super) enum Whose {
    /// A client waits for it.
    Client(Ticket),
    /// The bare model has answered already; it is only recorded.
    Shadow {
        /// The id of the input's request.
        request: Arc<str>,
        since: Instant,
    },
}

impl Whose {
    fn is_given_up(&self) -> bool {
        matches!(self, Whose::Client(ticket) if ticket.is_given_up())
    }
}

/// Searches until nobody sends anything more.
pub(super) fn run<'c>(c: &'c Canonicalizer, shared: &Shared, newcomers: &Receiver<Newcomer<'c>>) {
    // Threads of their own: those that all share are left to the first looks.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(shared.threads).build();
    let views = STEP * shared.threads * c.model().micro_batch();
    let mut session: Session<Whose> = Session::new(c);
    loop {
        if session.is_empty() {
            shared.metrics.searching.set(0.0);
            let Ok(newcomer) = newcomers.recv() else { return };
            add(&mut session, newcomer, shared);
        }
        while let Ok(newcomer) = newcomers.try_recv() {
            add(&mut session, newcomer, shared);
        }
        session.give_up(Whose::is_given_up);
        shared.metrics.searching.set(session.len() as f64);
        let over = match &pool {
            Ok(pool) => pool.install(|| session.step(views)),
            Err(_) => session.step(views),
        };
        for (whose, outcome) in over {
            end(c, shared, whose, outcome);
        }
        for search in session.searches() {
            if let Whose::Client(ticket) = search.tag()
                && ticket.is_nearly_late()
            {
                ticket.keep(search.best());
            }
        }
    }
}

fn add<'c>(session: &mut Session<'c, Whose>, newcomer: Newcomer<'c>, shared: &Shared) {
    let Newcomer { item, looked, whose } = newcomer;
    if matches!(whose, Whose::Shadow { .. }) && session.cost() >= shared.load.limit() {
        shared.metrics.shadow_dropped.increment(1);
        return;
    }
    session.add(item, looked, whose);
}

/// Hands out what became of a search.
fn end(c: &Canonicalizer, shared: &Shared, whose: Whose, outcome: Outcome) {
    let since = match &whose {
        Whose::Client(ticket) => ticket.since,
        Whose::Shadow { since, .. } => *since,
    };
    shared.metrics.search_seconds.record(since.elapsed());
    match (whose, outcome) {
        (Whose::Client(ticket), Some(Ok(prediction))) => {
            ticket.answer(Ok(Answer { prediction, truncated: false }));
        }
        (Whose::Client(ticket), outcome) => {
            let fault = fault(&ticket.request, outcome.and_then(Result::err));
            ticket.answer(Err(fault));
        }
        (Whose::Shadow { request, .. }, Some(Ok(p))) => {
            shared.metrics.shadowed(&p);
            let model = c.model();
            tracing::info!(
                target: "upright::shadow",
                id = &*request,
                changed = p.label != p.raw_label,
                label = p.label,
                class = model.class_name(p.label),
                model_label = p.raw_label,
                model_class = model.class_name(p.raw_label),
                verdict = word(p.verdict),
                energy_before = p.energy_before,
                energy_after = p.energy_after,
                evaluations = p.evaluations,
                "shadow"
            );
        }
        (Whose::Shadow { request, .. }, outcome) => {
            fault(&request, outcome.and_then(Result::err));
        }
    }
}

/// Logs why an input has no answer; clients are told no more than that.
pub(super) fn fault(request: &str, error: Option<upright::Error>) -> Fault {
    if let Some(e) = error {
        tracing::error!(id = request, error = %e, "an input failed");
    } else {
        tracing::error!(id = request, "an input made the model's code panic");
    }
    Fault
}
