//! What commands tell and leave behind: tables, rows and their columns, and files where
//! people look for them.

use std::fs;

use crate::contact::{ready, said};
use crate::support::{FIT, upright};

#[test]
fn an_artifact_lies_beside_its_model_and_is_not_written_over_by_anothers() {
    let folder = ready(200);
    fs::create_dir(folder.path().join("models")).unwrap();
    fs::rename(folder.path().join("model.onnx"), folder.path().join("models/a.onnx")).unwrap();
    let fit = |model: &'static str| {
        let rest = ["--budget", "4", "--calibration", "40", "--score", "energy"];
        [&["fit", model, "train", "--accept-harm=100"], &rest[..]].concat()
    };
    let ran = upright(folder.path(), &fit("models/a.onnx"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(folder.path().join("models/a.upright").exists());
    crate::support::fixed_model(&folder.path().join("models/b.onnx"), 3);
    let over = [&fit("models/b.onnx")[..], &["--out", "models/a.upright"]].concat();
    let ran = upright(folder.path(), &over);
    said(&ran, 2, &["belongs to another model", "--out"]);
    let wrong = ["predict", "models/b.onnx", "train", "--artifact", "models/a.upright"];
    said(&upright(folder.path(), &wrong), 5, &["artifact::model"]);
}

/// Also of a model that takes something else.
#[test]
fn an_artifact_of_a_model_of_another_shape_is_of_another_model() {
    let folder = ready(200);
    assert_eq!(upright(folder.path(), &[FIT, &["--accept-harm=100"]].concat()).code, 0);
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../upright/tests/fixtures/exports");
    let other = std::path::Path::new(fixtures).join("pointnet-script-fixed.onnx");
    fs::copy(other, folder.path().join("other.onnx")).unwrap();
    let wrong = ["predict", "other.onnx", "train", "--artifact", "model.upright"];
    said(&upright(folder.path(), &wrong), 5, &["artifact::model"]);
}

#[test]
fn unreadable_files_are_listed_beside_what_is_written() {
    let folder = ready(200);
    let folder = folder.path();
    assert_eq!(upright(folder, &[FIT, &["--accept-harm=100"]].concat()).code, 0);
    for sub in ["out", "models", "elsewhere"] {
        fs::create_dir(folder.join(sub)).unwrap();
    }
    fs::write(folder.join("train/0/bad.png"), "no picture").unwrap();
    fs::copy(folder.join("model.onnx"), folder.join("models/model.onnx")).unwrap();
    fs::copy(folder.join("model.upright"), folder.join("models/model.upright")).unwrap();
    let there = folder.join("elsewhere");
    let ran = upright(&there, &["predict", "../model.onnx", "../train", "-o", "../out/rows.csv"]);
    said(&ran, 6, &["errors.jsonl"]);
    let ran = upright(&there, &["predict", "../models/model.onnx", "../train"]);
    said(&ran, 6, &["they are listed in `../models/errors.jsonl`"]);
    assert!(
        folder.join("out/errors.jsonl").exists() && folder.join("models/errors.jsonl").exists()
    );
    assert_eq!(fs::read_dir(&there).unwrap().count(), 0, "nothing lands where one stands");
}

/// Fewer than 100 timed decisions have no percentiles; shares say of what they are.
#[test]
fn an_evaluation_says_of_what_its_shares_are() {
    let folder = ready(200);
    assert_eq!(upright(folder.path(), &[FIT, &["--accept-harm=100"]].concat()).code, 0);
    let eval = |limit: &str| {
        let ran = upright(folder.path(), &["eval", "model.onnx", "train", "--limit", limit]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let few = eval("40");
    let heads: Vec<&str> = few.lines().map(|l| l.get(..24).unwrap_or(l).trim()).collect();
    let rows = [
        "inputs",
        "model alone",
        "gated",
        "wrong -> right",
        "right -> wrong",
        "searched",
        "accepted of these",
        "views per input",
        "ms per input",
    ];
    let starts = |row: &str| heads.iter().any(|h| h.starts_with(row));
    assert!(rows.iter().all(|row| starts(row)), "{few}");
    assert!(few.contains("kept (") && few.contains("searched (") && !few.contains("p99"), "{few}");
    assert!(eval("100").contains("all: p50      p95      p99"));
}

#[test]
fn files_of_unknown_formats_are_counted_and_named() {
    let folder = ready(200);
    for name in ["train/3/a.heic", "train/4/b.HEIC", "train/4/c.avif"] {
        fs::write(folder.path().join(name), "what a phone saves").unwrap();
    }
    let counted = "left out, of unknown formats: 3 files: 2 .heic, 1 .avif";
    let help = "convert pictures among them to PNG or JPEG";
    said(&upright(folder.path(), &[FIT, &["--accept-harm=100"]].concat()), 0, &[counted, help]);
    said(&upright(folder.path(), &["predict", "model.onnx", "train"]), 0, &[counted, help]);
    said(&upright(folder.path(), &["eval", "model.onnx", "train"]), 0, &[counted, help]);
}

/// A rotation by 180 degrees has sines of nought; energies and maps print it without a sign.
#[test]
fn nothing_printed_is_minus_nought() {
    let folder = ready(200);
    let harmless = [FIT, &["--accept-harm=100", "-t", "quarters", "--gate", "always"]].concat();
    let fit = upright(folder.path(), &harmless);
    let rows = upright(folder.path(), &["predict", "model.onnx", "train", "--logits", "--json"]);
    let eval = upright(folder.path(), &["eval", "model.onnx", "train"]);
    for ran in [&fit, &rows, &eval] {
        assert_eq!(ran.code, 0, "{}", ran.err);
        let told = format!("{}{}", ran.out, ran.err);
        let signed = told.split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-');
        let nought = |w: &&str| w.starts_with('-') && w.parse::<f64>().is_ok_and(|v| v == 0.0);
        assert_eq!(signed.filter(nought).collect::<Vec<_>>(), [""; 0]);
    }
    let set = ["--accept-harm=100", "--gate", "threshold", "--set", "gate.tau=-0.00001"];
    let fit = upright(folder.path(), &[FIT, &set].concat());
    said(&fit, 0, &["less familiar than the threshold: an energy above 0.0000"]);
}

/// Exact quarter turns: at most three views beside the input, whose maps hold no fractions.
#[test]
fn quarter_turns_are_exact() {
    let folder = ready(200);
    let quarters = [FIT, &["-t", "quarters", "--gate", "always", "--accept-harm=100"]].concat();
    assert_eq!(upright(folder.path(), &quarters).code, 0);
    let rows = upright(folder.path(), &["predict", "model.onnx", "train", "--json"]);
    assert_eq!(rows.code, 0, "{}", rows.err);
    let mut turned = 0;
    for line in rows.out.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let entries = ["m00", "m01", "m02", "m10", "m11", "m12"].map(|m| row[m].as_f64().unwrap());
        assert!(entries.iter().all(|m| [0.0, 1.0, -1.0].contains(m)), "{line}");
        turned += usize::from(entries[0] < 0.5);
    }
    assert!(turned > 0);
    let listed = upright(folder.path(), &["list", "axes"]).out;
    for axis in ["quarter", "quarter-x", "quarter-y", "quarter-z", "cube"] {
        assert!(listed.lines().any(|l| l.split_whitespace().next() == Some(axis)), "{listed}");
    }
}

#[test]
fn every_column_of_a_prediction_is_explained() {
    let folder = ready(200);
    assert_eq!(upright(folder.path(), &[FIT, &["--accept-harm=100"]].concat()).code, 0);
    let rows = upright(folder.path(), &["predict", "model.onnx", "train", "--limit", "1"]).out;
    let help = upright(folder.path(), &["predict", "--help"]).out;
    let columns = &help[help.find("Columns:").unwrap()..];
    let readme = include_str!("../../../../README.md");
    for name in rows.lines().next().unwrap().split(',') {
        let known = match name {
            "energy_after" => "energy_before, _after",
            map if map.starts_with('m') && map.len() == 3 => "m00 .. m12",
            other => other,
        };
        assert!(columns.contains(known), "{name} is not in {columns}");
        let written = if known.starts_with("m00") { "m00" } else { name };
        assert!(readme.contains(&format!("`{written}")), "{name} is not in the README");
    }
}

/// Rows are there as soon as they are answered, and stay when the work is ended.
#[test]
fn rows_so_far_outlive_an_interruption() {
    let folder = ready(300);
    assert_eq!(upright(folder.path(), &[FIT, &["--accept-harm=100"]].concat()).code, 0);
    let slow = ["--gate", "always", "--search", "random", "--budget", "2000", "--out", "rows.csv"];
    let mut running = std::process::Command::new(env!("CARGO_BIN_EXE_upright"))
        .current_dir(folder.path())
        .args([&["predict", "model.onnx", "train", "--quiet"], &slow[..]].concat())
        .spawn()
        .unwrap();
    let partial = folder.path().join("rows.csv.partial");
    let lines = || fs::read_to_string(&partial).map_or(0, |rows| rows.lines().count());
    let start = std::time::Instant::now();
    while lines() < 2 && start.elapsed().as_secs() < 120 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ended = running.try_wait().unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(ended, None, "it ended before it could be interrupted");
    assert!((2..301).contains(&lines()), "{}", lines());
    assert!(!folder.path().join("rows.csv").exists());
}

#[test]
fn a_guarantee_says_over_what() {
    let folder = ready(1);
    let gates = upright(folder.path(), &["list", "gates"]).out;
    let told = gates.split_whitespace().collect::<Vec<_>>().join(" ");
    let over = "share alpha of new upright inputs like the calibration ones, on average";
    assert!(told.contains(over), "{gates}");
    assert!(told.contains("`quantile` (auto or any number)"), "{gates}");
}
