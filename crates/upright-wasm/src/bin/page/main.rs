//! Makes the page: `fit` fits its classifiers and writes down what they answer
//! (`answers` does the latter alone), `assemble` puts everything into one file.
//! In between, `build` beside this crate compiles the wasm.
#![allow(clippy::print_stdout)] // a command-line tool reports on standard output

mod answers;
mod assemble;
mod fit;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use upright_wasm::Subject;

const USAGE: &str = "usage: upright-page fit [SUBJECT..]
       upright-page answers
       upright-page assemble CORE.wasm GLUE.js";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["fit", ref names @ ..] => fit::run(names),
        ["answers"] => answers::run(),
        ["assemble", wasm, glue] => assemble::run(wasm.as_ref(), glue.as_ref()),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Where the artifact of a subject lies.
fn artifact(subject: Subject) -> PathBuf {
    place(&format!("fitted/{}.upright", subject.name()))
}

/// A path of this crate.
fn place(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|why| format!("{}: {why}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|why| format!("{}: {why}", path.display()))?;
    println!("{}: {} bytes", path.display(), bytes.len());
    Ok(())
}
