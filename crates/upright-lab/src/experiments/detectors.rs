//! Every score, with its defaults and tuned: right answers when the view of
//! lowest energy among 60 random ones answers. All scores see the same views.

use upright::score;

use super::chart::bars;
use super::ledger::{Found, Line};
use super::material::{Material, Worth};
use super::page::{Page, Table, accuracy, beside, with};
use super::tasks::{FOUR, KINDS, Task};
use super::{Experiment, Lab, paper};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "detectors",
    about: "every score, with its defaults and tuned",
    sets: FOUR,
    once: true,
    many: true,
    run,
    show,
};

/// Inputs of each kind, at most.
const INPUTS: usize = 500;

/// Scores that learn from the bank alone.
fn scores() -> impl Iterator<Item = &'static str> {
    let other = |name: &str| {
        score::needs(&upright::Part::new(name)).is_ok_and(|n| n.lessons > 0 || n.external)
    };
    score::TABLE.iter().map(|row| row.name).filter(move |name| !other(name))
}

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    let inputs = lab.scale.inputs.min(INPUTS);
    let mut material: Option<Material> = None;
    for name in scores() {
        lab.measure(task, &[("score", name)], |lab| {
            if material.is_none() {
                material = Some(Material::of(lab, task, inputs)?);
            }
            let material = material.as_ref().expect("it was made above");
            one(lab, material, name)
        })?;
    }
    Ok(())
}

fn one(lab: &Lab, material: &Material, name: &str) -> upright::Result<Found> {
    let usual = upright::Part::new(name);
    let (part, tap) = material.tuned(lab, name, Worth::Accuracy)?;
    let mut found = Found::of(&(&part, material.taps.get(tap)));
    for (setting, part, tap) in [("default", &usual, 0), ("tuned", &part, tap)] {
        let score = match material.score(part, tap) {
            Ok(score) => score,
            // Without a linear head some scores cannot be fitted at all.
            Err(_) if setting == "default" => return Ok(found),
            Err(e) => return Err(e),
        };
        for (kind, seen) in KINDS.iter().zip(&material.test) {
            let right = seen.right(score.as_ref(), tap);
            found.right(&format!("{setting} {kind}"), &right, &seen.alone());
        }
    }
    Ok(found)
}

/// Of the data set whose numbers the paper's code tells.
const ENERGIES: &str = "Scores of how large logits are (`energy`, `max-logit`, `react`, `dice`, \
                        `vim`, `openmax`) tell less of this classifier than of the paper's; those \
                        of how logits compare (`entropy`, `gen`, `msp`) and distances tell more.";

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "Transformed and upright accuracy in percent of the view of lowest energy among 60 random \
         ones, the input as it is left out; sorted by the tuned score. Every score has a bank of \
         4,000 samples, less than elsewhere, and is tuned by up to 24 trials on 150 held-out \
         inputs. The paper shows bars without numbers: kNN is best on MNIST, PC-kNN on EMNIST, kNN \
         Mix on ModelNet10, PC-Proto on TU Berlin, where its code tells numbers.",
    );
    page.by_set(lines, |page, set, own| {
        let percent = |name: &str, count: &str| {
            let shares = with(own, "score", name);
            let values: Vec<f64> =
                shares.iter().filter_map(|l| Some(l.count(count)?.percent())).collect();
            super::page::mean(&values).map(|m| m.0)
        };
        let mut rows: Vec<(&str, f64, f64)> = scores()
            .filter_map(|n| {
                Some((n, percent(n, "tuned transformed")?, percent(n, "default transformed")?))
            })
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        let mut titles = vec!["", "transformed: tuned", "default", "upright: tuned", "default"];
        let told = rows.iter().any(|(name, ..)| paper::detector(set, name).is_some());
        if told {
            titles.push("the paper's code, transformed: tuned / default");
        }
        let mut table = Table::new(&titles);
        for (name, ..) in &rows {
            let own = with(own, "score", name);
            let cell = |count: &str| accuracy(&own, count);
            let mut row = vec![
                format!("`{name}`"),
                cell("tuned transformed"),
                cell("default transformed"),
                cell("tuned upright"),
                cell("default upright"),
            ];
            if told {
                row.push(beside(paper::detector(set, name)));
            }
            table.row(row);
        }
        page.table(&table);
        if told {
            page.text(ENERGIES);
        }
        let drawn: Vec<(String, Vec<f64>)> =
            rows.iter().map(|(n, tuned, usual)| ((*n).to_string(), vec![*tuned, *usual])).collect();
        page.figure(
            set,
            &format!("{set}: transformed accuracy of every score, tuned and with its defaults"),
            bars("transformed accuracy, %", &["tuned", "default"], &drawn),
        );
    });
}
