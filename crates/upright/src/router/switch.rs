//! A second model answers unfamiliar inputs, e.g. one that was trained with
//! such transforms.

use super::{Make, Models, Router};
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::registry::Kind;
use crate::state::State;
use crate::tensor::{Batch, Matrix};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "switch",
    about: "a second model answers unfamiliar inputs",
    params: &[],
    make: Make { second: true, make, load },
};

#[derive(Debug)]
struct Switch {
    second: Model,
}

fn make(_: &Settings, models: &Models) -> Result<Box<dyn Router>> {
    let Models { first, second: Some(second), .. } = models else {
        return Err(Error::SecondModel { router: KIND.name, needed: true });
    };
    let pair = |m: &Model| (m.signal().shape(), m.classes(), m.preprocess().to_string());
    if pair(first) != pair(second) {
        let what = "second model (input, classes, preprocessing)";
        return Err(Error::shape(what, pair(first), pair(second)));
    }
    Ok(Box::new(Switch { second: second.clone() }))
}

fn load(settings: &Settings, state: &State, models: &Models) -> Result<Box<dyn Router>> {
    let fitted: String = state.read_u32("model")?.into_iter().filter_map(char::from_u32).collect();
    let given = models.second.as_ref().map_or("", Model::fingerprint);
    if fitted != given {
        let start = |s: &str| s.chars().take(8).collect();
        return Err(Error::ArtifactModel { fitted: start(&fitted), given: start(given) });
    }
    make(settings, models)
}

impl Router for Switch {
    fn answer(&self, batch: &Batch) -> Result<Option<Matrix>> {
        Ok(Some(self.second.run(batch)?.logits))
    }

    /// The second model's fingerprint, letter by letter.
    fn state(&self) -> State {
        let letters: Vec<u32> = self.second.fingerprint().chars().map(u32::from).collect();
        State::new().u32("model", &letters)
    }
}
