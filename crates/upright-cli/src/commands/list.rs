//! `upright list`: the tables of parts, as the library has them.

use std::fmt::Write;

use serde::Serialize;
use upright::config::{Param, Part, Value};
use upright::registry::Kind;
use upright::{axes, engine, gate, readout, score, search, space};

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
    /// The table to show: scores, searches, gates, spaces, axes or engines [default: all]
    table: Option<String>,
}

#[derive(Debug, Serialize)]
struct Table {
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
fn tables() -> Vec<Table> {
    let score_needs = |row: &Kind<score::Make>| {
        let needs = score::needs(&Part::new(row.name)).unwrap_or_default();
        [
            ("logits", true),
            ("features", needs.features),
            ("head", needs.head),
            ("labels", needs.labels),
            ("transformed", needs.transformed),
        ]
        .into_iter()
        .filter_map(|(name, needed)| needed.then_some(name))
        .collect()
    };
    let gradient = |row: &Kind<search::Make>| {
        if row.make.gradient { vec!["gradients"] } else { vec![] }
    };
    vec![
        table("scores", score::TABLE, score_needs),
        table("searches", search::TABLE, gradient),
        table("readouts", readout::TABLE, |_| vec![]),
        table("gates", gate::TABLE, |row| {
            if row.make.searched { vec!["labels", "searches"] } else { vec![] }
        }),
        table("spaces", space::PRESETS, |_| vec![]),
        table("axes", axes::TABLE, |_| vec![]),
        table("engines", engine::TABLE, |_| vec![]),
    ]
}

fn table<M>(
    name: &'static str,
    rows: &'static [Kind<M>],
    needs: impl Fn(&Kind<M>) -> Vec<&'static str>,
) -> Table {
    let entry = |row: &'static Kind<M>| Entry {
        name: row.name,
        about: row.about,
        needs: needs(row),
        settings: row.params.iter().map(setting).collect(),
    };
    Table { table: name, parts: rows.iter().map(entry).collect() }
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
