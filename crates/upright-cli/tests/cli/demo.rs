//! `upright demo` as a new user runs it.

use crate::support::upright;
use tempfile::tempdir;

#[test]
fn the_demo_gains_on_transformed_digits_and_loses_nothing_on_upright_ones() {
    let folder = tempdir().unwrap();
    let ran = upright(folder.path(), &["demo", "--count", "200", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let right =
        |line: usize, kind: &str| json["lines"][line][kind]["gated"]["hits"].as_i64().unwrap();
    assert_eq!(json["lines"][0]["name"], "model alone");
    assert_eq!(json["lines"][2]["name"], "gated");
    assert!(right(2, "transformed") >= right(0, "transformed") + 25, "{}", ran.out);
    assert!(right(2, "upright") + 2 >= right(0, "upright"), "{}", ran.out);
    let sheet = image::open(folder.path().join(json["sheet"].as_str().unwrap())).unwrap();
    assert!(sheet.width() > 500 && sheet.height() > 500);
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
    assert!(ran.out.contains("report  r.html") && ran.out.contains("digit   d.svg"), "{}", ran.out);
    let html = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    assert!(html.contains("built-in digits") && html.len() < 3_000_000);
    let svg = std::fs::read_to_string(folder.path().join("d.svg")).unwrap();
    assert!(svg.contains("Most probable classes"), "`energy` has no neighbours");
}
