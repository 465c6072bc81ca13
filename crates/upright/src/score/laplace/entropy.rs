//! `E = H(mean_s p_s)`: entropy, in nats, of the mean of the sampled
//! probabilities. Uncertain weights flatten the mean, hence raise the energy.

use super::{Blend, PRIOR, SAMPLES};
use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::score::rectify::Base;
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(in crate::score) const KIND: Kind<Make> = Kind {
    name: "laplace-entropy",
    about: "entropy of the predicted probabilities averaged over plausible head weights",
    params: &[PRIOR, SAMPLES],
    make: Make { needs: |_| Needs { features: true, head: true, ..Needs::default() }, fit, load },
};

const BLEND: Blend = Blend { partner: Base::Entropy, base: 1.0, mi: 0.0, offset: 0.0 };

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    super::fit(settings, bank, KIND.name, BLEND)
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    super::load(settings, state, BLEND)
}
