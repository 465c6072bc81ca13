//! Ours, always on: accuracy against the views that an input may cost, the input
//! as it is included.

use upright::{Part, Role};

use super::ledger::{Found, Line};
use super::main::judged;
use super::measure::{Among, searched};
use super::page::{Page, Table, accuracy, views, with};
use super::tasks::{DIGITS, FOUR, KINDS, Task};
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "views",
    about: "ours, always on: accuracy against views",
    sets: FOUR,
    once: false,
    run,
    show,
};

/// Most views of an input.
const VIEWS: [usize; 6] = [2, 4, 8, 15, 30, 60];

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    for most in VIEWS {
        lab.cell(task, &[("views", &most.to_string())], |lab| {
            let c = lab.ours(task)?.c.with_part(Role::Gate, Part::new("always"))?;
            // A budget does not count the input as it is.
            let c = c.with_budget(most - 1);
            let mut found = Found::of(c.config());
            judged(task, &mut found, |batch| searched(&c, batch, Among::All))?;
            Ok(found)
        })?;
    }
    Ok(())
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "The search may stop before its views are used up, when the judge is sure; what it used \
         on average is in the last column.",
    );
    let lines: Vec<&Line> = lines.iter().collect();
    for &set in FOUR.iter().chain(&[DIGITS]) {
        let own = with(&lines, "data", set);
        if own.is_empty() {
            continue;
        }
        let mut table = Table::new(&["at most", "upright", "transformed", "views used"]);
        for most in VIEWS {
            let own = with(&own, "views", &most.to_string());
            let [up, tr] = KINDS.map(|kind| accuracy(&own, kind));
            table.row(vec![most.to_string(), up, tr, views(&own)]);
        }
        page.heading(set);
        page.table(&table);
        page.provenance(&own);
    }
}
