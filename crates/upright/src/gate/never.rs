//! No input is searched: the bare model, for comparison.

use super::{Calibration, Gate, Look, Make};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::state::State;

const NONE: &[Param] = &[];

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "never",
    about: "search nothing: the bare model",
    params: NONE,
    make: Make { searched: false, fit, load },
};

#[derive(Debug)]
struct Never;

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn fit(_: &Settings, _: &Calibration) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Never))
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(_: &Settings, _: &State) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Never))
}

impl Gate for Never {
    fn search(&self, _: Look) -> bool {
        false
    }

    fn tau(&self) -> f32 {
        f32::INFINITY
    }

    fn state(&self) -> State {
        State::new()
    }
}
