//! `upright demo` as a new user runs it.

use crate::support::upright;
use tempfile::tempdir;

/// Runs the demo on a signal and checks what it gains and loses, in points of `count / 2`.
fn gains(signal: &str, count: &str) {
    let folder = tempdir().unwrap();
    let ran = upright(folder.path(), &["demo", "--signal", signal, "--count", count, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["signal"], signal);
    let right = |line: usize, kind: &str| {
        let gated = &json["lines"][line][kind]["gated"];
        100.0 * gated["hits"].as_f64().unwrap() / gated["of"].as_f64().unwrap()
    };
    assert_eq!(json["lines"][0]["name"], "model alone");
    assert_eq!(json["lines"][2]["name"], "gated");
    assert!(right(2, "transformed") >= right(0, "transformed") + 25.0, "{}", ran.out);
    assert!(right(2, "upright") + 2.0 >= right(0, "upright"), "{}", ran.out);
    let sheet = image::open(folder.path().join(json["sheet"].as_str().unwrap())).unwrap();
    assert!(sheet.width() > 500 && sheet.height() > 500);
}

#[test]
fn the_demo_gains_on_transformed_digits_and_loses_nothing_on_upright_ones() {
    gains("image", "200");
}

#[test]
fn the_demo_gains_on_transformed_strokes_and_loses_nothing_on_upright_ones() {
    gains("strokes", "120");
}

#[test]
fn the_demo_gains_on_turned_clouds_and_loses_nothing_on_upright_ones() {
    gains("cloud", "120");
}

#[test]
fn the_table_ends_with_the_next_command() {
    let folder = tempdir().unwrap();
    let ran = upright(folder.path(), &["demo", "--count", "40", "--out", "here"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for words in ["model alone", "always canonicalize", "gated", "next    upright fit"] {
        assert!(ran.out.contains(words), "{}", ran.out);
    }
    assert!(folder.path().join("here/before-after.png").exists());
}

#[test]
fn the_demo_writes_a_report_and_explains_a_digit_on_request() {
    let folder = tempdir().unwrap();
    let small = ["demo", "--count", "40", "--budget", "12", "--score", "energy"];
    let pages = ["--report", "r.html", "--explain", "d.svg"];
    let ran = upright(folder.path(), &[&small[..], &pages].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("report  r.html") && ran.out.contains("one     d.svg"), "{}", ran.out);
    let html = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    assert!(html.contains("built-in digit classifier") && html.len() < 3_000_000);
    let svg = std::fs::read_to_string(folder.path().join("d.svg")).unwrap();
    assert!(svg.contains("Most probable classes"), "`energy` has no neighbours");
}
