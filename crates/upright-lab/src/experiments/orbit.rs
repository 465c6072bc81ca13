//! Orbit consistency: how many of the transformed copies of one input get the
//! same class, from the bare classifier and from ours. Needs no labels.

use upright::internal::canonicalizer::Consistency;
use upright::{Part, Role, Share};

use super::ledger::{Found, Line};
use super::page::{Page, Table, accuracy, with};
use super::tasks::{DIGITS, FOUR, Task};
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "orbit",
    about: "copies of one input that get the same class",
    sets: FOUR,
    once: false,
    many: false,
    run,
    show,
};

const INPUTS: usize = 40;
const COPIES: usize = 16;

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    for method in ["always", "gated"] {
        lab.measure(task, &[("method", method)], |lab| {
            let mut c = lab.ours(task)?.c;
            if method == "always" {
                c = c.with_part(Role::Gate, Part::new("always"))?;
            }
            let (batch, _) = task.judged(INPUTS).load()?;
            let orbits = c.orbits(&batch, COPIES, lab.seed)?;
            let Consistency { canonical, raw } = Consistency::of(&orbits);
            let whole = |part: &dyn Fn(&upright::Orbit) -> Share| {
                Share::count(orbits.iter().map(|o| part(o).hits == part(o).of))
            };
            let mut found = Found::of(c.config());
            for (name, share) in [
                ("before", raw),
                ("after", canonical),
                ("before, all copies", whole(&|o| o.raw)),
                ("after, all copies", whole(&|o| o.canonical)),
            ] {
                found.counts.insert(name.into(), share);
            }
            Ok(found)
        })?;
    }
    Ok(())
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(&format!(
        "{INPUTS} inputs x {COPIES} copies under random poses: the share of copies that get the \
         most frequent class of their input, and the share of inputs all of whose copies get one \
         class, in percent. Copies of one input are not independent; the intervals take them as \
         if they were."
    ));
    let lines: Vec<&Line> = lines.iter().collect();
    let mut table = Table::new(&[
        "",
        "before",
        "after, always on",
        "after, gated",
        "all copies: before",
        "always on",
        "gated",
    ]);
    for &set in FOUR.iter().chain(&[DIGITS]) {
        let own = with(&lines, "data", set);
        if own.is_empty() {
            continue;
        }
        let [always, gated] = ["always", "gated"].map(|m| with(&own, "method", m));
        let mut row = vec![set.to_string()];
        for suffix in ["", ", all copies"] {
            row.push(accuracy(&gated, &format!("before{suffix}")));
            row.push(accuracy(&always, &format!("after{suffix}")));
            row.push(accuracy(&gated, &format!("after{suffix}")));
        }
        table.row(row);
    }
    page.table(&table);
    page.provenance(&lines);
}
