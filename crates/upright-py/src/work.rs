//! Work on a thread of its own, so that the interpreter can go on: it hears
//! signals, shows progress, and ends the work when asked to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use rayon::ThreadPool;
use upright::Watch;
use upright_cli::Common;
use upright_cli::report::Result;
use upright_job::Stop;

use crate::errors::failure;

/// Time between two looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// How long work that was told to stop is waited for. What takes longer ends by itself, and
/// nobody hears of it.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a thread may need for models that nest deeply.
const STACK: usize = 16 << 20;

/// What work tells of itself.
enum Event {
    Phase(String, usize),
    Advance(usize),
    Say(String),
}

/// What work is given: whom to tell, and what tells it to stop.
pub(crate) struct Desk {
    tell: Sender<Event>,
    pub(crate) stop: Arc<AtomicBool>,
    /// Asks to stop where nothing is lost.
    pub(crate) soon: Arc<AtomicBool>,
}

impl Watch for Desk {
    fn phase(&mut self, name: &str, steps: usize) {
        self.tell.send(Event::Phase(name.into(), steps)).ok();
    }

    fn advance(&mut self, steps: usize) {
        self.tell.send(Event::Advance(steps)).ok();
    }

    fn say(&mut self, words: &str) {
        self.tell.send(Event::Say(words.into())).ok();
    }
}

impl Desk {
    /// Another one to tell.
    pub(crate) fn second(&self) -> Desk {
        Desk { tell: self.tell.clone(), stop: self.stop.clone(), soon: self.soon.clone() }
    }
}

/// Threads of one's own, if a number was asked for.
pub(crate) type Pool = Option<Arc<ThreadPool>>;

/// As many as asked for.
pub(crate) fn pool(common: &Common) -> PyResult<Pool> {
    let Some(threads) = common.threads else { return Ok(None) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build();
    let pool = pool.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    Ok(Some(Arc::new(pool)))
}

/// What Ctrl-C does to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnSignal {
    /// Ends it.
    End,
    /// Asks it to end where nothing is lost; a second one ends it.
    Ask,
}

/// As [`attended_with`]; Ctrl-C ends it.
pub(crate) fn attended<T: Send + 'static>(
    py: Python<'_>,
    pool: &Pool,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    attended_with(py, pool, progress, OnSignal::End, work)
}

/// Does some work while the interpreter is free. `progress` is called with the name of a
/// phase, the steps done and the steps in all, and with words; what it raises, and Ctrl-C, end
/// the work.
pub(crate) fn attended_with<T: Send + 'static>(
    py: Python<'_>,
    pool: &Pool,
    progress: Option<&Bound<'_, PyAny>>,
    on_signal: OnSignal,
    work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (tell, mut told) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let soon = Arc::new(AtomicBool::new(false));
    let mut desk = Desk { tell, stop: stop.clone(), soon: soon.clone() };
    let pool = pool.clone();
    let all = move || match pool {
        Some(pool) => pool.install(|| work(&mut desk)),
        None => work(&mut desk),
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(all);
    let thread = thread.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let mut asked = attend(py, &mut told, progress);
    if let Err(e) = &asked
        && on_signal == OnSignal::Ask
        && e.is_instance_of::<PyKeyboardInterrupt>(py)
    {
        soon.store(true, Ordering::Relaxed);
        // The first one is raised once the work has ended.
        asked = match (attend(py, &mut told, progress), asked) {
            (Ok(()), Err(first)) => {
                py.detach(|| thread.join()).ok();
                return Err(first);
            }
            (again, _) => again,
        };
    }
    if let Err(e) = asked {
        stop.store(true, Ordering::Relaxed);
        py.detach(|| {
            let since = Instant::now();
            while !thread.is_finished() && since.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(2));
            }
        });
        return Err(e);
    }
    match py.detach(|| thread.join()) {
        Ok(done) => done.map_err(failure),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied());
            let text = format!("upright failed: {}", text.unwrap_or("unknown reason"));
            Err(PyRuntimeError::new_err(text))
        }
    }
}

/// Passes on what work tells until it ends.
fn attend(
    py: Python<'_>,
    told: &mut Receiver<Event>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let (mut name, mut done, mut steps) = (String::new(), 0, 0);
    loop {
        let told = &mut *told;
        let event = py.detach(move || told.recv_timeout(LOOK));
        py.check_signals()?;
        let words = match event {
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => continue,
            Ok(Event::Phase(phase, all)) => {
                (name, done, steps) = (phase, 0, all);
                None
            }
            Ok(Event::Advance(more)) => {
                done += more;
                None
            }
            Ok(Event::Say(words)) => Some(words),
        };
        if let Some(progress) = progress {
            progress.call1((name.as_str(), done, steps, words))?;
        }
    }
}

/// Passes on how a job goes.
pub(crate) struct JobTold<'a> {
    desk: &'a mut Desk,
    shown: Option<usize>,
}

impl<'a> JobTold<'a> {
    pub(crate) fn new(desk: &'a mut Desk) -> Self {
        JobTold { desk, shown: None }
    }
}

impl upright_job::Watch for JobTold<'_> {
    fn progress(&mut self, now: &upright_job::Progress) {
        let shown = *self.shown.get_or_insert_with(|| {
            self.desk.phase("predict", now.rows);
            0
        });
        self.desk.advance(now.done - shown);
        self.shown = Some(now.done);
    }

    fn stop(&mut self) -> Stop {
        if self.desk.stop.load(Ordering::Relaxed) {
            Stop::Now
        } else if self.desk.soon.load(Ordering::Relaxed) {
            Stop::AfterPart
        } else {
            Stop::No
        }
    }
}
