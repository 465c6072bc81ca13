//! `upright explain`: one input in one drawing, and the gate's own reason.

use std::path::Path;

use crate::report::{base64, self_contained};
use crate::support::{FIT, artifact, fixed_model, picture, pixels, upright};
use crate::workflow::fitted;
use image::GrayImage;
use upright::gate::Look;
use upright::{Role, View, warp};

/// Explains a picture and returns the drawing and its words.
fn explain(folder: &Path, picture: &str, args: &[&str]) -> (String, String) {
    let mut all = vec!["explain", "model.onnx", picture, "--quiet"];
    all.extend(args);
    let ran = upright(folder, &all);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let svg = std::fs::read_to_string(folder.join("explain.svg")).unwrap();
    let text = svg.replace("</text>", " ").replace("&#39;", "'");
    let text: String = text.split('<').map(|t| t.split_once('>').map_or(t, |p| p.1)).collect();
    (svg, text)
}

/// The pictures inside a drawing, in order.
fn pictures(svg: &str) -> Vec<GrayImage> {
    let inside = svg.split("<image href=\"data:image/png;base64,").skip(1);
    let bytes = inside.map(|rest| base64(rest.split('"').next().unwrap()));
    bytes.map(|b| image::load_from_memory(&b).unwrap().into_luma8()).collect()
}

/// All test pictures.
fn tests(folder: &Path) -> Vec<String> {
    pictures_of(folder, "test")
}

/// All pictures of one set.
fn pictures_of(folder: &Path, set: &str) -> Vec<String> {
    let inside = |path: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(path).unwrap().map(|f| f.unwrap().path()).collect()
    };
    let mut all: Vec<String> = inside(&folder.join(set))
        .iter()
        .flat_map(|class| inside(class))
        .map(|path| path.to_str().unwrap().to_string())
        .collect();
    all.sort();
    all
}

#[test]
fn an_explanation_shows_both_pictures_the_landscape_and_the_gates_reason() {
    let folder = fitted();
    let folder = folder.path();
    let c = artifact(folder, "model.upright");
    let always = c.with_part(Role::Gate, upright::Part::new("always")).unwrap();
    let moved =
        |path: &String| !always.predict(&picture(Path::new(path))).unwrap()[0].map.is_identity();
    let one = &tests(folder).into_iter().find(moved).unwrap();
    let input = picture(Path::new(one));
    for (gate, words) in
        [("always", "so the search rivals looked at 12 views"), ("never", "does not exceed")]
    {
        let c = c.with_part(Role::Gate, upright::Part::new(gate)).unwrap();
        let answer = c.predict(&input).unwrap().remove(0);
        assert_eq!(answer.map.is_identity(), gate == "never", "the pictures would be the same");
        let view = warp(&input, &[View { item: 0, map: answer.map }], &c.config().resample);
        let (svg, text) = explain(folder, one, &["--gate", gate]);
        assert!(text.contains(words), "{text}");
        let shown = pictures(&svg);
        assert_eq!(shown[0], pixels(&input), "the input");
        assert_eq!(shown[1], pixels(&view.unwrap()), "the view that answered");
        assert!(svg.starts_with("<svg xmlns="));
        assert!(svg.contains("Nearest samples in the bank"));
        assert_eq!(svg.matches("class=\"seen\"").count(), 12);
        assert!(self_contained(&svg.replace("http://www.w3.org/2000/svg", "")));
    }
    let page = ["explain", "model.onnx", one, "--out", "one.html", "--quiet"];
    assert_eq!(upright(folder, &page).code, 0);
    assert!(self_contained(&std::fs::read_to_string(folder.join("one.html")).unwrap()));
    let ran = upright(folder, &["explain", "model.onnx", one, "--out", "one.png"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("write an .svg file"), "{}", ran.err);
    let ran = upright(folder, &["explain", "model.onnx", one, "--row", "5"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
}

/// The number after some words in an element.
fn after(svg: &str, words: &str) -> f64 {
    let rest = svg.split_once(words).unwrap().1;
    let end = rest.find(|ch: char| !(ch.is_ascii_digit() || ch == '.')).unwrap();
    rest[..end].parse().unwrap()
}

/// Where a class has a limit of its own, an input between that and the common one is drawn on
/// the side of its own limit: the line lies below the input's cross if it was searched.
#[test]
fn an_explanation_names_and_draws_the_limit_of_the_inputs_class() {
    let folder = fitted();
    let folder = folder.path();
    let mut fit = FIT.to_vec();
    fit.extend(["--set", "gate.per_class=true", "--set", "gate.alpha=0.3"]);
    fit.extend(["--out", "own.upright", "--accept-harm", "100"]);
    let ran = upright(folder, &fit);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let c = artifact(folder, "own.upright");
    let mut seen = 0;
    for one in tests(folder).into_iter().chain(pictures_of(folder, "train")) {
        let (outputs, energies) = c.raw(&picture(Path::new(&one))).unwrap();
        let raw = Look { energy: energies[0], label: outputs.labels()[0] };
        let reason = c.gate().reason(raw, None);
        if reason.class.is_none() || reason.searched == (raw.energy > c.gate().tau()) {
            continue;
        }
        seen += 1;
        let (svg, text) = explain(folder, &one, &["--artifact", "own.upright"]);
        let limit = format!("the gate's threshold, {:.3}", reason.tau);
        let limit = if reason.tau < 1.0 {
            limit
        } else {
            format!("the gate's threshold, {:.2}", reason.tau)
        };
        let words = format!("{limit} (of class {})", raw.label);
        assert!(text.contains(&words), "{words} in {text}");
        assert_eq!(text.contains("does not exceed"), !reason.searched, "{text}");
        let (_, cross) = svg.split_once("<path class=\"cross\" d=\"M").unwrap();
        let cross: f64 = cross.split(['l', ' ']).nth(1).unwrap().parse::<f64>().unwrap() + 6.0;
        let line = svg.split_once("<line class=\"tau\"").unwrap().1;
        let line = after(line, " y1=\"");
        assert_eq!(line > cross, reason.searched, "{one}: tau at {line}, input at {cross}");
        if seen == 2 {
            return;
        }
    }
    assert!(seen > 0, "no input lies between its class's limit and the common one");
}

#[test]
fn an_explanation_calls_a_switched_answer_switched() {
    let folder = fitted();
    let folder = folder.path();
    fixed_model(&folder.join("second.onnx"), 7);
    let mut fit = FIT.to_vec();
    fit.extend(["--switch", "second.onnx", "--out", "two.upright", "--accept-harm", "100"]);
    let ran = upright(folder, &fit);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let one = &tests(folder)[0];
    let two = ["--artifact", "two.upright", "--switch", "second.onnx"];
    let mut args = two.to_vec();
    args.extend(["--gate", "always"]);
    let (svg, text) = explain(folder, one, &args);
    for words in [
        "Switched: the second model says 7",
        "so the second model was asked. It says 7.",
        "The gate always switches: the second model answers.",
        "second model: 7",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    for words in ["reject", "view found", "accepts", "looked at"] {
        assert!(!text.contains(words), "{words} in {text}");
    }
    assert!(!["inf", "NaN", "∞"].iter().any(|w| svg.contains(&format!("\"{w}"))), "{svg}");
    assert_eq!(svg.matches("class=\"seen\"").count(), 0, "a second model has no views");
    let mut args = two.to_vec();
    args.extend(["--gate", "never"]);
    let (_, text) = explain(folder, one, &args);
    assert!(text.contains("The second model was not asked"), "{text}");
}
