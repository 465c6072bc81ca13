//! `upright list`: the tables of parts, as the library has them.

use std::fmt::Write;

use serde::Serialize;
use upright::internal::registry::rows;
use upright::internal::space;
use upright::{Param, Role, Row, Value, axes, engine};

use crate::Common;
use crate::report::Result;
use crate::rows::Sink;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright list                 every part there is
  upright list scores          the scores, with what they need and take
  upright list --json          the same for programs";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The table to show, e.g. scores, searches, gates, spaces, axes or engines [default: all]
    table: Option<String>,
}

/// A table of parts.
#[derive(Debug, Serialize)]
pub struct Table {
    table: &'static str,
    parts: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    about: &'static str,
    needs: Vec<&'static str>,
    settings: Vec<Setting>,
}

#[derive(Debug, Serialize)]
struct Setting {
    name: &'static str,
    about: &'static str,
    default: Value,
    takes: String,
}

/// Every table of the library.
pub fn tables() -> Vec<Table> {
    let roles = Role::ALL.into_iter().map(|role| (role.plural(), role.rows()));
    let others = [
        ("spaces", rows(space::PRESETS)),
        ("axes", axes::rows()),
        ("engines", rows(engine::TABLE)),
    ];
    roles.chain(others).map(|(name, rows)| table(name, rows)).collect()
}

fn table(name: &'static str, rows: Vec<Row>) -> Table {
    let entry = |row: Row| Entry {
        name: row.name,
        about: row.about,
        needs: row.requires,
        settings: row.params.iter().map(setting).collect(),
    };
    Table { table: name, parts: rows.into_iter().map(entry).collect() }
}

fn setting(param: &Param) -> Setting {
    Setting {
        name: param.name,
        about: param.about,
        default: param.domain.default(),
        takes: param.domain.to_string(),
    }
}

/// Prints the tables.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let mut tables = tables();
    if let Some(name) = &args.table {
        let known: Vec<_> = tables.iter().map(|t| t.table).collect();
        if !known.contains(&name.as_str()) {
            return Err(upright::Error::UnknownName {
                kind: "table",
                name: name.clone(),
                known: known.join(", "),
            }
            .into());
        }
        tables.retain(|t| t.table == name);
    }
    let text = if common.json {
        let mut text = serde_json::to_string_pretty(&tables).unwrap_or_default();
        text.push('\n');
        text
    } else {
        tables.iter().map(shown).collect::<Vec<_>>().join("\n")
    };
    let mut out = Sink::open(None)?;
    out.write(text.as_bytes())?;
    out.finish()
}

fn shown(table: &Table) -> String {
    let mut out = format!("{}\n", table.table);
    let name = table.parts.iter().map(|p| p.name.len()).max().unwrap_or(0);
    for part in &table.parts {
        let _ = writeln!(out, "  {:name$}  {}", part.name, part.about);
        if !part.needs.is_empty() {
            let _ = writeln!(out, "  {:name$}  needs {}", "", part.needs.join(", "));
        }
        let widest =
            |width: fn(&Setting) -> usize| part.settings.iter().map(width).max().unwrap_or(0);
        let (long, wide) = (widest(|s| s.name.len()), widest(|s| s.default.to_string().len()));
        for s in &part.settings {
            let default = s.default.to_string();
            let _ = writeln!(
                out,
                "  {:name$}    {:long$} = {default:wide$}  {} ({})",
                "", s.name, s.about, s.takes
            );
        }
    }
    out
}
