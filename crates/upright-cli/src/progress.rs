//! A progress bar with an estimate of the time left, on standard error.

use std::borrow::Cow;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress through a known number of steps. Draws nothing if standard error
/// is not a terminal or quiet was asked for.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts at 0 of `total`, under a short heading.
    pub fn start(heading: impl Into<Cow<'static, str>>, total: usize, quiet: bool) -> Self {
        let target = if quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        let style = ProgressStyle::with_template(
            "{prefix} {bar:30} {human_pos}/{human_len} · {eta} left  {msg}",
        );
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_prefix(heading);
        Progress { bar }
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
}
