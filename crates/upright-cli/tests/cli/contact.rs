//! The first contact with a model and data that were never met: the truth about
//! whether they go together, early refusals, verdicts that rest on enough.

use std::fs;

use crate::support::{FIT, Ran, digits, model, upright};
use tempfile::{TempDir, tempdir};

fn ready(count: usize) -> TempDir {
    let folder = tempdir().unwrap();
    model(folder.path());
    digits(folder.path(), "train", count, 1);
    folder
}

fn said(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{}\n{}", ran.out, ran.err);
    // Long messages are broken into lines, which may be marked at their edge.
    let told = format!("{} {}", ran.out, ran.err).replace('│', " ");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in words {
        assert!(told.contains(words), "`{words}` is not in: {told}");
    }
}

#[test]
fn a_model_and_its_data_go_together() {
    let folder = ready(100);
    let ran = upright(folder.path(), &["check", "model.onnx", "train"]);
    said(&ran, 0, &["labelled inputs", "as configured", "model and data go together"]);
}

#[test]
fn wrong_preprocessing_is_told_with_the_flags_that_mend_it() {
    let folder = ready(200);
    let inverted = ["model.onnx", "train", "--scale=-1/255", "--mean=-1", "--std", "1"];
    let ran = upright(folder.path(), &[&["check"], &inverted[..]].concat());
    said(&ran, 3, &["data::mismatch", "as configured", "% with `--scale 1/255 --mean 0 --std 1`"]);
    let few = ["--budget", "4", "--calibration", "40", "--score", "energy", "--accept-harm=100"];
    let ran = upright(folder.path(), &[&["fit"], &inverted[..], &few].concat());
    said(&ran, 0, &["data::mismatch", "% with `--scale 1/255 --mean 0 --std 1`"]);
}

#[test]
fn an_order_of_classes_other_than_the_models_is_told() {
    let folder = ready(100);
    let train = folder.path().join("train");
    // 0 -> 1 -> ... -> 9 -> 0: every label is one too high, but for the last.
    fs::rename(train.join("9"), train.join("kept")).unwrap();
    for class in (0..9).rev() {
        fs::rename(train.join(class.to_string()), train.join((class + 1).to_string())).unwrap();
    }
    fs::rename(train.join("kept"), train.join("0")).unwrap();
    let ran = upright(folder.path(), &["check", "model.onnx", "train"]);
    said(&ran, 3, &["labels look shifted", "-1"]);
    for (a, b) in [("0", "5"), ("1", "7"), ("2", "9")] {
        fs::rename(train.join(a), train.join("kept")).unwrap();
        fs::rename(train.join(b), train.join(a)).unwrap();
        fs::rename(train.join("kept"), train.join(b)).unwrap();
    }
    let ran = upright(folder.path(), &["check", "model.onnx", "train"]);
    said(&ran, 3, &["labels look permuted", "is answered", "order of the classes"]);
}

#[test]
fn a_model_that_sees_one_class_in_everything_is_told() {
    let folder = ready(100);
    crate::support::fixed_model(&folder.path().join("model.onnx"), 3);
    let ran = upright(folder.path(), &["check", "model.onnx", "train"]);
    said(&ran, 3, &["100 % of 50 labelled inputs are answered `3`, which is the label of 10 %"]);
}

#[test]
fn classes_that_cannot_be_told_from_names_are_to_be_listed() {
    let folder = ready(20);
    let train = folder.path().join("train");
    for class in 2..10 {
        fs::remove_dir_all(train.join(class.to_string())).unwrap();
    }
    fs::rename(train.join("0"), train.join("nought")).unwrap();
    fs::rename(train.join("1"), train.join("one")).unwrap();
    let some = ["check", "model.onnx", "train", "--allow-missing-classes"];
    let ran = upright(folder.path(), &some);
    said(&ran, 3, &["`train` has 2 classes, model has 10 outputs", "give `--classes FILE`"]);
    let names = "nought\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
    fs::write(folder.path().join("names.txt"), names).unwrap();
    let ran = upright(folder.path(), &[&some[..], &["--classes", "names.txt"]].concat());
    said(&ran, 0, &["as configured", "model and data go together"]);
}

#[test]
fn what_must_fail_fails_before_the_expensive_pass() {
    let folder = ready(100);
    let strict = [FIT, &["--gate", "conformal", "--set", "gate.alpha=0.001"]].concat();
    let ran = upright(folder.path(), &strict);
    said(&ran, 3, &["cannot guarantee alpha = 0.001"]);
    assert!(!ran.err.contains("plan "), "{}", ran.err);
    let ran = upright(folder.path(), &[FIT, &["--out", "no/such/x.upright"]].concat());
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("no/such/x.upright") && !ran.err.contains("plan "), "{}", ran.err);
}

#[test]
fn a_verdict_on_few_samples_says_how_many_would_do() {
    let folder = ready(200);
    let ran = upright(folder.path(), &[FIT, &["--gate", "never"]].concat());
    said(
        &ran,
        0,
        &["too few samples to say", "more held-out samples would tell", "--held-out DATA"],
    );
    assert!(!ran.err.contains("upright predict"), "{}", ran.err);
}

/// Searching every digit and believing any lower energy costs upright digits dearly.
#[test]
fn a_refusal_shows_the_table_and_its_reason() {
    let folder = ready(600);
    let harmful = [FIT, &["--gate", "always"]].concat();
    let ran = upright(folder.path(), &harmful);
    said(
        &ran,
        3,
        &[
            "mended, broken",
            "gate::harm",
            "a loss of",
            "where 1.0 may be lost",
            "use the gate `best-mix`",
        ],
    );
    let accepted = [&harmful[..], &["--accept-harm", "100"]].concat();
    let ran = upright(folder.path(), &accepted);
    said(&ran, 0, &["verdict", "upright predict"]);
    assert!(!ran.err.contains("do not use it"), "{}", ran.err);
}

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

#[test]
fn a_fit_says_what_it_will_do_and_how_long_that_takes() {
    let folder = ready(200);
    let ran = upright(folder.path(), &[FIT, &["--accept-harm=100"]].concat());
    said(&ran, 0, &["plan 160 views of the bank, ", " to calibrate and prove: about "]);
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
fn threads_are_limited_to_what_a_machine_can_have() {
    let folder = tempdir().unwrap();
    let ran = upright(folder.path(), &["list", "--threads", "100000"]);
    said(&ran, 2, &["from 1 to 256"]);
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

#[test]
fn a_file_that_means_harm_is_an_error_that_names_it() {
    let folder = ready(20);
    let model = folder.path().join("model.onnx");
    let mut bytes = fs::read(&model).unwrap();
    for at in (0..bytes.len()).step_by(997) {
        bytes[at] ^= 0x55;
    }
    fs::write(&model, bytes).unwrap();
    let ran = upright(folder.path(), &["inspect", "model.onnx"]);
    said(&ran, 4, &["model.onnx: not a usable ONNX model"]);
    assert!(!ran.err.contains("panicked at"), "{}", ran.err);
}
