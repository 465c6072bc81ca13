//! `upright score` as a user runs it.

use std::path::Path;

use crate::support::{Floats, Ran, npz, read_npy, upright};
use tempfile::{TempDir, tempdir};

/// A folder with `train.npz` and `test.npz` of two classes.
///
/// Energies of the test rows by hand: `-ln(e^0 + e^0) = -ln 2` and
/// `-ln(e^3 + e^1) = -(3 + ln(1 + e^-2)) = -3.126928`.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    let logits = Floats("logits", 2, 2, &[1.0, 0.0, 0.0, 2.0]);
    npz(&folder.path().join("train.npz"), &[logits], Some(&[0, 1]));
    npz(&folder.path().join("test.npz"), &[Floats("logits", 2, 2, &[0.0, 0.0, 3.0, 1.0])], None);
    folder
}

const BASE: [&str; 7] =
    ["score", "--score", "energy", "--train", "train.npz", "--test", "test.npz"];

fn score(folder: &Path, more: &[&str]) -> Ran {
    upright(folder, &[&BASE[..], more].concat())
}

fn numbers(text: &str) -> Vec<f64> {
    text.lines().map(|l| l.parse().unwrap()).collect()
}

fn close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{got:?}");
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() < 1e-6, "{got:?} instead of {expected:?}");
    }
}

#[test]
fn energies_come_out_one_a_line() {
    let ran = score(folder().path(), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    close(&numbers(&ran.out), &[-std::f64::consts::LN_2, -3.126_928]);
}

#[test]
fn settings_reach_the_score() {
    // -2 ln(2 e^0) = -1.3862944 and -2 ln(e^1.5 + e^0.5) = -(3 + 2 ln(1 + e^-1)) = -3.6265233.
    let ran = score(folder().path(), &["--set", "temperature=2"]);
    close(&numbers(&ran.out), &[-2.0 * std::f64::consts::LN_2, -3.626_523_4]);
}

#[test]
fn json_names_the_score_and_its_settings() {
    let ran = score(folder().path(), &["--json", "--set", "temperature=2"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["score"]["name"], "energy");
    assert_eq!(json["score"]["settings"]["temperature"], 2.0);
    assert_eq!(json["energies"].as_array().unwrap().len(), 2);
}

#[test]
fn every_file_format_holds_the_same_energies() {
    let folder = folder();
    let lines = score(folder.path(), &[]).out;
    for name in ["e.npy", "e.csv", "e.json"] {
        let ran = score(folder.path(), &["--out", name]);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
        assert!(ran.err.contains("2 energies by `energy`"), "{}", ran.err);
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let npy = read_npy(&read("e.npy"));
    let printed: Vec<f32> = lines.lines().map(|l| l.parse().unwrap()).collect();
    assert_eq!(npy, printed);
    let csv = String::from_utf8(read("e.csv")).unwrap();
    assert_eq!(csv, format!("row,energy\n0,{}\n1,{}\n", npy[0], npy[1]));
    let json: serde_json::Value = serde_json::from_slice(&read("e.json")).unwrap();
    let stored: Vec<f64> = serde_json::from_value(json["energies"].clone()).unwrap();
    close(&stored, &numbers(&lines));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "no temporary files");
}

#[test]
fn logits_follow_from_features_and_the_last_layer() {
    let folder = tempdir().unwrap();
    // weight [[1, 0], [0, 2]], bias [0.5, -1]: features (2.5, 1) give the logits (3, 1).
    let head = [Floats("weight", 2, 2, &[1.0, 0.0, 0.0, 2.0]), Floats("bias", 2, 0, &[0.5, -1.0])];
    let features = Floats("features", 1, 2, &[0.0, 0.0]);
    let [weight, bias] = head;
    npz(&folder.path().join("train.npz"), &[features, weight, bias], None);
    npz(&folder.path().join("test.npz"), &[Floats("features", 1, 2, &[2.5, 1.0])], None);
    let ran = score(folder.path(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    close(&numbers(&ran.out), &[-3.126_928]);
}

#[test]
fn a_wrong_name_lists_the_right_ones() {
    let args = ["score", "--score", "enrgy", "--train", "train.npz", "--test", "test.npz"];
    let ran = upright(folder().path(), &args);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("config::name"), "{}", ran.err);
    assert!(ran.err.contains("unknown score `enrgy`; there are: "), "{}", ran.err);
    assert!(ran.err.contains("energy"), "{}", ran.err);
    assert!(ran.err.contains("help: `upright list`"), "{}", ran.err);
}

#[test]
fn wrong_settings_say_what_is_right() {
    let folder = folder();
    for (set, why) in [
        ("temprature=2", "energy has no setting `temprature`; it has: temperature"),
        ("temperature=-1", "`temperature` = -1 is not valid; it takes a number in 0.001..1000"),
        ("temperature=warm", "`temperature` = warm is not valid"),
        ("temperature", "write it as name=value"),
    ] {
        let ran = score(folder.path(), &["--set", set]);
        assert_eq!(ran.code, 2, "{set}: {}", ran.err);
        assert!(ran.err.contains(why), "{set}: {}", ran.err);
    }
}

#[test]
fn errors_are_json_if_results_are() {
    let ran = score(folder().path(), &["--json", "--set", "x=2"]);
    let json: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(
        (json["level"].as_str(), json["code"].as_str()),
        (Some("error"), Some("config::setting"))
    );
}

#[test]
fn files_that_do_not_fit_are_explained() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let run = |args: &[&str]| upright(folder.path(), args);
    std::fs::write(at("text.npz"), "hello").unwrap();
    npz(&at("none.npz"), &[Floats("x", 1, 2, &[0.0; 2])], None);
    npz(&at("wide.npz"), &[Floats("logits", 1, 3, &[0.0; 3])], None);
    npz(&at("flat.npz"), &[Floats("logits", 3, 0, &[0.0; 3])], None);
    for (test, code, why) in [
        ("missing.npz", 3, "missing.npz: No such file"),
        ("text.npz", 3, "not an npz archive"),
        ("none.npz", 3, "no array `logits`; there are: x"),
        ("wide.npz", 3, "widths [3], those of --train [2]"),
        ("flat.npz", 3, "array `logits` has shape [3], not two dimensions"),
    ] {
        let ran = run(&["score", "--score", "energy", "--train", "train.npz", "--test", test]);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{test}");
        assert!(ran.err.contains(why), "{test}: {}", ran.err);
    }
    npz(&at("few.npz"), &[Floats("logits", 2, 2, &[0.0; 4])], Some(&[0]));
    let ran = run(&["score", "--score", "energy", "--train", "few.npz", "--test", "test.npz"]);
    assert!(ran.err.contains("1 labels for 2 rows"), "{}", ran.err);
    let ran = score(folder.path(), &["--out", "energies.txt"]);
    assert_eq!(ran.code, 2);
}

#[test]
fn energies_that_are_not_numbers_are_written_and_counted() {
    let folder = folder();
    let rows = [f32::NAN, 0.0, 1.0, 0.0];
    npz(&folder.path().join("test.npz"), &[Floats("logits", 2, 2, &rows)], None);
    let ran = score(folder.path(), &[]);
    assert_eq!(ran.code, 6, "{}", ran.err);
    assert_eq!(ran.out.lines().count(), 2);
    assert!(ran.err.contains("1 of 2 energies are NaN"), "{}", ran.err);
}
