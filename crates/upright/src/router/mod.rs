//! Routers: where unfamiliar inputs go instead of a search.
//!
//! One file per router; [`TABLE`] lists them.

use crate::config::{Part, Settings};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::registry::{Kind, Open, Requires};
use crate::state::State;
use crate::tensor::{Batch, Matrix};

mod none;
mod switch;

/// A router, with all it needs.
pub trait Router: Send + Sync + std::fmt::Debug {
    /// The logits of unfamiliar inputs; `None` if they are searched.
    fn answer(&self, batch: &Batch) -> Result<Option<Matrix>>;

    /// What to store so that `load` can tell whether it is given the same second model.
    fn state(&self) -> State;
}

/// A classifier, and the networks that some parts need beside it.
#[derive(Debug, Clone)]
pub struct Models {
    /// The classifier.
    pub first: Model,
    /// A second one, that some routers send inputs to.
    pub second: Option<Model>,
    /// A network that says how unfamiliar a view looks, for the score `external`; see
    /// [`Options::energy`](crate::ModelOptions::energy).
    pub external: Option<Model>,
}

impl Models {
    /// The same with the energy network at its place beside the classifier.
    pub(crate) fn joined(mut self) -> Result<Self> {
        if let Some(energy) = self.external.take() {
            self.first = self.first.with_external(energy)?;
        }
        Ok(self)
    }
}

impl From<Model> for Models {
    fn from(first: Model) -> Self {
        Models { first, second: None, external: None }
    }
}

impl From<(Model, Model)> for Models {
    fn from((first, second): (Model, Model)) -> Self {
        Models { first, second: Some(second), external: None }
    }
}

/// How to make a router.
#[derive(Debug)]
pub struct Make {
    /// Whether it sends inputs to a second model.
    pub second: bool,
    /// Makes it of the models it needs.
    pub make: fn(&Settings, &Models) -> Result<Box<dyn Router>>,
    /// The same, after checking that they are those of what [`Router::state`] stored.
    pub load: fn(&Settings, &State, &Models) -> Result<Box<dyn Router>>,
}

impl Requires for Make {
    fn requires(&self, _: &Settings) -> Vec<&'static str> {
        if self.second { vec!["a second model"] } else { vec![] }
    }
}

/// Every router.
pub const TABLE: &[Kind<Make>] = &[none::KIND, switch::KIND];

static ROWS: Open<Make> = Open::new("router", TABLE);

/// Every row, with those that were added.
pub(crate) fn rows() -> Vec<&'static Kind<Make>> {
    ROWS.rows()
}

/// Adds a row of one's own, which is then known by its name like the others.
pub fn add(row: &'static Kind<Make>) -> Result<()> {
    ROWS.add(row)
}

/// The row of a router.
pub fn row(name: &str) -> Result<&'static Kind<Make>> {
    ROWS.find(name)
}

/// Makes the named router; a second model must be given if, and only if, it needs one.
pub fn make(part: &Part, models: &Models) -> Result<Box<dyn Router>> {
    let row = checked(part, models)?;
    (row.make.make)(&part.resolve(row.params)?, models)
}

/// Restores the named router.
pub fn load(part: &Part, state: &State, models: &Models) -> Result<Box<dyn Router>> {
    let row = checked(part, models)?;
    (row.make.load)(&part.resolve(row.params)?, state, models)
}

fn checked(part: &Part, models: &Models) -> Result<&'static Kind<Make>> {
    let row = row(&part.name)?;
    if row.make.second == models.second.is_some() {
        return Ok(row);
    }
    Err(Error::SecondModel { router: row.name, needed: row.make.second })
}
