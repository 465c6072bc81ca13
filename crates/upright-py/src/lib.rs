//! The native half of the Python package `upright`. What users see is in
//! `python/upright`; it calls the library through this module, which converts
//! arrays, options and errors, and releases the interpreter while Rust works.
#![allow(clippy::needless_pass_by_value, reason = "arguments of Python functions are owned")]

mod canonicalizer;
mod columns;
mod data;
mod engine;
mod errors;
mod fit;
mod lent;
mod model;
mod work;

use std::ffi::OsString;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[pymodule]
mod _upright {
    #[pymodule_export]
    use super::canonicalizer::{Fitted, join};
    #[pymodule_export]
    use super::data::{Data, encoded, files, items, pictures};
    #[pymodule_export]
    use super::fit::Fit;
    #[pymodule_export]
    use super::model::{Loaded, inspect, load, own};
    #[pymodule_export]
    use super::{flags, main, samples, tables, version};
}

/// Runs the command line `upright`; the exit code.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| upright_cli::main(&words))
}

/// The version of the library.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Every table of parts, as JSON.
#[pyfunction]
fn tables() -> String {
    serde_json::to_string(&upright_cli::internal::list::tables()).unwrap_or_default()
}

/// The flags of a command: name, what it is for, whether it takes no value, whether it may be
/// given several times.
#[pyfunction]
fn flags(command: &str) -> Vec<(String, String, bool, bool)> {
    use upright_cli::flags::all;
    use upright_cli::internal::{fit, inspect, predict};
    let flags = match command {
        "fit" => all::<fit::Args>(),
        "inspect" => all::<inspect::Args>(),
        "load" => all::<predict::Loading>(),
        "read" => all::<upright_cli::data::DataArgs>(),
        _ => vec![],
    };
    flags.into_iter().map(|f| (f.name, f.about, f.switch, f.many)).collect()
}

/// What [`samples`] gives.
type Samples<'py> = (Bound<'py, PyBytes>, Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<u32>>);

/// A classifier of digits as bytes of an ONNX file, and digits to try it on: numbers of
/// `count` images, 40 x 40, and their classes.
#[pyfunction]
fn samples(py: Python<'_>, count: usize, seed: u64) -> PyResult<Samples<'_>> {
    let digits = upright::samples::digits(count, seed).map_err(errors::library)?;
    Ok((
        PyBytes::new(py, upright::samples::glyph_model()),
        PyArray1::from_slice(py, digits.batch().data()),
        PyArray1::from_slice(py, digits.labels().unwrap_or_default()),
    ))
}
