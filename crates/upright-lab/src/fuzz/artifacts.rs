//! Artifacts: read, joined with their model and used. Hashes are made right
//! again after the damage, as whoever means harm would do.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Map, Value};
use upright::{
    Artifact, Batch, Canonicalizer, Config, FitData, Model, ModelOptions, Part, Result, Role,
    Samples, Signal, Silent,
};

use super::models;
use super::mutate::{Dice, damaged as damaged_bytes};
use super::readers::{MB, Reader};

/// Names that mean something in a manifest.
const WORDS: &[&str] = &[
    "knn",
    "energy",
    "mahalanobis",
    "judge",
    "learned",
    "moments",
    "none",
    "always",
    "never",
    "best-mix",
    "conformal",
    "follow",
    "random",
    "rotate",
    "quarter",
    "scale",
    "shear",
    "flip",
    "",
    "auto",
    "65%",
    "ort",
    "f32",
    "nan",
];

/// The reader of artifacts; none if the seeds cannot be made.
pub(super) fn readers() -> Vec<Reader> {
    let cap = 4096 * MB;
    let reader = |seeds: &[Vec<u8>]| Reader {
        name: "artifact".into(),
        file: "a.upright".into(),
        words: WORDS,
        packed: false,
        seeds: seeds.to_vec(),
        cap,
        patience: Duration::from_mins(1),
        inner: Some(damaged),
        read: Box::new(|path| used(path).is_ok()),
    };
    fitted().iter().map(|seeds| reader(seeds)).collect()
}

fn model() -> Result<Model> {
    let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
    Model::from_bytes("rows", &models::rows(), &options)
}

/// Pictures of 8 x 8 pixels in five classes that look different.
fn samples(count: usize) -> Result<Samples<'static>> {
    let pixel = |item: usize, at: usize| {
        let class = item % 5;
        let noise = (item * 7919 + at * 104_729) % 97;
        if at / 8 > class && at % 8 > 2 { 0.8 + noise as f32 / 500.0 } else { noise as f32 / 300.0 }
    };
    let data = (0..count).flat_map(|i| (0..64).map(move |at| pixel(i, at))).collect();
    let batch = Batch::new(Signal::image(1, 8, 8), data)?;
    Samples::labelled(batch, (0..count).map(|i| (i % 5) as u32).collect())
}

fn fit(config: &Config, count: usize) -> Result<Canonicalizer> {
    config.fit(model()?, &FitData::new(&samples(count)?), &mut Silent)
}

/// Artifacts of different parts, made once.
fn fitted() -> Option<&'static Vec<Vec<u8>>> {
    static MADE: OnceLock<Option<Vec<Vec<u8>>>> = OnceLock::new();
    let make = || -> Result<Vec<Vec<u8>>> {
        let few = Config { budget: 6, calibration: 60, ..Config::default() };
        let searched = |score: &str, gate: &str| {
            let config = few.clone().with(Role::Score, Part::new(score));
            fit(&config.with(Role::Gate, Part::new(gate)), 200)?.to_bytes()
        };
        let learned = Config { budget: 6, calibration: 100, ..Config::default() };
        Ok(vec![
            searched("knn", "always")?,
            searched("mahalanobis", "conformal")?,
            fit(&learned, 600)?.to_bytes()?,
        ])
    };
    MADE.get_or_init(|| make().ok()).as_ref()
}

fn used(path: &Path) -> Result<()> {
    let artifact = Artifact::read(path)?;
    let canonicalizer = artifact.join(model()?)?;
    let _ = canonicalizer.report().advice();
    canonicalizer.predict(samples(3)?.batch()).map(drop)
}

/// The header and the tensors' bytes.
fn parts(bytes: &[u8]) -> Option<(Map<String, Value>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (header, data) =
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some((serde_json::from_slice(header).ok()?, data))
}

fn hash(bytes: &[u8]) -> Value {
    blake3::hash(bytes).to_hex().to_string().into()
}

/// The file with all hashes right.
fn whole(mut header: Map<String, Value>, mut manifest: Value, data: &[u8]) -> Option<Vec<u8>> {
    for (name, place) in header.iter().filter(|(name, _)| *name != "__metadata__") {
        let end = |i: usize| usize::try_from(place["data_offsets"][i].as_u64()?).ok();
        if let (Some(from), Some(to)) = (end(0), end(1))
            && let Some(bytes) = data.get(from..to)
            && manifest["tensors"].is_object()
        {
            manifest["tensors"][name] = hash(bytes);
        }
    }
    if manifest.is_object() {
        manifest["digest"] = "".into();
        manifest["digest"] = hash(manifest.to_string().as_bytes());
    }
    header.insert("__metadata__".into(), serde_json::json!({ "manifest": manifest.to_string() }));
    let header = serde_json::to_vec(&header).ok()?;
    Some([&(header.len() as u64).to_le_bytes()[..], &header, data].concat())
}

/// A copy of one of the seeds with other numbers, names or tensors, and the right hashes.
fn damaged(dice: &mut Dice, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let seed = dice.one(seeds);
    let changed = |dice: &mut Dice| {
        let (mut header, data) = parts(seed)?;
        let text = header["__metadata__"]["manifest"].as_str()?;
        let mut manifest: Value = serde_json::from_str(text).ok()?;
        header.remove("__metadata__");
        let mut data = data.to_vec();
        for _ in 0..=dice.below(3) {
            match dice.below(4) {
                0 => {
                    let mut tensors = Value::Object(header);
                    change(dice, &mut tensors, words);
                    let Value::Object(left) = tensors else { return None };
                    header = left;
                }
                1 => {
                    let from = dice.below(data.len()) & !3;
                    let with = *dice.one(&[0.0, -1.0, 1e30, f32::NAN, f32::INFINITY, 3e-44]);
                    for bytes in data[from..].chunks_exact_mut(4).take(1 + dice.below(20)) {
                        bytes.copy_from_slice(&f32::to_le_bytes(with));
                    }
                }
                _ => change(dice, &mut manifest, words),
            }
        }
        whole(header, manifest, &data)
    };
    changed(dice).unwrap_or_else(|| damaged_bytes(dice, seeds, words))
}

/// Changes one value somewhere inside.
fn change(dice: &mut Dice, value: &mut Value, words: &[&str]) {
    let here = dice.below(6) == 0;
    match value {
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(dice.below(map.len())).cloned().unwrap_or_default();
            match (here, map.get_mut(&key)) {
                (false, Some(inner)) => change(dice, inner, words),
                _ => drop(map.remove(&key)),
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let at = dice.below(list.len());
            match (here, dice.below(2)) {
                (false, _) => change(dice, &mut list[at], words),
                (true, 0) => drop(list.remove(at)),
                (true, _) => list.insert(at, list[at].clone()),
            }
        }
        Value::Number(_) => {
            let awkward = [
                Value::from(0),
                1.into(),
                (-1).into(),
                2.into(),
                7.into(),
                0.5.into(),
                1e308.into(),
                (-1e-9).into(),
                (1u64 << 31).into(),
                u64::MAX.into(),
                i64::MIN.into(),
                Value::Null,
            ];
            *value = dice.one(&awkward).clone();
        }
        Value::String(text) => *text = (*dice.one(words)).into(),
        Value::Bool(is) => *is = !*is,
        _ => *value = Value::from(dice.below(5)),
    }
}
