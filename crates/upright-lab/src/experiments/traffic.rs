//! Ours behind its gate on mixed traffic: what it costs and what it answers when
//! some of the inputs come transformed.

use upright::Batch;

use super::ledger::{Found, Line};
use super::measure::gated;
use super::page::{Page, Table, accuracy, number, with};
use super::tasks::{FOUR, Task};
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "traffic",
    about: "ours, gated, where some of the inputs come transformed",
    sets: FOUR,
    once: false,
    many: false,
    run,
    show,
};

/// Shares of transformed inputs, in percent.
const SHARES: [usize; 4] = [0, 10, 50, 100];

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    for percent in SHARES {
        lab.measure(task, &[("transformed", &percent.to_string())], |lab| {
            let c = lab.ours(task)?.c;
            let test = task.test()?;
            let turned = |i: usize| i * percent / 100 != (i + 1) * percent / 100;
            let mut mixed = Batch::new(test.upright.signal(), Vec::new())?;
            let mut alone = Vec::new();
            let kinds = test.kinds(&task.model(&[])?)?;
            for i in 0..test.labels.len() {
                let (_, batch, right) = kinds[usize::from(turned(i))];
                mixed.push(batch.item(i))?;
                alone.push(right[i]);
            }
            let answers = gated(&c, &mixed)?;
            let mut found = Found::of(c.config());
            found.right("right", &answers.right(&test.labels), &alone);
            found.right("alone", &alone, &alone);
            found.number("evaluations", answers.mean());
            Ok(found)
        })?;
    }
    Ok(())
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "Accuracy in percent and mean network runs per input, by the share of transformed inputs.",
    );
    page.by_set(lines, |page, _, own| {
        let mut table =
            Table::new(&["transformed", "classifier alone", "ours, gated", "network runs"]);
        for percent in SHARES {
            let own = with(own, "transformed", &percent.to_string());
            table.row(vec![
                format!("{percent} %"),
                accuracy(&own, "alone"),
                accuracy(&own, "right"),
                number(&own, "evaluations", 2),
            ]);
        }
        page.table(&table);
    });
}
