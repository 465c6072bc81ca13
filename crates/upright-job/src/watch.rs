//! What a job tells while it runs.

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Rows of the job, or of the shard.
    pub rows: usize,
    /// Rows that are there: in parts kept from before, and answered since.
    pub done: usize,
    /// Those of them that were searched.
    pub searched: usize,
    /// Those of them without an answer.
    pub errors: usize,
}

/// Whether to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stop {
    /// Go on.
    #[default]
    No,
    /// Finish the part in hand, then stop.
    AfterPart,
    /// Stop as soon as possible and give up the part in hand.
    Now,
}

/// Told how a job goes, and asked whether to go on, every hundred rows or so.
pub trait Watch {
    /// Rows have been answered.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// Whether to stop.
    fn stop(&mut self) -> Stop {
        Stop::No
    }
}

/// Says nothing and never stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quiet;

impl Watch for Quiet {}
