//! Roles: the kinds of parts that make a canonicalizer, as data. Config,
//! artifact, flags, lists and contract tests loop over [`Role::ALL`].

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::config::{Part, Settings};
use crate::error::Result;
use crate::registry::{Row, rows};
use crate::{abstain, gate, proposer, readout, router, score, search};

/// A kind of part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// How unfamiliar an input looks.
    Score,
    /// Which poses are worth looking at.
    Proposer,
    /// Where to search for a more familiar view.
    Search,
    /// How the views of a search become one answer.
    Readout,
    /// Which inputs to search and which results to believe.
    Gate,
    /// When a searched input goes unanswered.
    Abstain,
    /// Where unfamiliar inputs go instead of a search.
    Router,
}

/// What is said of a role.
struct Facts {
    name: &'static str,
    plural: &'static str,
    about: &'static str,
    usual: &'static str,
    rows: fn() -> Vec<Row>,
}

impl Role {
    /// Every role, in the order in which their parts are fitted.
    pub const ALL: [Role; 7] = [
        Role::Score,
        Role::Proposer,
        Role::Search,
        Role::Readout,
        Role::Gate,
        Role::Abstain,
        Role::Router,
    ];

    const fn facts(self) -> Facts {
        match self {
            Role::Score => Facts {
                name: "score",
                plural: "scores",
                about: "how unfamiliar an input looks",
                usual: "judge",
                rows: || rows(score::rows()),
            },
            Role::Proposer => Facts {
                name: "proposer",
                plural: "proposers",
                about: "which poses are worth looking at",
                usual: "learned",
                rows: || rows(proposer::rows()),
            },
            Role::Search => Facts {
                name: "search",
                plural: "searches",
                about: "where to search for a more familiar view",
                usual: "follow",
                rows: || rows(search::rows()),
            },
            Role::Readout => Facts {
                name: "readout",
                plural: "readouts",
                about: "how the views become one answer",
                usual: "lowest",
                rows: || rows(readout::rows()),
            },
            Role::Gate => Facts {
                name: "gate",
                plural: "gates",
                about: "which inputs to search",
                usual: "best-mix",
                rows: || rows(gate::rows()),
            },
            Role::Abstain => Facts {
                name: "abstain",
                plural: "abstains",
                about: "when to leave a searched input unanswered",
                usual: "none",
                rows: || rows(abstain::rows()),
            },
            Role::Router => Facts {
                name: "router",
                plural: "routers",
                about: "where unfamiliar inputs go instead of a search",
                usual: "none",
                rows: || rows(router::rows()),
            },
        }
    }

    /// Its name in configs, artifacts and flags.
    #[doc(hidden)]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The name of its table.
    #[doc(hidden)]
    pub const fn plural(self) -> &'static str {
        self.facts().plural
    }

    /// What its parts decide, in a few words.
    #[doc(hidden)]
    pub const fn about(self) -> &'static str {
        self.facts().about
    }

    /// The row that is used unless another is named.
    #[doc(hidden)]
    pub const fn usual(self) -> &'static str {
        self.facts().usual
    }

    /// The role of a name.
    #[doc(hidden)]
    pub fn parse(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Its table.
    pub fn rows(self) -> Vec<Row> {
        (self.facts().rows)()
    }

    /// The row of a name, or an error that lists the names.
    pub(crate) fn row(self, name: &str) -> Result<Row> {
        let rows = self.rows();
        let known = || rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        rows.iter().find(|row| row.name == name).cloned().ok_or_else(|| crate::Error::UnknownName {
            kind: self.name(),
            name: name.into(),
            known: known(),
        })
    }

    /// The settings of a part of this role, if it exists and they are in their ranges.
    #[doc(hidden)]
    pub fn settings(self, part: &Part) -> Result<Settings> {
        part.resolve(self.row(&part.name)?.params)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A part for every role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Role, Part>", into = "BTreeMap<Role, Part>")]
pub struct Parts {
    /// In the order of [`Role::ALL`].
    parts: [Part; Role::ALL.len()],
}

impl Default for Parts {
    /// The usual part of every role.
    fn default() -> Self {
        Parts { parts: Role::ALL.map(|role| Part::new(role.usual())) }
    }
}

impl Parts {
    /// The parts with their roles.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Role, &Part)> {
        Role::ALL.into_iter().zip(&self.parts)
    }
}

impl Index<Role> for Parts {
    type Output = Part;

    fn index(&self, role: Role) -> &Part {
        &self.parts[role as usize]
    }
}

impl IndexMut<Role> for Parts {
    fn index_mut(&mut self, role: Role) -> &mut Part {
        &mut self.parts[role as usize]
    }
}

impl From<BTreeMap<Role, Part>> for Parts {
    fn from(named: BTreeMap<Role, Part>) -> Self {
        let mut parts = Parts::default();
        for (role, part) in named {
            parts[role] = part;
        }
        parts
    }
}

impl From<Parts> for BTreeMap<Role, Part> {
    fn from(parts: Parts) -> Self {
        Role::ALL.into_iter().zip(parts.parts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_numbered_in_the_order_of_their_list_and_found_by_name() {
        for (i, role) in Role::ALL.into_iter().enumerate() {
            assert_eq!(role as usize, i);
            assert_eq!(Role::parse(role.name()), Some(role));
            assert!(role.row(role.usual()).is_ok(), "{role}");
            let json = serde_json::to_string(&role).unwrap();
            assert_eq!(json, format!("\"{role}\""));
        }
    }

    #[test]
    fn parts_that_are_not_named_are_the_usual_ones() {
        let parts: Parts = serde_json::from_str(r#"{"gate": {"name": "never"}}"#).unwrap();
        assert_eq!(parts[Role::Gate], Part::new("never"));
        assert_eq!(parts[Role::Score], Part::new("judge"));
        assert!(serde_json::from_str::<Parts>(r#"{"gait": {"name": "never"}}"#).is_err());
    }
}
