//! Proposes nothing: searches look on their own.

use super::{Bank, Brief, Make, Proposer, Run};
use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "none",
    about: "propose nothing",
    params: &[],
    make: Make { bank: false, copies: false, taps: &[], fit, load },
};

#[derive(Debug)]
struct Nothing;

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn fit(_: &Settings, _: &mut Bank) -> Result<Box<dyn Proposer>> {
    Ok(Box::new(Nothing))
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(_: &Settings, _: &State, _: &Space) -> Result<Box<dyn Proposer>> {
    Ok(Box::new(Nothing))
}

impl Proposer for Nothing {
    fn start<'a>(&'a self, _: Brief<'a>) -> Box<dyn Run + 'a> {
        Box::new(Silent)
    }

    fn state(&self) -> State {
        State::new()
    }
}

/// The run of a proposer that has nothing to say.
pub(super) struct Silent;

impl Run for Silent {}
