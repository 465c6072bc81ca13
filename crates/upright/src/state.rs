//! What a fitted component stores: named tensors, kept bit for bit.

use std::collections::BTreeMap;

use half::f16;

use crate::error::{Error, Result};
use crate::tensor::Matrix;

/// The numbers of a [`Stored`] tensor.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Data {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Half precision, as IEEE 754 bits.
    F16(Vec<u16>),
    /// Unsigned integers: labels, indices, offsets.
    U32(Vec<u32>),
}

impl Data {
    /// How many numbers.
    pub fn len(&self) -> usize {
        match self {
            Data::F32(v) => v.len(),
            Data::F64(v) => v.len(),
            Data::F16(v) => v.len(),
            Data::U32(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A tensor to store.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Its numbers, row-major.
    pub data: Data,
}

/// Named tensors. Reading one back checks its type and shape.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    tensors: BTreeMap<String, Stored>,
}

impl State {
    /// Nothing stored.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores any tensor under a name.
    #[doc(hidden)]
    pub fn put(&mut self, name: &str, tensor: Stored) {
        self.tensors.insert(name.into(), tensor);
    }

    /// The same state with a vector of single-precision numbers.
    #[must_use]
    pub fn f32(mut self, name: &str, v: &[f32]) -> Self {
        self.put(name, Stored { shape: vec![v.len()], data: Data::F32(v.to_vec()) });
        self
    }

    /// The same state with a vector of double-precision numbers.
    #[must_use]
    pub fn f64(mut self, name: &str, v: &[f64]) -> Self {
        self.put(name, Stored { shape: vec![v.len()], data: Data::F64(v.to_vec()) });
        self
    }

    /// The same state with a vector of integers.
    #[must_use]
    pub fn u32(mut self, name: &str, v: &[u32]) -> Self {
        self.put(name, Stored { shape: vec![v.len()], data: Data::U32(v.to_vec()) });
        self
    }

    /// The same state with a matrix.
    #[must_use]
    pub fn matrix(mut self, name: &str, m: &Matrix) -> Self {
        let shape = vec![m.rows(), m.cols()];
        self.put(name, Stored { shape, data: Data::F32(m.data().to_vec()) });
        self
    }

    /// The same state with a matrix in half precision.
    #[must_use]
    pub(crate) fn matrix_f16(mut self, name: &str, m: &Matrix) -> Self {
        let bits = m.data().iter().map(|v| f16::from_f32(*v).to_bits()).collect();
        self.put(name, Stored { shape: vec![m.rows(), m.cols()], data: Data::F16(bits) });
        self
    }

    /// The same state with all tensors of another, whose names get a prefix.
    #[must_use]
    pub(crate) fn with_part(mut self, prefix: &str, part: &State) -> Self {
        for (name, tensor) in &part.tensors {
            self.put(&format!("{prefix}{name}"), tensor.clone());
        }
        self
    }

    /// What [`State::with_part`] has put under a prefix.
    #[must_use]
    pub(crate) fn part(&self, prefix: &str) -> Self {
        let under = |(name, tensor): (&String, &Stored)| {
            Some((name.strip_prefix(prefix)?.to_string(), tensor.clone()))
        };
        State { tensors: self.tensors.iter().filter_map(under).collect() }
    }

    /// All tensors by name.
    #[doc(hidden)]
    pub fn tensors(&self) -> &BTreeMap<String, Stored> {
        &self.tensors
    }

    fn get(&self, name: &str) -> Result<&Stored> {
        self.tensors.get(name).ok_or_else(|| damaged(format!("tensor `{name}` is missing")))
    }

    /// Single-precision numbers stored under a name.
    pub fn read_f32(&self, name: &str) -> Result<Vec<f32>> {
        match &self.get(name)?.data {
            Data::F32(v) => Ok(v.clone()),
            _ => Err(damaged(format!("tensor `{name}` is not f32"))),
        }
    }

    /// Double-precision numbers stored under a name.
    pub fn read_f64(&self, name: &str) -> Result<Vec<f64>> {
        match &self.get(name)?.data {
            Data::F64(v) => Ok(v.clone()),
            _ => Err(damaged(format!("tensor `{name}` is not f64"))),
        }
    }

    /// Integers stored under a name.
    pub fn read_u32(&self, name: &str) -> Result<Vec<u32>> {
        match &self.get(name)?.data {
            Data::U32(v) => Ok(v.clone()),
            _ => Err(damaged(format!("tensor `{name}` is not u32"))),
        }
    }

    /// A matrix stored under a name.
    pub fn read_matrix(&self, name: &str) -> Result<Matrix> {
        let t = self.get(name)?;
        match (&t.data, t.shape.as_slice()) {
            (Data::F32(v), &[rows, cols]) => Matrix::new(rows, cols, v.clone()),
            _ => Err(damaged(format!("tensor `{name}` is not an f32 matrix"))),
        }
    }

    /// A matrix in half precision stored under a name.
    pub(crate) fn read_matrix_f16(&self, name: &str) -> Result<Matrix> {
        let t = self.get(name)?;
        match (&t.data, t.shape.as_slice()) {
            (Data::F16(bits), &[rows, cols]) => {
                let numbers = bits.iter().map(|b| f16::from_bits(*b).to_f32()).collect();
                Matrix::new(rows, cols, numbers)
            }
            _ => Err(damaged(format!("tensor `{name}` is not a matrix in half precision"))),
        }
    }
}

/// The error for a state that does not hold what its component wrote.
pub(crate) fn damaged(why: String) -> Error {
    Error::Artifact { path: "state".into(), why }
}
