//! Inputs and the views that were classified, side by side, to be sorted.

use std::fmt::Write;

use upright::{Canonicalizer, Verdict};

use super::{Figure, Table, number};
use crate::plot::escape;
use crate::study::{Outcome, Side, Study};

/// A pair on the sheet.
#[derive(Debug, Clone)]
pub struct Cell {
    /// `upright` or `transformed`.
    pub kind: &'static str,
    /// What to call the input.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Addresses that hold the input and the view that answered.
    pub pictures: [String; 2],
}

/// The outcomes worth showing, as places in the list of all: the strongest of each group
/// in turn, at most so many.
pub fn pick(side: &Side, most: usize) -> Vec<usize> {
    let group = |want: &dyn Fn(&Outcome) -> bool| {
        let mut group: Vec<usize> =
            (0..side.outcomes.len()).filter(|&i| want(&side.outcomes[i])).collect();
        group.sort_by(|&a, &b| {
            let gain = |i: usize| side.outcomes[i].gain.abs();
            gain(b).total_cmp(&gain(a)).then(a.cmp(&b))
        });
        group
    };
    let verdict = |o: &Outcome, v: Verdict| o.prediction.verdict == v;
    let groups = [
        group(&|o| o.before() && !o.after()),
        group(&|o| !o.before() && o.after()),
        group(&|o| verdict(o, Verdict::Rejected)),
        group(&|o| verdict(o, Verdict::Abstained)),
        group(&|o| verdict(o, Verdict::Accepted) && !o.before() && !o.after()),
        group(&|o| verdict(o, Verdict::Kept) && !o.after()),
        group(&|o| verdict(o, Verdict::Accepted) && o.before() && o.after()),
    ];
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    let mut picked: Vec<usize> = Vec::new();
    for turn in 0..longest {
        for i in groups.iter().filter_map(|g| g.get(turn)) {
            if picked.len() < most && !picked.contains(i) {
                picked.push(*i);
            }
        }
    }
    picked
}

/// What is written of an input.
const COLUMNS: &[&str] = &[
    "data",
    "input",
    "truth",
    "model_says",
    "answer",
    "verdict",
    "gain",
    "energy_before",
    "energy_after",
];

fn row(table: &mut Table, c: &Canonicalizer, kind: &str, name: &str, o: &Outcome) {
    let class = |label: u32| c.model().class_name(label);
    let p = &o.prediction;
    table.row([
        kind.into(),
        name.into(),
        class(o.truth),
        class(p.raw_label),
        class(p.label),
        upright_job::word(p.verdict).into(),
        format!("{:.4}", o.gain),
        p.energy_before.to_string(),
        p.energy_after.to_string(),
    ]);
}

/// Every input of a study, in the columns of the sheet's data; `name` is told the kind's
/// place and the row.
pub fn all(c: &Canonicalizer, study: &Study, name: impl Fn(usize, usize) -> String) -> Table {
    let mut table = Table::new(COLUMNS);
    for (i, side) in study.sides().into_iter().enumerate() {
        for o in &side.outcomes {
            row(&mut table, c, side.kind, &name(i, o.row), o);
        }
    }
    table
}

/// Draws the sheet, biggest gain first.
pub(super) fn draw(c: &Canonicalizer, cells: &[Cell], study: &Study) -> Figure {
    let mut cells: Vec<&Cell> = cells.iter().collect();
    cells.sort_by(|a, b| b.outcome.gain.total_cmp(&a.outcome.gain).then(a.name.cmp(&b.name)));
    let mut data = Table::new(COLUMNS);
    let mut body = String::from(
        "<div class=\"sort\" role=\"group\" aria-label=\"Sort the sheet\">\
         <button type=\"button\" data-by=\"gain\" aria-pressed=\"true\">biggest gain</button>\
         <button type=\"button\" data-by=\"loss\">harmed first</button>\
         <button type=\"button\" data-by=\"rejected\">rejected first</button>\
         <button type=\"button\" data-by=\"kept\">kept first</button>\
         <button type=\"button\" data-by=\"energy\">least familiar first</button>\
         <button type=\"button\" data-by=\"truth\">by class</button></div>\n<div class=\"sheet\" id=\"cells\">\n",
    );
    for cell in &cells {
        let o = &cell.outcome;
        let p = &o.prediction;
        let class = |label: u32| c.model().class_name(label);
        let verdict = upright_job::word(p.verdict);
        let says = |label: u32| {
            let (mark, kind) = if label == o.truth { ("✓", "right") } else { ("✗", "wrong") };
            format!("<b class=\"{kind}\">{} {mark}</b>", escape(&class(label)))
        };
        let _ = writeln!(
            body,
            "<figure class=\"cell {change}\" data-gain=\"{gain:.4}\" data-verdict=\"{verdict}\" \
             data-energy=\"{energy}\" data-truth=\"{truth}\" title=\"{title}\">\
             <div><span><img src=\"{before}\" alt=\"input\">{raw}</span><i>→</i>\
             <span><img src=\"{after}\" alt=\"view that answered\">{answer}</span></div>\
             <figcaption>true class: {true_class}<br>{kind}, {verdict}<br>energy {e0} → {e1}</figcaption></figure>",
            change = match (o.before(), o.after()) {
                (true, false) => "harmed",
                (false, true) => "mended",
                _ => "same",
            },
            gain = o.gain,
            energy = if o.raw.energy.is_nan() { f32::MAX } else { o.raw.energy },
            truth = o.truth,
            title = escape(&format!("{}; true class: {}", cell.name, class(o.truth))),
            before = cell.pictures[0],
            raw = says(p.raw_label),
            after = cell.pictures[1],
            answer = says(p.label),
            true_class = escape(&class(o.truth)),
            kind = cell.kind,
            e0 = number(p.energy_before.into()),
            e1 = number(p.energy_after.into()),
        );
        row(&mut data, c, cell.kind, &cell.name, o);
    }
    body.push_str("</div>");
    let all: usize = study.sides().iter().map(|s| s.outcomes.len()).sum();
    Figure {
        id: "sheet",
        title: "Before and after",
        lead: format!(
            "{} of {all} inputs, the most telling of each sort: left the input and what the bare \
             model says, right the view that answered. Gain is how much more probable the true \
             class became. A green edge is a mended answer, a red one a harmed answer.",
            cells.len()
        ),
        body,
        data: Some(data),
    }
}
