//! What connects an input with whoever waits for its answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use upright::Prediction;

use super::load::Toll;

/// Before a deadline that is nearer than this, the best so far is kept at hand.
const NEAR: Duration = Duration::from_secs(2);

/// How often a late answer is looked for.
const GLANCE: Duration = Duration::from_millis(5);

/// An input's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The answer.
    pub prediction: Prediction,
    /// Whether a deadline ended its search.
    pub truncated: bool,
}

/// An input that has no answer, by a fault of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;

/// The runner's end.
#[derive(Debug)]
pub struct Ticket {
    /// The id of the input's request.
    pub request: Arc<str>,
    /// When it came.
    pub since: Instant,
    /// What it costs.
    pub toll: Toll,
    deadline: Instant,
    reply: oneshot::Sender<Result<Answer, Fault>>,
    best: Arc<Mutex<Option<Prediction>>>,
}

/// The client's end.
#[derive(Debug)]
pub struct Pending {
    deadline: Instant,
    reply: oneshot::Receiver<Result<Answer, Fault>>,
    best: Arc<Mutex<Option<Prediction>>>,
}

/// Both ends.
pub fn pair(request: Arc<str>, deadline: Instant, toll: Toll) -> (Ticket, Pending) {
    let (send, receive) = oneshot::channel();
    let best = Arc::new(Mutex::new(None));
    let since = Instant::now();
    let ticket = Ticket { request, since, toll, deadline, reply: send, best: best.clone() };
    (ticket, Pending { deadline, reply: receive, best })
}

impl Ticket {
    /// Whether nobody waits any more.
    pub fn is_given_up(&self) -> bool {
        self.reply.is_closed()
    }

    /// Whether the deadline has passed.
    pub fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Whether the deadline is near.
    pub fn is_nearly_late(&self) -> bool {
        Instant::now() + NEAR >= self.deadline
    }

    /// Keeps the answer that is to be given at the deadline.
    pub fn keep(&self, best: Prediction) {
        *locked(&self.best) = Some(best);
    }

    /// Answers.
    pub fn answer(self, answer: Result<Answer, Fault>) {
        // Whoever left does not want to know.
        let _ = self.reply.send(answer);
    }
}

impl Pending {
    /// Waits for the answer, at the deadline for the best so far, and beyond it only for the
    /// bare model's.
    pub async fn wait(mut self) -> Result<Answer, Fault> {
        let mut until = tokio::time::Instant::from_std(self.deadline);
        loop {
            if let Ok(answer) = tokio::time::timeout_at(until, &mut self.reply).await {
                return answer.unwrap_or(Err(Fault));
            }
            if let Some(prediction) = locked(&self.best).take() {
                return Ok(Answer { prediction, truncated: true });
            }
            until = tokio::time::Instant::now() + GLANCE;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
