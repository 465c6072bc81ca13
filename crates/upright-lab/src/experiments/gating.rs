//! Gating: what a threshold trades of upright against transformed accuracy, with
//! and without a margin, and whether gates that were chosen on held-out inputs
//! keep their promise on the test.

use upright::gate::{self, Calibration, Case, Gate, Look};
use upright::internal::gate::{Point, curve};
use upright::internal::stats::{mean_interval, rounded};
use upright::{Batch, Canonicalizer, Model, Part, Role, Share};

use super::chart::{Curve, lines as drawn};
use super::fits::Filled;
use super::ledger::{Found, Line};
use super::main::{chosen, paper_config};
use super::measure::traces;
use super::page::{Page, Table, accuracy, mean, with};
use super::tasks::{FOUR, Task};
use super::trained::by_energy;
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "gating",
    about: "what a threshold trades, and whether promises hold",
    sets: FOUR,
    once: true,
    many: true,
    run,
    show,
};

/// Held-out inputs that gates are fitted on, at most.
const HELD: usize = 1000;
/// Points of a curve that are kept.
const POINTS: usize = 60;
const METHODS: [(&str, &str); 3] =
    [("oodc", "OODC"), (LEARNED, "OODC by a network's learned energy"), ("ours", "ours")];
/// The paper's search led by a network trained for it, where there is one.
const LEARNED: &str = "learned";
/// Gates that are chosen on held-out inputs, with what they promise: points of upright accuracy
/// that may be lost, or the share of upright inputs that may be searched.
const GATES: [(&str, &str, f64); 4] = [
    ("conformal", "alpha", 0.05),
    ("max-drop", "drop", 1.0),
    ("best-mix", "drop", 1.0),
    ("best-mix", "drop", 3.0),
];

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    let learned = task.energy("energy").map_err(|e| e.to_string())?.is_some();
    for (method, _) in METHODS.into_iter().filter(|(method, _)| learned || *method != LEARNED) {
        lab.measure(task, &[("method", method)], |lab| one(lab, task, method))?;
    }
    if let Some(second) = task.retrained("augm").map_err(|e| e.to_string())? {
        lab.measure(task, &[("method", SWITCH)], |lab| switched(lab, task, &second))?;
    }
    Ok(())
}

/// Unfamiliar inputs go to a classifier that was trained with the transforms.
const SWITCH: &str = "switch";

/// What a threshold on the tuned score trades where a second classifier answers above it.
fn switched(lab: &Lab, task: &Task, second: &Model) -> upright::Result<Found> {
    let c = canonicalizer(lab, task, "oodc")?;
    let test = task.test()?;
    let cases = |batch: &Batch| -> upright::Result<Vec<Case>> {
        let (outputs, energies) = c.raw(batch)?;
        let labels = outputs.labels().into_iter().zip(second.run(batch)?.labels());
        let all = energies.into_iter().zip(labels).zip(&test.labels);
        let case = |((energy, (label, other)), truth): ((f32, (u32, u32)), &u32)| Case {
            raw: Look { energy, label },
            best: Some(Look { energy: f32::NEG_INFINITY, label: other }),
            truth: Some(*truth),
        };
        Ok(all.map(case).collect())
    };
    let (upright, transformed) = (cases(&test.upright)?, cases(&test.transformed)?);
    let on_test = Calibration { upright: &upright, transformed: &transformed };
    let always = gate::fit(&Part::new("always"), &on_test)?;
    let mut found = Found::of(&(c.config(), second.fingerprint()));
    found.curves.insert("plain".into(), thinned(&curve(always.as_ref(), &on_test)));
    Ok(found)
}

/// Some of the points of a curve, both ends among them, in percent.
fn thinned(points: &[Point]) -> Vec<Vec<f64>> {
    let step = points.len().div_ceil(POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last);
    let percents = |p: &Point| {
        let shares = [p.upright, p.transformed, p.upright_searched, p.transformed_searched];
        shares.map(|s| (s.percent() * 10.0).round() / 10.0).to_vec()
    };
    kept.map(|(_, p)| percents(p)).collect()
}

fn canonicalizer(lab: &Lab, task: &Task, method: &str) -> upright::Result<Canonicalizer> {
    if method == "ours" {
        return lab.ours(task)?.c.with_part(Role::Gate, Part::new("always"));
    }
    let tuned = chosen(lab, task)?;
    let model = task.model(&tuned.taps)?;
    let config = paper_config(lab, task, &model)?.with(Role::Score, tuned.score);
    let parts = [config.part(Role::Score).clone()];
    Filled::for_scores(task, &model, lab.scale.bank, &parts)?.searching(&model, config)
}

/// What searches of some inputs found.
fn cases(c: &Canonicalizer, batch: &Batch, labels: &[u32]) -> upright::Result<Vec<Case>> {
    let mut cases = Vec::new();
    traces(c, batch, |trace| {
        let best = c.read(trace).map(|a| a.look);
        let truth = labels.get(cases.len()).copied();
        cases.push(Case { raw: trace.raw_look(), best, truth });
    })?;
    Ok(cases)
}

fn one(lab: &Lab, task: &Task, method: &str) -> upright::Result<Found> {
    let led = if method == LEARNED { by_energy(lab, task)? } else { None };
    let (c, mut found) = if let Some(led) = led {
        led
    } else {
        let c = canonicalizer(lab, task, method)?;
        let found = Found::of(c.config());
        (c, found)
    };
    let (held, labels) = task.held.some(HELD.min(lab.scale.calibration)).load()?;
    let copies = task.copies(&held, 43)?;
    let held = [cases(&c, &held, &labels)?, cases(&c, &copies, &labels)?];
    let test = task.test()?;
    let judged =
        [cases(&c, &test.upright, &test.labels)?, cases(&c, &test.transformed, &test.labels)?];
    let calibration = Calibration { upright: &held[0], transformed: &held[1] };
    let on_test = Calibration { upright: &judged[0], transformed: &judged[1] };
    for (name, part) in
        [("plain", Part::new("always")), ("margin", Part::new("margin").number("margin", 0.1))]
    {
        let gate = gate::fit(&part, &calibration)?;
        found.curves.insert(name.into(), thinned(&curve(gate.as_ref(), &on_test)));
    }
    for (name, setting, value) in GATES {
        let gate = gate::fit(&Part::new(name).number(setting, value), &calibration)?;
        let word = format!("{name} {value}");
        for (kind, cases) in super::tasks::KINDS.iter().zip(&judged) {
            let shares = behind(gate.as_ref(), cases);
            for (what, share) in ["alone", "right", "searched"].iter().zip(shares) {
                found.counts.insert(format!("{word} {kind} {what}"), share);
            }
        }
    }
    Ok(found)
}

/// Right answers of the bare classifier and behind a gate, and inputs that are searched.
fn behind(gate: &dyn Gate, cases: &[Case]) -> [Share; 3] {
    let open = |case: &Case| gate.search(case.raw);
    let answer = |case: &Case| {
        let best = case.best.filter(|&b| open(case) && gate.accept(case.raw, b));
        best.unwrap_or(case.raw).label
    };
    [
        Share::count(cases.iter().map(|c| Some(c.raw.label) == c.truth)),
        Share::count(cases.iter().map(|c| Some(answer(c)) == c.truth)),
        Share::count(cases.iter().map(open)),
    ]
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "Curves: every threshold, chosen with hindsight on the test. Tables: gates chosen on \
         held-out inputs with what they promise, and what came of it on the test: *held* means \
         that it shows no more than was promised, which is to be so in nine of ten fits. `lost` is \
         what the test shows, in points. OODC is random search with refinement by the tuned score; \
         its score was tuned on inputs among those that its gates are chosen on.",
    );
    page.by_set(lines, |page, set, own| {
        let mut curves = Vec::new();
        for (method, name) in METHODS.into_iter().chain([(SWITCH, "switching to Augm")]) {
            let Some(line) = with(own, "method", method).first().copied() else { continue };
            for (kind, words) in [("plain", ""), ("margin", ", margin 0.1")] {
                if let Some(points) = line.found.curves.get(kind) {
                    curves.push((format!("{name}{words}"), pairs(points)));
                }
            }
        }
        let curves: Vec<Curve> =
            curves.iter().map(|(name, points)| Curve { name, points: points.clone() }).collect();
        page.figure(
            set,
            &format!("{set}: upright against transformed accuracy as the threshold moves"),
            drawn("upright accuracy, %", "transformed accuracy, %", false, &curves),
        );
        page.table(&promises(own));
    });
}

fn pairs(points: &[Vec<f64>]) -> Vec<(f64, f64)> {
    points.iter().filter_map(|p| Some((*p.first()?, *p.get(1)?))).collect()
}

fn promises(own: &[&Line]) -> Table {
    let mut table = Table::new(&[
        "",
        "upright",
        "lost",
        "transformed",
        "searched, upright",
        "searched, transformed",
        "promise",
    ]);
    for (method, name) in METHODS {
        let own = with(own, "method", method);
        for (gate, setting, value) in GATES {
            let word = format!("{gate} {value}");
            let cell = |kind: &str, what: &str| accuracy(&own, &format!("{word} {kind} {what}"));
            let shares = |what: &str| -> Vec<Share> {
                own.iter().filter_map(|l| l.count(&format!("{word} upright {what}"))).collect()
            };
            let percent = |what: &str| {
                let percents: Vec<f64> = shares(what).iter().map(Share::percent).collect();
                mean(&percents).map(|m| m.0)
            };
            let [Some(alone), Some(right), Some(searched)] =
                ["alone", "right", "searched"].map(percent)
            else {
                continue;
            };
            let lost = alone - right;
            // What the test shows, and the least of it that its interval leaves possible.
            let (shown, least, most) = match setting {
                "alpha" => (searched, mean_interval(&shares("searched")).0, 100.0 * value),
                _ => (lost, alone - mean_interval(&shares("right")).1, value),
            };
            let kept = if shown <= most {
                "held"
            } else if least <= most {
                "missed, within error"
            } else {
                "not held"
            };
            let promise = match setting {
                "alpha" => format!("{:.0} % searched", 100.0 * value),
                _ => format!("{value:.0} lost"),
            };
            table.row(vec![
                format!("{name}, `{gate}`"),
                cell("upright", "right"),
                format!("{:.1}", rounded(lost, 1)),
                cell("transformed", "right"),
                cell("upright", "searched"),
                cell("transformed", "searched"),
                format!("{promise}: {kept}"),
            ]);
        }
    }
    table
}
