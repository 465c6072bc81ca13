//! Engines panic on odd models; nobody else shall. What an engine does goes
//! through [`Guarded`], which makes an error of a panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::{Engine, Input, Lane, Value};
use crate::error::{Error, Result};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Starts the names of the threads that rten computes on.
const THREADS: &str = "rten-";

/// Whether this thread is at work for an engine: a panic here will be reported as an error,
/// and a program's panic hook may keep quiet about it.
#[must_use]
pub fn inside() -> bool {
    INSIDE.get() || std::thread::current().name().is_some_and(|name| name.starts_with(THREADS))
}

/// What an engine does, with a panic as an error that names the model.
pub(super) fn guarded<T>(engine: &str, model: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let outer = INSIDE.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(outer);
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let why = text.unwrap_or("for an unknown reason");
        Err(Error::Model {
            path: model.into(),
            why: format!("the {engine} engine panicked: {why}"),
        })
    })
}

/// An engine that runs a model, with panics as errors that name it.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) engine: Box<dyn Engine>,
    pub(super) model: String,
}

impl Engine for Guarded {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn lanes(&self) -> usize {
        self.engine.lanes()
    }

    fn run_on(&self, lane: Lane, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>> {
        guarded(self.name(), &self.model, || self.engine.run_on(lane, inputs, wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Odd;

    impl Engine for Odd {
        fn name(&self) -> &'static str {
            "odd"
        }

        fn lanes(&self) -> usize {
            1
        }

        fn run_on(&self, _: Lane, _: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>> {
            assert!(inside());
            panic!("{} tensors are too many", wanted.len())
        }
    }

    #[test]
    fn a_panic_is_an_error_that_names_the_model() {
        let engine = Guarded { engine: Box::new(Odd), model: "net.onnx".into() };
        let e = engine.run(&[], &[1, 2]).unwrap_err().to_string();
        let want =
            "net.onnx: not a usable ONNX model: the odd engine panicked: 2 tensors are too many";
        assert_eq!(e, want);
        assert!(!inside());
    }
}
