//! What each part of ours is worth: each left out once.

use upright::{Config, Part, Role};

use super::ledger::{Found, Line};
use super::main::judged;
use super::measure::always_and_gated;
use super::page::{Page, Table, accuracy, number, with};
use super::scale::Scale;
use super::tasks::{FOUR, KINDS, Task};
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "parts",
    about: "ours with each part left out once",
    sets: FOUR,
    once: true,
    many: true,
    run,
    show,
};

/// A part that can be left out.
pub(super) struct Left {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) change: fn(Config) -> Config,
}

/// The same part with a flag changed.
pub(super) fn flag(config: Config, role: Role, name: &str, value: bool) -> Config {
    let part = config.part(role).clone().flag(name, value);
    config.with(role, part)
}

const LEFT: [Left; 9] = [
    Left { name: "whole", about: "ours", change: |c| c },
    Left {
        name: "judge",
        about: "without the judge: distance to familiar samples (`pc-knn-mix`)",
        change: |c| c.with(Role::Score, Part::new("pc-knn-mix")),
    },
    Left {
        name: "trust",
        about: "without a trust of every class' own",
        change: |c| flag(c, Role::Score, "classes", false),
    },
    Left {
        name: "rating",
        about: "without what the proposer says of a view",
        change: |c| flag(c, Role::Score, "rating", false),
    },
    Left {
        name: "normal",
        about: "without the normal form",
        change: |c| flag(c, Role::Proposer, "normal", false),
    },
    Left {
        name: "landmarks",
        about: "without landmarks: features are read linearly",
        change: |c| {
            let part = c.part(Role::Proposer).clone().number("landmarks", 0.0);
            c.with(Role::Proposer, part)
        },
    },
    Left {
        name: "steps",
        about: "without steps from views that are nearly upright",
        change: |c| flag(c, Role::Proposer, "steps", false),
    },
    Left {
        name: "early",
        about: "without stopping early",
        change: |c| flag(c, Role::Search, "early", false),
    },
    Left {
        name: "proposer",
        about: "without the learned proposer: moments, 60 views (preset `search`)",
        change: |c| {
            let usual = upright::Preset::of("search").map(upright::Preset::parts);
            let parts = usual.unwrap_or_else(|_| c.parts.clone());
            let gate = c.part(Role::Gate).clone();
            Config { parts, budget: 60, ..c }.with(Role::Gate, gate)
        },
    },
];

/// So many fits would take a night: each learns from a part of the copies and lessons, and is
/// calibrated on a part of the held-out samples.
fn scale(lab: &Lab) -> Scale {
    let mut scale = lab.scale.clone();
    if scale.name == "full" {
        scale.learns = Some(LEARNS);
        scale.calibration = CALIBRATION;
    }
    scale
}

/// Copies and lessons.
const LEARNS: (usize, usize) = (20_000, 5_000);
const CALIBRATION: usize = 2000;

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    let lab = &mut lab.scaled(scale(lab))?;
    for left in &LEFT {
        lab.measure(task, &[("without", left.name)], |lab| {
            let fit = lab.fitted(task, task.usual()?, &(left.change)(lab.config(task)))?;
            let mut found = Found::of(fit.c.config());
            judged(task, &mut found, &["always ", ""], |batch| {
                Ok(always_and_gated(&fit.c, batch)?.into())
            })?;
            Ok(found)
        })?;
    }
    Ok(())
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(&format!(
        "Behind the gate and always on (ours without its gate), accuracy in percent and mean views. \
         Every row is a fit of its own on at most {} copies and {} lessons, calibrated on at most \
         {CALIBRATION} samples, which is less than the default. What only photographs have \
         (several kinds of copies, votes of quarter turns) is left out in their own table.",
        LEARNS.0, LEARNS.1
    ));
    page.by_set(lines, |page, _, own| {
        page.table(&table(own, LEFT.iter().map(|l| (l.name, l.about))));
    });
}

/// A row for everything that was left out.
fn table<'a>(lines: &[&Line], left: impl Iterator<Item = (&'a str, &'a str)>) -> Table {
    let titles = [
        "",
        "gated: upright",
        "transformed",
        "views",
        "always on: upright",
        "transformed",
        "views",
    ];
    let mut table = Table::new(&titles);
    for (name, about) in left {
        let own = with(lines, "without", name);
        if own.is_empty() {
            continue;
        }
        let side = |prefix: &str| {
            let [up, tr] = KINDS.map(|kind| accuracy(&own, &format!("{prefix}{kind}")));
            let used = KINDS
                .map(|kind| number(&own, &format!("{prefix}{kind} evaluations"), 1))
                .join(" / ");
            [up, tr, used]
        };
        let cells = [about.to_string()].into_iter().chain(side("")).chain(side("always "));
        table.row(cells.collect());
    }
    table
}
