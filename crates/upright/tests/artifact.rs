//! Artifacts: the same bytes, and damage of any kind noticed.
#![allow(clippy::unwrap_used, reason = "tests")]

use upright::{
    Artifact, Canonicalizer, Config, FitData, Model, ModelOptions, Part, Reduce, Role, Silent, Tap,
    samples,
};

fn model() -> Model {
    let taps = vec![Tap { name: "auto".into(), reduce: Reduce::None }];
    let options = ModelOptions { taps, ..ModelOptions::default() };
    Model::from_bytes("glyphs", samples::glyph_model(), &options).unwrap()
}

fn fitted() -> Canonicalizer {
    let config = Config { calibration: 100, budget: 4, ..Config::default() }
        .with(Role::Score, Part::new("proto"));
    let data = samples::digits(300, 1).unwrap();
    config.fit(model(), &FitData::new(&data), &mut Silent).unwrap()
}

/// Replaces a text in the file and keeps the header's length true.
fn edited(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
    let mut out = bytes.to_vec();
    out.splice(at..at + from.len(), to.bytes());
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let length = length + to.len() as u64 - from.len() as u64;
    out[..8].copy_from_slice(&length.to_le_bytes());
    out
}

#[test]
fn an_artifact_on_disk_equals_the_one_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digits.upright");
    let c = fitted();
    c.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), c.to_bytes().unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    let again = Artifact::read(&path).unwrap();
    assert_eq!(again.manifest.config, *c.config());
    assert_eq!(again.manifest.report, *c.report());
    assert_eq!(again.manifest.classes.len(), 10);
}

#[test]
fn every_damaged_byte_is_noticed() {
    let bytes = fitted().to_bytes().unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 97 + 1) {
        let mut broken = bytes.clone();
        broken[at] ^= 0x11;
        assert!(Artifact::from_bytes("x", &broken).is_err(), "byte {at}");
    }
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = fitted().to_bytes().unwrap();
    for length in [0, 1, 7, 8, 9, 200, bytes.len() / 2, bytes.len() - 1] {
        let e = Artifact::from_bytes("x", &bytes[..length]).unwrap_err();
        assert_eq!(e.code(), "artifact::damaged", "{length} bytes: {e}");
    }
}

#[test]
fn a_header_that_claims_too_much_is_refused_before_it_is_read() {
    let mut bytes = fitted().to_bytes().unwrap();
    bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let e = Artifact::from_bytes("x", &bytes).unwrap_err();
    assert!(e.to_string().contains("header claims"), "{e}");
}

#[test]
fn other_formats_are_refused_by_their_number() {
    let whole = fitted().to_bytes().unwrap();
    for other in [4, 6] {
        let bytes = edited(&whole, "\\\"format\\\":5", &format!("\\\"format\\\":{other}"));
        let e = Artifact::from_bytes("x", &bytes).unwrap_err();
        assert_eq!(e.code(), "artifact::version");
        assert_eq!(e.to_string(), format!("artifact format {other}, this upright reads 5"));
        assert_eq!(e.hint(), Some(upright::Hint::Upgrade));
    }
}

#[test]
fn a_changed_setting_is_noticed() {
    let bytes = edited(&fitted().to_bytes().unwrap(), "\\\"budget\\\":4", "\\\"budget\\\":9");
    let e = Artifact::from_bytes("x", &bytes).unwrap_err();
    assert!(e.to_string().contains("digest"), "{e}");
}

#[test]
fn another_model_is_refused_with_both_fingerprints() {
    let artifact = Artifact::from_bytes("x", &fitted().to_bytes().unwrap()).unwrap();
    let mut other = samples::glyph_model().to_vec();
    let at = other.len() / 2;
    other[at] ^= 1;
    let options = ModelOptions::default();
    let other = Model::from_bytes("other", &other, &options).unwrap();
    let e = artifact.join(other).unwrap_err();
    assert_eq!(e.code(), "artifact::model");
}
