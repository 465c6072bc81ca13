//! Ours, always on: accuracy against the budget, the views that an input may cost
//! beside the one of the input as it is.

use upright::{Part, Role};

use super::ledger::{Found, Line};
use super::main::judged;
use super::measure::searched;
use super::page::{Page, Table, accuracy, views, with};
use super::tasks::{FOUR, KINDS, Task};
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "views",
    about: "ours, always on: accuracy against views",
    sets: FOUR,
    once: false,
    many: false,
    run,
    show,
};

const BUDGETS: [usize; 6] = [2, 4, 8, 15, 30, 60];

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    for budget in BUDGETS {
        lab.measure(task, &[("budget", &budget.to_string())], |lab| {
            let c = lab.ours(task)?.c.with_part(Role::Gate, Part::new("always"))?;
            let c = c.with_budget(budget);
            let mut found = Found::of(c.config());
            judged(task, &mut found, &[""], |batch| {
                let [_, answers] = searched(&c, batch)?;
                Ok(vec![answers])
            })?;
            Ok(found)
        })?;
    }
    Ok(())
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "A budget counts views beside the one of the input as it is. The search may stop before \
         it is used up, when the judge is sure; what it used on average, upright / transformed, \
         the input as it is included, is in the last column.",
    );
    page.by_set(lines, |page, _, own| {
        let mut table = Table::new(&["budget", "upright", "transformed", "views used"]);
        for budget in BUDGETS {
            let own = with(own, "budget", &budget.to_string());
            let [up, tr] = KINDS.map(|kind| accuracy(&own, kind));
            table.row(vec![budget.to_string(), up, tr, views(&own, "")]);
        }
        page.table(&table);
    });
}
