//! Modules import only from those above them in ARCHITECTURE.md's list.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of ARCHITECTURE.md's table in order, each with its layer; those of one row
/// share a layer and may import from each other.
fn layers(text: &str) -> Vec<(String, usize)> {
    let start = text.find("## Modules of `upright`").unwrap();
    let table = text[start..].lines().skip_while(|l| !l.starts_with("|---")).skip(1);
    let rows = table.take_while(|l| l.starts_with('|'));
    rows.enumerate()
        .flat_map(|(layer, row)| {
            let cell = row.split('|').nth(1).unwrap();
            let names = cell.split('`').skip(1).step_by(2);
            let module = |name: &str| (name.trim_end_matches('/').to_string(), layer);
            names.map(module).collect::<Vec<_>>()
        })
        .collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The modules that a file's text names after `crate::`, its tests left out.
fn imports(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().map(str::trim_start).filter(|l| !l.starts_with("//"));
    let word = |s: &str| -> String {
        s.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '#').collect()
    };
    let mut found = BTreeSet::new();
    for line in lines {
        for rest in line.split("crate::").skip(1) {
            match rest.strip_prefix('{') {
                Some(list) => found.extend(list.split(',').map(|s| word(s.trim_start()))),
                None => {
                    found.insert(word(rest));
                }
            }
        }
    }
    found
}

/// What is wrong with the imports of one file, which belongs to a module.
fn upward(layers: &[(String, usize)], own: &str, text: &str) -> Vec<String> {
    let layer = |name: &str| layers.iter().find(|(n, _)| n == name).map(|(_, l)| *l);
    let Some(mine) = layer(own) else { return vec![format!("`{own}` is in no row")] };
    let wrong = |name: &String| name != own && layer(name).is_some_and(|other| other > mine);
    imports(text)
        .into_iter()
        .filter(wrong)
        .map(|name| format!("`{own}` imports from `{name}`"))
        .collect()
}

#[test]
fn modules_import_only_from_those_above_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A packaged crate has no workspace around it.
    let Ok(text) = fs::read_to_string(root.join("../../ARCHITECTURE.md")) else { return };
    let layers = layers(&text);
    assert!(layers.len() > 25, "{layers:?}");
    let source = root.join("src");
    let mut all = Vec::new();
    files(&source, &mut all);
    let mut wrong = Vec::new();
    for path in all {
        let inside = path.strip_prefix(&source).unwrap();
        let name = inside.to_string_lossy().replace('\\', "/");
        if name == "lib.rs" || name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        let own = name.split('/').next().unwrap().trim_end_matches(".rs").to_string();
        for fault in upward(&layers, &own, &fs::read_to_string(&path).unwrap()) {
            wrong.push(format!("{name}: {fault}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_import_from_below_is_found() {
    let layers = [("error".to_string(), 0), ("score".into(), 1), ("gate".into(), 2)];
    let text = "use crate::error::Result;\nuse crate::{error, gate};\n// crate::gate\n";
    assert_eq!(upward(&layers, "score", text), ["`score` imports from `gate`"]);
    assert!(upward(&layers, "gate", text).is_empty());
    assert_eq!(upward(&layers, "odd", ""), ["`odd` is in no row"]);
}
