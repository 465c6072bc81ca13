//! Lists the files of `site/`, so that they can be built in.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=site");
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("site");
    let mut files = Vec::new();
    find(&root, &mut files)?;
    files.sort();
    let mut table = String::from("[\n");
    for path in files {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        if name != "README.md" {
            let path = path.to_string_lossy();
            let _ = writeln!(table, "    ({name:?}, include_bytes!({path:?}).as_slice()),");
        }
    }
    table += "]\n";
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default());
    std::fs::write(out.join("site.rs"), table)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
