//! Run times as ratios: a whole search under each score relative to `energy`, each
//! search relative to random search; and what scores store.
//!
//! Each is timed between two runs of what it is compared with, several times over; the quickest
//! runs count, which other work has slowed least.

use std::time::Instant;

use upright::{Batch, Canonicalizer, Part, Role, Tap, score, search};

use super::fits::Filled;
use super::ledger::{Found, Line};
use super::main::paper_config;
use super::page::{Page, Table, number, with};
use super::tasks::{FOUR, Task};
use super::{Experiment, Lab, paper};
use crate::cost::bytes;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "runtime",
    about: "run times of scores and searches as ratios",
    sets: FOUR,
    once: true,
    many: true,
    run,
    show,
};

/// Inputs that are searched at a time, at most, and of how many that judge one is taken.
const INPUTS: usize = 16;
const ONE_OF: usize = 8;
/// Interleaved repetitions, of which the quickest count.
const ROUNDS: usize = 5;

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    lab.measure(task, &[("of", "scores")], |lab| scores(lab, task))?;
    lab.measure(task, &[("of", "searches")], |lab| searches(lab, task))
}

fn inputs(lab: &Lab, task: &Task) -> upright::Result<Batch<'static>> {
    let test = task.test()?;
    let count = (lab.scale.inputs / ONE_OF).clamp(1, INPUTS).min(test.labels.len());
    Ok(test.transformed.select(&(0..count).collect::<Vec<_>>()))
}

fn seconds(c: &Canonicalizer, batch: &Batch) -> upright::Result<f64> {
    let start = Instant::now();
    c.predict(batch)?;
    Ok(start.elapsed().as_secs_f64())
}

/// The quickest of some rounds relative to the quickest of another.
fn relative(own: &Canonicalizer, other: &Canonicalizer, batch: &Batch) -> upright::Result<f64> {
    seconds(own, &batch.select(&[0]))?;
    let (mut quickest, mut others) = (f64::INFINITY, seconds(other, batch)?);
    for _ in 0..ROUNDS {
        quickest = quickest.min(seconds(own, batch)?);
        others = others.min(seconds(other, batch)?);
    }
    Ok(quickest / others)
}

fn scores(lab: &Lab, task: &Task) -> upright::Result<Found> {
    let model = task.model(&[Tap::auto()])?;
    let config = paper_config(lab, task, &model)?.with(Role::Search, Part::new("random"));
    let parts: Vec<Part> = score::TABLE.iter().map(|row| Part::new(row.name)).collect();
    let filled = Filled::for_scores(task, &model, lab.scale.bank, &parts)?;
    let energy = filled.searching(&model, config.clone().with(Role::Score, Part::new("energy")))?;
    let batch = inputs(lab, task)?;
    let mut found = Found::of(&config);
    found.number("bank", filled.labels.len() as f64);
    for row in score::TABLE {
        let needs = score::needs(&Part::new(row.name))?;
        if needs.lessons > 0 || needs.external {
            continue;
        }
        // Without a linear head some scores cannot be fitted at all.
        let own = config.clone().with(Role::Score, Part::new(row.name));
        let Ok(own) = filled.searching(&model, own) else { continue };
        found.number(row.name, relative(&own, &energy, &batch)?);
        found.number(&format!("{} megabytes", row.name), bytes(&own.score().state()) as f64 / 1e6);
    }
    Ok(found)
}

fn searches(lab: &Lab, task: &Task) -> upright::Result<Found> {
    let model = task.model(&[Tap::auto()])?;
    let config = paper_config(lab, task, &model)?
        .with(Role::Search, Part::new("random"))
        .with(Role::Score, Part::new("energy"));
    let filled = Filled::of(task, &model, Some(500))?;
    let random = filled.searching(&model, config.clone())?;
    let batch = inputs(lab, task)?;
    let mut found = Found::of(&config);
    for row in search::TABLE.iter().filter(|row| row.name != "grid") {
        let own = random.with_part(Role::Search, Part::new(row.name))?;
        found.number(row.name, relative(&own, &random, &batch)?);
    }
    Ok(found)
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "A whole search, classifier included, in one interleaved run on a CPU; the paper's ratios \
         (its GPU) in brackets. What `energy` and `random` show relative to themselves is what \
         the timing leaves to chance. `follow` and `rivals` have nothing proposed here.",
    );
    let lines: Vec<&Line> = lines.iter().collect();
    let ratio = |set: &str, of: &str, name: &str, beside: Option<f64>| {
        let own = with(&with(&lines, "data", set), "of", of);
        let beside = beside.map(|b| format!(" ({b:.2})")).unwrap_or_default();
        number(&own, name, 2) + &beside
    };
    let titled = |first: &'static str| {
        let mut titles = vec![first];
        titles.extend(FOUR);
        titles
    };
    page.heading("scores, relative to `energy`");
    let mut titles = titled("");
    titles.push("stored on MNIST, MB");
    let mut table = Table::new(&titles);
    for row in score::TABLE {
        let mut cells = vec![format!("`{}`", row.name)];
        cells.extend(
            FOUR.iter().map(|set| ratio(set, "scores", row.name, paper::runtime(set, row.name))),
        );
        cells.push(ratio("mnist", "scores", &format!("{} megabytes", row.name), None));
        if cells[1..=FOUR.len()].iter().any(|c| !c.starts_with('–')) {
            table.row(cells);
        }
    }
    page.table(&table);
    page.heading("searches, relative to `random`");
    let mut table = Table::new(&titled(""));
    for row in search::TABLE.iter().filter(|row| row.name != "grid") {
        let mut cells = vec![format!("`{}`", row.name)];
        let beside = |set: &str| paper::search_time(set, row.name);
        cells.extend(FOUR.iter().map(|set| ratio(set, "searches", row.name, beside(set))));
        table.row(cells);
    }
    page.table(&table);
    page.provenance(&lines);
}
