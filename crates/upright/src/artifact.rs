//! One file that holds everything a fit made: `*.upright`.
//!
//! The format is safetensors. The tensors are those of the fitted parts
//! (`score.*`, `gate.*`: a role and a name); the only metadata entry, `manifest`, is a JSON object with sorted keys: format version, tool version, the model's
//! fingerprint, how to load the model, the config, the fit's report, and the
//! BLAKE3 of every tensor and of the manifest itself. No code, no paths, no
//! addresses. The same fit gives the same bytes.
//!
//! A file is read in this order: size cap, header, sizes agree, hashes, use.
//! It is written beside its place, synced and renamed.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use crate::canonicalizer::{Canonicalizer, Config, FitReport, States};
use crate::error::{Error, Result};
use crate::model::Options;
use crate::pack::{self, Packed};
use crate::role::Role;
use crate::router::Models;

/// The format this version writes.
pub const FORMAT: u64 = 5;

/// Largest artifact that is read: 8 GiB.
pub const LARGEST: u64 = 8 << 30;

/// Largest header, which holds the manifest: 64 MiB.
const LARGEST_HEADER: u64 = 64 << 20;

/// The manifest of an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format version; a reader refuses those it does not know.
    pub format: u64,
    /// The program that wrote it.
    pub tool: String,
    /// Fingerprint of the model it was fitted on.
    pub model: String,
    /// How the model was loaded: taps, reduction, preprocessing.
    pub options: Options,
    /// The energy network beside the model, if it was fitted with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// Names of the classes, in the order of the logits.
    pub classes: Vec<String>,
    /// What was chosen.
    pub config: Config,
    /// What the fit found out.
    pub report: FitReport,
    /// BLAKE3 of every tensor's bytes.
    pub tensors: BTreeMap<String, String>,
    /// BLAKE3 of this manifest without this field.
    pub digest: String,
    /// Fields of later versions, kept as they are.
    #[serde(flatten)]
    pub other: BTreeMap<String, serde_json::Value>,
}

/// The energy network that an artifact was fitted with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct External {
    /// Its fingerprint.
    pub model: String,
    /// How it was loaded.
    pub options: Options,
}

/// An artifact as read from a file, not yet joined with its model.
#[derive(Debug)]
pub struct Artifact {
    /// Its manifest.
    pub manifest: Manifest,
    states: States,
}

impl Artifact {
    /// Reads and checks a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read_capped(path)?;
        Self::from_bytes(&path.display().to_string(), &bytes)
    }

    /// Checks bytes already in memory; `name` is used in errors.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        let bad = |why: String| Error::Artifact { path: name.into(), why };
        check_header(bytes).map_err(&bad)?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| bad(e.to_string()))?;
        let text = header
            .metadata()
            .as_ref()
            .and_then(|m| m.get("manifest"))
            .ok_or_else(|| bad("it has no manifest".into()))?;
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| bad(format!("manifest: {e}")))?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        match format {
            Some(FORMAT) => {}
            Some(found) => {
                return Err(Error::ArtifactVersion { found, reads: FORMAT.to_string() });
            }
            None => return Err(bad("the manifest has no format version".into())),
        }
        if value.get("digest").and_then(|d| d.as_str()) != Some(&digest(value.clone())) {
            return Err(bad("the manifest does not match its digest".into()));
        }
        let manifest: Manifest =
            serde_json::from_value(value).map_err(|e| bad(format!("manifest: {e}")))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|e| bad(e.to_string()))?;
        let mut states = States::default();
        let mut seen = 0;
        for (tensor, view) in tensors.iter() {
            // Hashes are of numbers alone; nothing is stored without a length.
            if view.shape().is_empty() {
                return Err(bad(format!("tensor `{tensor}` has no length")));
            }
            if manifest.tensors.get(tensor) != Some(&hash(view.data())) {
                return Err(bad(format!("tensor `{tensor}` does not match its hash")));
            }
            seen += 1;
            let stored =
                pack::stored(&view).map_err(|why| bad(format!("tensor `{tensor}`: {why}")))?;
            if let Some((role, name)) = tensor.split_once('.')
                && let Some(role) = Role::parse(role)
            {
                states.entry(role).or_default().put(name, stored);
            }
        }
        if seen != manifest.tensors.len() {
            return Err(bad(format!(
                "it holds {seen} tensors, the manifest lists {}",
                manifest.tensors.len()
            )));
        }
        Ok(Artifact { manifest, states })
    }

    /// Whether it was fitted on the model of a fingerprint.
    #[doc(hidden)]
    pub fn check_model(&self, fingerprint: &str) -> Result<()> {
        same(&self.manifest.model, fingerprint)
    }

    /// Joins the artifact with its model, which must be the one it was fitted on, and with
    /// the second one, if it was fitted with one. An energy network that it was fitted with must
    /// be beside the model and the same, too.
    pub fn join(self, models: impl Into<Models>) -> Result<Canonicalizer> {
        let mut models = models.into().joined()?;
        self.check_model(models.first.fingerprint())?;
        if let (Some(fitted), Some(given)) = (&self.manifest.external, models.first.external()) {
            same(&fitted.model, given.fingerprint())?;
        }
        models.first = models.first.with_class_names(self.manifest.classes);
        Canonicalizer::restore(models, self.manifest.config, self.manifest.report, &self.states)
    }
}

/// Whether a model is the one that was fitted on, by their fingerprints.
fn same(fitted: &str, given: &str) -> Result<()> {
    if fitted == given {
        return Ok(());
    }
    let start = |s: &str| s.chars().take(8).collect();
    Err(Error::ArtifactModel { fitted: start(fitted), given: start(given) })
}

impl Canonicalizer {
    /// The artifact's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut tensors = Packed::new();
        for (role, state) in self.states() {
            pack::add(&mut tensors, &format!("{role}."), &state);
        }
        let manifest = Manifest {
            format: FORMAT,
            tool: concat!("upright ", env!("CARGO_PKG_VERSION")).into(),
            model: self.model().fingerprint().into(),
            options: self.model().options(),
            external: self.model().external().map(|energy| External {
                model: energy.fingerprint().into(),
                options: energy.options(),
            }),
            classes: (0..self.model().classes() as u32)
                .map(|c| self.model().class_name(c))
                .collect(),
            config: self.config().clone(),
            report: self.report().clone(),
            tensors: tensors.iter().map(|(n, (_, _, b))| (n.clone(), hash(b))).collect(),
            digest: String::new(),
            other: BTreeMap::new(),
        };
        let odd = |why: String| Error::Artifact { path: "artifact".into(), why };
        let mut value = serde_json::to_value(&manifest).map_err(|e| odd(e.to_string()))?;
        value["digest"] = digest(value.clone()).into();
        let metadata = HashMap::from([("manifest".to_string(), value.to_string())]);
        pack::file(&tensors, metadata).map_err(odd)
    }

    /// Writes the artifact: a temporary file beside it, synced, then renamed.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write_whole(path.as_ref(), &self.to_bytes()?)
    }
}

/// Writes a file so that at any time either the old or the new one is there, whole.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|e| {
        let _ = fs::remove_file(&temporary);
        Error::io(path, e)
    })
}

fn read_capped(path: &Path) -> Result<Vec<u8>> {
    let io = |e| Error::io(path, e);
    let file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    if size > LARGEST {
        return Err(Error::TooLarge { what: path.display().to_string(), size, limit: LARGEST });
    }
    let mut bytes = Vec::with_capacity(size as usize);
    file.take(LARGEST).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// The header's length must fit the file before anything of it is parsed.
fn check_header(bytes: &[u8]) -> std::result::Result<(), String> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(format!("it has {} bytes, fewer than a header", bytes.len()));
    };
    let length = u64::from_le_bytes(*length);
    if length > LARGEST_HEADER || length > rest.len() as u64 {
        return Err(format!("its header claims {length} bytes of {}", rest.len()));
    }
    Ok(())
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// BLAKE3 of a manifest with an empty digest; object keys are sorted.
fn digest(mut manifest: serde_json::Value) -> String {
    manifest["digest"] = "".into();
    hash(manifest.to_string().as_bytes())
}
