//! What one forward pass gives, and what flows back through it.

use crate::error::{Error, Result};
use crate::tensor::{Matrix, argmax};

/// Logits and tapped, reduced features of some inputs, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs {
    /// One row of class logits an input.
    pub logits: Matrix,
    /// For each tap of the model, one feature row an input. Empty if nothing is tapped.
    pub features: Vec<Matrix>,
}

impl Outputs {
    /// Joins logits and features, which must have equally many rows.
    pub fn new(logits: Matrix, features: Vec<Matrix>) -> Result<Self> {
        for f in &features {
            if f.rows() != logits.rows() {
                return Err(Error::shape("feature rows", logits.rows(), f.rows()));
            }
        }
        Ok(Outputs { logits, features })
    }

    /// Number of inputs.
    pub fn len(&self) -> usize {
        self.logits.rows()
    }

    /// Whether there is no input.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The predicted class of each input: the largest logit, the first of equals.
    pub fn labels(&self) -> Vec<u32> {
        self.logits.iter().map(|row| argmax(row) as u32).collect()
    }

    /// The rows at the given indices, in that order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Outputs {
        Outputs {
            logits: self.logits.select(rows),
            features: self.features.iter().map(|f| f.select(rows)).collect(),
        }
    }

    /// Appends the rows of other outputs of the same model.
    pub fn append(&mut self, other: &Outputs) -> Result<()> {
        if other.features.len() != self.features.len() {
            return Err(Error::shape("taps", self.features.len(), other.features.len()));
        }
        self.logits.append(&other.logits)?;
        self.features.iter_mut().zip(&other.features).try_for_each(|(a, b)| a.append(b))
    }
}

/// Derivatives of a scalar with respect to [`Outputs`], row by row. `None` is zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Cotangents {
    /// With respect to the logits.
    pub logits: Option<Matrix>,
    /// With respect to each tap's features, in the taps' order.
    pub features: Vec<Option<Matrix>>,
}

/// The linear layer that turns the first tap's features into logits:
/// `logits = weight * features + bias`.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// One row a class, one column a feature.
    pub weight: Matrix,
    /// One number a class.
    pub bias: Vec<f32>,
}

impl Head {
    /// Joins weights and bias, of which there must be one a class.
    pub fn new(weight: Matrix, bias: Vec<f32>) -> Result<Self> {
        if bias.len() != weight.rows() {
            return Err(Error::shape("head bias", weight.rows(), bias.len()));
        }
        Ok(Head { weight, bias })
    }
}
