//! One flag per role, made from the library's table of roles.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Command, FromArgMatches};
use upright::{PRESETS, Part, Parts, Preset, Role};

use super::setup::split_setting;
use crate::report::{Failure, Result};

/// The roles that have a flag of their own elsewhere: `--abstain SHARE`, `--switch MODEL`.
const ELSEWHERE: [Role; 2] = [Role::Abstain, Role::Router];

fn flags() -> impl Iterator<Item = Role> {
    Role::ALL.into_iter().filter(|role| !ELSEWHERE.contains(role))
}

/// Parts chosen by name, and settings of parts.
#[derive(Debug, Clone, Default)]
struct Chosen {
    names: BTreeMap<Role, String>,
    settings: Vec<String>,
}

impl Chosen {
    fn read(matches: &ArgMatches) -> Self {
        let name = |role: Role| Some((role, matches.get_one::<String>(role.name())?.clone()));
        let settings = matches.get_many::<String>("set").into_iter().flatten().cloned();
        Chosen { names: flags().filter_map(name).collect(), settings: settings.collect() }
    }

    fn flags(command: Command, set: &'static str, about: impl Fn(Role) -> String) -> Command {
        let flag = |role: Role| {
            Arg::new(role.name())
                .long(role.name())
                .value_name("NAME")
                .help(about(role))
                .help_heading("Parts")
        };
        let set = Arg::new("set")
            .long("set")
            .value_name("NAME=VALUE")
            .action(clap::ArgAction::Append)
            .help(set)
            .help_heading("Parts");
        command.args(flags().map(flag)).arg(set)
    }

    /// Changes parts as they were chosen; returns the roles that changed. Settings without a
    /// role are the score's.
    fn apply(&self, parts: &mut Parts) -> Result<Vec<Role>> {
        let mut changed = Vec::new();
        for (&role, name) in &self.names {
            parts[role] = Part::new(name);
            changed.push(role);
        }
        for setting in &self.settings {
            let (name, value) = split_setting(setting)?;
            let (role, name) = match name.split_once('.') {
                None => (Role::Score, name),
                Some((role, name)) => match Role::parse(role) {
                    Some(role) => (role, name),
                    None => return Err(unknown(role)),
                },
            };
            match name {
                "taps" => {
                    parts[role].taps =
                        value.to_string().split(',').map(|tap| tap.trim().to_string()).collect();
                }
                _ => {
                    parts[role].settings.insert(name.into(), value);
                }
            }
            changed.push(role);
        }
        Ok(changed)
    }
}

fn unknown(role: &str) -> Failure {
    let known: Vec<&str> = Role::ALL.iter().map(|r| r.name()).collect();
    Failure::usage(
        format!("there is no role `{role}`"),
        format!(
            "settings are given as `--set ROLE.NAME=VALUE`; the roles are {}",
            known.join(", ")
        ),
    )
}

macro_rules! flattened {
    ($name:ident, $set:expr, $about:expr) => {
        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
                Ok($name(Chosen::read(matches)))
            }

            fn update_from_arg_matches(
                &mut self,
                matches: &ArgMatches,
            ) -> std::result::Result<(), clap::Error> {
                self.0 = Chosen::read(matches);
                Ok(())
            }
        }

        impl clap::Args for $name {
            fn augment_args(command: Command) -> Command {
                Chosen::flags(command, $set, $about)
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }
    };
}

/// Parts for a fit.
#[derive(Debug, Clone, Default)]
pub struct RoleArgs(Chosen);

flattened!(
    RoleArgs,
    "A setting of a part: `lessons=5000` of the score, `gate.drop=0.3`, `ROLE.NAME=VALUE`, or the taps it reads, `ROLE.taps=NAME,NAME`",
    |role: Role| {
        let (about, table, usual) = (capital(role.about()), role.plural(), role.usual());
        format!("{about} (`upright list {table}`) [default: {usual}]")
    }
);

impl RoleArgs {
    /// The chosen parts, and those of a preset for the other roles.
    pub fn parts(&self, preset: &Preset) -> Result<Parts> {
        let mut parts = preset.parts();
        self.0.apply(&mut parts)?;
        Ok(parts)
    }

    /// The same with a part for a role that none is chosen for.
    #[must_use]
    pub fn or(mut self, role: Role, name: &str) -> Self {
        self.0.names.entry(role).or_insert_with(|| name.into());
        self
    }

    /// The preset that suits the chosen parts where none is named: the usual one, unless
    /// another score, proposer or search than its own is chosen, which then searches as
    /// `search` does.
    pub fn preset(&self) -> &'static Preset {
        let usual = PRESETS[0].parts();
        let other = |role: Role| self.0.names.get(&role).is_some_and(|n| *n != usual[role].name);
        let differs = [Role::Score, Role::Proposer, Role::Search].into_iter().any(other);
        PRESETS.iter().find(|p| p.name == "search").filter(|_| differs).unwrap_or(&PRESETS[0])
    }
}

/// Parts to use instead of fitted ones.
#[derive(Debug, Clone, Default)]
pub struct OtherRoleArgs(Chosen);

flattened!(
    OtherRoleArgs,
    "A setting of a part that needs no fit: `search.radius=0.1`, `ROLE.NAME=VALUE`",
    |role: Role| format!("Another {role} than the fitted one, if it needs no fit")
);

impl OtherRoleArgs {
    /// The parts that were chosen in place of fitted ones, by role.
    pub fn changes(&self, fitted: &Parts) -> Result<Vec<(Role, Part)>> {
        let mut parts = fitted.clone();
        let mut changed = self.0.apply(&mut parts)?;
        changed.sort_unstable();
        changed.dedup();
        Ok(changed.into_iter().map(|role| (role, parts[role].clone())).collect())
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
