//! Gates: which inputs are searched, and which results are believed. A gate
//! knows two numbers, the energy of the input as it is (`raw`) and of the
//! best view found (`best`).
//!
//! One file a gate; [`TABLE`] lists them.

use crate::config::{Part, Settings};
use crate::error::Result;
use crate::registry::{Kind, find};
use crate::state::State;

mod always;
mod conformal;
mod margin;
mod never;
mod threshold;

/// A fitted gate.
///
/// Both answers are monotone: an input with a higher raw energy is searched
/// if one with a lower is, and a lower best energy is accepted if a higher
/// one is. NaN closes the gate.
pub trait Gate: Send + Sync + std::fmt::Debug {
    /// Whether an input of this energy is searched at all.
    fn search(&self, raw: f32) -> bool;

    /// Whether a view of energy `best` replaces the input of energy `raw`.
    fn accept(&self, raw: f32, best: f32) -> bool {
        best < raw
    }

    /// The energy above which inputs are searched.
    fn tau(&self) -> f32;

    /// What to store so that `load` gives the same gate, bit for bit.
    fn state(&self) -> State;
}

/// Energies of held-out inputs, which a gate is fitted on.
#[derive(Debug, Clone, Copy)]
pub struct Calibration<'a> {
    /// Of upright inputs, as they are.
    pub upright: &'a [f32],
    /// Of transformed copies, as they are.
    pub transformed: &'a [f32],
}

/// How to make a gate.
#[derive(Debug)]
pub struct Make {
    /// Fits it on calibration energies.
    pub fit: fn(&Settings, &Calibration) -> Result<Box<dyn Gate>>,
    /// Restores it from what [`Gate::state`] stored.
    pub load: fn(&Settings, &State) -> Result<Box<dyn Gate>>,
}

/// Every gate.
pub const TABLE: &[Kind<Make>] =
    &[always::KIND, never::KIND, threshold::KIND, margin::KIND, conformal::KIND];

/// The row of a gate.
pub fn row(name: &str) -> Result<&'static Kind<Make>> {
    find("gate", TABLE, name)
}

/// Fits the named gate.
pub fn fit(part: &Part, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    let row = row(&part.name)?;
    (row.make.fit)(&part.resolve(row.params)?, calibration)
}

/// Restores the named gate.
pub fn load(part: &Part, state: &State) -> Result<Box<dyn Gate>> {
    let row = row(&part.name)?;
    (row.make.load)(&part.resolve(row.params)?, state)
}

/// The finite numbers among some energies, in ascending order.
fn sorted(energies: &[f32]) -> Vec<f32> {
    let mut v: Vec<f32> = energies.iter().copied().filter(|e| !e.is_nan()).collect();
    v.sort_by(f32::total_cmp);
    v
}
