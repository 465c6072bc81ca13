//! `E = (H(mean_s p_s) - mean_s H(p_s)) / log C`: mutual information between
//! the prediction and the head's weights, over its largest value; in `0..1`.
//! It is high where plausible weights disagree.

use super::{Blend, PRIOR, SAMPLES};
use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;
use crate::score::rectify::Base;
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(in crate::score) const KIND: Kind<Make> = Kind {
    name: "laplace-mi",
    about: "how much plausible head weights disagree: mutual information, normalised",
    params: &[PRIOR, SAMPLES],
    make: Make { needs: |_| Needs { features: true, head: true, ..Needs::default() }, fit, load },
};

const BLEND: Blend = Blend { partner: Base::Entropy, base: 0.0, mi: 1.0, offset: 0.0 };

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    super::fit(settings, bank, KIND.name, BLEND)
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    super::load(settings, state, BLEND)
}
