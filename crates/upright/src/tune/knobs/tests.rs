//! Knobs from tables, conditions, and what is refused.

use super::*;

const TABLE: &[Param] = &[
    Param::whole("k", 3, 1, 1000, "wide, hence logarithmic"),
    Param::real("w", 0.5, 0.0, 1.0, "narrow"),
    Param::flag("squared", true, "flag"),
    Param::word("metric", &["euclidean", "cosine"], "word"),
    Param::auto("tau", 0.0, 1.0, "worked out"),
    Param::real("margin", 0.0, 0.0, f64::INFINITY, "unbounded"),
    Param::whole("cap", 9, 1, u64::MAX, "unbounded"),
    Param::whole("some", 3, 1, 1000, "narrowed").tuned(2.0, 8.0),
    Param::real("rate", 0.1, 0.0, 1.0, "narrowed").tuned_log(0.01, 0.5),
    Param::flag("left", false, "left alone").untuned(),
];

fn space() -> Knobs {
    let mut all = vec![Knob::words("score", &["energy", "knn"])];
    all.extend(Knob::of_row("score", "knn", TABLE));
    let cosine = vec![Value::Word("cosine".into())];
    all.push(Knob::real("knn.deep", 0.1, 0.0, 1.0).when("knn.metric", cosine));
    Knobs::new(all).unwrap()
}

fn point(values: &[(&str, Value)]) -> Point {
    values.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect()
}

fn word(w: &str) -> Value {
    Value::Word(w.into())
}

#[test]
fn a_table_gives_knobs_for_what_can_be_drawn() {
    let knobs = Knob::of_row("score", "knn", TABLE);
    let names: Vec<_> = knobs.iter().map(|k| k.name.as_str()).collect();
    let wanted = ["knn.k", "knn.w", "knn.squared", "knn.metric", "knn.some", "knn.rate"];
    assert_eq!(names, wanted);
    assert_eq!(knobs[0].range, Range::Whole { low: 1, high: 1000, log: true });
    assert_eq!(knobs[1].range, Range::Real { low: 0.0, high: 1.0, log: false });
    assert_eq!(knobs[2].default, Value::Flag(true));
    assert_eq!(knobs[4].range, Range::Whole { low: 2, high: 8, log: false });
    assert_eq!(knobs[5].range, Range::Real { low: 0.01, high: 0.5, log: true });
    assert!(knobs.iter().all(|k| k.when.as_ref().is_some_and(|w| w.knob == "score")));
}

#[test]
fn knobs_exist_only_under_their_conditions_also_nested_ones() {
    let space = space();
    assert_eq!(space.default_point(), point(&[("score", word("energy"))]));
    let near = space.complete(&point(&[("score", word("knn"))])).unwrap();
    assert_eq!(near.len(), 7);
    assert_eq!(near["knn.k"], Value::Number(3.0));
    let deep = point(&[("score", word("knn")), ("knn.metric", word("cosine"))]);
    assert_eq!(space.complete(&deep).unwrap()["knn.deep"], Value::Number(0.1));
    assert!(space.admits(&near));
    assert!(!space.admits(&deep), "it lacks knobs");
    let mut stray = space.default_point();
    stray.insert("knn.k".into(), Value::Number(3.0));
    assert!(!space.admits(&stray));
    assert_eq!(space.complete(&stray).unwrap(), space.default_point());
    assert_eq!(space.groups(), [vec![0], (1..=6).collect(), vec![7]]);
}

#[test]
fn a_part_takes_the_settings_of_its_own_row() {
    let values = [("score", word("knn")), ("knn.k", Value::Number(9.0))];
    let mut p = point(&values);
    p.insert("knn-mix.k".into(), Value::Number(5.0));
    assert_eq!(part(&p, "score").unwrap(), Part::new("knn").number("k", 9.0));
    assert_eq!(part(&p, "search"), None);
}

#[test]
fn unusable_spaces_and_points_are_refused() {
    let real = |low, high| Knob::real("x", low, low, high);
    let bad: Vec<Vec<Knob>> = vec![
        vec![real(1.0, 0.0)],
        vec![real(0.0, f64::INFINITY)],
        vec![real(0.0, 1.0).log()],
        vec![Knob::whole("k", 0, 0, 9).log()],
        vec![Knob::whole("k", 0, 0, u64::MAX)],
        vec![Knob::whole("k", 10, 0, 9)],
        vec![Knob::words("w", &[])],
        vec![Knob::words("w", &["a", "a"])],
        vec![real(0.0, 1.0), real(0.0, 1.0)],
        vec![real(0.0, 1.0).when("w", vec![word("a")])],
        vec![Knob::words("w", &["a"]), real(0.0, 1.0).when("w", vec![word("b")])],
    ];
    for knobs in bad {
        assert!(Knobs::new(knobs.clone()).is_err(), "{knobs:?}");
    }
    let e = space().complete(&point(&[("scor", word("knn"))])).unwrap_err();
    assert_eq!(e.to_string(), "tuning: there is no knob `scor`");
    let wide = point(&[("score", word("knn")), ("knn.k", Value::Number(2.5))]);
    assert!(space().complete(&wide).is_err());
}
