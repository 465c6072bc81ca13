//! The first contact with a model and data that were never met: the truth about
//! whether they go together, early refusals, verdicts that rest on enough.

use std::fs;

use crate::support::{FIT, Ran, digits, model, upright};
use tempfile::{TempDir, tempdir};

pub(crate) fn ready(count: usize) -> TempDir {
    let folder = tempdir().unwrap();
    model(folder.path());
    digits(folder.path(), "train", count, 1);
    folder
}

pub(crate) fn said(ran: &Ran, code: i32, words: &[&str]) {
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

/// Red, green and blue pictures and a model that tells them apart.
#[test]
fn channels_in_the_wrong_order_are_told_by_the_order_that_is_right() {
    let folder = tempdir().unwrap();
    let colours =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../upright/tests/fixtures/forms/colours.onnx");
    fs::copy(colours, folder.path().join("model.onnx")).unwrap();
    for i in 0..60u8 {
        let class = folder.path().join(format!("train/{}", i % 3));
        fs::create_dir_all(&class).unwrap();
        let mut pixel = [i; 3];
        pixel[usize::from(i % 3)] = 200 - i;
        let picture = image::RgbImage::from_pixel(8, 8, image::Rgb(pixel));
        picture.save(class.join(format!("{i}.png"))).unwrap();
    }
    let ran = upright(folder.path(), &["check", "model.onnx", "train"]);
    said(&ran, 0, &["as configured 100.0 % right", "33.3 % with `--channels bgr`"]);
    let ran = upright(folder.path(), &["check", "model.onnx", "train", "--channels", "bgr"]);
    said(
        &ran,
        3,
        &[
            "33 % of 60 labelled inputs are answered rightly as configured, 100 % with `--channels rgb`",
        ],
    );
}

#[test]
fn factors_on_pixels_are_told_as_fractions() {
    let folder = ready(1);
    let shown = |scale: &str| upright(folder.path(), &["inspect", "model.onnx", scale]).out;
    for (flag, told) in [("--scale=16/255", "16 x/255"), ("--scale=-1/255", "-x/255")] {
        let shown = shown(flag);
        assert!(shown.contains(&format!("-> {told}\n")), "{shown}");
    }
}

#[test]
fn an_order_of_classes_other_than_the_models_is_told() {
    let folder = ready(200);
    assert_eq!(upright(folder.path(), &[FIT, &["--accept-harm=100"]].concat()).code, 0);
    let train = folder.path().join("train");
    // 0 -> 1 -> ... -> 9 -> 0: every label is one too high, but for the last.
    fs::rename(train.join("9"), train.join("kept")).unwrap();
    for class in (0..9).rev() {
        fs::rename(train.join(class.to_string()), train.join((class + 1).to_string())).unwrap();
    }
    fs::rename(train.join("kept"), train.join("0")).unwrap();
    let ran = upright(folder.path(), &["check", "model.onnx", "train"]);
    said(&ran, 3, &["labels look shifted", "-1"]);
    let ran = upright(folder.path(), &["eval", "model.onnx", "train", "--limit", "50"]);
    said(&ran, 0, &["data::mismatch", "labels look shifted"]);
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
    said(&ran, 3, &["no/such/x.upright", "make the folder `no/such`, or name another file"]);
    assert!(!ran.err.contains("plan "), "{}", ran.err);
}

#[test]
fn a_verdict_on_few_samples_says_how_many_would_do() {
    let folder = ready(200);
    let ran = upright(folder.path(), &[FIT, &["--search", "random"]].concat());
    said(
        &ran,
        0,
        &["too few samples to say", "broken of 16; about", "more held-out samples would tell"],
    );
    assert!(!ran.err.contains("upright predict"), "{}", ran.err);
}

#[test]
fn a_verdict_on_few_samples_names_a_closed_gate() {
    let folder = ready(200);
    let ran = upright(folder.path(), &[FIT, &["--gate", "never"]].concat());
    said(
        &ran,
        0,
        &[
            "too few samples to say",
            "the gate stays closed",
            "without the gate",
            "a view of lower energy is found for",
            "--held-out DATA",
        ],
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
fn a_fit_says_what_its_samples_can_promise_and_how_many_would_lift_it() {
    let folder = ready(600);
    let ran = upright(folder.path(), &[FIT, &["--gate", "best-mix"]].concat());
    said(&ran, 0, &["calibration samples promise no less than a limit of", "would promise 1.0"]);
    let kept = ["--gate", "best-mix", "--set", "gate.drop=1"];
    let ran = upright(folder.path(), &[FIT, &kept].concat());
    let closed = "the gate stays closed: a limit of 1.0 on the points of upright accuracy";
    said(&ran, 0, &[closed, "cannot be kept with 120 calibration samples; 299 would do"]);
}

#[test]
fn a_fit_says_what_it_will_do_and_how_long_that_takes() {
    let folder = ready(200);
    let ran = upright(folder.path(), &[FIT, &["--accept-harm=100"]].concat());
    said(&ran, 0, &["plan 160 views of the bank, ", " to calibrate and prove: about "]);
    let hurried = [FIT, &["--accept-harm=100", "--minutes", "0.0001"]].concat();
    said(&upright(folder.path(), &hurried), 0, &["more than the 0.0001 asked for"]);
}

#[test]
fn threads_are_limited_to_what_a_machine_can_have() {
    let folder = tempdir().unwrap();
    let ran = upright(folder.path(), &["list", "--threads", "100000"]);
    said(&ran, 2, &["from 1 to 256"]);
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

/// As many as asked for, in lines that can be read.
#[test]
fn tuning_tries_as_often_as_told_and_shows_the_best() {
    let folder = ready(300);
    let fit = ["fit", "model.onnx", "train", "--budget", "6", "--gate", "never"];
    let ran = upright(folder.path(), &[&fit[..], &["--tune=7"]].concat());
    said(&ran, 0, &["score best of", "search best of", "tuned 7 trials"]);
    for number in ran.err.split(|c: char| !c.is_ascii_digit() && c != '.') {
        let digits = number.rsplit_once('.').map_or(0, |(_, digits)| digits.len());
        assert!(digits <= 4, "{number} in {}", ran.err);
    }
    let trials = |name: &str| {
        let log = fs::read_to_string(folder.path().join(name)).unwrap();
        log.lines().filter(|l| l.starts_with("{\"trial\"")).count()
    };
    assert_eq!(trials("model.tune.jsonl") + trials("model.tune.search.jsonl"), 7);
    said(&upright(folder.path(), &[&fit[..], &["--tune=4"]].concat()), 2, &["give 5 or more"]);
}
