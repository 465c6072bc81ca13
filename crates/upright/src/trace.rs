//! [`Trace`]: everything one search has looked at. Readouts choose the answer
//! from it; calibration, reports and explanations are made of it.

use crate::gate::Look;
use crate::proposer::Proposal;
use crate::search::{Seen, lowest};

/// Everything one search has looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The input as it is.
    pub raw: Seen,
    /// Its logits.
    pub raw_logits: Vec<f32>,
    /// The views, in the order of evaluation.
    pub seen: Vec<Seen>,
    /// Their logits.
    pub logits: Vec<Vec<f32>>,
    /// Everything that was proposed, in the order of telling the search.
    pub proposals: Vec<Proposed>,
    /// The view that the search itself chose, if it does not leave the choice to the energy.
    pub pick: Option<usize>,
    /// What the search cost: views, those with gradient counting twice.
    pub cost: usize,
}

/// A proposal, and when it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposed {
    /// Views that had been looked at by then, the input as it is not counted.
    pub after: usize,
    /// The proposal.
    pub proposal: Proposal,
}

impl Trace {
    /// A trace before its first view.
    #[doc(hidden)]
    pub fn new(raw: Seen, raw_logits: Vec<f32>) -> Self {
        Trace {
            raw,
            raw_logits,
            seen: Vec::new(),
            logits: Vec::new(),
            proposals: Vec::new(),
            pick: None,
            cost: 0,
        }
    }

    /// The view that the search chose, or else the one of lowest energy.
    pub(crate) fn best(&self) -> Option<usize> {
        self.pick
            .filter(|&i| i < self.seen.len())
            .or_else(|| lowest(self.seen.iter().map(|s| s.energy)))
    }

    /// What a gate is told of the input as it is.
    #[doc(hidden)]
    pub fn raw_look(&self) -> Look {
        Look { energy: self.raw.energy, label: self.raw.label }
    }
}
