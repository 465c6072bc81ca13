//! inspect, fit, predict and eval, one after the other, as a user goes.

use std::path::Path;

use crate::support::{FIT, artifact, digits, model, picture, pixels, upright};
use tempfile::{TempDir, tempdir};
use upright::{View, warp};

pub(crate) fn fitted() -> TempDir {
    let folder = tempdir().unwrap();
    model(folder.path());
    digits(folder.path(), "train", 300, 1);
    digits(folder.path(), "test", 40, 2);
    let ran = upright(folder.path(), FIT);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    for words in ["verdict", "wrote      model.upright", "next       upright "] {
        assert!(ran.err.contains(words), "{}", ran.err);
    }
    folder
}

fn rows(folder: &Path, args: &[&str]) -> Vec<serde_json::Value> {
    let mut all = vec!["predict", "model.onnx", "test", "--json"];
    all.extend(args);
    let ran = upright(folder, &all);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn a_model_is_inspected_fitted_used_and_judged() {
    let folder = fitted();
    let folder = folder.path();

    let inspected = upright(folder, &["inspect", "model.onnx", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&inspected.out).unwrap();
    assert_eq!(json["classes"], 10);
    assert_eq!(json["taps"][0]["asked"], "auto");
    assert_eq!(json["head"][0], 10);
    assert!(upright(folder, &["inspect", "model.onnx"]).out.contains("<- auto"));

    let predicted = rows(folder, &[]);
    assert_eq!(predicted.len(), 40);
    let first = &predicted[0];
    assert!(first["path"].as_str().unwrap().contains("test"));
    assert!(["kept", "accepted", "rejected"].contains(&first["verdict"].as_str().unwrap()));

    let csv = upright(folder, &["predict", "model.onnx", "test", "--out", "rows.csv"]);
    assert_eq!((csv.code, csv.out.as_str()), (0, ""));
    let text = std::fs::read_to_string(folder.join("rows.csv")).unwrap();
    assert!(
        text.starts_with("path,label,class,rival,model_label,verdict,energy_before,"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 41);

    let judged = upright(folder, &["eval", "model.onnx", "test", "--json"]);
    assert_eq!(judged.code, 0, "{}", judged.err);
    let json: serde_json::Value = serde_json::from_str(&judged.out).unwrap();
    assert_eq!(json["transforms"], "synthetic");
    assert_eq!(json["upright"]["model"]["of"], 40);
    assert_eq!((&json["timed"], json["latency"].as_array().unwrap().len()), (&80.into(), 0));
    let many = upright(folder, &["eval", "model.onnx", "train", "--limit", "120", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&many.out).unwrap();
    let parts: Vec<&str> =
        json["latency"].as_array().unwrap().iter().map(|p| p["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["decode", "warp", "model", "score", "search", "total"]);
    assert!(json["latency"][5]["p50"].as_f64().unwrap() > 0.0);
    let table = upright(folder, &["eval", "model.onnx", "test"]).out;
    assert!(table.contains("right -> wrong") && table.contains("Wilson"), "{table}");
    let given = upright(folder, &["eval", "model.onnx", "test", "--transformed", "test", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&given.out).unwrap();
    assert_eq!(json["transforms"], "given");
}

#[test]
fn another_gate_search_or_budget_can_be_tried_without_a_new_fit() {
    let folder = fitted();
    let spent = |rows: Vec<serde_json::Value>| -> Vec<u64> {
        rows.iter().map(|r| r["evaluations"].as_u64().unwrap()).collect()
    };
    assert!(spent(rows(folder.path(), &["--gate", "never"])).iter().all(|&n| n == 1));
    assert!(spent(rows(folder.path(), &["--gate", "always"])).iter().all(|&n| n == 13));
    let narrow = ["--gate", "always", "--search", "grid", "--budget", "5"];
    assert!(spent(rows(folder.path(), &narrow)).iter().all(|&n| n <= 6));
    let tau = ["--gate", "threshold", "--set", "gate.tau=1e9"];
    assert!(spent(rows(folder.path(), &tau)).iter().all(|&n| n == 1));
}

#[test]
fn every_row_of_a_table_can_be_asked_for_by_name() {
    let folder = fitted();
    for row in upright::search::TABLE {
        let rows = rows(folder.path(), &["--gate", "always", "--search", row.name, "--limit", "4"]);
        assert_eq!(rows.len(), 4, "{}", row.name);
    }
}

#[test]
fn the_same_command_gives_the_same_bytes_with_any_number_of_threads() {
    let folder = fitted();
    let folder = folder.path();
    let artifact = std::fs::read(folder.join("model.upright")).unwrap();
    let answers = |threads: &str| {
        let args = ["predict", "model.onnx", "test", "--gate", "always", "--threads", threads];
        upright(folder, &args).out
    };
    let one = answers("1");
    assert!(one.contains("accepted"));
    assert_eq!(one, answers("2"));
    assert_eq!(one, answers("7"));
    let mut again = FIT.to_vec();
    again.extend(["--out", "again.upright", "--threads", "1"]);
    assert_eq!(upright(folder, &again).code, 0);
    assert_eq!(artifact, std::fs::read(folder.join("again.upright")).unwrap());
}

/// The files hold what the classifier saw: the input under the map of its answer.
#[test]
fn canonical_views_are_written_on_request() {
    let folder = fitted();
    let folder = folder.path();
    let c = artifact(folder, "model.upright");
    let mut turned = 0;
    for gate in ["always", "never"] {
        let c = c.with_part(upright::Role::Gate, upright::Part::new(gate)).unwrap();
        let args = ["--gate", gate, "--views", gate, "--limit", "5", "--quiet"];
        let rows = rows(folder, &args);
        let files = std::fs::read_dir(folder.join(gate)).unwrap();
        let mut views: Vec<_> = files.map(|f| f.unwrap().path()).collect();
        views.sort();
        assert_eq!((rows.len(), views.len()), (5, 5));
        for (row, view) in rows.iter().zip(&views) {
            let path = Path::new(row["path"].as_str().unwrap());
            let stem = path.file_stem().unwrap().to_str().unwrap();
            assert!(view.to_str().unwrap().ends_with(&format!("-{stem}.png")), "{view:?}");
            let input = picture(&folder.join(path));
            let map = c.predict(&input).unwrap()[0].map;
            assert!((f64::from(map.entries()[1]) - row["m01"].as_f64().unwrap()).abs() < 1e-6);
            let seen = warp(&input, &[View { item: 0, map }], &c.config().resample).unwrap();
            let written = image::open(view).unwrap().into_luma8();
            assert_eq!(written, pixels(&seen), "{view:?}");
            turned += usize::from(written != pixels(&input));
            assert!(gate == "always" || map.is_identity());
        }
    }
    assert!((1..=5).contains(&turned), "{turned} views differ from their inputs");
}

#[test]
fn a_class_with_fewer_samples_than_k_is_used_whole_and_named() {
    let folder = tempdir().unwrap();
    model(folder.path());
    digits(folder.path(), "train", 300, 1);
    let fit = ["fit", "model.onnx", "train", "--budget", "12", "--accept-harm", "100"];
    let ran = upright(folder.path(), &[&fit[..], &["--score", "pc-knn", "--set", "k=40"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    for words in ["note       class `", "fewer than the 40 `pc-knn` looks at", "all are used"] {
        assert!(ran.err.contains(words), "{}", ran.err);
    }
}
