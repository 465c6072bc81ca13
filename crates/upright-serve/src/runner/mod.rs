//! What runs the model. [`Runner::submit`] takes inputs of many requests; some
//! threads look at them as they are ([`looks`]) and answer those for which the
//! gate stays closed, another advances the searches of the others in step
//! ([`searches`]). Whoever is familiar never waits behind somebody's search:
//! at most for the forward pass in hand.

mod line;
mod load;
mod looks;
mod searches;
mod ticket;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use upright::{Batch, Canonicalizer};

use crate::metrics::Metrics;
use crate::options::Options;
use line::Line;
pub use load::Full;
use load::Load;
use ticket::Ticket;
pub use ticket::{Answer, Fault, Pending};

/// An input that waits for its first look.
#[derive(Debug)]
struct Waiting {
    item: Vec<f32>,
    ticket: Ticket,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    line: Line<Waiting>,
    load: Arc<Load>,
    metrics: Arc<Metrics>,
    ready: AtomicBool,
    shadow: bool,
    threads: usize,
    /// What a search may cost.
    budget: usize,
}

/// A handle of the threads that run the model; they end some time after it is dropped.
#[derive(Debug)]
pub struct Runner {
    shared: Arc<Shared>,
}

impl Runner {
    /// Starts the threads.
    pub fn start(
        canonicalizer: Canonicalizer,
        options: &Options,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            line: Line::new(),
            load: Load::new(options.queue),
            metrics,
            ready: AtomicBool::new(false),
            shadow: options.shadow,
            threads: options.threads.max(1),
            budget: canonicalizer.config().budget,
        });
        let own = shared.clone();
        let work = move || {
            warm_up(&canonicalizer, &own);
            let (send, receive) = mpsc::channel();
            thread::scope(|scope| {
                for _ in 0..own.threads {
                    let send = send.clone();
                    let (canonicalizer, own) = (&canonicalizer, &own);
                    scope.spawn(move || looks::run(canonicalizer, own, &send));
                }
                drop(send);
                searches::run(&canonicalizer, &own, &receive);
            });
        };
        thread::Builder::new().name("upright-runner".into()).spawn(work)?;
        Ok(Runner { shared })
    }

    /// Whether a first forward pass has been made.
    pub fn is_ready(&self) -> bool {
        self.shared.ready.load(Ordering::Relaxed)
    }

    /// Forward passes that wait or are under way.
    pub fn cost(&self) -> usize {
        self.shared.load.cost()
    }

    /// Most inputs that one request may have.
    pub fn most(&self) -> usize {
        self.shared.load.limit()
    }

    /// Takes in inputs of one request, all or none; dropping what is pending gives them up.
    pub fn submit(
        &self,
        items: Vec<Vec<f32>>,
        request: &Arc<str>,
        deadline: Instant,
    ) -> Result<Vec<Pending>, Full> {
        let tolls = self.shared.load.admit(items.len())?;
        let (mut waiting, mut pending) = (Vec::new(), Vec::new());
        for (item, toll) in items.into_iter().zip(tolls) {
            let (ticket, one) = ticket::pair(request.clone(), deadline, toll);
            waiting.push(Waiting { item, ticket });
            pending.push(one);
        }
        self.shared.line.add(waiting);
        Ok(pending)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.shared.line.close();
    }
}

/// The first forward pass is slow; nobody should wait for it.
fn warm_up(c: &Canonicalizer, shared: &Shared) {
    let signal = c.model().signal();
    let zeros = Batch::new(signal, vec![0.0; signal.size()]);
    let start = Instant::now();
    match zeros.and_then(|batch| c.look_at(&batch).map(drop)) {
        Ok(()) => shared.load.measured(1, start.elapsed()),
        Err(e) => tracing::error!(error = %e, "the model cannot look at an empty input"),
    }
    shared.ready.store(true, Ordering::Relaxed);
}
