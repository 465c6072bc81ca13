//! Unfamiliar inputs are searched.

use super::{Make, Models, Router};
use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::state::State;
use crate::tensor::{Batch, Matrix};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "none",
    about: "search unfamiliar inputs",
    params: &[],
    make: Make { second: false, make, load },
};

#[derive(Debug)]
struct Search;

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn make(_: &Settings, _: &Models) -> Result<Box<dyn Router>> {
    Ok(Box::new(Search))
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(_: &Settings, _: &State, _: &Models) -> Result<Box<dyn Router>> {
    Ok(Box::new(Search))
}

impl Router for Search {
    fn answer(&self, _: &Batch) -> Result<Option<Matrix>> {
        Ok(None)
    }

    fn state(&self) -> State {
        State::new()
    }
}
