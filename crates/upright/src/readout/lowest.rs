//! The view of lowest energy answers, as in the paper; a search that chooses a
//! view itself (`its`) has its way.

use super::{Answer, Make, Readout};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::gate::Look;
use crate::registry::Kind;
use crate::state::State;
use crate::trace::Trace;

const NONE: &[Param] = &[];

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "lowest",
    about: "the view of lowest energy answers",
    params: NONE,
    make: Make { candidates, load },
};

#[derive(Debug)]
struct Lowest;

fn candidates(_: &Settings, _: f32) -> Vec<Box<dyn Readout>> {
    vec![Box::new(Lowest)]
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(_: &Settings, _: &State) -> Result<Box<dyn Readout>> {
    Ok(Box::new(Lowest))
}

impl Readout for Lowest {
    fn read(&self, trace: &Trace) -> Option<Answer> {
        let view = trace.best()?;
        let seen = trace.seen.get(view)?;
        Some(Answer {
            view,
            look: Look { energy: seen.energy, label: seen.label },
            logits: trace.logits.get(view)?.clone(),
        })
    }

    fn state(&self) -> State {
        State::new()
    }
}
