//! `E = -log sum exp(m)` of the mean logits `m = W f + bias`.
//!
//! The posterior's mean is what was trained and samples come in opposite
//! pairs, so this is `energy` of the logits taken through the head, and the
//! family's `prior` and `samples` are accepted but change nothing. Versions
//! that average independent samples differ from it by sampling noise.

use super::{PRIOR, SAMPLES};
use crate::config::Settings;
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::{head, nothing, on_features, tap, undefined};
use crate::score::rectify::{Base, Behind, stored_head};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(in crate::score) const KIND: Kind<Make> = Kind {
    name: "laplace-energy",
    about: "energy of the logits averaged over plausible head weights",
    params: &[PRIOR, SAMPLES],
    make: Make { needs: |_| Needs { features: true, head: true, ..Needs::default() }, fit, load },
};

#[derive(Debug)]
struct Mean(Behind);

fn fit(_: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let (_, head) = head(bank, KIND.name)?;
    Ok(Box::new(Mean(Behind::new(head.weight.clone(), head.bias.clone(), Base::Energy))))
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let head = stored_head(state)?;
    Ok(Box::new(Mean(Behind::new(head.weight, head.bias, Base::Energy))))
}

impl Score for Mean {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        match tap(outputs, 0, self.0.width()) {
            Some(features) => self.0.energy(features),
            None => undefined(outputs),
        }
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        match tap(outputs, 0, self.0.width()) {
            Some(features) => on_features(outputs, self.0.pullback(features)),
            None => nothing(outputs),
        }
    }

    fn state(&self) -> State {
        self.0.store(State::new())
    }
}
