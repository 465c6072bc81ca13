//! The report as one HTML file that needs nothing else: styles, script,
//! pictures and the data of every figure are inside. One file per figure.

mod budget;
mod classes;
mod embed;
mod explain;
mod flips;
mod health;
mod histogram;
mod landscape;
mod latency;
mod limits;
mod proposals;
mod rose;
mod sheet;
mod table;
mod tradeoff;

use std::fmt::Write;
use std::path::Path;

use upright::Canonicalizer;
use upright::internal::stats::rounded;

pub use embed::picture;
pub use explain::{
    Explained, STYLE as EXPLAIN_STYLE, draw as draw_explained, page as explain_page,
};
pub use landscape::{Drawn, heat_map};
pub use sheet::{Cell, all as all_inputs, pick as pick_cells};
pub use table::Table;

use crate::plot::escape;
use crate::report::{Failure, Result};
use crate::study::{Budget, Latency, Study};

/// Styles of pages and figures, light and dark.
pub const STYLE: &str = include_str!("style.css");

/// Sorts the contact sheet; nothing else on the page moves.
const SCRIPT: &str = include_str!("sort.js");

/// One part of the report.
#[derive(Debug)]
pub struct Figure {
    /// Its place in addresses and the name of its data.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What it shows and how to read it; plain text.
    pub lead: String,
    /// The drawing or table, as HTML.
    pub body: String,
    /// Its data, if it has any.
    pub data: Option<Table>,
}

/// Everything a report is made of.
pub struct Material<'a> {
    /// What was studied.
    pub canonicalizer: &'a Canonicalizer,
    /// What became of every input.
    pub study: &'a Study,
    /// Shown pairs.
    pub cells: Vec<Cell>,
    /// Some landscapes.
    pub landscapes: Vec<Drawn>,
    /// Accuracy at several budgets.
    pub budgets: Vec<Budget>,
    /// Times of upright and of transformed inputs.
    pub latency: [Latency; 2],
    /// What identifies the run: names and values.
    pub facts: Vec<(&'static str, String)>,
}

/// A finished report.
#[derive(Debug)]
pub struct Page {
    /// The HTML file.
    pub html: String,
    /// Its parts.
    pub figures: Vec<Figure>,
    /// Every input and what became of it.
    pub inputs: Table,
    /// Whether to use the canonicalizer, and why.
    pub verdict: String,
}

impl Page {
    /// Draws everything.
    pub fn new(material: &Material, inputs: Table) -> Self {
        let c = material.canonicalizer;
        let figures = vec![
            tradeoff::draw(c, material.study),
            histogram::draw(c, material.study),
            sheet::draw(c, &material.cells, material.study),
            classes::draw(c, material.study),
            landscape::draw(&material.landscapes),
            budget::draw(&material.budgets, c.config().budget),
            proposals::draw(c, material.study),
            rose::draw(c, material.study),
            latency::draw(&material.latency),
            flips::draw(c, material.study),
            health::draw(c, material.study),
            limits::draw(c, material),
        ];
        let verdict = material.study.advice(c).1;
        Page { html: html(material, &figures), figures, inputs, verdict }
    }

    /// Writes the data of every figure into a folder, one file each, and `inputs.csv` with a
    /// row for every input.
    pub fn write_data(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|e| Failure::io(folder, e))?;
        let tables = self.figures.iter().filter_map(|f| Some((f.id, f.data.as_ref()?)));
        for (name, table) in tables.chain([("inputs", &self.inputs)]) {
            let path = folder.join(format!("{name}.csv"));
            upright::internal::artifact::write_whole(&path, table.csv().as_bytes())?;
        }
        Ok(())
    }
}

fn html(material: &Material, figures: &[Figure]) -> String {
    let (advice, sentence) = material.study.advice(material.canonicalizer);
    let kind = match advice {
        upright::Advice::Use => "use",
        upright::Advice::RetrainInstead | upright::Advice::TooFew => "retrain",
        upright::Advice::DoNotUse => "avoid",
    };
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\">\
         <title>upright report</title>\n<style>\n",
    );
    out.push_str(STYLE);
    let _ = write!(
        out,
        "</style></head>\n<body><main>\n<header class=\"{kind}\"><p class=\"brand\">upright report</p>\
         <h1>{}</h1>\n{}",
        escape(&headline(&sentence)),
        tiles(material)
    );
    out.push_str("<dl class=\"facts\">\n");
    for (name, value) in &material.facts {
        let class = if *name == "command" { " class=\"wide\"" } else { "" };
        let _ =
            writeln!(out, "<div{class}><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
    }
    out.push_str("</dl></header>\n<nav aria-label=\"Contents\"><ol>\n");
    for figure in figures {
        let _ = writeln!(out, "<li><a href=\"#{}\">{}</a></li>", figure.id, escape(figure.title));
    }
    out.push_str("</ol></nav>\n");
    for figure in figures {
        let _ = write!(
            out,
            "<section id=\"{}\"><h2>{}</h2>\n<p class=\"lead\">{}</p>\n{}\n",
            figure.id,
            escape(figure.title),
            prose(&figure.lead),
            figure.body
        );
        if let Some(table) = &figure.data {
            let _ = writeln!(
                out,
                "<p class=\"data\"><a download=\"{id}.csv\" href=\"{uri}\">{id}.csv</a>, {n} rows</p>",
                id = figure.id,
                uri = embed::uri("text/csv;charset=utf-8", table.csv().as_bytes()),
                n = table.len()
            );
        }
        out.push_str("</section>\n");
    }
    let _ = write!(out, "</main>\n<script>\n{SCRIPT}</script>\n</body></html>\n");
    out
}

/// The figures that one wants first.
fn tiles(material: &Material) -> String {
    let [up, tr] = material.study.sides().map(crate::study::Side::accuracy);
    let all = material.latency[0].with(&material.latency[1]).percentiles();
    let mut out = String::from("<div class=\"tiles\">");
    let mut tile = |name: &str, value: String, below: String| {
        let _ = write!(
            out,
            "<div class=\"tile\"><span>{name}</span><b>{value}</b><small>{below}</small></div>"
        );
    };
    for (name, accuracy) in [("transformed accuracy", &tr), ("upright accuracy", &up)] {
        let (low, high) = accuracy.after.interval();
        tile(
            name,
            format!("{:.1} → {:.1} %", accuracy.before.percent(), accuracy.after.percent()),
            format!("95 %: {low:.1} to {high:.1}, n = {}", accuracy.after.of),
        );
    }
    tile(
        "inputs searched",
        format!("{:.1} %", tr.searched.percent()),
        format!("of transformed, {:.1} % of upright", up.searched.percent()),
    );
    if let Some(total) = all.last().filter(|t| t.p50.is_finite()) {
        tile(
            "ms per decision",
            format!("{:.1}", total.p50),
            format!("median; 95 of 100 within {:.1}", total.p95),
        );
    }
    out.push_str("</div>\n");
    out
}

/// A sentence as a heading: a large first letter, arrows, numbers kept with their signs.
fn headline(text: &str) -> String {
    let text = text.replace(" -> ", "\u{a0}→\u{a0}").replace(" %", "\u{a0}%");
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Text made harmless, with what stands between backticks as code.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        let part = escape(part);
        let (open, close) = if i % 2 == 1 { ("<code>", "</code>") } else { ("", "") };
        out.extend([open, &part, close]);
    }
    out
}

/// A key of marks and words, in HTML.
fn legend(entries: &[(&str, &str)]) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (class, words) in entries {
        let _ = write!(out, "<li><i class=\"key {class}\"></i>{}</li>", escape(words));
    }
    out + "</ul>"
}

/// A number for tables: short, and a dash if it is none.
pub fn number(v: f64) -> String {
    match v {
        v if v.is_nan() => "–".into(),
        v if v.is_infinite() => if v > 0.0 { "∞" } else { "−∞" }.into(),
        v if v.abs() >= 100.0 => format!("{v:.0}"),
        v if v.abs() >= 1.0 => format!("{v:.2}"),
        v => format!("{:.3}", rounded(v, 3)),
    }
}
