//! The errors users meet: what happened, why, and how to fix it, with the
//! exit code of their family.

use std::fs;

use crate::support::{FIT, Ran, digits, model, png, upright};
use tempfile::{TempDir, tempdir};

fn ready() -> TempDir {
    let folder = tempdir().unwrap();
    model(folder.path());
    digits(folder.path(), "train", 300, 1);
    folder
}

fn said(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{}", ran.err);
    for words in words {
        assert!(ran.err.contains(words), "`{words}` is not in: {}", ran.err);
    }
}

/// The embedded model with an operator's name changed everywhere.
fn renamed(operators: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = upright::samples::glyph_model().to_vec();
    for (from, to) in operators {
        assert_eq!(from.len(), to.len());
        let places: Vec<usize> = bytes
            .windows(from.len() + 2)
            .enumerate()
            .filter(|(_, w)| {
                w[0] == 0x22 && w[1] as usize == from.len() && &w[2..] == from.as_bytes()
            })
            .map(|(i, _)| i + 2)
            .collect();
        assert!(!places.is_empty(), "{from}");
        for at in places {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    bytes
}

#[test]
fn a_picture_of_another_size_is_one_row_that_says_why_or_is_resized() {
    let folder = ready();
    assert_eq!(upright(folder.path(), FIT).code, 0);
    png(&folder.path().join("small.png"), &[0.5; 28 * 28], 28);
    digits(folder.path(), "more", 1, 3);
    let good = fs::read_dir(folder.path().join("more")).unwrap().next().unwrap().unwrap();
    fs::copy(good.path().join("0000.png"), folder.path().join("good.png")).unwrap();
    let both = ["predict", "model.onnx", "small.png", "good.png"];
    let ran = upright(folder.path(), &both);
    said(&ran, 6, &["1 of 2", "errors.jsonl", "another size add `--resize 40 --crop 40`"]);
    assert!(ran.out.contains("good.png") && !ran.out.contains("small.png"), "{}", ran.out);
    let why = fs::read_to_string(folder.path().join("errors.jsonl")).unwrap();
    assert!(why.contains("small.png") && why.contains("28"), "{why}");
    let ran = upright(folder.path(), &[&both[..], &["--resize", "40"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("small.png"), "{}", ran.out);
}

/// A folder of photographs, of which the model takes one as it is.
#[test]
fn however_many_pictures_are_of_another_size_the_others_have_rows() {
    let folder = ready();
    assert_eq!(upright(folder.path(), FIT).code, 0);
    fs::create_dir(folder.path().join("photos")).unwrap();
    for (name, height, width) in [("a", 30, 20), ("b", 20, 30), ("c", 40, 40), ("d", 64, 48)] {
        let picture = image::GrayImage::new(width, height);
        picture.save(folder.path().join(format!("photos/{name}.png"))).unwrap();
    }
    let ran = upright(folder.path(), &["predict", "model.onnx", "photos"]);
    said(&ran, 6, &["3 of 4", "a.png", "another size add `--resize 40 --crop 40`"]);
    assert_eq!(ran.out.lines().count(), 2, "{}", ran.out);
    let advised = ["predict", "model.onnx", "photos", "--resize", "40", "--crop", "40"];
    let ran = upright(folder.path(), &advised);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 5), "{}", ran.err);
    let ran = upright(folder.path(), &["predict", "model.onnx", "photos", "--max-errors", "2"]);
    said(&ran, 3, &["data::corrupt"]);
}

#[test]
fn all_unsupported_operators_are_listed_at_once() {
    let folder = ready();
    let bytes = renamed(&[("Conv", "Quux"), ("Gemm", "Blub")]);
    fs::write(folder.path().join("odd.onnx"), bytes).unwrap();
    let ran = upright(folder.path(), &["inspect", "odd.onnx"]);
    said(&ran, 4, &["onnx::op", "all unsupported operators", "Blub", "Quux"]);
}

#[test]
fn what_is_not_a_model_says_so() {
    let folder = ready();
    for (name, bytes) in [
        ("empty.onnx", &b""[..]),
        ("text.onnx", b"hello"),
        ("cut.onnx", &upright::samples::glyph_model()[..5000]),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
        said(&upright(folder.path(), &["inspect", name]), 4, &["onnx::model", name]);
    }
    said(&upright(folder.path(), &["inspect", "none.onnx"]), 3, &["none.onnx"]);
}

#[test]
fn a_folder_without_class_folders_says_what_was_expected() {
    let folder = ready();
    fs::create_dir(folder.path().join("flat")).unwrap();
    for i in 0..3 {
        png(&folder.path().join(format!("flat/{i}.png")), &[0.0; 1600], 40);
    }
    let ran = upright(folder.path(), &["fit", "model.onnx", "flat"]);
    said(&ran, 3, &["data::no_classes", "3 images lie directly in it", "flat/<class>/*.png"]);
}

#[test]
fn a_missing_class_is_named() {
    let folder = ready();
    fs::remove_dir_all(folder.path().join("train/7")).unwrap();
    let ran = upright(folder.path(), FIT);
    said(&ran, 3, &["data::classes", "9 classes", "10 outputs", "--allow-missing-classes"]);
    let mut args = FIT.to_vec();
    args.push("--allow-missing-classes");
    assert_eq!(upright(folder.path(), &args).code, 0);
}

#[test]
fn an_empty_folder_says_what_is_in_it() {
    let folder = ready();
    assert_eq!(upright(folder.path(), FIT).code, 0);
    fs::create_dir(folder.path().join("photos")).unwrap();
    for name in ["a.heic", "b.heic", "c.txt"] {
        fs::write(folder.path().join("photos").join(name), b"x").unwrap();
    }
    let ran = upright(folder.path(), &["predict", "model.onnx", "photos"]);
    said(&ran, 3, &["data::empty", "0 readable images", "2 .heic", "1 .txt", "convert HEIC first"]);
}

#[test]
fn corrupt_pictures_are_skipped_listed_and_limited() {
    let folder = ready();
    assert_eq!(upright(folder.path(), FIT).code, 0);
    digits(folder.path(), "photos", 30, 5);
    let whole = fs::read(
        folder.path().join("photos/0").read_dir().unwrap().next().unwrap().unwrap().path(),
    );
    fs::write(folder.path().join("photos/0/bad.png"), &whole.unwrap()[..60]).unwrap();

    let ran = upright(folder.path(), &["predict", "model.onnx", "photos"]);
    said(&ran, 6, &["data::corrupt", "1 of 31 images unreadable", "errors.jsonl", "run::partial"]);
    assert_eq!(ran.out.lines().count(), 31, "a header and 30 rows");
    let listed = fs::read_to_string(folder.path().join("errors.jsonl")).unwrap();
    assert!(listed.contains("bad.png"), "{listed}");

    let strict = upright(folder.path(), &["predict", "model.onnx", "photos", "--strict"]);
    said(&strict, 3, &["data::corrupt", "bad.png"]);
}

#[test]
fn scores_that_are_not_numbers_are_counted() {
    let folder = ready();
    let args = ["fit", "model.onnx", "train", "--score", "energy", "--scale", "1e37"];
    let ran = upright(folder.path(), &args);
    said(&ran, 4, &["score::nan", "score `energy` is NaN for", "choose another tap or score"]);
    assert!(!folder.path().join("model.upright").exists());
}

#[test]
fn an_artifact_of_another_model_is_refused_with_both_fingerprints() {
    let folder = ready();
    assert_eq!(upright(folder.path(), FIT).code, 0);
    let mut other = upright::samples::glyph_model().to_vec();
    let middle = other.len() / 2;
    other[middle] ^= 1;
    fs::write(folder.path().join("other.onnx"), other).unwrap();
    let args = ["predict", "other.onnx", "train", "--artifact", "model.upright"];
    said(
        &upright(folder.path(), &args),
        5,
        &["artifact::model", "was fitted on model", "upright fit"],
    );
}

#[test]
fn an_artifact_of_a_later_format_is_refused_by_its_number() {
    let folder = ready();
    assert_eq!(upright(folder.path(), FIT).code, 0);
    let path = folder.path().join("model.upright");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(12).position(|w| w == b"\\\"format\\\":5").unwrap();
    bytes[at + 11] = b'6';
    fs::write(&path, bytes).unwrap();
    let ran = upright(folder.path(), &["predict", "model.onnx", "train"]);
    said(&ran, 5, &["artifact::version", "artifact format 6, this upright reads 5", "upgrade"]);
}

/// Searching every digit and believing any lower energy costs upright digits dearly.
#[test]
fn a_fit_that_harms_writes_nothing_unless_told() {
    let folder = ready();
    let harmful = [FIT, &["--gate", "always"]].concat();
    let ran = upright(folder.path(), &harmful);
    said(&ran, 3, &["gate::harm", "no artifact was written", "--accept-harm"]);
    assert!(!folder.path().join("model.upright").exists());
    let told = [&harmful[..], &["--accept-harm", "100"]].concat();
    assert_eq!(upright(folder.path(), &told).code, 0);
    assert!(folder.path().join("model.upright").exists());
}

#[test]
fn a_missing_artifact_says_how_to_make_one() {
    let folder = ready();
    let ran = upright(folder.path(), &["predict", "model.onnx", "train"]);
    said(&ran, 2, &["there is no artifact `model.upright`", "upright fit model.onnx"]);
}

#[test]
fn wrong_names_and_settings_list_the_right_ones() {
    let folder = ready();
    let fit = |args: &[&str]| {
        let mut all = vec!["fit", "model.onnx", "train"];
        all.extend(args);
        upright(folder.path(), &all)
    };
    said(&fit(&["--score", "nkk"]), 2, &["unknown score `nkk`; there are: energy"]);
    said(&fit(&["--search", "x"]), 2, &["unknown search `x`; there are: random, random-refine"]);
    said(&fit(&["--gate", "x"]), 2, &["unknown gate `x`; there are: always, never"]);
    said(&fit(&["--preset", "x"]), 2, &["unknown preset `x`; there are: learned, search, paper"]);
    said(&fit(&["-t", "twist"]), 2, &["unknown axis `twist`; there are: rotate"]);
    said(&fit(&["--set", "kk=3"]), 2, &["judge has no setting `kk`"]);
    said(&fit(&["--gate", "conformal", "--set", "gate.alpha=2"]), 2, &["`alpha` = 2 is not valid"]);
    said(&fit(&["--tap", "nowhere"]), 4, &["onnx::tap", "no tap `nowhere`", "upright inspect"]);
    said(&upright(folder.path(), &["predcit"]), 2, &["predict"]);
}

#[test]
fn errors_are_one_line_of_json_when_asked_for() {
    let folder = ready();
    let ran = upright(folder.path(), &["fit", "model.onnx", "train", "--score", "x", "--json"]);
    let json: serde_json::Value = serde_json::from_str(ran.err.trim()).unwrap();
    assert_eq!(
        (json["level"].as_str(), json["code"].as_str()),
        (Some("error"), Some("config::name"))
    );
}

#[cfg(not(feature = "ort"))]
#[test]
fn an_engine_that_is_not_built_in_says_how_to_get_it() {
    let folder = ready();
    for command in [&["inspect", "model.onnx"][..], FIT, &["demo"]] {
        let ran = upright(folder.path(), &[command, &["--engine", "ort"]].concat());
        said(&ran, 2, &["engine::missing", "build with `--features ort`", "--engine rten"]);
    }
    assert_eq!(upright(folder.path(), FIT).code, 0);
    let ran = upright(folder.path(), &["predict", "model.onnx", "train", "--engine", "ort"]);
    said(&ran, 2, &["engine::missing"]);
}

#[test]
fn an_unknown_engine_lists_the_engines() {
    let folder = ready();
    let ran = upright(folder.path(), &["inspect", "model.onnx", "--engine", "torch"]);
    said(&ran, 2, &["unknown engine `torch`", "rten"]);
    let ran = upright(folder.path(), &["inspect", "model.onnx", "--engine", "rten"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[cfg(feature = "ort")]
#[test]
fn a_library_that_is_not_there_says_where_it_was_looked_for() {
    let folder = ready();
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_upright"))
        .current_dir(folder.path())
        .env("ORT_DYLIB_PATH", "nowhere.so")
        .args(["inspect", "model.onnx", "--engine", "ort"])
        .output()
        .expect("the binary starts");
    let err = String::from_utf8(ran.stderr).expect("text");
    assert_eq!(ran.status.code(), Some(2), "{err}");
    assert!(err.contains("nowhere.so") && err.contains("ORT_DYLIB_PATH"), "{err}");
}
