//! Weights that lie beside the model file. They are read only from plain files
//! inside the model's folder, and become part of the graph.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::onnx::graph::LIMIT;
use crate::onnx::proto::{EXTERNAL, GraphProto, TensorProto};

/// Replaces every reference to external data by the data, and hashes the files used,
/// in the order of their names.
pub(super) fn inline(
    graph: &mut GraphProto,
    folder: Option<&Path>,
    model: &str,
    read: u64,
    hash: &mut blake3::Hasher,
) -> Result<()> {
    let bad = |why: String| Error::Model { path: model.into(), why };
    let mut files: BTreeMap<String, Bytes> = BTreeMap::new();
    let mut total = read;
    let mut failed = Ok(());
    visit(graph, &mut |t| {
        if failed.is_ok() && t.data_location == Some(EXTERNAL) {
            failed = fill(t, folder, &mut files, &mut total, &bad);
        }
    });
    failed?;
    for bytes in files.values() {
        hash.update(bytes);
    }
    Ok(())
}

fn fill(
    t: &mut TensorProto,
    folder: Option<&Path>,
    files: &mut BTreeMap<String, Bytes>,
    total: &mut u64,
    bad: &dyn Fn(String) -> Error,
) -> Result<()> {
    let entry = |key: &str| {
        let found = t.external_data.iter().find(|e| e.key.as_deref() == Some(key));
        found.and_then(|e| e.value.clone())
    };
    let name = t.name.clone().unwrap_or_default();
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => text
            .parse::<usize>()
            .map(Some)
            .map_err(|_| bad(format!("weight `{name}` has a bad {key} `{text}`"))),
    };
    let location = entry("location")
        .ok_or_else(|| bad(format!("weight `{name}` does not say in which file it lies")))?;
    let folder = folder.ok_or_else(|| {
        bad(format!("weight `{name}` lies in the file `{location}`; load the model from its file"))
    })?;
    if !files.contains_key(&location) {
        let bytes =
            read_beside(folder, &location, LIMIT.saturating_sub(*total)).map_err(|why| {
                bad(format!("weight `{name}` lies in `{location}`, which cannot be used: {why}"))
            })?;
        *total += bytes.len() as u64;
        files.insert(location.clone(), bytes.into());
    }
    let bytes = &files[&location];
    let offset = number("offset")?.unwrap_or(0);
    let length = number("length")?.unwrap_or(bytes.len().saturating_sub(offset));
    let end = offset.checked_add(length).filter(|end| *end <= bytes.len());
    let slice = end.map(|end| bytes.slice(offset..end));
    let slice =
        slice.ok_or_else(|| bad(format!("weight `{name}` lies beyond the end of `{location}`")))?;
    t.raw_data = Some(slice);
    t.data_location = None;
    t.external_data.clear();
    Ok(())
}

fn visit(graph: &mut GraphProto, f: &mut impl FnMut(&mut TensorProto)) {
    graph.initializer.iter_mut().for_each(&mut *f);
    for s in &mut graph.sparse_initializer {
        s.values.iter_mut().chain(&mut s.indices).for_each(&mut *f);
    }
    for a in graph.node.iter_mut().flat_map(|n| &mut n.attribute) {
        a.t.iter_mut().chain(&mut a.tensors).for_each(&mut *f);
        for g in a.g.iter_mut().chain(&mut a.graphs) {
            visit_nested(g, f);
        }
    }
}

fn visit_nested(graph: &mut GraphProto, f: &mut dyn FnMut(&mut TensorProto)) {
    visit(graph, &mut |t: &mut TensorProto| f(t));
}

fn read_beside(folder: &Path, location: &str, room: u64) -> std::result::Result<Vec<u8>, String> {
    let relative = Path::new(location);
    let plain = relative.components().all(|c| matches!(c, Component::Normal(_)));
    if !plain || location.is_empty() || location.contains('\\') {
        return Err("it must be a path inside the model's folder".into());
    }
    let mut path = PathBuf::from(folder);
    let mut seen = None;
    for part in relative.components() {
        path.push(part);
        let meta = std::fs::symlink_metadata(&path).map_err(|e| e.to_string())?;
        if meta.is_symlink() {
            return Err("it is a link".into());
        }
        seen = Some(meta);
    }
    let file = File::open(&path).map_err(|e| e.to_string())?;
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if !meta.is_file() {
        return Err("it is not a plain file".into());
    }
    if !seen.is_some_and(|seen| same_single_file(&seen, &meta)) {
        return Err("it is a link".into());
    }
    if meta.len() > room {
        return Err(format!("with {} bytes it exceeds the limit of {LIMIT}", meta.len()));
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    file.take(room).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// Whether the path looked at and the file opened are one, which has no second name.
#[cfg(unix)]
fn same_single_file(seen: &Metadata, opened: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    seen.ino() == opened.ino() && seen.dev() == opened.dev() && opened.nlink() == 1
}

/// Whether the path looked at and the file opened are of one size.
#[cfg(not(unix))]
fn same_single_file(seen: &Metadata, opened: &Metadata) -> bool {
    seen.len() == opened.len()
}
