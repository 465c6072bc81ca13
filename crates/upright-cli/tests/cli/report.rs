//! `upright report`: whole, safe, and equal to its data.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{FIT, digits, fixed_model, model, upright};
use crate::workflow::fitted;
use tempfile::tempdir;

const FIGURES: [&str; 12] = [
    "proposals",
    "tradeoff",
    "energies",
    "sheet",
    "classes",
    "landscape",
    "budget",
    "poses",
    "latency",
    "flips",
    "health",
    "limits",
];

/// The sections of a page by their ids.
fn sections(html: &str) -> BTreeMap<&str, &str> {
    html.split("<section id=\"")
        .skip(1)
        .map(|s| s.split_once('"').unwrap())
        .map(|(id, rest)| (id, rest.split_once("</section>").unwrap().0))
        .collect()
}

fn data(folder: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    files
        .map(|p| {
            let name = p.file_stem().unwrap().to_str().unwrap().to_string();
            (name, std::fs::read_to_string(p).unwrap())
        })
        .collect()
}

pub(crate) fn base64(text: &str) -> Vec<u8> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let bits = text.trim_end_matches('=').bytes().map(digit);
    let (mut word, mut held, mut out) = (0u32, 0, Vec::new());
    for six in bits {
        word = word << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((word >> held) as u8);
            word &= (1 << held) - 1;
        }
    }
    out
}

/// Whether every address in a page is inside it.
pub(crate) fn self_contained(html: &str) -> bool {
    let inside = |address: &str| address.starts_with("data:") || address.starts_with('#');
    let addresses = ["src=\"", "href=\""]
        .into_iter()
        .flat_map(|word| html.split(word).skip(1))
        .map(|rest| rest.split('"').next().unwrap());
    let loads = ["http:", "https:", "url(", "@import", "<link rel=\"stylesheet", "fetch("];
    addresses.clone().count() > 0
        && { addresses }.all(inside)
        && loads.iter().all(|word| !html.contains(word))
}

fn report(folder: &Path, args: &[&str]) -> String {
    let mut all = vec!["report", "model.onnx", "test", "--quiet"];
    all.extend(args);
    let ran = upright(folder, &all);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    std::fs::read_to_string(folder.join("report.html")).unwrap()
}

#[test]
fn a_report_is_one_whole_file_whose_figures_equal_their_data() {
    let folder = fitted();
    let folder = folder.path();
    let html = report(folder, &["--csv", "one"]);
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(self_contained(&html));
    let sections = sections(&html);
    assert_eq!(sections.len(), FIGURES.len());
    for id in FIGURES {
        let drawn = ["<svg", "<table", "<li>", "class=\"cell", "class=\"none\""];
        assert!(drawn.iter().any(|mark| sections[id].contains(mark)), "{id} is empty");
    }
    let mut data = data(&folder.join("one"));
    let inputs = data.remove("inputs").unwrap();
    assert_eq!(inputs.lines().count(), 81, "every input, upright and transformed");
    let harmed = |l: &&str| {
        let l: Vec<&str> = l.split(',').collect();
        l[2] == l[3] && l[2] != l[4]
    };
    let flips: usize = data["flips"]
        .lines()
        .filter(|l| l.contains(",right -> wrong,"))
        .map(|l| l.rsplit(',').next().unwrap().parse::<usize>().unwrap())
        .sum();
    assert_eq!(flips, inputs.lines().skip(1).filter(harmed).count());
    assert_eq!(data.len(), FIGURES.len() - 1, "every figure but the limits has its data");
    for (id, csv) in &data {
        let inside = sections[id.as_str()].split("base64,").last().unwrap();
        let inside = base64(inside.split('"').next().unwrap());
        assert_eq!(&String::from_utf8(inside).unwrap(), csv, "{id}");
    }
    let rows = |id: &str, with: &str| data[id].lines().skip(1).filter(|l| l.contains(with)).count();
    let marks = |id: &str, mark: &str| sections[id].matches(mark).count();
    assert_eq!(rows("sheet", ""), marks("sheet", "<figure class=\"cell"));
    assert_eq!(rows("classes", "transformed,"), marks("classes", "class=\"bar after\""));
    assert_eq!(rows("landscape", ",view,"), marks("landscape", "class=\"seen\""));
    assert_eq!(rows("budget", ""), marks("budget", "class=\"dot"));
    let line = sections["tradeoff"].split("class=\"line main\" d=\"").nth(1).unwrap();
    let line = line.split('"').next().unwrap();
    assert_eq!(rows("tradeoff", "curve,"), line.matches(['M', 'L']).count());
    let total: usize = data["energies"]
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(2).unwrap().parse::<usize>().unwrap())
        .sum();
    assert_eq!(total, 40, "every upright input is in one bin");
    for words in [
        "synthetic: copies",
        "seed",
        "upright report model.onnx test",
        "searches above an energy of ",
    ] {
        assert!(html.contains(words), "{words}");
    }

    let again = report(folder, &["--csv", "two", "--threads", "1"]);
    let two = self::data(&folder.join("two"));
    for (id, csv) in &data {
        if id != "latency" {
            assert_eq!(csv, &two[id], "{id} differs between runs");
        }
    }
    let again = self::sections(&again);
    for id in FIGURES.into_iter().filter(|&id| id != "latency") {
        assert_eq!(sections[id], again[id], "{id} differs between runs");
    }
}

/// A classifier that sees a 7 in everything is right on sevens, turned or not.
#[test]
fn a_retrained_classifier_is_a_point_of_the_trade_off() {
    let folder = fitted();
    let folder = folder.path();
    fixed_model(&folder.join("seven.onnx"), 7);
    let html = report(folder, &["--csv", "figures", "--baseline", "seven.onnx"]);
    let sections = sections(&html);
    assert_eq!(sections["tradeoff"].matches("<circle class=\"retrained\"").count(), 1);
    let figures = data(&folder.join("figures"));
    let row = figures["tradeoff"].lines().find(|l| l.starts_with("retrained,")).unwrap();
    let sevens = std::fs::read_dir(folder.join("test/7")).unwrap().count();
    assert_eq!(row, format!("retrained,NaN,{sevens},40,{sevens},40,0,0"));
    assert!(sections["tradeoff"].contains("retrained: upright "));
}

#[test]
fn names_that_look_like_markup_stay_text() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    for (name, count, seed) in [("train", 300, 1), ("test", 40, 2)] {
        digits(folder, name, count, seed);
        let nine = folder.join(name).join("9");
        std::fs::rename(nine, folder.join(name).join("9<script>alert(1)")).unwrap();
    }
    assert_eq!(upright(folder, FIT).code, 0);
    let html = report(folder, &["--transformed", "test"]);
    assert_eq!(html.matches("<script>").count(), 1, "only the page's own");
    assert!(html.contains("9&lt;script&gt;"));
    assert!(html.contains("given: test"));
}
