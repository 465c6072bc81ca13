//! [`App`]: what all handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use upright::{Canonicalizer, Prediction, Verdict};

use crate::metrics::Metrics;
use crate::options::Options;
use crate::prepare::Files;
use crate::refusal::Refusal;
use crate::runner::{Answer, Fault, Full, Runner};

/// Memory is counted in units of this many bytes.
const UNIT: usize = 1024;

/// What all handlers share.
#[derive(Debug)]
pub struct App {
    /// The model and its parts.
    pub canonicalizer: Canonicalizer,
    /// What was chosen.
    pub options: Options,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What runs the model.
    pub runner: Runner,
    /// Makes inputs of files.
    pub files: Files,
    memory: Arc<Semaphore>,
    decoders: Semaphore,
    draining: AtomicBool,
    token: Option<blake3::Hash>,
}

/// The id of a request, in its log line, its metrics and its answer.
#[derive(Debug, Clone)]
pub struct Id(pub Arc<str>);

/// What is worth logging about an answered request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noted {
    /// Inputs that were answered.
    pub inputs: usize,
    /// Those that were searched.
    pub searched: usize,
    /// Forward passes spent on them.
    pub evaluations: usize,
    /// Those that a deadline cut short.
    pub truncated: usize,
}

impl Noted {
    /// Counts answers.
    pub fn of<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Self {
        let mut noted = Noted::default();
        for Answer { prediction: Prediction { verdict, evaluations, .. }, truncated } in answers {
            noted.inputs += 1;
            noted.searched += usize::from(*verdict != Verdict::Kept);
            noted.evaluations += evaluations;
            noted.truncated += usize::from(*truncated);
        }
        noted
    }
}

impl App {
    /// Starts what runs the model.
    pub fn start(
        canonicalizer: Canonicalizer,
        options: Options,
    ) -> Result<Arc<Self>, crate::Error> {
        let metrics = Arc::new(Metrics::new(&canonicalizer, &options)?);
        let runner = Runner::start(canonicalizer.clone(), &options, metrics.clone())?;
        let units = (options.memory / UNIT).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Ok(Arc::new(App {
            metrics,
            runner,
            files: Files::new(canonicalizer.model(), &options),
            memory: Arc::new(Semaphore::new(units)),
            decoders: Semaphore::new(options.threads.max(1)),
            draining: AtomicBool::new(false),
            token: options.token.as_ref().map(|token| blake3::hash(token.as_bytes())),
            canonicalizer,
            options,
        }))
    }

    /// Whether a request with this token, if any, is let in. Takes equally long for all.
    pub fn lets_in(&self, token: Option<&[u8]>) -> bool {
        self.token.is_none_or(|own| own == blake3::hash(token.unwrap_or_default()))
    }

    /// From now on, says that it is not ready.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether requests can be answered.
    pub fn ready(&self) -> Result<(), Refusal> {
        if self.draining.load(Ordering::Relaxed) {
            Err(Refusal::unready("the server is about to end"))
        } else if self.runner.is_ready() {
            Ok(())
        } else {
            Err(Refusal::unready("the model is not warm yet"))
        }
    }

    /// Takes memory, for as long as what is returned lives.
    pub fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        self.memory
            .clone()
            .try_acquire_many_owned(units)
            .map_err(|_| Refusal::overload("too much data is being handled", 1))
    }

    /// Gives back what was taken beyond so many bytes.
    pub fn shrink(mut held: OwnedSemaphorePermit, bytes: usize) -> OwnedSemaphorePermit {
        let more = held.num_permits().saturating_sub(bytes.div_ceil(UNIT));
        drop(held.split(more));
        held
    }

    /// Does what takes its time, such as decoding, away from the threads that serve
    /// connections; no more of it at a time than there are threads for.
    pub async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&App) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let _place = self.decoders.acquire().await.map_err(|_| Refusal::failed())?;
        let app = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&app)).await;
        done.map_err(|e| {
            tracing::error!(error = %e, "preparing an input failed");
            Refusal::failed()
        })
    }

    /// The answers for prepared inputs, in order.
    pub async fn answers(
        &self,
        items: Vec<Vec<f32>>,
        id: &Id,
        deadline: Instant,
    ) -> Result<Vec<Result<Answer, Fault>>, Refusal> {
        let (count, most) = (items.len(), self.runner.most());
        if count > most {
            let message = format!("{count} inputs in one request, at most {most} are taken");
            return Err(Refusal::large(message, "send several requests"));
        }
        let pending =
            self.runner.submit(items, &id.0, deadline).map_err(|Full { waiting, seconds }| {
                Refusal::overload(format!("queue full: {waiting} forward passes wait"), seconds)
            })?;
        let mut answers = Vec::with_capacity(count);
        for one in pending {
            let answer = one.wait().await;
            if let Ok(Answer { prediction, truncated }) = &answer {
                self.metrics.answered(prediction, *truncated);
            }
            answers.push(answer);
        }
        Ok(answers)
    }
}
