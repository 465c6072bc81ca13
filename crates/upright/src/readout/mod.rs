//! Readouts: how the views of a search become one answer. All evaluated views'
//! logits are there anyway, so a readout costs nothing.
//!
//! One file per readout; `Role::Readout.rows()` lists them, [`add`] takes a row of one's own.

use crate::config::{Part, Settings};
use crate::error::Result;
use crate::gate::Look;
use crate::registry::{Kind, Open, Requires};
use crate::state::State;
use crate::trace::Trace;

mod lowest;
mod vote;

/// A fitted readout.
pub trait Readout: Send + Sync + std::fmt::Debug {
    /// The answer of a search; `None` if it has no view.
    fn read(&self, trace: &Trace) -> Option<Answer>;

    /// What to store so that `load` gives the same readout, bit for bit.
    fn state(&self) -> State;
}

/// The answer read from a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The view that stands for it, an index into [`Trace::seen`].
    pub view: usize,
    /// Its label and the energy of that view, which the gate judges.
    pub look: Look,
    /// Its logits; their largest is at the label.
    pub logits: Vec<f32>,
}

/// How to make a readout.
#[derive(Debug)]
pub struct Make {
    /// The readouts to choose from by accuracy on calibration searches; the first of equals
    /// wins. One if there is nothing to choose. Told the spread of calibration energies.
    pub candidates: fn(&Settings, f32) -> Vec<Box<dyn Readout>>,
    /// Restores it from what [`Readout::state`] stored.
    pub load: fn(&Settings, &State) -> Result<Box<dyn Readout>>,
}

impl Requires for Make {}

/// Every readout.
#[doc(hidden)]
pub const TABLE: &[Kind<Make>] = &[lowest::KIND, vote::KIND];

static ROWS: Open<Make> = Open::new("readout", TABLE);

/// Every row, with those that were added.
pub(crate) fn rows() -> Vec<&'static Kind<Make>> {
    ROWS.rows()
}

/// Adds a row of one's own, which is then known by its name like the others.
pub fn add(row: &'static Kind<Make>) -> Result<()> {
    ROWS.add(row)
}

/// The row of a readout.
pub(crate) fn row(name: &str) -> Result<&'static Kind<Make>> {
    ROWS.find(name)
}

/// The candidates of the named readout; never empty.
#[doc(hidden)]
pub fn candidates(part: &Part, spread: f32) -> Result<Vec<Box<dyn Readout>>> {
    let row = row(&part.name)?;
    Ok((row.make.candidates)(&part.resolve(row.params)?, spread))
}

/// Restores the named readout.
#[doc(hidden)]
pub fn load(part: &Part, state: &State) -> Result<Box<dyn Readout>> {
    let row = row(&part.name)?;
    (row.make.load)(&part.resolve(row.params)?, state)
}
