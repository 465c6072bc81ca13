//! Every input is answered.

use super::{Abstain, Doubt, Make};
use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::state::State;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "none",
    about: "answer every input",
    params: &[],
    make: Make { searched: false, fit, load },
};

#[derive(Debug)]
struct Answer;

fn fit(_: &Settings, _: &[Doubt]) -> Box<dyn Abstain> {
    Box::new(Answer)
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(_: &Settings, _: &State) -> Result<Box<dyn Abstain>> {
    Ok(Box::new(Answer))
}

impl Abstain for Answer {
    fn holds(&self, _: &Doubt) -> bool {
        false
    }

    fn state(&self) -> State {
        State::new()
    }
}
