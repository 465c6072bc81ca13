//! Settings of searches chosen on held-out inputs, as the paper chooses them by 30 trials a
//! search and data set: of the searches whose defaults spread the evaluations otherwise than
//! that choice may, a few settings each, by the mean accuracy over the energies.

use upright::{Batch, Canonicalizer, Part, Role, Share};

use super::ledger::{Found, Line};
use super::measure::searched;
use super::page::{Table, mean, with};
use super::paper;
use super::tasks::Task;

/// Transformed held-out inputs that settings are chosen on.
const HELD: usize = 100;
/// The poses of held-out copies.
const POSES: u64 = 45;
/// What tells such a measurement from the others.
pub(super) const KEY: &str = "settings";

/// A setting in words, and what it changes.
type Setting = (&'static str, fn(Part) -> Part);

/// Searches with their settings, the defaults first.
const SEARCHES: [(&str, &[Setting]); 4] = [
    (
        "descent",
        &[
            ("4 starts, 7 steps", |p| p),
            ("12 starts, 2 steps", |p| p.number("starts", 12.0)),
            ("20 starts, 1 step", |p| p.number("starts", 20.0)),
            ("20 starts, 1 shorter step", |p| p.number("starts", 20.0).number("rate", 0.1)),
        ],
    ),
    (
        "annealing",
        &[
            ("steps within a quarter of the space", |p| p),
            ("steps within half of it", |p| p.number("size", 0.5)),
            ("steps within all of it", |p| p.number("size", 1.0)),
            ("the same, any step taken", |p| {
                p.number("size", 1.0).number("temperature", 100.0).number("cooling", 1.0)
            }),
        ],
    ),
    (
        "wcd",
        &[
            ("twice as many poses of the first axis", |p| p),
            ("as many", |p| p.number("weight", 1.0)),
            ("four times as many", |p| p.number("weight", 4.0)),
        ],
    ),
    (
        "its",
        &[
            ("2 hypotheses", |p| p),
            ("1 hypothesis", |p| p.number("hypotheses", 1.0)),
            ("3 hypotheses", |p| p.number("hypotheses", 3.0)),
        ],
    ),
];

/// The searches whose settings are chosen.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SEARCHES.iter().map(|(name, _)| *name)
}

/// Energies by name, each in a canonicalizer that searches by it.
pub(super) type Led = Vec<(&'static str, Canonicalizer)>;

/// Right answers on held-out inputs with every setting, and on `count` of the test's transformed
/// inputs with the chosen one.
pub(super) fn chosen(task: &Task, led: &Led, search: &str, count: usize) -> upright::Result<Found> {
    let settings = settings(search);
    let (held, truth) = task.held.some(HELD.min(count)).load()?;
    let copies = task.copies(&held, POSES)?;
    let mut result = Found::of(&search);
    for &(name, change) in settings {
        let part = change(Part::new(search));
        let mut all = Share::default();
        for (_, c) in led {
            let share = right(c, &part, &copies, &truth)?;
            (all.hits, all.of) = (all.hits + share.hits, all.of + share.of);
        }
        result.counts.insert(held_out(name), all);
    }
    let (name, change) = best(&result, settings);
    println!("  {search}: {name}");
    let test = task.test()?;
    let some: Vec<usize> = (0..count.min(test.labels.len())).collect();
    let inputs = test.transformed.select(&some);
    for (energy, c) in led {
        let share = right(c, &change(Part::new(search)), &inputs, &test.labels)?;
        result.counts.insert((*energy).into(), share);
    }
    Ok(result)
}

fn settings(search: &str) -> &'static [Setting] {
    SEARCHES.iter().find(|(name, _)| *name == search).map_or(&[], |(_, settings)| settings)
}

fn held_out(setting: &str) -> String {
    format!("held out, {setting}")
}

fn right(c: &Canonicalizer, part: &Part, inputs: &Batch, truth: &[u32]) -> upright::Result<Share> {
    let [answers, _] = searched(&c.with_part(Role::Search, part.clone())?, inputs)?;
    Ok(Share::count(answers.right(truth)))
}

/// The setting with the most right answers on held-out inputs; of several the first.
fn best(found: &Found, settings: &'static [Setting]) -> Setting {
    let right = |setting: &Setting| found.counts.get(&held_out(setting.0)).map_or(0, |s| s.hits);
    let mut best = settings[0];
    for setting in settings {
        if right(setting) > right(&best) {
            best = *setting;
        }
    }
    best
}

/// What was chosen and how well it does, beside the paper's.
pub(super) fn table(own: &[&Line], set: &str) -> Table {
    let mut table =
        Table::new(&["60 evaluations", "chosen of", "setting", "mean accuracy", "the paper's"]);
    for (search, settings) in SEARCHES {
        let lines = with(own, KEY, search);
        let Some(last) = lines.last() else { continue };
        let shares = last.found.counts.iter().filter(|(name, _)| !name.starts_with("held out"));
        let Some((accuracy, _)) = mean(&shares.map(|(_, s)| s.percent()).collect::<Vec<_>>())
        else {
            continue;
        };
        let beside =
            paper::search(set, search).map_or_else(|| "–".into(), |(a, _)| format!("{a:.1}"));
        table.row(vec![
            format!("`{search}`"),
            settings.len().to_string(),
            best(&last.found, settings).0.into(),
            format!("{accuracy:.1}"),
            beside,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_best_is_chosen() {
        let settings = settings("its");
        let mut found = Found::default();
        for ((name, _), hits) in settings.iter().zip([50, 61, 61]) {
            found.counts.insert(held_out(name), Share { hits, of: 100 });
        }
        assert_eq!(best(&found, settings).0, "1 hypothesis");
    }

    #[test]
    fn every_setting_is_one_that_its_search_knows() {
        for (search, settings) in SEARCHES {
            assert!(paper::search("mnist", search).is_some(), "{search}");
            for (name, change) in settings {
                let part = change(Part::new(search));
                assert!(upright::search::make(&part).is_ok(), "{search}: {name}");
            }
        }
    }
}
