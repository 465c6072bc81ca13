//! Every input is searched, and the lowest energy wins: the paper's
//! always-on canonicalization.

use super::{Calibration, Gate, Look, Make};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::state::State;

const NONE: &[Param] = &[];

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "always",
    about: "search every input; the lowest energy wins",
    params: NONE,
    make: Make { searched: false, fit, load },
};

#[derive(Debug)]
struct Always;

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn fit(_: &Settings, _: &Calibration) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Always))
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(_: &Settings, _: &State) -> Result<Box<dyn Gate>> {
    Ok(Box::new(Always))
}

impl Gate for Always {
    fn search(&self, raw: Look) -> bool {
        !raw.energy.is_nan()
    }

    fn tau(&self) -> f32 {
        f32::NEG_INFINITY
    }

    fn state(&self) -> State {
        State::new()
    }
}
