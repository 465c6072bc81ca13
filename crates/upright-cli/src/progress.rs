//! Progress with an estimate of the time left, on standard error: a bar on a
//! terminal, otherwise a line now and then.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two lines where standard error is no terminal.
const PAUSE: Duration = Duration::from_secs(30);

/// Progress through a known number of steps. Says nothing if quiet was asked for.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// When the last line was written; `None` if lines are not wanted.
    line: Cell<Option<Instant>>,
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
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        let line = Cell::new((!quiet && !terminal).then(Instant::now));
        Progress { bar, line }
    }

    /// Moves on by some steps.
    pub fn advance(&self, steps: usize) {
        self.bar.inc(steps as u64);
        if self.line.get().is_some_and(|last| last.elapsed() >= PAUSE) {
            eprintln!("{}", self.words());
            self.line.set(Some(Instant::now()));
        }
    }

    /// How far it is, in words.
    fn words(&self) -> String {
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let left =
            self.bar.elapsed().as_secs_f64() / done.max(1) as f64 * all.saturating_sub(done) as f64;
        let left = match left {
            s if s < 90.0 => format!("{s:.0} s"),
            s => format!("{:.0} min", s / 60.0),
        };
        format!("{:<10} {done}/{all}, about {left} left", self.bar.prefix())
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
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_bar_counts_but_draws_nothing() {
        let progress = Progress::start("fit", 10, true);
        progress.advance(4);
        progress.say("1 skipped");
        assert!(!progress.is_shown());
        assert_eq!(progress.bar.position(), 4);
    }

    #[test]
    fn a_line_tells_how_far_it_is() {
        let progress = Progress::start("copies", 40, false);
        progress.advance(10);
        let words = progress.words();
        assert!(words.starts_with("copies     10/40, about "), "{words}");
        progress.line.set(Instant::now().checked_sub(PAUSE));
        progress.advance(1);
        assert!(progress.line.get().is_none_or(|last| last.elapsed() < PAUSE));
    }
}
