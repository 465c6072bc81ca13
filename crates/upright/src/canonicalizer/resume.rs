//! Phases of a fit that an earlier, interrupted fit of the same things has
//! ended: whoever watches may keep them.

use std::collections::HashMap;

use super::Config;
use super::fit::{BankRows, Watch};
use crate::error::Result;
use crate::model::Model;
use crate::pack::{self, Packed};
use crate::state::State;

/// Rows whose content tells data sets apart.
const LOOKED_AT: usize = 16;

/// What phases are kept for: a fit of one config for one model on some rows. Only those in
/// which parts learn from copies or lessons take long enough.
pub(super) struct Phases {
    key: Option<String>,
}

impl Phases {
    pub(super) fn of(config: &Config, model: &Model, from: &BankRows) -> Result<Self> {
        if !from.resumes || config.searching().is_none() {
            return Ok(Phases { key: None });
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        hasher.update(serde_json::to_string(config).unwrap_or_default().as_bytes());
        hasher.update(model.fingerprint().as_bytes());
        hasher.update(serde_json::to_string(&model.options()).unwrap_or_default().as_bytes());
        if let Some(energy) = model.external() {
            hasher.update(energy.fingerprint().as_bytes());
            hasher.update(energy.preprocess().to_string().as_bytes());
        }
        for &row in from.rows {
            hasher.update(&(row as u64).to_le_bytes());
            hasher.update(&from.data.label(row).unwrap_or(u32::MAX).to_le_bytes());
        }
        let step = from.rows.len().div_ceil(LOOKED_AT).max(1);
        let some: Vec<usize> = from.rows.iter().copied().step_by(step).collect();
        let given = from.given.map(|g| (g.data, g.rows.iter().copied().take(1).collect()));
        for (data, rows) in [(from.data, some)].into_iter().chain(given) {
            hasher.update(&(data.len() as u64).to_le_bytes());
            for value in data.read(&rows)?.batch.data() {
                hasher.update(&value.to_le_bytes());
            }
        }
        Ok(Phases { key: Some(hasher.finalize().to_hex().to_string()) })
    }

    /// What a phase has left, and its notes.
    pub(super) fn kept(&self, watch: &mut dyn Watch, phase: &str) -> Option<(State, Vec<String>)> {
        let key = self.key.as_ref()?;
        let (state, words) = pack::read(&watch.kept(phase)?)?;
        let notes = serde_json::from_str(words.get("notes")?).ok()?;
        let same =
            words.get("key") == Some(key) && words.get("digest") == Some(&digest(&packed(&state)));
        if !same {
            return None;
        }
        watch.resumed(phase);
        Some((state, notes))
    }

    pub(super) fn keep(&self, watch: &mut dyn Watch, phase: &str, state: &State, notes: &[String]) {
        let Some(key) = &self.key else { return };
        let packed = packed(state);
        let words = HashMap::from([
            ("key".to_string(), key.clone()),
            ("digest".to_string(), digest(&packed)),
            ("notes".to_string(), serde_json::to_string(notes).unwrap_or_default()),
        ]);
        if let Ok(bytes) = pack::file(&packed, words) {
            watch.keep(phase, &bytes);
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
