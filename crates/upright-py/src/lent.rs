//! Numbers of numpy arrays, read where they lie.
#![allow(unsafe_code, reason = "an array outlives the borrow that its binding can prove")]

use numpy::{Element, PyReadonlyArrayDyn};
use pyo3::prelude::*;

/// The numbers of a contiguous array, which is kept alive. As with numpy's own views, whoever
/// changes the array meanwhile changes what is read.
pub(crate) struct Lent<T: 'static> {
    numbers: &'static [T],
    _owner: Py<PyAny>,
}

impl<T: Element> Lent<T> {
    /// Those of an array, which must be contiguous and row-major.
    pub(crate) fn of(array: &PyReadonlyArrayDyn<'_, T>) -> PyResult<Self> {
        let here = array.as_slice()?;
        // SAFETY: the memory stays where it is as long as the array lives, which `_owner` sees
        // to: numpy refuses to resize what others refer to. `numbers` never leaves this value
        // with a longer life than its own.
        let numbers = unsafe { std::slice::from_raw_parts(here.as_ptr(), here.len()) };
        Ok(Lent { numbers, _owner: array.as_any().clone().unbind() })
    }

    /// The numbers.
    pub(crate) fn numbers(&self) -> &[T] {
        self.numbers
    }
}
