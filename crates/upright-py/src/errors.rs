//! What went wrong, as Python raises it.

use pyo3::prelude::*;
use upright_cli::report::{Failure, Note};

/// What is worth saying: a code, what was found, what can be done about it.
pub(crate) type Told = (&'static str, String, String);

/// `upright.Error`, or the exception that a model of the user's own raised, as it was.
pub(crate) fn failure(failure: Failure) -> PyErr {
    Python::attach(|py| {
        if let Failure::Library(upright::Error::Engine { source: Some(cause), .. }) = &failure
            && let Some(own) = cause.downcast_ref::<PyErr>()
        {
            return own.clone_ref(py);
        }
        let raised = py.import("upright._error").and_then(|module| {
            module.call_method1("worded", (failure.to_string(), failure.code(), failure.help()))
        });
        raised.map_or_else(|e| e, PyErr::from_value)
    })
}

/// The same, of the library.
pub(crate) fn library(error: upright::Error) -> PyErr {
    failure(error.into())
}

/// A note as Python gets it.
pub(crate) fn told(note: Note) -> Told {
    (note.code, note.message, note.help)
}
