//! The public face: what users see is a stored list, so that it grows on purpose only.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// As many public items as there may be.
const MOST: usize = 250;

/// A public item of the sources, whether or not anybody can reach it.
struct Item {
    /// The module directly below the root.
    module: String,
    /// The type it is a method or constant of, if it is one.
    of: Option<String>,
    name: String,
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The name after `pub fn`, `pub struct` and so on.
fn declared(line: &str) -> Option<String> {
    let rest = line.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("const fn ").map_or(rest.to_string(), |r| format!("fn {r}"));
    let (what, rest) = rest.split_once(' ')?;
    let kinds = ["fn", "struct", "enum", "trait", "const", "type", "static"];
    kinds.contains(&what).then(|| word(rest))
}

/// The type of an inherent `impl` block.
fn inherent(line: &str) -> Option<String> {
    let rest = line.strip_prefix("impl")?;
    if line.contains(" for ") {
        return None;
    }
    let rest = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest.trim_start() };
    Some(word(rest))
}

/// The public items of a file in rustfmt's layout, hidden ones left out.
fn items(module: &str, text: &str) -> Vec<Item> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let (mut found, mut of, mut hidden) = (Vec::new(), None, false);
    for line in code.lines() {
        let inner = line.strip_prefix("    ").filter(|_| of.is_some());
        let (here, owner) = inner.map_or((line, None), |inner| (inner, of.clone()));
        if here.starts_with("#[doc(hidden)]") {
            hidden = true;
        } else if let Some(name) = declared(here) {
            if !std::mem::take(&mut hidden) {
                found.push(Item { module: module.into(), of: owner, name });
            }
        } else if line.starts_with("impl") {
            of = inherent(line);
        } else if line == "}" {
            of = None;
        }
    }
    found
}

/// What a file passes on with `pub use`: where from, the name there, and the name given.
fn passed_on(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for (i, _) in text.match_indices("\npub use ") {
        let rest = &text[i + "\npub use ".len()..];
        let (path, names) = rest.split_once(';').unwrap().0.split_once("::").unwrap();
        for name in names.trim_matches(['{', '}']).split(',').map(str::trim) {
            let (own, given) = name.split_once(" as ").unwrap_or((name, name));
            if !own.is_empty() {
                found.push((path.to_string(), own.to_string(), given.to_string()));
            }
        }
    }
    found
}

fn files(folder: &Path, found: &mut Vec<(String, String)>, root: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found, root);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Every item that a user can name, by its path.
fn public(sources: &[(String, String)]) -> BTreeSet<String> {
    let text = |name: &str| sources.iter().find(|(n, _)| n == name).map(|(_, t)| t.as_str());
    let lib = text("lib.rs").unwrap();
    let top = |name: &str| name.split('/').next().unwrap().trim_end_matches(".rs").to_string();
    let all: Vec<Item> = sources.iter().flat_map(|(n, t)| items(&top(n), t)).collect();

    // Where a name of a module is seen from outside.
    let mut shown: BTreeMap<(String, String), String> = BTreeMap::new();
    let lines: Vec<&str> = lib.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let Some(module) = line.strip_prefix("pub mod ").and_then(|l| l.strip_suffix(';')) else {
            continue;
        };
        if i > 0 && lines[i - 1] == "#[doc(hidden)]" {
            continue;
        }
        let file = format!("{module}.rs");
        let own = text(&file).or_else(|| text(&format!("{module}/mod.rs"))).unwrap();
        let named = items(module, own).into_iter().filter(|i| i.of.is_none()).map(|i| i.name);
        for name in named.chain(passed_on(own).into_iter().map(|(_, name, _)| name)) {
            shown.insert((module.into(), name.clone()), format!("{module}::{name}"));
        }
    }
    for (module, own, given) in passed_on(lib) {
        shown.insert((module, own), given);
    }

    let types: BTreeSet<(&str, &str)> = all
        .iter()
        .filter(|i| i.of.is_none())
        .map(|i| (i.module.as_str(), i.name.as_str()))
        .collect();
    shown.retain(|(module, name), _| types.contains(&(module, name)));
    let mut found: BTreeSet<String> = shown.values().cloned().collect();
    for item in &all {
        let Some(of) = item.of.as_deref() else { continue };
        // A module's own type of that name goes first; otherwise the block extends another's.
        let path = if types.contains(&(item.module.as_str(), of)) {
            shown.get(&(item.module.clone(), of.to_string()))
        } else {
            shown.iter().find(|((_, name), _)| name == of).map(|(_, path)| path)
        };
        found.extend(path.map(|path| format!("{path}::{}", item.name)));
    }
    found
}

#[test]
fn public_items_are_those_of_the_stored_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    files(&root.join("src"), &mut sources, &root.join("src"));
    let now = public(&sources);
    let path = root.join("tests/fixtures/public-items.txt");
    if std::env::var_os("UPRIGHT_RENEW").is_some() {
        let text =
            format!("{}\n", now.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        fs::write(&path, text).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap();
    let stored: BTreeSet<String> = stored.lines().map(String::from).collect();
    let list = |a: &BTreeSet<String>, b| a.difference(b).cloned().collect::<Vec<_>>().join(", ");
    assert!(
        now == stored,
        "new: [{}]; gone: [{}]. If that is meant, run \
         `UPRIGHT_RENEW=1 cargo test -p upright --test face` and commit the list",
        list(&now, &stored),
        list(&stored, &now),
    );
    assert!(now.len() <= MOST, "{} public items, at most {MOST} are allowed", now.len());
}

#[test]
fn items_are_found_where_users_see_them() {
    let file = |name: &str, text: &str| (name.to_string(), text.to_string());
    let sources = [
        file(
            "lib.rs",
            "pub mod open;\nmod shut;\n#[doc(hidden)]\npub mod inside;\n\
             \npub use shut::{\n    A, B as C,\n};\npub use shut::f;\n",
        ),
        file(
            "open/mod.rs",
            "mod part;\n\npub use part::{Part, Hid};\npub const N: usize = 1;\npub(crate) fn no() {}\n\
             impl A {\n    pub fn beside(&self) {}\n}\n",
        ),
        file(
            "open/part.rs",
            "pub struct Part;\npub struct Unseen;\n#[doc(hidden)]\npub struct Hid;\nimpl Part {\n    pub const fn new() {}\n}\n",
        ),
        file(
            "shut.rs",
            "pub struct A;\npub struct B<'a>(&'a u8);\npub struct D;\npub fn f() {}\n\
             impl<'a> B<'a> {\n    pub fn get(&self) {}\n    #[doc(hidden)]\n    #[must_use]\n    \
             pub fn hid(&self) {}\n    pub fn set() {}\n    fn own() {}\n}\n\
             impl From<A> for D {\n    pub fn never() {}\n}\nimpl D {\n    pub fn gone() {}\n}\n",
        ),
        file("inside.rs", "pub fn g() {}\n"),
    ];
    let found: Vec<String> = public(&sources).into_iter().collect();
    assert_eq!(
        found,
        [
            "A",
            "A::beside",
            "C",
            "C::get",
            "C::set",
            "f",
            "open::N",
            "open::Part",
            "open::Part::new"
        ]
    );
}
