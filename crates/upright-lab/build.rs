//! Hashes what fits follow from, so that the lab can tell whether one that it kept is still its
//! own: the library, what reads data, what splits and asks for them, and the dependencies.

use std::fs;
use std::path::{Path, PathBuf};

/// From this folder.
const SOURCES: [&str; 8] = [
    "../upright/src",
    "../upright/Cargo.toml",
    "../upright-data/src",
    "../../Cargo.lock",
    "src/experiments/fits.rs",
    "src/experiments/rows.rs",
    "src/experiments/sets.rs",
    "src/experiments/tasks.rs",
];

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        collect(&root.join(source), &mut files);
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(&fs::read(&file).unwrap_or_default());
        hasher.update(&[0]);
    }
    println!("cargo:rustc-env=UPRIGHT_FITTED_BY={}", hasher.finalize().to_hex());
}

/// A file, or all files of a folder.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|e| collect(&e.path(), files)),
        Err(_) => files.push(path.to_path_buf()),
    }
}
