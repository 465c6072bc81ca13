//! What one forward pass gives, and what flows back through it.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::tensor::{Matrix, argmax};

/// Logits and tapped, reduced features of some inputs, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs {
    /// One row of class logits per input.
    pub logits: Matrix,
    /// For each tap of the model, one feature row per input. Empty if nothing is tapped.
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
    #[doc(hidden)]
    pub fn labels(&self) -> Vec<u32> {
        self.logits.iter().map(|row| argmax(row) as u32).collect()
    }

    /// The rows at the given indices, in that order.
    #[must_use]
    #[doc(hidden)]
    pub fn select(&self, rows: &[usize]) -> Outputs {
        Outputs {
            logits: self.logits.select(rows),
            features: self.features.iter().map(|f| f.select(rows)).collect(),
        }
    }

    /// The same logits with the features of some taps, by position, in that order; taps that are
    /// all there are, in their order, are borrowed. No number is copied either way.
    pub(crate) fn with_taps(&self, taps: &[usize]) -> Result<Cow<'_, Outputs>> {
        if taps.iter().copied().eq(0..self.features.len()) {
            return Ok(Cow::Borrowed(self));
        }
        let feature = |&tap: &usize| self.features.get(tap).cloned();
        let features = taps.iter().map(feature).collect::<Option<_>>();
        let features = features.ok_or_else(|| Error::shape("taps", self.features.len(), taps))?;
        Ok(Cow::Owned(Outputs { logits: self.logits.clone(), features }))
    }

    /// Appends the rows of other outputs of the same model.
    #[doc(hidden)]
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

impl Cotangents {
    /// Refuses derivatives of another number of rows.
    pub(crate) fn check_rows(&self, rows: usize) -> Result<()> {
        let all = self.logits.iter().chain(self.features.iter().flatten());
        match all.map(Matrix::rows).find(|&given| given != rows) {
            Some(given) => Err(Error::shape("derivatives", rows, given)),
            None => Ok(()),
        }
    }

    /// Those of some rows, which must exist.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Self {
        let rows: Vec<usize> = rows.collect();
        let of = |m: &Option<Matrix>| m.as_ref().map(|m| m.select(&rows));
        Cotangents { logits: of(&self.logits), features: self.features.iter().map(of).collect() }
    }

    /// The way back from [`Outputs::with_taps`]: derivatives with respect to the features of
    /// some taps as derivatives with respect to those of all taps, of which there are `count`.
    /// What was not among them gets none; what was several times gets the sum.
    pub(crate) fn into_all_taps(self, taps: &[usize], count: usize) -> Result<Cotangents> {
        if self.features.len() > taps.len() || taps.iter().any(|&tap| tap >= count) {
            return Err(Error::shape("taps", count, taps));
        }
        let mut features: Vec<Option<Matrix>> = vec![None; count];
        for (d, &tap) in self.features.into_iter().zip(taps) {
            let Some(d) = d else { continue };
            match &mut features[tap] {
                Some(sum) if (sum.rows(), sum.cols()) == (d.rows(), d.cols()) => {
                    sum.data_mut().iter_mut().zip(d.data()).for_each(|(s, d)| *s += d);
                }
                Some(sum) => {
                    let (sum, d) = ((sum.rows(), sum.cols()), (d.rows(), d.cols()));
                    return Err(Error::shape("derivative of the features", sum, d));
                }
                none => *none = Some(d),
            }
        }
        Ok(Cotangents { logits: self.logits, features })
    }
}

/// The linear layer that turns the first tap's features into logits:
/// `logits = weight * features + bias`.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// One row per class, one column per feature.
    pub weight: Matrix,
    /// One number per class.
    pub bias: Vec<f32>,
}

impl Head {
    /// Joins weights and bias, of which there must be one per class.
    pub fn new(weight: Matrix, bias: Vec<f32>) -> Result<Self> {
        if bias.len() != weight.rows() {
            return Err(Error::shape("head bias", weight.rows(), bias.len()));
        }
        Ok(Head { weight, bias })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(numbers: &[f32]) -> Matrix {
        Matrix::new(1, numbers.len(), numbers.to_vec()).unwrap()
    }

    #[test]
    fn taps_are_chosen_without_copying_a_number() {
        let all = Outputs::new(row(&[7.0]), vec![row(&[1.0]), row(&[2.0, 3.0])]).unwrap();
        assert!(matches!(all.with_taps(&[0, 1]).unwrap(), Cow::Borrowed(_)));
        let turned = all.with_taps(&[1, 0, 1]).unwrap();
        let features: Vec<&[f32]> = turned.features.iter().map(Matrix::data).collect();
        assert_eq!(features, [&[2.0, 3.0][..], &[1.0], &[2.0, 3.0]]);
        assert_eq!(turned.features[0].data().as_ptr(), all.features[1].data().as_ptr());
        assert_eq!(turned.logits.data().as_ptr(), all.logits.data().as_ptr());
        assert!(all.with_taps(&[]).unwrap().features.is_empty());
        assert!(all.with_taps(&[2]).is_err());
    }

    #[test]
    fn derivatives_go_back_to_the_taps_they_came_from() {
        let d = |features: &[Option<Matrix>]| Cotangents {
            logits: Some(row(&[7.0])),
            features: features.to_vec(),
        };
        let some = d(&[Some(row(&[1.0, 2.0])), None, Some(row(&[10.0, 20.0]))]);
        let all = some.into_all_taps(&[2, 0, 2], 4).unwrap();
        assert_eq!(all, d(&[None, None, Some(row(&[11.0, 22.0])), None]));
        assert!(d(&[None]).into_all_taps(&[3], 3).is_err());
        assert!(d(&[None, None]).into_all_taps(&[0], 3).is_err());
        assert!(d(&[Some(row(&[1.0])), Some(row(&[1.0, 2.0]))]).into_all_taps(&[0, 0], 1).is_err());
    }
}
