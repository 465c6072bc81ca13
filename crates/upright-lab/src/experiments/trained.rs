//! What training buys: classifiers that have seen the transforms, and searches led by
//! an energy that was learnt, from the views themselves or from what the
//! classifier makes of them.
//!
//! `energy` and `energy-small` are networks of the view (`upright-lab train energy`), of half
//! and a quarter of the paper's width, at 60 and 240 evaluations; the others learn from the
//! classifier's own numbers. All lead random search with refinement, always on, the input
//! as it is no candidate.

use upright::internal::canonicalizer::States;
use upright::{Canonicalizer, Config, FitReport, Model, Models, Part, Role, Tap};

use super::fits::Filled;
use super::ledger::{Found, Line};
use super::main::{alone, judged, paper_config};
use super::measure::searched;
use super::page::{Page, Table, accuracy, beside, number, views, with};
use super::tasks::{FOUR, KINDS, Task};
use super::{Experiment, Lab, below, paper};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "trained",
    about: "retrained classifiers and learned energies",
    sets: FOUR,
    once: false,
    many: false,
    run,
    show,
};

/// Classifiers: the file's ending, its name in tables and how to train it.
const CLASSIFIERS: [(&str, &str, &str); 3] = [
    ("augm", "Augm (retrained)", "augmented"),
    ("stn", "STN (retrained)", "stn"),
    ("equivariant", "Equiv. (retrained)", "equivariant"),
];

/// An energy network: the file's ending, its name in tables, how to train it, and its search.
struct Learned {
    name: &'static str,
    about: &'static str,
    train: &'static str,
    budget: usize,
    /// Poses that are refined, and steps of each.
    refined: (f64, f64),
}

const LEARNED: [Learned; 2] = [
    Learned {
        name: "energy",
        about: "learned energy of the view, half width",
        train: "energy",
        budget: 60,
        refined: (2.0, 3.0),
    },
    Learned {
        name: "energy-small",
        about: "learned energy of the view, quarter width",
        train: "energy --small",
        budget: 240,
        refined: (5.0, 4.0),
    },
];

/// An energy of what the classifier makes of a view: its name in lines and in tables, and how it
/// is made.
type Later = (&'static str, &'static str, fn() -> Part);

const LATER: [Later; 5] = [
    ("logits", "learned from logits", || Part::new("wrong").word("reads", "logits")),
    ("features", "learned from features", || Part::new("wrong").word("reads", "features")),
    ("linear", "learned from features, linear", || {
        Part::new("wrong").word("reads", "features").number("hidden", 0.0)
    }),
    ("both", "learned from both", || Part::new("wrong")),
    ("fisher", "`fisher`: original against transformed, linear", || Part::new("fisher")),
];

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    let failed = |e: upright::Error| e.to_string();
    lab.measure(task, &[("method", "vanilla")], |_| bare(task, &task.model(&[])?))?;
    for (how, _, train) in CLASSIFIERS {
        match task.retrained(how).map_err(failed)? {
            Some(model) => {
                lab.measure(task, &[("method", how)], |_| {
                    let found = bare(task, &model)?;
                    told(task, how, found)
                })?;
            }
            None => missing(task, how, train),
        }
    }
    let mut filled: Option<(Model, Filled)> = None;
    for (method, _, part) in LATER {
        lab.measure(task, &[("method", method)], |lab| {
            if filled.is_none() {
                let model = task.model(&[Tap::auto()])?;
                let parts = [Part::new("wrong")];
                let bank = Filled::for_scores(task, &model, lab.scale.bank, &parts)?;
                filled = Some((model, bank));
            }
            let (model, bank) = filled.as_ref().expect("it was made above");
            later(lab, task, model, bank, &part())
        })?;
    }
    for learned in &LEARNED {
        match task.energy(learned.name).map_err(failed)? {
            Some(energy) => {
                let what = [("method", learned.name)];
                lab.measure(task, &what, |lab| {
                    let found = by_network(lab, task, learned, energy)?;
                    told(task, learned.name, found)
                })?;
            }
            None => missing(task, learned.name, learned.train),
        }
    }
    Ok(())
}

/// The same with how long the network was trained.
fn told(task: &Task, how: &str, mut found: Found) -> upright::Result<Found> {
    if let Some((steps, minutes)) = task.course(how)? {
        found.number("steps", steps);
        found.number("minutes", minutes);
    }
    Ok(found)
}

/// Says how to get a model that is not there.
fn missing(task: &Task, how: &str, train: &str) {
    eprintln!(
        "trained {} {how}: left out, there is no {}; train it with\n  cargo run --release -p \
         upright-lab --features train -- train {train} --data {} --folder DATA --models MODELS",
        task.name,
        task.trained_at(how).display(),
        task.name,
    );
}

fn bare(task: &Task, model: &Model) -> upright::Result<Found> {
    let mut found = Found::of(&model.fingerprint());
    judged(task, &mut found, &[""], |batch| Ok(vec![alone(model, batch)?]))?;
    Ok(found)
}

/// The paper's search with an energy of the classifier's own numbers.
fn later(
    lab: &Lab,
    task: &Task,
    model: &Model,
    bank: &Filled,
    score: &Part,
) -> upright::Result<Found> {
    let config = paper_config(lab, task, model)?.with(Role::Score, score.clone());
    let c = bank.searching(model, config)?;
    let mut found = Found::of(c.config());
    judged(task, &mut found, &["", "identity "], |batch| Ok(searched(&c, batch)?.into()))?;
    Ok(found)
}

/// The paper's search with the energy of a network.
fn by_network(lab: &Lab, task: &Task, how: &Learned, energy: Model) -> upright::Result<Found> {
    let model = task.model(&[])?;
    let (runs, steps) = how.refined;
    let search = Part::new("random-refine").number("runs", runs).number("steps", steps);
    let config = Config { budget: how.budget, ..paper_config(lab, task, &model)? }
        .with(Role::Score, Part::new("external"))
        .with(Role::Search, search);
    let mut found = Found::of(&(&config, energy.fingerprint()));
    let c = led_by(energy, model, config)?;
    judged(task, &mut found, &["", "identity "], |batch| Ok(searched(&c, batch)?.into()))?;
    Ok(found)
}

/// The paper's search led by the energy network of a task, where there is one, and the start of
/// what is found with it.
pub(super) fn by_energy(lab: &Lab, task: &Task) -> upright::Result<Option<(Canonicalizer, Found)>> {
    let Some(network) = task.energy("energy")? else { return Ok(None) };
    let model = task.model(&[])?;
    let config = paper_config(lab, task, &model)?.with(Role::Score, Part::new("external"));
    let found = Found::of(&(&config, network.fingerprint()));
    Ok(Some((led_by(network, model, config)?, found)))
}

/// A canonicalizer whose score is the energy of a network; nothing of it is fitted.
fn led_by(energy: Model, model: Model, config: Config) -> upright::Result<Canonicalizer> {
    let models = Models { first: model, second: None, external: Some(energy) };
    Canonicalizer::restore(models, config, FitReport::default(), &States::new())
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "Accuracy in percent, upright / transformed. Trained by `upright-lab train` on two cores \
         within two hours each, on training data alone, once: runs differ in what is learned from \
         the classifier's own numbers and in the views that a search draws. A step takes 64 \
         samples and a transformed copy of each; the paper trains 50 to 200 passes on a GPU. Its \
         learned energy in this table is the quarter width at 240 evaluations.",
    );
    page.by_set(lines, |page, set, own| {
        let mut table =
            Table::new(&["", "upright", "transformed", "views", "trained", "the paper's"]);
        let classifiers = CLASSIFIERS.iter().map(|(name, about, _)| (*name, *about));
        let learned = LEARNED.iter().map(|l| (l.name, l.about));
        let later = LATER.iter().map(|(name, about, _)| (*name, *about));
        let plain = [("vanilla", "Vanilla")].into_iter();
        for (method, about) in plain.chain(classifiers).chain(later).chain(learned) {
            let own = with(own, "method", method);
            if own.is_empty() {
                continue;
            }
            let [up, tr] = KINDS.map(|kind| accuracy(&own, kind));
            let paper = beside(paper::main(set, method));
            let [steps, minutes] = ["steps", "minutes"].map(|name| number(&own, name, 0));
            let trained = if own.iter().any(|l| l.number("steps").is_some()) {
                format!("{steps} steps, {minutes} min")
            } else {
                "–".into()
            };
            table.row(vec![about.into(), up, tr, views(&own, ""), trained, paper]);
        }
        page.table(&table);
    });
    let below = below::table(&lines.iter().collect::<Vec<_>>(), below::TRAINED);
    if !below.is_empty() {
        page.heading("Below the paper's");
        page.table(&below);
    }
}
