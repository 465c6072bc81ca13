//! `upright list` and the help pages as a user sees them.

use crate::support::upright;
use tempfile::tempdir;

#[test]
fn every_score_is_listed_with_what_it_needs_and_takes() {
    let folder = tempdir().unwrap();
    let ran = upright(folder.path(), &["list", "scores"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for row in upright::score::TABLE {
        assert!(ran.out.contains(row.name) && ran.out.contains(row.about), "{}", row.name);
        for param in row.params {
            assert!(ran.out.contains(&param.domain.to_string()), "{}", param.name);
        }
    }
    assert!(ran.out.contains("needs logits"));
    assert!(ran.out.contains("temperature = 1"), "{}", ran.out);
}

#[test]
fn the_json_list_says_the_same() {
    let folder = tempdir().unwrap();
    let ran = upright(folder.path(), &["list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let tables = json.as_array().unwrap();
    let scores = tables.iter().find(|t| t["table"] == "scores").unwrap();
    let parts = scores["parts"].as_array().unwrap();
    assert_eq!(parts.len(), upright::score::TABLE.len());
    let energy = parts.iter().find(|p| p["name"] == "energy").unwrap();
    assert_eq!(energy["needs"], serde_json::json!(["logits"]));
    assert_eq!(energy["settings"][0]["name"], "temperature");
    assert_eq!(energy["settings"][0]["default"], 1.0);
}

#[test]
fn an_unknown_table_lists_the_known() {
    let ran = upright(tempdir().unwrap().path(), &["list", "sores"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("unknown table `sores`; there are: scores"), "{}", ran.err);
}

#[test]
fn the_help_is_short_or_long() {
    let folder = tempdir().unwrap();
    let first = upright(folder.path(), &["-h"]);
    assert_eq!(first.code, 0);
    assert!(first.out.starts_with("upright - undo rotation"), "{}", first.out);
    assert!(first.out.contains("Understand     eval "), "{}", first.out);
    assert!(!first.out.contains("Exit codes"));
    assert!(upright(folder.path(), &["--help"]).out.contains("Exit codes"));
    let short = upright(folder.path(), &["score", "-h"]).out;
    let long = upright(folder.path(), &["score", "--help"]).out;
    assert!(!short.contains("Examples:") && long.contains("Examples:"));
    assert_eq!(upright(folder.path(), &["scroe"]).code, 2);
    assert_eq!(upright(folder.path(), &[]).code, 2);
}
