//! Natural images under rotation: exact quarter turns; any angle before the centre
//! is cut out, so that corners are black, or what is zero to the classifier, where they
//! show; any angle, drawn in until there are none.
//!
//! The paper's rows look at 17 equally spaced angles with a random offset (all
//! four exact turns where there are only those) and take the view of lowest
//! energy, or average 16 angles.

use upright::internal::seed;
use upright::score::Score;
use upright::{Map, Padding, Part, Resample, Role, Space, SpaceConfig, Tap, View, warp};

use super::fits::Filled;
use super::ledger::{Found, Line};
use super::measure::{Answers, always_and_gated, averaged, lowest};
use super::page::{Page, Table, accuracy, gain, number, with};
use super::parts::{Left, flag};
use super::tasks::{KINDS, PHOTOGRAPHS, Task};
use super::turned::{Test, Turned, quarter};
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "photographs",
    about: "natural images under rotation",
    sets: &[PHOTOGRAPHS],
    once: true,
    many: true,
    run,
    show,
};

const ANGLES: usize = 17;
const AVERAGED: usize = 16;

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    for turned in Turned::ALL {
        let Some(test) = Test::new(lab, task, turned)? else { continue };
        let what = |method| [("turned", turned.name()), ("method", method)];
        if turned != Turned::SiScore {
            lab.measure(task, &what("undone"), |_| undone(task, &test))?;
        }
        lab.measure(task, &what("views"), |lab| by_views(lab, task, &test))?;
        // One run tells what a part is worth; a quick one tells it of quarter turns alone.
        let tells = lab.first() && (turned == Turned::Quarters || !lab.scale.is_quick());
        let count = if tells { LEFT.len() } else { 1 };
        for left in &LEFT[..count] {
            lab.measure(task, &what(left.name), |lab| ours(lab, task, &test, left))?;
        }
    }
    Ok(())
}

/// Answers of several methods, counted as they come.
struct Tally {
    names: Vec<&'static str>,
    answers: Vec<[Answers; 2]>,
    alone: [Vec<u32>; 2],
    labels: Vec<u32>,
}

impl Tally {
    fn new(names: &[&'static str]) -> Self {
        let none = || [Answers::default(), Answers::default()];
        Tally {
            names: names.to_vec(),
            answers: names.iter().map(|_| none()).collect(),
            alone: [Vec::new(), Vec::new()],
            labels: Vec::new(),
        }
    }

    fn add(&mut self, kind: usize, at: usize, more: Answers) {
        let own = &mut self.answers[at][kind];
        own.labels.extend(more.labels);
        own.evaluations += more.evaluations;
    }

    fn into(self, found: &mut Found) {
        let right = |labels: &[u32]| -> Vec<bool> {
            labels.iter().zip(&self.labels).map(|(a, b)| a == b).collect()
        };
        for (kind, word) in KINDS.iter().enumerate().filter(|(k, _)| !self.alone[*k].is_empty()) {
            let alone = right(&self.alone[kind]);
            found.right(&format!("vanilla {word}"), &alone, &alone);
            for (name, answers) in self.names.iter().zip(&self.answers) {
                let own = &answers[kind];
                if own.labels.is_empty() {
                    continue;
                }
                found.right(&format!("{name} {word}"), &right(&own.labels), &alone);
                found.number(&format!("{name} {word} evaluations"), own.mean());
            }
        }
    }
}

/// What the classifier says where the turn is known: undone, the same with edges continued
/// outward where nothing was seen, the latter of what it sees alone, and undone but for less
/// than an eighth.
fn undone(task: &Task, test: &Test) -> upright::Result<Found> {
    let model = task.model(&[])?;
    let mut found = Found::of(&test.turned.space());
    let mut tally = Tally::new(&["undone", "edges", "cropped", "quarter"]);
    let edges = Resample { padding: Padding::Border, ..test.resample.clone() };
    test.each(|few| {
        tally.labels.extend(&few.labels);
        for (kind, batch) in &few.kinds {
            tally.alone[*kind].extend(model.run(batch)?.labels());
            if *kind == 0 {
                continue;
            }
            let cropped = model.centre(batch.clone())?;
            let back: Vec<Map> = few.back.clone();
            let quarters: Vec<Map> = back.iter().map(quarter).collect();
            let ways = [
                (batch, &back, &test.resample),
                (batch, &back, &edges),
                (&cropped, &back, &edges),
                (batch, &quarters, &edges),
            ];
            for (at, (batch, maps, resample)) in ways.into_iter().enumerate() {
                let views = maps.iter().enumerate().map(|(item, &map)| View { item, map });
                let views: Vec<View> = views.collect();
                let labels = model.run(&warp(batch, &views, resample)?)?.labels();
                tally.add(1, at, Answers { evaluations: labels.len(), labels });
            }
        }
        Ok(())
    })?;
    tally.into(&mut found);
    Ok(found)
}

fn by_views(lab: &Lab, task: &Task, test: &Test) -> upright::Result<Found> {
    let model = task.model(&[Tap::auto()])?;
    let filled = Filled::of(task, &model, lab.scale.bank)?;
    let parts = [
        Part::new("energy"),
        Part::new("pc-knn-mix").flag("correct_only", true),
        Part::new("knn-mix").flag("correct_only", true),
    ];
    let scores: Vec<Box<dyn Score>> =
        parts.iter().map(|p| filled.score(p, &model, lab.seed)).collect::<Result<_, _>>()?;
    let scores: Vec<&dyn Score> = scores.iter().map(AsRef::as_ref).collect();
    let mut found = Found::of(&(&parts, test.turned.space(), ANGLES, AVERAGED));
    let mut tally = Tally::new(&["energy", "pc-knn-mix", "knn-mix", "tta"]);
    test.each(|few| {
        tally.labels.extend(&few.labels);
        for (kind, batch) in &few.kinds {
            let kind = *kind;
            tally.alone[kind].extend(model.run(batch)?.labels());
            let around = |item: usize| {
                let offset = seed::of_content(lab.seed, batch.item(item)) as f32 / u64::MAX as f32;
                angles(&test.space, ANGLES, offset)
            };
            let answers = lowest(&model, &scores, &test.space, batch, around)?;
            for (at, answers) in answers.into_iter().enumerate() {
                tally.add(kind, at, answers);
            }
            let even = |_: usize| angles(&test.space, AVERAGED, 0.0);
            tally.add(kind, 3, averaged(&model, &test.space, batch, even)?);
        }
        Ok(())
    })?;
    tally.into(&mut found);
    Ok(found)
}

/// Equally spaced poses; of quarter turns all.
fn angles(space: &Space, count: usize, offset: f32) -> Vec<Vec<f32>> {
    space.axes().first().map_or(vec![], |axis| axis.lattice(count, offset))
}

/// Ours, whole and without what only photographs have.
const LEFT: [Left; 4] = [
    Left { name: "ours", about: "ours", change: |c| c },
    Left {
        name: "kinds",
        about: "without several kinds of copies",
        change: |c| flag(c, Role::Proposer, "kinds", false),
    },
    Left {
        name: "whole",
        about: "without what the head reads in these votes",
        change: |c| flag(c, Role::Proposer, "whole", false),
    },
    Left {
        name: "votes",
        about: "without votes of quarter turns",
        change: |c| flag(c, Role::Proposer, "votes", false),
    },
];

fn ours(lab: &Lab, task: &Task, test: &Test, left: &Left) -> upright::Result<Found> {
    let mut config = (left.change)(lab.config(task));
    config.space = SpaceConfig::parse(test.turned.space())?;
    let fit = lab.fitted(task, task.usual()?, &config)?;
    let c = &fit.c;
    let mut found = Found::of(c.config());
    found.number("fit seconds", fit.cost.seconds);
    found.number("artifact megabytes", fit.cost.bytes as f64 / 1e6);
    let mut tally = Tally::new(&["always", "gated"]);
    test.each(|few| {
        tally.labels.extend(&few.labels);
        for (kind, batch) in &few.kinds {
            let kind = *kind;
            tally.alone[kind].extend(c.raw(batch)?.0.labels());
            for (at, answers) in always_and_gated(c, batch)?.into_iter().enumerate() {
                tally.add(kind, at, answers);
            }
        }
        Ok(())
    })?;
    tally.into(&mut found);
    Ok(found)
}

const METHODS: [(&str, &str, &str); 11] = [
    ("undone", "vanilla", "Vanilla"),
    ("undone", "undone", "the true turn undone"),
    ("undone", "edges", "the same, edges continued outward"),
    ("undone", "cropped", "the same, but of the cropped square alone"),
    ("undone", "quarter", "turned back to the nearest quarter"),
    ("views", "tta", "TTA, 16 angles (4 quarters)"),
    ("views", "energy", "Energy, 17 angles (4 quarters)"),
    ("views", "knn-mix", "kNN Mix, 17 angles (4 quarters)"),
    ("views", "pc-knn-mix", "PC-kNN Mix, 17 angles (4 quarters)"),
    ("ours", "always", "**ours**, always on"),
    ("ours", "gated", "**ours**, gated"),
];

/// What only photographs have, left out once.
fn without(own: &[&Line]) -> Table {
    let titles = ["", "gated: upright", "turned", "always on: upright", "turned"];
    let mut table = Table::new(&titles);
    for left in &LEFT {
        let own = with(own, "method", left.name);
        let cell = |method: &str, kind: &str| accuracy(&own, &format!("{method} {kind}"));
        let pairs = ["gated", "always"].into_iter().flat_map(|m| KINDS.map(|k| cell(m, k)));
        if !own.is_empty() {
            table.row([left.about.to_string()].into_iter().chain(pairs).collect());
        }
    }
    table
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "EfficientNet-Lite0 on a sample of ImageNet's validation set; of each class three \
         photographs fill the bank, one calibrates and one judges. Gains are paired: points \
         gained over the bare classifier on the same turned photographs, with their 95 % interval.",
    );
    let lines: Vec<&Line> = lines.iter().collect();
    for turned in Turned::ALL {
        let own = with(&lines, "turned", turned.name());
        let mut table =
            Table::new(&["", "upright", "turned", "gained over the bare classifier", "views"]);
        for (line, method, name) in METHODS {
            let own = with(&own, "method", line);
            let [up, tr] = KINDS.map(|kind| format!("{method} {kind}"));
            if own.iter().any(|l| l.count(&tr).is_some()) {
                let views =
                    KINDS.map(|kind| number(&own, &format!("{method} {kind} evaluations"), 1));
                table.row(vec![
                    name.into(),
                    accuracy(&own, &up),
                    accuracy(&own, &tr),
                    gain(&own, &tr),
                    if method == "vanilla" { "1".into() } else { views.join(" / ") },
                ]);
            }
        }
        if !table.is_empty() {
            page.heading(turned.about());
            page.table(&table);
            page.table(&without(&own));
            page.provenance(&own);
        }
    }
    page.text(
        "The paper's numbers on SI-Score (rotated objects on photographs, ViT-B/16 | ResNet-50) \
         are of other data and classifiers: vanilla 38.8 | 48.0, TTA-16 49.5 | 54.9, energy \
         51.4 | 48.3, PC-kNN 57.9 | 60.7.",
    );
}
