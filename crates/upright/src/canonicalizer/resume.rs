//! Phases of a fit that an earlier, interrupted fit of the same things has
//! ended: whoever watches may keep them.

use std::collections::HashMap;

use super::Config;
use super::fit::{BankRows, Watch};
use crate::error::Result;
use crate::model::Model;
use crate::pack::{self, Packed};
use crate::role::Role;
use crate::state::State;

/// Rows whose content tells data sets apart.
const LOOKED_AT: usize = 16;

/// A phase that may be kept for fits of which it would be the same. Only those in which parts
/// learn from copies or lessons take long enough.
pub(super) struct Phase {
    name: &'static str,
    key: Option<String>,
}

impl Phase {
    /// Those of a fit of one config for one model on some rows: the proposer learns from so many
    /// copies of some rows, whatever the other parts are; then the score from lessons; then the
    /// proposer once more.
    pub(super) fn all(
        config: &Config,
        model: &Model,
        from: &BankRows,
        proposing: [&[usize]; 2],
        copies: [usize; 2],
    ) -> Result<[Self; 3]> {
        let names = ["copies", "lessons", "again"];
        if !from.resumes || config.searching().is_none() {
            return Ok(names.map(|name| Phase { name, key: None }));
        }
        let mut common = blake3::Hasher::new();
        common.update(env!("CARGO_PKG_VERSION").as_bytes());
        common.update(model.fingerprint().as_bytes());
        common.update(serde_json::to_string(&model.options()).unwrap_or_default().as_bytes());
        if let Some(energy) = model.external() {
            common.update(energy.fingerprint().as_bytes());
            common.update(energy.preprocess().to_string().as_bytes());
        }
        let step = from.rows.len().div_ceil(LOOKED_AT).max(1);
        let some: Vec<usize> = from.rows.iter().copied().step_by(step).collect();
        let given = from.given.map(|g| (g.data, g.rows.iter().copied().take(1).collect()));
        for (data, rows) in [(from.data, some)].into_iter().chain(given) {
            common.update(&(data.len() as u64).to_le_bytes());
            for value in data.read(&rows)?.batch.data() {
                common.update(&value.to_le_bytes());
            }
        }
        let key = |settings: serde_json::Result<String>, rows: &[usize]| {
            let mut hasher = common.clone();
            hasher.update(settings.unwrap_or_default().as_bytes());
            for &row in rows {
                hasher.update(&(row as u64).to_le_bytes());
                hasher.update(&from.data.label(row).unwrap_or(u32::MAX).to_le_bytes());
            }
            Some(hasher.finalize().to_hex().to_string())
        };
        let Config { space, resample, seed, .. } = config;
        let proposer = |at: usize| {
            let settings = (config.part(Role::Proposer), space, resample, seed, copies[at]);
            key(serde_json::to_string(&settings), proposing[at])
        };
        let [first, second, third] = names;
        Ok([
            Phase { name: first, key: proposer(0) },
            Phase { name: second, key: key(serde_json::to_string(config), from.rows) },
            Phase { name: third, key: proposer(1) },
        ])
    }

    /// What it has left, and its notes.
    pub(super) fn kept(&self, watch: &mut dyn Watch) -> Option<(State, Vec<String>)> {
        let key = self.key.as_ref()?;
        let (state, words) = pack::read(&watch.kept(self.name)?)?;
        let notes = serde_json::from_str(words.get("notes")?).ok()?;
        let same =
            words.get("key") == Some(key) && words.get("digest") == Some(&digest(&packed(&state)));
        if !same {
            return None;
        }
        watch.resumed(self.name);
        Some((state, notes))
    }

    pub(super) fn keep(&self, watch: &mut dyn Watch, state: &State, notes: &[String]) {
        let Some(key) = &self.key else { return };
        let packed = packed(state);
        let words = HashMap::from([
            ("key".to_string(), key.clone()),
            ("digest".to_string(), digest(&packed)),
            ("notes".to_string(), serde_json::to_string(notes).unwrap_or_default()),
        ]);
        if let Ok(bytes) = pack::file(&packed, words) {
            watch.keep(self.name, &bytes);
        }
    }
}

fn packed(state: &State) -> Packed {
    let mut packed = Packed::new();
    pack::add(&mut packed, "", state);
    packed
}

fn digest(packed: &Packed) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, (_, shape, bytes)) in packed {
        hasher.update(name.as_bytes());
        for size in shape {
            hasher.update(&(*size as u64).to_le_bytes());
        }
        hasher.update(bytes);
    }
    hasher.finalize().to_hex().to_string()
}
