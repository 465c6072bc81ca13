//! Progress with an estimate of the time left, on standard error: a bar on a
//! terminal, otherwise a line now and then.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two lines where standard error is no terminal.
const PAUSE: Duration = Duration::from_secs(30);

/// Progress through a known number of steps. Says nothing if quiet was asked for.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Writes lines, also while a step lasts.
    lines: Option<Lines>,
}

impl Progress {
    /// Starts at 0 of `total`, under a short heading.
    pub fn start(heading: impl Into<Cow<'static, str>>, total: usize, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target = if quiet || !terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        let style = ProgressStyle::with_template(
            "{prefix} {bar:30} {human_pos}/{human_len} · {elapsed} · {eta} left  {msg}",
        );
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_prefix(heading);
        if !bar.is_hidden() {
            bar.tick();
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        let lines = (!quiet && !terminal)
            .then(|| Lines::start(bar.clone(), PAUSE, |line| eprintln!("{line}")));
        Progress { bar, lines }
    }

    /// Moves on by some steps.
    pub fn advance(&self, steps: usize) {
        self.bar.inc(steps as u64);
    }

    /// Changes the words behind the bar.
    pub fn say(&self, words: impl Into<Cow<'static, str>>) {
        self.bar.set_message(words);
    }

    /// Whether anything is drawn.
    #[cfg(test)]
    pub fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.lines.take());
        self.bar.finish_and_clear();
    }
}

/// A thread that tells from time to time how far it is.
#[derive(Debug)]
struct Lines {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    fn start(bar: ProgressBar, pause: Duration, say: impl Fn(String) + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let tell = move || {
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                say(words(&bar));
            }
        };
        Lines { stop: Some(stop), thread: Some(thread::spawn(tell)) }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A line that could not be written is no reason to stop.
            let _ = thread.join();
        }
    }
}

/// How far it is, in words.
fn words(bar: &ProgressBar) -> String {
    let (done, all) = (bar.position(), bar.length().unwrap_or(0));
    let so_far = bar.elapsed().as_secs_f64();
    let left = match so_far / done.max(1) as f64 * all.saturating_sub(done) as f64 {
        _ if done == 0 => format!("{so_far:.0} s so far"),
        s if s < 90.0 => format!("about {s:.0} s left"),
        s => format!("about {:.0} min left", s / 60.0),
    };
    format!("{:<10} {done}/{all}, {left}", bar.prefix())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_bar_counts_but_draws_nothing() {
        let progress = Progress::start("fit", 10, true);
        progress.advance(4);
        progress.say("1 skipped");
        assert!(!progress.is_shown() && progress.lines.is_none());
        assert_eq!(progress.bar.position(), 4);
    }

    #[test]
    fn lines_tell_how_far_it_is_while_a_step_lasts() {
        let bar = ProgressBar::with_draw_target(Some(40), ProgressDrawTarget::hidden());
        bar.set_prefix("copies");
        let (told, lines) = mpsc::channel();
        let pause = Duration::from_millis(5);
        let telling = Lines::start(bar.clone(), pause, move |line| drop(told.send(line)));
        assert_eq!(lines.recv().unwrap(), "copies     0/40, 0 s so far");
        bar.inc(10);
        let later = lines.iter().find(|line| line.starts_with("copies     10/40, about ")).unwrap();
        assert!(later.ends_with(" left"), "{later}");
        drop(telling);
        while lines.try_recv().is_ok() {}
        assert!(lines.recv().is_err(), "nothing more is told");
    }
}
