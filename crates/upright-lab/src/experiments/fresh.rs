//! Ours on test inputs that no setting was chosen by: rows that no other
//! experiment judges at full scale, where there are any, under poses of their own.

use upright::Dataset;

use super::ledger::{Found, Line};
use super::measure::always_and_gated;
use super::page::{Page, Table, accuracy, gain, number, with};
use super::tasks::{FOUR, KINDS, Task};
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "fresh",
    about: "ours on test inputs and poses that nothing was chosen by",
    sets: FOUR,
    once: false,
    many: false,
    run,
    show,
};

/// Inputs that judge, against the usual number.
const MORE: usize = 2;
/// Inputs below which each is judged under several poses.
const FEW: usize = 1000;

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    lab.measure(task, &[("method", "ours")], |lab| {
        let fit = lab.ours(task)?;
        let most = MORE * lab.scale.inputs;
        let times = if task.judged(most).len() < lab.scale.inputs.min(FEW) { 3 } else { 1 };
        let test = task.fresh(most, times, lab.seed)?;
        let mut found = Found::of(fit.c.config());
        found.number("fit seconds", fit.cost.seconds);
        found.number("artifact megabytes", fit.cost.bytes as f64 / 1e6);
        // What is judged under several poses is the same input as it is.
        let each = test.labels.len() / times as usize;
        for (kind, batch, alone) in test.kinds(&task.model(&[])?)? {
            let count = if kind == KINDS[0] { each } else { alone.len() };
            let (batch, alone) = (batch.select(&(0..count).collect::<Vec<_>>()), &alone[..count]);
            found.right(&format!("vanilla {kind}"), alone, alone);
            let answers = always_and_gated(&fit.c, &batch)?;
            for (method, answers) in ["always", "gated"].iter().zip(answers) {
                let right = answers.right(&test.labels);
                found.right(&format!("{method} {kind}"), &right, alone);
                found.number(&format!("{method} {kind} evaluations"), answers.mean());
            }
        }
        Ok(found)
    })
}

const METHODS: [(&str, &str); 3] =
    [("vanilla", "Vanilla"), ("always", "**ours**, always on"), ("gated", "**ours**, gated")];

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "Digits and letters: test rows on which no default was chosen. Of sketches and clouds \
         there are too few for that: they are the same inputs, under other poses, clouds under \
         three each, which their intervals take as independent. Every run has poses of its own. \
         Gains are paired: points against the bare classifier on the same inputs, with their 95 % \
         interval.",
    );
    page.by_set(lines, |page, _, own| {
        let own = with(own, "method", "ours");
        let mut table = Table::new(&["", "upright", "gained", "transformed", "gained", "views"]);
        for (method, name) in METHODS {
            let [up, tr] = KINDS.map(|kind| format!("{method} {kind}"));
            let views = KINDS.map(|kind| number(&own, &format!("{method} {kind} evaluations"), 2));
            let bare = method == "vanilla";
            table.row(vec![
                name.into(),
                accuracy(&own, &up),
                if bare { "–".into() } else { gain(&own, &up) },
                accuracy(&own, &tr),
                if bare { "–".into() } else { gain(&own, &tr) },
                if bare { "1".into() } else { views.join(" / ") },
            ]);
        }
        page.table(&table);
        let seconds = own.iter().filter_map(|l| l.number("fit seconds"));
        page.text(&format!(
            "The quickest fit took {:.0} s beside other work; {} MB.",
            seconds.fold(f64::INFINITY, f64::min),
            number(&own, "artifact megabytes", 1)
        ));
    });
}
