//! Functions to minimise, the same as in `fixtures/make_tune.py`, which also
//! measured Optuna on them.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use serde::Deserialize;
use upright::Value;
use upright::internal::tune::{Knob, Knobs, Point, Series, Setup, Study};

const SEEDS: u64 = 40;
const SERIES: Series = Series { stage: 1, part: 0 };

/// Medians over seeds of the best value after some trials.
#[derive(Deserialize)]
struct Peer {
    trials: usize,
    optuna: f64,
    random: f64,
}

struct Function {
    name: &'static str,
    knobs: Vec<Knob>,
    value: fn(&Point) -> f64,
}

fn number(point: &Point, name: &str) -> f64 {
    match point[name] {
        Value::Number(v) => v,
        _ => f64::NAN,
    }
}

fn word<'a>(point: &'a Point, name: &str) -> &'a str {
    match &point[name] {
        Value::Word(w) => w,
        _ => "",
    }
}

fn is(words: &[&str]) -> Vec<Value> {
    words.iter().map(|&w| Value::Word(w.into())).collect()
}

const WORDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const COST: [f64; 8] = [3.0, 1.5, 2.0, 0.0, 4.0, 0.5, 2.5, 1.0];

fn cost(point: &Point, name: &str) -> f64 {
    COST[WORDS.iter().position(|&w| w == word(point, name)).unwrap()]
}

fn conditional(p: &Point) -> f64 {
    match word(p, "kind") {
        "plain" => 1.0,
        "near" => {
            (number(p, "near.k") / 9.0).ln().powi(2) + 2.0 * (number(p, "near.w") - 0.6).powi(2)
        }
        _ => 0.3 + (number(p, "far.x") - 2.0).powi(2),
    }
}

fn nested(p: &Point) -> f64 {
    let bend = (number(p, "x") - 0.5).powi(2);
    if word(p, "kind") == "a" {
        return bend + 0.5 + (number(p, "a.y") - 0.2).powi(2);
    }
    match word(p, "b.metric") {
        "mix" => bend + 3.0 * (number(p, "b.w") - 0.75).powi(2),
        _ => bend + 0.8,
    }
}

fn branin(p: &Point) -> f64 {
    let (x, y) = (number(p, "x"), number(p, "y"));
    let (b, c, s) = (5.1 / (4.0 * PI * PI), 5.0 / PI, 1.0 / (8.0 * PI));
    (y - b * x * x + c * x - 6.0).powi(2) + 10.0 * (1.0 - s) * x.cos() + 10.0 - 0.397_887
}

fn separable() -> Vec<Function> {
    let x = || Knob::real("x", 0.0, -10.0, 10.0);
    vec![
        Function { name: "bowl", knobs: vec![x()], value: |p| (number(p, "x") - 3.0).powi(2) },
        Function {
            name: "bowl_and_whole",
            knobs: vec![x(), Knob::whole("k", 1, 1, 50)],
            value: |p| (number(p, "x") - 3.0).powi(2) + (number(p, "k") - 7.0).abs(),
        },
        Function {
            name: "log_rate",
            knobs: vec![
                Knob::real("rate", 0.1, 1e-6, 1.0).log(),
                Knob::real("decay", 0.0, 0.0, 1.0),
            ],
            value: |p| {
                (number(p, "rate").log10() + 3.3).powi(2) + (number(p, "decay") - 0.8).powi(2)
            },
        },
        Function {
            name: "log_whole",
            knobs: vec![Knob::whole("k", 1, 1, 1000).log(), Knob::real("w", 0.0, 0.0, 1.0)],
            value: |p| (number(p, "k") / 20.0).ln().powi(2) + 4.0 * (number(p, "w") - 0.3).powi(2),
        },
        Function {
            name: "sphere5",
            knobs: (0..5).map(|i| Knob::real(format!("x{i}"), 0.0, -5.0, 5.0)).collect(),
            value: |p| {
                let term = |i: u8| (number(p, &format!("x{i}")) - f64::from(i) / 2.0).powi(2);
                (0..5).map(term).sum()
            },
        },
    ]
}

fn tangled() -> Vec<Function> {
    vec![
        Function {
            name: "branin",
            knobs: vec![Knob::real("x", 0.0, -5.0, 10.0), Knob::real("y", 0.0, 0.0, 15.0)],
            value: branin,
        },
        Function {
            name: "rosenbrock",
            knobs: vec![Knob::real("x", 0.0, -2.0, 2.0), Knob::real("y", 0.0, -2.0, 2.0)],
            value: |p| {
                let (x, y) = (number(p, "x"), number(p, "y"));
                (1.0 - x).powi(2) + 100.0 * (y - x * x).powi(2)
            },
        },
        Function {
            name: "words",
            knobs: vec![
                Knob::words("first", &WORDS),
                Knob::words("second", &WORDS),
                Knob::words("third", &WORDS),
                Knob::real("x", 0.0, -5.0, 5.0),
            ],
            value: |p| {
                let words: f64 =
                    ["first", "second", "third"].map(|name| cost(p, name)).iter().sum();
                words + (number(p, "x") - 1.0).powi(2)
            },
        },
        Function {
            name: "conditional",
            knobs: vec![
                Knob::words("kind", &["plain", "near", "far"]),
                Knob::whole("near.k", 1, 1, 200).log().when("kind", is(&["near"])),
                Knob::real("near.w", 0.0, 0.0, 1.0).when("kind", is(&["near"])),
                Knob::real("far.x", 0.0, -5.0, 5.0).when("kind", is(&["far"])),
            ],
            value: conditional,
        },
        Function {
            name: "nested",
            knobs: vec![
                Knob::real("x", 0.0, -2.0, 2.0),
                Knob::words("kind", &["a", "b"]),
                Knob::real("a.y", 0.0, 0.0, 1.0).when("kind", is(&["a"])),
                Knob::words("b.metric", &["one", "mix", "two"]).when("kind", is(&["b"])),
                Knob::real("b.w", 0.0, 0.0, 1.0).when("b.metric", is(&["mix"])),
            ],
            value: nested,
        },
    ]
}

fn best(function: &Function, seed: u64, trials: usize) -> f64 {
    let knobs = Knobs::new(function.knobs.clone()).unwrap();
    let mut study = Study::new(Setup::new(knobs, seed, function.name));
    let value = |p: &Point| Ok(-(function.value)(p));
    study.run(SERIES, trials, &mut |_| false, &mut |p, _| value(p), &mut |_, _| ()).unwrap();
    -study.best(SERIES, 1)[0].value().unwrap()
}

fn keep_up_with_optuna(functions: &[Function]) {
    let peers: BTreeMap<String, Peer> =
        serde_json::from_str(include_str!("../fixtures/tune.json")).unwrap();
    let mut behind = Vec::new();
    for function in functions {
        let peer = &peers[function.name];
        let mut found: Vec<f64> =
            (0..SEEDS).map(|seed| best(function, seed, peer.trials)).collect();
        found.sort_by(f64::total_cmp);
        let median = found[19].midpoint(found[20]);
        if median > 1.5 * peer.optuna || median > peer.random / 1.5 {
            behind.push(format!("{} {median} against {}", function.name, peer.optuna));
        }
    }
    assert!(behind.is_empty(), "{behind:?}");
}

#[test]
fn functions_of_independent_knobs_are_minimised_as_well_as_by_optuna() {
    keep_up_with_optuna(&separable());
}

#[test]
fn functions_of_tangled_chosen_and_conditional_knobs_are_minimised_as_well_as_by_optuna() {
    keep_up_with_optuna(&tangled());
}
