//! Abstaining: when the answer of a search is withheld.
//!
//! One file per row; [`TABLE`] lists them.

use crate::config::{Part, Settings};
use crate::error::Result;
use crate::registry::{Kind, Open, Requires};
use crate::state::State;
use crate::trace::Trace;

mod doubt;
mod none;

/// How sure the answer of a search is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Doubt {
    /// Energy of the view that answers.
    pub energy: f32,
    /// How much higher the lowest view of another class is; infinite if there is none.
    pub gap: f32,
    /// The class of that view.
    pub rival: Option<u32>,
}

impl Doubt {
    /// The doubt about an answer of some class and energy, given all that was looked at.
    pub fn of(trace: &Trace, label: u32, energy: f32) -> Self {
        let rival = std::iter::once(&trace.raw)
            .chain(&trace.seen)
            .filter(|s| s.label != label && !s.energy.is_nan())
            .min_by(|a, b| a.energy.total_cmp(&b.energy));
        Doubt {
            energy,
            gap: rival.map_or(f32::INFINITY, |r| r.energy - energy),
            rival: rival.map(|r| r.label),
        }
    }
}

/// A fitted rule for leaving inputs unanswered.
pub trait Abstain: Send + Sync + std::fmt::Debug {
    /// Whether an answer is too doubtful.
    fn holds(&self, doubt: &Doubt) -> bool;

    /// What to store so that `load` gives the same rule, bit for bit.
    fn state(&self) -> State;
}

/// How to make a rule.
#[derive(Debug)]
pub struct Make {
    /// Whether it is fitted on the doubts about right answers of calibration searches.
    pub searched: bool,
    /// Fits it on the doubts about right answers.
    pub fit: fn(&Settings, &[Doubt]) -> Box<dyn Abstain>,
    /// Restores it from what [`Abstain::state`] stored.
    pub load: fn(&Settings, &State) -> Result<Box<dyn Abstain>>,
}

impl Requires for Make {
    fn requires(&self, _: &Settings) -> Vec<&'static str> {
        if self.searched { vec!["labels", "searches"] } else { vec![] }
    }
}

/// Every rule.
pub const TABLE: &[Kind<Make>] = &[none::KIND, doubt::KIND];

static ROWS: Open<Make> = Open::new("abstain", TABLE);

/// Every row, with those that were added.
pub(crate) fn rows() -> Vec<&'static Kind<Make>> {
    ROWS.rows()
}

/// Adds a row of one's own, which is then known by its name like the others.
pub fn add(row: &'static Kind<Make>) -> Result<()> {
    ROWS.add(row)
}

/// The row of a rule.
pub fn row(name: &str) -> Result<&'static Kind<Make>> {
    ROWS.find(name)
}

/// Fits the named rule on the doubts about right answers.
pub fn fit(part: &Part, right: &[Doubt]) -> Result<Box<dyn Abstain>> {
    let row = row(&part.name)?;
    Ok((row.make.fit)(&part.resolve(row.params)?, right))
}

/// Restores the named rule.
pub fn load(part: &Part, state: &State) -> Result<Box<dyn Abstain>> {
    let row = row(&part.name)?;
    (row.make.load)(&part.resolve(row.params)?, state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Seen;

    #[test]
    fn the_rival_is_the_lowest_view_of_another_class() {
        let seen =
            |energy, label| Seen { pose: vec![], energy, label, gradient: None, follows: None };
        let mut trace = Trace::new(seen(4.0, 1), vec![]);
        trace.seen = vec![seen(1.0, 0), seen(2.0, 0), seen(3.0, 2), seen(f32::NAN, 3)];
        let doubt = Doubt::of(&trace, 0, 1.0);
        assert_eq!(doubt.rival, Some(2));
        assert!((doubt.gap - 2.0).abs() < 1e-6);
    }
}
