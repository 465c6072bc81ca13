//! Sketches and clouds through the real binary.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::support::{model, png, upright};
use tempfile::{TempDir, tempdir};

/// A small classifier of 10 stroke points, or of 20 points in space, with 5 classes.
fn network(folder: &Path, name: &str) {
    let exports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../upright/tests/fixtures/exports");
    fs::copy(exports.join(format!("{name}-script-dynamic.onnx")), folder.join("model.onnx"))
        .unwrap();
}

/// 40 sketches of each of 5 words; the key is the word's number and the sketch's.
fn sketches(folder: &Path) {
    let mut text = String::new();
    for k in 0..200 {
        let (word, nth) = (k % 5, k / 5);
        let xs: Vec<usize> = (0..4 + word).map(|i| i * 10 + nth).collect();
        let ys: Vec<usize> = (0..4 + word).map(|i| i * i * word % 50 + nth % 3).collect();
        let key = format!("{word}-{nth}");
        let _ = writeln!(
            text,
            "{{\"word\":\"w{word}\",\"key_id\":\"{key}\",\"drawing\":[[{xs:?},{ys:?}]]}}"
        );
    }
    fs::write(folder.join("sketches.ndjson"), text).unwrap();
}

fn ready() -> TempDir {
    let folder = tempdir().unwrap();
    network(folder.path(), "lstm");
    sketches(folder.path());
    folder
}

#[test]
fn sketches_are_fitted_and_answered_by_split() {
    let folder = ready();
    let fit = [
        "fit",
        "model.onnx",
        "sketches.ndjson",
        "--exclude",
        "*-3[0-9]",
        "--held-out",
        "sketches.ndjson",
        "--held-out-include",
        "*-3[0-9]",
        "--score",
        "energy",
        "--budget",
        "4",
        "-t",
        "rotate",
        "--json",
    ];
    let ran = upright(folder.path(), &fit);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["report"]["bank"], 150);

    let path = "M0 0L10 5L20 0M3 3C4 9 8 9 9 3";
    fs::write(folder.path().join("a.svg"), format!("<svg><path d='{path}'/></svg>")).unwrap();
    let ran = upright(
        folder.path(),
        &[
            "predict",
            "model.onnx",
            "a.svg",
            "sketches.ndjson",
            "--include",
            "*.svg",
            "--include",
            "*#0-?",
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    let names: Vec<&str> = ran.out.lines().skip(1).filter_map(|l| l.split(',').next()).collect();
    assert_eq!(names[..3], ["a.svg", "sketches.ndjson#0-0", "sketches.ndjson#0-1"]);
    assert_eq!(names.len(), 11);
}

/// The views that were classified are files that are read again, and classified alike.
fn views_can_be_read_again(folder: &Path, data: &str, ending: &str) {
    let fit =
        ["fit", "model.onnx", data, "--score", "energy", "--budget", "4", "--accept-harm=100"];
    let ran = upright(folder, &fit);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let answers = |args: &[&str]| -> Vec<serde_json::Value> {
        let ran = upright(folder, &[&["predict", "model.onnx", "--json"], args].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let first = answers(&[data, "--gate", "always", "--views", "views", "--limit", "6"]);
    assert_eq!(first.len(), 6);
    assert!(first.iter().any(|row| row["m00"].as_f64().unwrap() < 0.999), "{first:?}");
    let again = answers(&["views", "--gate", "never"]);
    for (row, view) in first.iter().zip(&again) {
        let (row, view) = (row["path"].as_str().unwrap(), view["path"].as_str().unwrap());
        let (_, key) = row.trim_end_matches(ending).rsplit_once(['#', '/']).unwrap();
        assert!(view.ends_with(&format!("-{key}{ending}")), "{row} became {view}");
    }
    let labels = |rows: &[serde_json::Value]| -> Vec<u64> {
        rows.iter().map(|row| row["label"].as_u64().unwrap()).collect()
    };
    assert_eq!(labels(&first), labels(&again));
}

#[test]
fn views_of_sketches_can_be_read_again() {
    let folder = ready();
    views_can_be_read_again(folder.path(), "sketches.ndjson", ".svg");
}

#[test]
fn views_of_clouds_can_be_read_again_and_rows_hold_their_rotations() {
    let folder = tempdir().unwrap();
    network(folder.path(), "pointnet");
    for k in 0..200u16 {
        let class = folder.path().join(format!("clouds/c{}", k % 5));
        fs::create_dir_all(&class).unwrap();
        let point = |i: u16| {
            let t = f32::from(i) + 0.1 * f32::from(k);
            let (x, y) = (t.sin() * f32::from(k % 5 + 1), t.cos());
            format!("{x} {y} {}\n", (2.0 * t).sin())
        };
        fs::write(class.join(format!("{k}.xyz")), (0..20).map(point).collect::<String>()).unwrap();
    }
    views_can_be_read_again(folder.path(), "clouds", ".xyz");
    let args = ["predict", "model.onnx", "clouds", "--gate", "always", "--json", "--limit", "3"];
    for line in upright(folder.path(), &args).out.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let entry = |i, j| row[format!("m{i}{j}")].as_f64().unwrap();
        for i in 0..3 {
            let length: f64 = (0..3).map(|j| entry(i, j) * entry(i, j)).sum();
            assert!((length - 1.0).abs() < 1e-4, "{line}");
        }
    }
}

#[test]
fn a_broken_sketch_is_skipped_and_listed() {
    let folder = ready();
    let text = fs::read_to_string(folder.path().join("sketches.ndjson")).unwrap();
    fs::write(
        folder.path().join("sketches.ndjson"),
        format!("{text}{{\"word\":\"w0\",\"drawing\":[[[1,1],[2,2]]]}}\n"),
    )
    .unwrap();
    let fit = [
        "fit",
        "model.onnx",
        "sketches.ndjson",
        "--score",
        "energy",
        "--budget",
        "4",
        "-t",
        "rotate",
    ];
    let ran = upright(folder.path(), &fit);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains(
            "1 of 201 sketches unreadable, first: `sketches.ndjson#200` (2 points, all equal"
        ),
        "{}",
        ran.err
    );
    assert!(fs::read_to_string(folder.path().join("errors.jsonl")).unwrap().contains("all equal"));
}

#[test]
fn data_of_another_kind_say_what_the_model_wants() {
    let folder = ready();
    png(&folder.path().join("a.png"), &[0.5; 16], 4);
    fs::create_dir_all(folder.path().join("photos/cat")).unwrap();
    png(&folder.path().join("photos/cat/a.png"), &[0.5; 16], 4);
    let fit = |data: &str| upright(folder.path(), &["fit", "model.onnx", data]);

    let ran = fit("a.png");
    assert_eq!(ran.code, 3);
    assert!(
        ran.err.contains("the model wants sketches [N,10,3] but `a.png` is an image"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("input::shape") && ran.err.contains("QuickDraw ndjson"),
        "{}",
        ran.err
    );
    let ran = fit("photos");
    assert!(ran.err.contains("holds 0 readable sketches (1 file: 1 .png)"), "{}", ran.err);

    network(folder.path(), "pointnet");
    let ran = fit("sketches.ndjson");
    assert!(
        ran.err.contains("the model wants clouds [N,20,3] but `sketches.ndjson` is a sketch"),
        "{}",
        ran.err
    );
    let ran = fit("photos");
    assert!(
        ran.err.contains("holds 0 readable clouds") && ran.err.contains("off ply pcd xyz"),
        "{}",
        ran.err
    );

    model(folder.path());
    fs::write(folder.path().join("a.off"), "OFF\n1 0 0\n0 0 0\n").unwrap();
    let ran = fit("a.off");
    assert!(
        ran.err.contains("the model wants images [N,1,40,40] but `a.off` is a point cloud"),
        "{}",
        ran.err
    );
}

#[test]
fn patterns_that_fit_nothing_show_a_name() {
    let folder = ready();
    let ran = upright(folder.path(), &["fit", "model.onnx", "sketches.ndjson", "--include", "9-*"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("the patterns leave none of its 200 rows"), "{}", ran.err);
    assert!(ran.err.contains("names look like `sketches.ndjson#0-0`"), "{}", ran.err);
}
