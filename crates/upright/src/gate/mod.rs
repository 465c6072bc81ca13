//! Gates: which inputs are searched, and which results are believed. A gate
//! knows the energy and the predicted class of the input as it is (`raw`) and
//! of the best view found (`best`).
//!
//! One file per gate; `Role::Gate.rows()` lists them, [`add`] takes a row of one's own.

use crate::config::{Part, Settings};
use crate::error::Result;
use crate::registry::{Kind, Open, Requires};
use crate::state::State;

mod always;
mod best_mix;
mod choose;
mod conformal;
mod margin;
mod max_drop;
mod never;
mod risk;
mod threshold;
pub(crate) mod tradeoff;

pub(crate) use tradeoff::potential;

/// What a gate is told of a view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Its energy.
    pub energy: f32,
    /// The class that the model predicts for it.
    pub label: u32,
}

/// A fitted gate.
///
/// Both answers are monotone: an input with a higher raw energy is searched
/// if one with a lower is, and a lower best energy is accepted if a higher
/// one is. NaN closes the gate.
pub trait Gate: Send + Sync + std::fmt::Debug {
    /// Whether an input of this energy is searched at all.
    fn search(&self, raw: Look) -> bool;

    /// Whether the view `best` replaces the input `raw`.
    fn accept(&self, raw: Look, best: Look) -> bool {
        best.energy < raw.energy
    }

    /// The energy above which inputs are searched, unless their class has a limit of its own.
    fn tau(&self) -> f32;

    /// What the gate compared to decide about this very input, and about a view of it, if one
    /// was found. Agrees with [`Gate::search`] and [`Gate::accept`]; a gate that does not accept
    /// every lower view says by [`Reason::overtaken`] how clear one must be.
    fn reason(&self, raw: Look, best: Option<Look>) -> Reason {
        Reason {
            searched: self.search(raw),
            tau: self.tau(),
            class: None,
            accepted: best.map(|best| self.accept(raw, best)),
            overtaken: None,
        }
    }

    /// What to store so that `load` gives the same gate, bit for bit.
    fn state(&self) -> State;

    /// What is worth knowing about the fit, e.g. what a limit costs.
    fn note(&self) -> Option<String> {
        None
    }
}

/// Why a gate decides as it does about one input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    /// Whether the input is searched: whether its energy exceeds `tau`.
    pub searched: bool,
    /// The energy above which this input is searched.
    pub tau: f32,
    /// The predicted class that `tau` belongs to; `None` if it is common to all classes.
    pub class: Option<u32>,
    /// Whether the view replaces the input, once searched; `None` without a view.
    pub accepted: Option<bool>,
    /// How clear the improvement is; `None` without a view, or if any lower energy will do.
    pub overtaken: Option<Overtaken>,
}

/// How much lower a view's energy is than its input's: as the share of calibration energies,
/// 0..1, that lie between them, or as their plain difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overtaken {
    /// What the view reaches.
    pub found: f32,
    /// The least that the gate accepts.
    pub needed: f32,
    /// Whether both are differences of energies.
    pub plain: bool,
}

/// What became of a held-out input when it was searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// The input as it is.
    pub raw: Look,
    /// The best view found; `None` if the input was not searched.
    pub best: Option<Look>,
    /// The input's class, if known.
    pub truth: Option<u32>,
}

#[cfg(test)]
impl Case {
    /// An input of which only the energy is known.
    pub(crate) fn unsearched(energy: f32) -> Self {
        Case { raw: Look { energy, label: 0 }, best: None, truth: None }
    }
}

/// Held-out inputs, which a gate is fitted on.
#[derive(Debug, Clone, Copy)]
pub struct Calibration<'a> {
    /// Upright inputs.
    pub upright: &'a [Case],
    /// Transformed copies.
    pub transformed: &'a [Case],
}

impl Calibration<'_> {
    /// No held-out inputs.
    pub(crate) const NONE: Calibration<'static> = Calibration { upright: &[], transformed: &[] };
}

/// How to make a gate.
#[derive(Debug)]
pub struct Make {
    /// Whether it is fitted on what searches of the calibration inputs found, with labels;
    /// otherwise their energies are enough.
    pub searched: bool,
    /// Fits it on calibration inputs.
    pub fit: fn(&Settings, &Calibration) -> Result<Box<dyn Gate>>,
    /// Restores it from what [`Gate::state`] stored.
    pub load: fn(&Settings, &State) -> Result<Box<dyn Gate>>,
}

impl Requires for Make {
    fn requires(&self, _: &Settings) -> Vec<&'static str> {
        if self.searched { vec!["labels", "searches"] } else { vec![] }
    }
}

/// Every gate.
#[doc(hidden)]
pub const TABLE: &[Kind<Make>] = &[
    always::KIND,
    never::KIND,
    threshold::KIND,
    margin::KIND,
    conformal::KIND,
    max_drop::KIND,
    best_mix::KIND,
];

static ROWS: Open<Make> = Open::new("gate", TABLE);

/// Every row, with those that were added.
pub(crate) fn rows() -> Vec<&'static Kind<Make>> {
    ROWS.rows()
}

/// Adds a row of one's own, which is then known by its name like the others.
pub fn add(row: &'static Kind<Make>) -> Result<()> {
    ROWS.add(row)
}

/// The row of a gate.
pub(crate) fn row(name: &str) -> Result<&'static Kind<Make>> {
    ROWS.find(name)
}

/// Fits the named gate.
#[doc(hidden)]
pub fn fit(part: &Part, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    let row = row(&part.name)?;
    (row.make.fit)(&part.resolve(row.params)?, calibration)
}

/// Whether the named gate can be fitted on so many inputs of either kind, whatever they are
/// like: to be asked before they are looked at.
pub(crate) fn rehearse(part: &Part, upright: usize, transformed: usize) -> Result<()> {
    let case = |i: usize| {
        let look = |energy: f32| Look { energy, label: 0 };
        Case { raw: look(i as f32), best: Some(look(i as f32 - 1.0)), truth: Some(0) }
    };
    let cases = |count: usize| (0..count).map(case).collect::<Vec<_>>();
    let (upright, transformed) = (cases(upright), cases(transformed));
    fit(part, &Calibration { upright: &upright, transformed: &transformed }).map(|_| ())
}

/// Restores the named gate.
#[doc(hidden)]
pub fn load(part: &Part, state: &State) -> Result<Box<dyn Gate>> {
    let row = row(&part.name)?;
    (row.make.load)(&part.resolve(row.params)?, state)
}

/// The energies of inputs as they are, in ascending order, without NaN.
fn sorted<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Vec<f32> {
    let mut v: Vec<f32> = cases.into_iter().map(|c| c.raw.energy).filter(|e| !e.is_nan()).collect();
    v.sort_by(f32::total_cmp);
    v
}
