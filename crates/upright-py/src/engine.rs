//! A Python callable as an engine.

use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use upright::engine::{Engine, Input, Lane, Value};
use upright::{Error, Result};

const NAME: &str = "python";

/// Functions of arrays. One micro-batch is run at a time, since Python runs one.
#[derive(Debug)]
pub(crate) struct Callable {
    /// An array of items to a list of float32 arrays: logits, then taps.
    pub(crate) run: Py<PyAny>,
    /// An array of items and a list of derivatives, or `None`s, to the derivative of the items.
    pub(crate) pullback: Option<Py<PyAny>>,
}

impl Engine for Callable {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lanes(&self) -> usize {
        1
    }

    fn run_on(&self, _: Lane, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>> {
        called(|py| {
            let [input] = inputs else { return Ok(vec![]) };
            let given = self.run.bind(py).call1((array(py, input.shape, input.data)?,))?;
            let all = given.cast::<PyList>()?;
            wanted.iter().map(|&i| value(&all.get_item(i)?)).collect()
        })
    }

    fn has_pullback(&self) -> bool {
        self.pullback.is_some()
    }

    fn pullback_on(&self, _: Lane, input: Input<'_>, d: &[Option<Value>]) -> Result<Vec<f32>> {
        called(|py| {
            let Some(pullback) = &self.pullback else { return Ok(vec![]) };
            let derivatives = d
                .iter()
                .map(|d| d.as_ref().map(|value| array(py, &value.shape, &value.data)).transpose());
            let derivatives = derivatives.collect::<PyResult<Vec<_>>>()?;
            let items = array(py, input.shape, input.data)?;
            let given = pullback.bind(py).call1((items, derivatives))?;
            Ok(Vec::from(value(&given)?.data))
        })
    }
}

/// Runs Python; what it raises is kept as it was.
fn called<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    let done = Python::try_attach(work);
    let ended = || Err(PyRuntimeError::new_err("the interpreter has ended"));
    done.unwrap_or_else(ended).map_err(|e| Error::engine(NAME, e))
}

fn array<'py>(
    py: Python<'py>,
    shape: &[usize],
    data: &[f32],
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    PyArray1::from_slice(py, data).reshape(shape)
}

fn value(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    let array: PyReadonlyArrayDyn<'_, f32> = given.extract()?;
    Ok(Value { shape: array.shape().to_vec(), data: array.as_slice()?.to_vec().into() })
}
