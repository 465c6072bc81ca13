//! Presets: parts that go together, and what to do where the usual ones cannot
//! be fitted.

use std::borrow::Cow;

use super::Config;
use crate::config::Part;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::proposer;
use crate::role::{Parts, Role};
use crate::score;
use crate::space::SpaceConfig;
use crate::tensor::Signal;
use crate::warp::{Padding, Resample};

/// Fewer bank samples than this teach no proposer.
const FEWEST: usize = 500;

/// Parts that go together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// The parts of some roles; the others are the usual ones.
    parts: &'static [(Role, &'static str)],
    /// The budget.
    pub budget: usize,
    /// Most held-out samples used: few views leave time for many.
    pub calibration: usize,
}

/// Every preset, the usual one first.
#[doc(hidden)]
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "learned",
        about: "poses by knowing: a few views that were learnt to propose and to judge",
        parts: &[
            (Role::Score, "judge"),
            (Role::Proposer, "learned"),
            (Role::Search, "follow"),
            (Role::Gate, "best-mix"),
        ],
        budget: 8,
        calibration: 4000,
    },
    Preset {
        name: "search",
        about: "poses by looking: 60 views and the distance to familiar samples; suits small banks",
        parts: &[
            (Role::Score, "knn"),
            (Role::Proposer, "moments"),
            (Role::Search, "rivals"),
            (Role::Gate, "conformal"),
        ],
        budget: 60,
        calibration: 1000,
    },
    Preset {
        name: "paper",
        about: "the paper's own: random search with refinement, 60 evaluations, always on",
        parts: &[
            (Role::Score, "pc-knn-mix"),
            (Role::Proposer, "none"),
            (Role::Search, "random-refine"),
            (Role::Gate, "always"),
        ],
        budget: 60,
        calibration: 1000,
    },
];

impl Preset {
    /// The preset of a name, or an error that lists the names.
    pub fn of(name: &str) -> Result<&'static Preset> {
        PRESETS.iter().find(|p| p.name == name).ok_or_else(|| Error::UnknownName {
            kind: "preset",
            name: name.into(),
            known: PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The part of every role.
    #[doc(hidden)]
    pub fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        for (role, name) in self.parts {
            parts[*role] = Part::new(*name);
        }
        parts
    }

    /// What lies outside inputs: zeros as the paper has it, or what suits each of them.
    #[doc(hidden)]
    pub fn padding(&self) -> Padding {
        if self.name == "paper" { Padding::Zeros } else { Padding::Auto }
    }

    /// A config with its parts and its budget, over the space that suits a signal.
    pub fn config(&self, signal: Signal) -> Config {
        Config {
            parts: self.parts(),
            resample: Resample { padding: self.padding(), ..Resample::default() },
            budget: self.budget,
            calibration: self.calibration,
            space: SpaceConfig::of_signal(signal),
            ..Config::default()
        }
    }
}

impl Config {
    /// The same, or where parts cannot learn from so few samples or without features, with
    /// parts of the preset `search` in their place; and what to say about it.
    pub(super) fn within_reach(
        &self,
        model: &Model,
        bank: usize,
    ) -> (Cow<'_, Config>, Option<String>) {
        let bare = model.taps().is_empty();
        let why = if bare {
            "the model has no features".to_string()
        } else if bank < FEWEST {
            format!("the bank has {bank} samples, fewer than the {FEWEST} it takes")
        } else {
            return (Cow::Borrowed(self), None);
        };
        let Some(mut config) = self.searching() else { return (Cow::Borrowed(self), None) };
        if bare && config.parts[Role::Score] == PRESETS[1].parts()[Role::Score] {
            config.parts[Role::Score] = Part::new("energy");
        }
        let note = format!("poses cannot be learnt: {why}; the preset `search` stands in");
        (Cow::Owned(config), Some(note))
    }

    /// The same without parts that learn from copies or lessons: those of the preset `search`
    /// stand in, and for what else belongs to the preset `learned`. `None` if there are none.
    pub(super) fn searching(&self) -> Option<Config> {
        let proposes = proposer::row(&self.part(Role::Proposer).name).is_ok_and(|r| r.make.copies);
        let judges = score::needs(self.part(Role::Score)).is_ok_and(|n| n.lessons > 0);
        if !proposes && !judges {
            return None;
        }
        let (learned, search) = (&PRESETS[0], &PRESETS[1]);
        let (usual, other) = (learned.parts(), search.parts());
        let mut config = self.clone();
        for (role, part) in usual.iter() {
            let learns = role == Role::Score && judges || role == Role::Proposer && proposes;
            if learns || config.parts[role] == *part {
                config.parts[role] = other[role].clone();
            }
        }
        if config.budget == learned.budget {
            config.budget = search.budget;
        }
        if config.calibration == learned.calibration {
            config.calibration = search.calibration;
        }
        Some(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_made_of_parts_that_exist() {
        for preset in PRESETS {
            let config = preset.config(Signal::image(1, 8, 8));
            assert!(config.check().is_ok(), "{}", preset.name);
            assert_eq!(Preset::of(preset.name).ok(), Some(preset));
        }
        assert_eq!(PRESETS[0].parts(), Parts::default());
        assert!(Preset::of("no-such").unwrap_err().to_string().contains("learned, search, paper"));
    }

    #[test]
    fn what_cannot_learn_is_searched_and_what_was_chosen_is_kept() {
        let config = Config::default().with(Role::Gate, Part::new("never"));
        let searching = config.searching().unwrap();
        assert_eq!(searching.part(Role::Score), &Part::new("knn"));
        assert_eq!(searching.part(Role::Search), &Part::new("rivals"));
        assert_eq!(searching.part(Role::Gate), &Part::new("never"));
        assert_eq!(searching.budget, 60);
        assert!(searching.searching().is_none());
        let chosen = Config { budget: 5, ..Config::default() };
        assert_eq!(chosen.searching().unwrap().budget, 5);
    }
}
