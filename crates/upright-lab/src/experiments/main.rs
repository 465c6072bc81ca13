//! The main comparison: methods that need no training, on inputs as they are and
//! transformed.
//!
//! `its` is inverse transformation search by the curvature of the energy, `its-a`
//! the same by the energy itself, `its-b` by the score tuned for `oodc`. `oodc`
//! is the paper's recipe: random search with refinement (without, where the
//! classifier has no gradients), 60 evaluations, a tuned score, always on, and
//! the input as it is no candidate.

use upright::internal::seed;
use upright::{Batch, Canonicalizer, Config, Model, Part, Preset, Role, Space, Tap};

use super::fits::{Chosen, Filled};
use super::ledger::{Found, Line};
use super::measure::{Among, Answers, averaged, gated, searched};
use super::page::{Page, Table, accuracy, beside, views};
use super::tasks::{FOUR, KINDS, Task};
use super::{Experiment, Lab, paper};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "main",
    about: "every method that needs no training, upright and transformed",
    sets: FOUR,
    once: false,
    run,
    show,
};

/// The methods: their names in lines, and in tables.
const METHODS: [(&str, &str); 9] = [
    ("vanilla", "Vanilla"),
    ("tta", "TTA, 8 views"),
    ("its", "ITS"),
    ("its-a", "ITS^a"),
    ("its-b", "ITS^b"),
    ("oodc", "OODC"),
    ("oodc-identity", "OODC, input as it is a candidate"),
    ("always", "**ours**, always on"),
    ("gated", "**ours**, gated"),
];

/// Views that are averaged by `tta`, the input as it is among them.
const AVERAGED: usize = 8;

/// Scores among which the paper's recipe chooses.
pub(super) const SCORES: &[&str] =
    &["pc-knn-mix", "pc-knn", "knn", "knn-mix", "pc-proto", "relative-mahalanobis", "energy"];

/// The paper's own configuration, as far as it is not tuned.
pub(super) fn paper_config(lab: &Lab, task: &Task, model: &Model) -> upright::Result<Config> {
    let preset = Preset::of("paper")?;
    let mut config = preset.config(model.signal());
    config.space = task.space.clone();
    config.seed = lab.seed;
    if model.differentiable().is_err() {
        config = config.with(Role::Search, Part::new("random"));
    }
    Ok(config)
}

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    for (method, _) in METHODS.iter().take(2) {
        lab.cell(task, &[("method", method)], |lab| plain(lab, task, method))?;
    }
    for method in ["its", "its-a", "its-b", "oodc", "oodc-identity"] {
        lab.cell(task, &[("method", method)], |lab| by_search(lab, task, method))?;
    }
    for method in ["always", "gated"] {
        lab.cell(task, &[("method", method)], |lab| ours(lab, task, method))?;
    }
    Ok(())
}

/// Counts what answers of both kinds of inputs are worth.
pub(super) fn judged(
    task: &Task,
    found: &mut Found,
    answer: impl Fn(&Batch) -> upright::Result<Answers>,
) -> upright::Result<()> {
    let test = task.test()?;
    for (kind, batch, alone) in test.kinds(&task.model(&[])?)? {
        let answers = answer(batch)?;
        found.right(kind, &answers.right(&test.labels), alone);
        found.number(&format!("{kind} evaluations"), answers.mean());
    }
    Ok(())
}

fn plain(lab: &Lab, task: &Task, method: &str) -> upright::Result<Found> {
    let model = task.model(&[])?;
    let space = task.space.build()?;
    let count = if method == "tta" { AVERAGED } else { 1 };
    let mut found = Found::of(&serde_json::json!({ "views": count }));
    judged(task, &mut found, |batch| {
        if count == 1 {
            let labels = model.run(batch)?.labels();
            return Ok(Answers { evaluations: labels.len(), labels });
        }
        averaged(&model, &space, batch, |item| random_views(&space, batch.item(item), lab.seed))
    })?;
    Ok(found)
}

fn random_views(space: &Space, item: &[f32], run: u64) -> Vec<Vec<f32>> {
    let content = seed::of_content(run ^ 0x7474_6138, item);
    let others =
        (0..AVERAGED as u32 - 1).map(|i| space.draw(&seed::sobol(i, space.cube(), content)));
    std::iter::once(space.identity()).chain(others).collect()
}

/// The score that the paper's recipe was tuned to, on the transformed held-out inputs.
pub(super) fn chosen(lab: &Lab, task: &Task) -> upright::Result<Chosen> {
    let model = task.model(&[Tap::auto()])?;
    let config = paper_config(lab, task, &model)?;
    // The same score for every run: what runs tell is how far the search depends on chance.
    lab.tuned(task, SCORES, &Config { seed: 0, ..config })
}

fn by_search(lab: &Lab, task: &Task, method: &str) -> upright::Result<Found> {
    let tuned = match method {
        "its" | "its-a" => {
            Chosen { score: Part::new("energy"), taps: vec![], accuracy: (0.0, 0.0) }
        }
        _ => chosen(lab, task)?,
    };
    let model = task.model(&tuned.taps)?;
    let mut config = paper_config(lab, task, &model)?.with(Role::Score, tuned.score.clone());
    let filled = Filled::of(task, &model, lab.scale.bank)?;
    if method.starts_with("its") {
        let score = if method == "its" { "curvature" } else { "plain" };
        let tree = |count: u32| {
            Part::new("its").word("score", score).number("hypotheses", f64::from(count))
        };
        let c = filled.searching(&model, config.clone())?;
        let best = best_of(lab, task, &c, &[1, 2, 3].map(tree))?;
        config = config.with(Role::Search, best);
    }
    let among = if method == "oodc-identity" { Among::All } else { Among::Searched };
    let c = filled.searching(&model, config)?;
    let mut found = Found::of(c.config());
    judged(task, &mut found, |batch| searched(&c, batch, among))?;
    Ok(found)
}

/// Held-out inputs that a search is chosen on.
const CHOOSING: usize = 100;

/// The search that reaches most on transformed held-out inputs.
fn best_of(lab: &Lab, task: &Task, c: &Canonicalizer, searches: &[Part]) -> upright::Result<Part> {
    let (batch, labels) = task.held.some(CHOOSING).load()?;
    let copies = task.copies(&batch, 43 + (lab.seed << 8))?;
    let mut best: Option<(usize, &Part)> = None;
    for search in searches {
        let c = c.with_part(Role::Search, search.clone())?;
        let right = searched(&c, &copies, Among::Searched)?.right(&labels);
        let count = right.iter().filter(|r| **r).count();
        if best.is_none_or(|(most, _)| count > most) {
            best = Some((count, search));
        }
    }
    Ok(best.map_or_else(|| c.config().part(Role::Search).clone(), |(_, part)| part.clone()))
}

fn ours(lab: &Lab, task: &Task, method: &str) -> upright::Result<Found> {
    let fit = lab.ours(task)?;
    let mut found = Found::of(fit.c.config());
    found.number("fit seconds", fit.cost.seconds);
    found.number("artifact megabytes", fit.cost.bytes as f64 / 1e6);
    judged(task, &mut found, |batch| match method {
        "gated" => gated(&fit.c, batch),
        _ => searched(&fit.c, batch, Among::All),
    })?;
    Ok(found)
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "Accuracy in percent, upright / transformed. Fitted on training data, calibrated on odd \
         rows of the test split (sketches: on the validation part), judged on even rows. The \
         paper's classifiers are of twice the width and its EMNIST is another split, so its \
         numbers are beside ours for the pattern, not for the last point.",
    );
    for &set in FOUR.iter().chain(&[super::tasks::DIGITS]) {
        let own: Vec<&Line> = lines.iter().filter(|l| l.word("data") == set).collect();
        if own.is_empty() {
            continue;
        }
        let mut table = Table::new(&["", "upright", "transformed", "views", "the paper's"]);
        for (method, name) in METHODS {
            let own: Vec<&Line> =
                own.iter().copied().filter(|l| l.word("method") == method).collect();
            if own.is_empty() {
                continue;
            }
            table.row(vec![
                name.into(),
                accuracy(&own, KINDS[0]),
                accuracy(&own, KINDS[1]),
                views(&own),
                beside(paper::main(set, method)),
            ]);
        }
        page.heading(set);
        page.table(&table);
        page.provenance(&own);
    }
}
