//! The parts of a canonicalizer: one for every role, fitted and shared.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::abstain::{self, Abstain};
use crate::config::Part;
use crate::error::{Error, Result};
use crate::gate::{self, Gate};
use crate::model::{AUTO, LATE, MIDDLE, Model};
use crate::outputs::{Cotangents, Outputs};
use crate::proposer::{self, Proposer};
use crate::readout::{self, Readout};
use crate::role::{Parts, Role};
use crate::router::{self, Models, Router};
use crate::score::{self, Score};
use crate::search::{self, Search};
use crate::space::Space;
use crate::state::State;

/// What the fitted parts store, by role; a part that stores nothing may be left out.
pub type States = BTreeMap<Role, State>;

/// A fitted part for every role.
#[derive(Debug, Clone)]
pub(super) struct Fitted {
    pub(super) score: Arc<dyn Score>,
    pub(super) proposer: Arc<dyn Proposer>,
    pub(super) search: Arc<dyn Search>,
    pub(super) readout: Arc<dyn Readout>,
    pub(super) gate: Arc<dyn Gate>,
    pub(super) abstain: Arc<dyn Abstain>,
    pub(super) router: Arc<dyn Router>,
    /// The taps that score and proposer read, by their numbers; `None` stands for all.
    pub(super) taps: Taps,
}

/// The taps of parts that read features.
#[derive(Debug, Clone, Default)]
pub(super) struct Taps {
    score: Option<Vec<usize>>,
    proposer: Option<Vec<usize>>,
    /// Whether the last one of the proposer's is what the head reads.
    whole: bool,
}

impl Taps {
    /// The numbers of the taps that parts read: those they name, otherwise those that are
    /// meant for them. What is meant for a proposer is not for a score that names none.
    pub(super) fn of(parts: &Parts, model: &Model) -> Result<Self> {
        let named = |role: Role| match parts[role].taps.as_slice() {
            [] => Ok(None),
            names => names.iter().map(|n| model.tap_index(n)).collect::<Result<_>>().map(Some),
        };
        let external = model.external_tap();
        // What an energy network says is for the score that needs it, and for no other part.
        let all = &model.taps()[..external.unwrap_or(model.taps().len())];
        let numbered = |meant: &dyn Fn(&str) -> bool| -> Option<Vec<usize>> {
            let taps: Vec<usize> = (0..all.len()).filter(|&i| meant(&all[i].name)).collect();
            let some = !taps.is_empty() && taps.len() < all.len();
            let every = || external.map(|_| (0..all.len()).collect());
            if some { Some(taps) } else { every() }
        };
        let own = proposer::row(&parts[Role::Proposer].name)?.make.taps;
        let needs = score::needs(&parts[Role::Score])?;
        let more = needs.taps;
        let usual = |name: &str| ![MIDDLE, LATE].contains(&name) || more.contains(&name);
        let mut proposer = named(Role::Proposer)?;
        let mut whole = false;
        if proposer.is_none() {
            proposer = numbered(&|name| own.contains(&name));
            let head = all.iter().position(|tap| tap.name == AUTO);
            if let (Some(taps), Some(head)) = (&mut proposer, head) {
                whole = !taps.contains(&head);
                taps.extend(Some(head).filter(|_| whole));
            }
        }
        Ok(Taps {
            whole,
            proposer,
            score: match external.filter(|_| needs.external) {
                Some(tap) => Some(vec![tap]),
                None => named(Role::Score)?.or_else(|| numbered(&usual)),
            },
        })
    }

    /// What the score reads of outputs.
    pub(super) fn for_score<'a>(&self, outputs: &'a Outputs) -> Result<Cow<'a, Outputs>> {
        select(self.score.as_deref(), outputs)
    }

    /// What the proposer reads of outputs.
    pub(super) fn for_proposer<'a>(&self, outputs: &'a Outputs) -> Result<Cow<'a, Outputs>> {
        select(self.proposer.as_deref(), outputs)
    }

    /// Whether the last tap that the proposer reads is what the head reads.
    pub(super) fn whole(&self) -> bool {
        self.whole
    }

    /// How many features the score reads.
    pub(super) fn score_width(&self, model: &Model) -> usize {
        let read = |i: &usize| self.score.as_ref().is_none_or(|own| own.contains(i));
        let taps = model.taps().iter().enumerate().filter(|(i, _)| read(i));
        taps.map(|(_, tap)| tap.features).sum()
    }

    /// The way back from what the score reads to all outputs.
    pub(super) fn back(&self, d: Cotangents, taps: usize) -> Result<Cotangents> {
        match &self.score {
            Some(own) => d.into_all_taps(own, taps),
            None => Ok(d),
        }
    }

    /// Whether the score reads the first tap first, to which the model's head belongs.
    pub(super) fn head(&self) -> bool {
        self.score.as_ref().is_none_or(|own| own.first() == Some(&0))
    }
}

fn select<'a>(taps: Option<&[usize]>, outputs: &'a Outputs) -> Result<Cow<'a, Outputs>> {
    taps.map_or(Ok(Cow::Borrowed(outputs)), |taps| outputs.with_taps(taps))
}

impl Fitted {
    /// Restores parts from what they stored.
    pub(super) fn load(
        parts: &Parts,
        states: &States,
        space: &Space,
        models: &Models,
    ) -> Result<Self> {
        let empty = State::new();
        let state = |role: Role| states.get(&role).unwrap_or(&empty);
        Ok(Fitted {
            score: score::load(&parts[Role::Score], state(Role::Score))?.into(),
            proposer: proposer::load(&parts[Role::Proposer], state(Role::Proposer), space)?.into(),
            search: search::make(&parts[Role::Search])?.into(),
            readout: readout::load(&parts[Role::Readout], state(Role::Readout))?.into(),
            gate: gate::load(&parts[Role::Gate], state(Role::Gate))?.into(),
            abstain: abstain::load(&parts[Role::Abstain], state(Role::Abstain))?.into(),
            router: router::load(&parts[Role::Router], state(Role::Router), models)?.into(),
            taps: Taps::of(parts, &models.first)?,
        })
    }

    /// The parts of some roles before they are fitted: a score that needs no fit, nothing
    /// proposed, a closed gate; search and router as chosen.
    pub(super) fn bare(parts: &Parts, space: &Space, models: &Models) -> Result<Self> {
        let mut unfitted = Parts::default();
        for (role, name) in [
            (Role::Score, "energy"),
            (Role::Proposer, "none"),
            (Role::Readout, "lowest"),
            (Role::Gate, "never"),
            (Role::Abstain, "none"),
            (Role::Router, "none"),
        ] {
            unfitted[role] = Part::new(name);
        }
        unfitted[Role::Search] = parts[Role::Search].clone();
        let first = Models::from(models.first.clone());
        let bare = Fitted::load(&unfitted, &States::new(), space, &first)?;
        Ok(Fitted {
            router: router::make(&parts[Role::Router], models)?.into(),
            taps: Taps::of(parts, &models.first)?,
            ..bare
        })
    }

    /// What the parts store.
    pub(super) fn states(&self) -> States {
        Role::ALL.into_iter().map(|role| (role, self.state(role))).collect()
    }

    fn state(&self, role: Role) -> State {
        match role {
            Role::Score => self.score.state(),
            Role::Proposer => self.proposer.state(),
            Role::Search => State::new(),
            Role::Readout => self.readout.state(),
            Role::Gate => self.gate.state(),
            Role::Abstain => self.abstain.state(),
            Role::Router => self.router.state(),
        }
    }

    /// The same parts with another one for a role, which must need no fit.
    pub(super) fn with(&self, role: Role, part: &Part, space: &Space) -> Result<Self> {
        let needs_fit =
            |why| Err(Error::NeedsFit { role: role.name(), name: part.name.clone(), why });
        role.settings(part)?;
        let mut fitted = self.clone();
        match role {
            Role::Search => fitted.search = search::make(part)?.into(),
            Role::Gate => fitted.gate = gate::fit(part, &gate::Calibration::NONE)?.into(),
            Role::Readout => {
                let mut candidates = readout::candidates(part, 0.0)?;
                if candidates.len() > 1 {
                    return needs_fit("its temperature is chosen on calibration searches");
                }
                fitted.readout = candidates.swap_remove(0).into();
            }
            Role::Abstain if !abstain::row(&part.name)?.make.searched => {
                fitted.abstain = abstain::fit(part, &[])?.into();
            }
            Role::Abstain => return needs_fit("its limits come from calibration searches"),
            Role::Proposer if !proposer::row(&part.name)?.make.bank => {
                fitted.proposer = proposer::load(part, &State::new(), space)?.into();
            }
            Role::Proposer | Role::Score => return needs_fit("it learns from the bank"),
            Role::Router => return needs_fit("its gate is calibrated with the second model"),
        }
        Ok(fitted)
    }
}
