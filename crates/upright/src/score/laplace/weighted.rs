//! `E = -(mix * (-partner) + (1 - mix) * (1 - MI))`: the normalised mutual
//! information `MI` of `laplace-mi`, blended with a `partner`: the energy of
//! the mean logits or the entropy of the mean probabilities.

use super::{Blend, PRIOR, SAMPLES};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::score::rectify::Base;
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;

/// The row in the table.
pub(in crate::score) const KIND: Kind<Make> = Kind {
    name: "laplace-weighted",
    about: "mutual information of plausible head weights blended with energy or entropy",
    params: &[
        PRIOR,
        SAMPLES,
        Param::word("partner", &["energy", "entropy"], "what is blended in"),
        Param::real("mix", 0.5, 0.0, 1.0, "weight of the partner"),
    ],
    make: Make { needs: |_| Needs { features: true, head: true, ..Needs::default() }, fit, load },
};

fn blend(settings: &Settings) -> Blend {
    let mix = settings.real("mix");
    let partner = Base::named(settings.word("partner"));
    Blend { partner, base: mix, mi: 1.0 - mix, offset: 1.0 - mix }
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    super::fit(settings, bank, KIND.name, blend(settings))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    super::load(settings, state, blend(settings))
}
