//! Models as people have them: quantised, of open sizes, with more inputs or
//! outputs than one, or meaning harm.

use std::fs;
use std::path::Path;

use crate::support::{Ran, model, upright};
use tempfile::{TempDir, tempdir};
use upright::{Batch, Model, ModelOptions, samples};

/// A small network from the library's fixtures.
fn fixture(folder: &Path, name: &str) {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../upright/tests/fixtures");
    fs::copy(Path::new(fixtures).join(name), folder.join("model.onnx")).unwrap();
}

/// One that onnxruntime's quantiser wrote.
fn quantised(folder: &Path, name: &str) {
    fixture(folder, &format!("quantised/{name}"));
}

/// Pictures of noise in folders by the class that a model sees in them.
fn as_the_model_sees_them(folder: &Path, count: usize) {
    let options = ModelOptions { taps: vec![], ..ModelOptions::default() };
    let model = Model::load(folder.join("model.onnx"), &options).unwrap();
    let mut state = 1u32;
    for i in 0..count {
        let bytes: Vec<u8> = (0..144)
            .map(|at| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Bright on one side or the other, so that classes differ.
                if at / 12 < 6 * (i % 3) { (state >> 24) as u8 } else { 0 }
            })
            .collect();
        let pixels = bytes.iter().map(|b| f32::from(*b) / 255.0).collect();
        let logits = model.run(&Batch::new(model.signal(), pixels).unwrap()).unwrap().logits;
        let top = (0..5).max_by(|&a, &b| logits.row(0)[a].total_cmp(&logits.row(0)[b])).unwrap();
        let class = folder.join("data").join(top.to_string());
        fs::create_dir_all(&class).unwrap();
        let picture = image::GrayImage::from_raw(12, 12, bytes).unwrap();
        picture.save(class.join(format!("{i:03}.png"))).unwrap();
    }
}

/// A field of a message: its number and its bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).unwrap();
    assert!(length < 128);
    [&[number << 3 | 2, length], bytes].concat()
}

/// The embedded classifier with a field more in its graph: what is written twice is joined.
fn with(folder: &Path, number: u8, bytes: &[u8]) {
    let more = field(7, &field(number, bytes));
    fs::write(folder.join("model.onnx"), [samples::glyph_model(), &more].concat()).unwrap();
}

fn json(ran: &Ran) -> serde_json::Value {
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

fn empty() -> TempDir {
    tempdir().unwrap()
}

#[test]
fn a_quantised_model_is_used_as_any_other() {
    for (name, operator) in [
        ("operators.onnx", "QLinearConv"),
        ("pairs.onnx", "Conv"),
        ("on-the-way.onnx", "ConvInteger"),
    ] {
        let folder = empty();
        let folder = folder.path();
        quantised(folder, name);
        let seen = json(&upright(folder, &["inspect", "model.onnx", "--json"]));
        let operators = seen["operators"].as_array().unwrap();
        let own = operators.iter().find(|o| o["operator"] == operator).unwrap();
        assert_eq!(own["count"], 4, "{name}");
        assert_eq!(seen["taps"][0]["features"], 8, "{name}");
        assert_eq!(seen["head"], serde_json::json!([5, 8]), "{name}");
        as_the_model_sees_them(folder, 200);
        let some = ["model.onnx", "data", "--allow-missing-classes"];
        let ran = upright(folder, &[&["check"], &some[..]].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.contains("as configured  100.0 % right"), "{}", ran.out);
        let few =
            ["--budget", "4", "--calibration", "100", "--score", "proto", "--accept-harm=100"];
        let ran = upright(folder, &[&["fit"], &some[..], &few, &["--search", "descent"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(!ran.err.contains("gradient"), "{}", ran.err);
        let ran = upright(folder, &["predict", "model.onnx", "data", "--gate", "always"]);
        assert_eq!((ran.code, ran.out.lines().count()), (0, 201), "{}", ran.err);
    }
}

/// Channels last, bytes with the preprocessing inside, half precision, nodes in no order: the
/// pictures have the labels that the plain network gives.
#[test]
fn other_forms_of_a_network_answer_as_it_does() {
    let folder = empty();
    let folder = folder.path();
    quantised(folder, "plain.onnx");
    as_the_model_sees_them(folder, 100);
    for form in ["channels-last", "bytes", "half", "shuffled"] {
        fixture(folder, &format!("forms/{form}.onnx"));
        let report = json(&upright(folder, &["inspect", "model.onnx", "--json"]));
        assert_eq!(report["taps"][0]["tensors"][0], "inner.relu", "{form}");
        assert_eq!(report["head"][0], 5, "{form}");
        let ran = upright(folder, &["check", "model.onnx", "data", "--allow-missing-classes"]);
        assert_eq!(ran.code, 0, "{form}: {}", ran.err);
        assert!(ran.out.contains("as configured  100.0 % right"), "{form}: {}", ran.out);
    }
}

#[test]
fn a_tap_that_serves_several_purposes_is_named_once() {
    let folder = empty();
    let folder = folder.path();
    fixture(folder, "exports/lstm-script-dynamic.onnx");
    let shown = upright(folder, &["inspect", "model.onnx"]).out;
    let taps: Vec<&str> = shown.lines().filter(|l| l.starts_with("tap")).collect();
    assert_eq!(
        taps,
        [
            "tap            auto = /Relu_output_0 [12] -> 12 features",
            "tap            65%, 90% = /ReduceMean_output_0 [16] -> 16 features",
        ]
    );
    let line = |k| format!("{{\"word\":\"w{}\",\"drawing\":[[[0,{k},9],[{k},3,1]]]}}\n", k % 5);
    fs::write(folder.join("s.ndjson"), (1..60).map(line).collect::<String>()).unwrap();
    let few = ["--score", "energy", "--budget", "2", "-t", "rotate", "--accept-harm=100"];
    let ran = upright(folder, &[&["fit", "model.onnx", "s.ndjson"], &few[..]].concat());
    let taps: Vec<&str> = ran.err.lines().filter(|l| l.starts_with("tap")).collect();
    let wanted = [
        "tap        /Relu_output_0 (12 features)",
        "tap        /ReduceMean_output_0 (16 features)",
    ];
    assert_eq!(taps, wanted, "{}", ran.err);
}

/// Two sides of 40 become ones that the file leaves open.
#[test]
fn where_a_size_is_open_everything_else_is_shown() {
    let folder = empty();
    let folder = folder.path();
    let mut bytes = samples::glyph_model().to_vec();
    let sides = [0x0a, 2, 8, 40, 0x0a, 2, 8, 40];
    let at = bytes.windows(8).position(|w| w == sides).unwrap();
    bytes[at..at + 8].copy_from_slice(&[0x0a, 2, 0x12, 0, 0x0a, 2, 0x12, 0]);
    fs::write(folder.join("model.onnx"), bytes).unwrap();

    let ran = upright(folder, &["inspect", "model.onnx"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    for words in [
        "input          image float [n,1,?,?]",
        "tap            auto = features",
        "head           10 x 64 weights found",
        "not shown      classes, sizes and preprocessing: model.onnx: input image float [n,1,?,?]: its \
         size is open",
        "help           say the size it was trained with, such as `--resize 224`",
        "   <- auto",
    ] {
        assert!(ran.out.contains(words), "`{words}` is not in\n{}", ran.out);
    }
    let open = json(&upright(folder, &["inspect", "model.onnx", "--json"]));
    assert!(open["open"]["why"].as_str().unwrap().contains("its size is open"), "{open}");
    assert!(open["open"]["help"].as_str().unwrap().contains("--resize 224"), "{open}");
    assert_eq!(open["taps"][0]["tensors"][0], "features");
    assert!(open.get("classes").is_none() && open["taps"][0].get("features").is_none(), "{open}");
    let said = json(&upright(folder, &["inspect", "model.onnx", "--json", "--resize", "40"]));
    assert_eq!((&said["classes"], said.get("open")), (&serde_json::json!(10), None));
    model(folder);
    let fixed = json(&upright(folder, &["inspect", "model.onnx", "--json"]));
    for key in ["head", "logits", "operators", "candidates"] {
        assert_eq!(open[key], fixed[key], "{key}");
    }
}

#[test]
fn two_inputs_are_refused_by_name() {
    let folder = empty();
    with(folder.path(), 11, &field(1, b"mask"));
    let ran = upright(folder.path(), &["inspect", "model.onnx"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    let reason = "it must have one input, it has: [image float [n,1,40,40]; mask unknown [..]]";
    assert!(ran.err.contains(reason), "{}", ran.err);
}

#[test]
fn an_output_is_chosen_by_name() {
    let folder = empty();
    let folder = folder.path();
    with(folder, 12, &field(1, b"features"));
    let classes = |args: &[&str]| {
        let all = [&["inspect", "model.onnx", "--json", "--tap", "none"], args].concat();
        json(&upright(folder, &all))["classes"].clone()
    };
    assert_eq!(classes(&[]), 10);
    assert_eq!(classes(&["--output", "features"]), 64);
    let ran = upright(folder, &["inspect", "model.onnx", "--output", "labels"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    for words in ["unknown output `labels`", "logits", "features"] {
        assert!(ran.err.contains(words), "`{words}` is not in {}", ran.err);
    }
}

#[test]
fn a_loop_that_may_never_end_is_refused() {
    let folder = empty();
    let node = [field(1, b"image"), field(2, b"l"), field(4, b"Loop")].concat();
    with(folder.path(), 1, &node);
    let ran = upright(folder.path(), &["inspect", "model.onnx"]);
    assert_eq!(ran.code, 4, "{}", ran.err);
    let reason = "node `l` (Loop) may go round for ever: a loop needs a stored number of rounds, at \
                  most 16384 in all; classifiers can be exported without loops";
    assert!(ran.err.contains(reason), "{}", ran.err);
}
