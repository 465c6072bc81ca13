//! Reading banks and outputs: what a score takes, or an error that names the
//! score and what it lacks.

use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::outputs::{Cotangents, Head, Outputs};
use crate::score::Bank;
use crate::tensor::Matrix;

/// The error of a score that lacks something.
pub(super) fn lack(score: &str, lacks: impl Into<String>, hint: impl Into<Hint>) -> Error {
    Error::ScoreNeeds { score: score.into(), lacks: lacks.into(), hint: Some(hint.into()) }
}

/// The first tap's features, which must be finite.
pub(super) fn features<'a>(bank: &Bank<'a>, score: &str) -> Result<&'a Matrix> {
    let tap =
        bank.outputs.features.first().ok_or_else(|| lack(score, "features", Hint::TapModel))?;
    finite(tap, score, "features")?;
    Ok(tap)
}

/// Refuses numbers that are not finite.
pub(super) fn finite(m: &Matrix, score: &str, what: &str) -> Result<()> {
    if m.cols() > 0 && m.data().iter().all(|v| v.is_finite()) {
        return Ok(());
    }
    Err(lack(score, format!("finite {what}"), Hint::OtherTap))
}

/// The head, which must turn the first tap's features into the logits.
pub(super) fn head<'a>(bank: &Bank<'a>, score: &str) -> Result<(&'a Matrix, &'a Head)> {
    let tap = features(bank, score)?;
    let head = bank.head.ok_or_else(|| {
        lack(
            score,
            "the weights of the last linear layer",
            "use a model that ends in Gemm or MatMul, or another score",
        )
    })?;
    let (rows, cols) = (head.weight.rows(), head.weight.cols());
    if rows != bank.outputs.logits.cols() || cols != tap.cols() || head.bias.len() != rows {
        let lacks = format!(
            "head weights that turn the first tap's {} features into {} logits, not {cols} into {rows}",
            tap.cols(),
            bank.outputs.logits.cols()
        );
        return Err(lack(score, lacks, "tap the input of the last linear layer first, unreduced"));
    }
    finite(&head.weight, score, "head weights")?;
    Ok((tap, head))
}

/// The samples that the model classifies as they are labelled.
pub(super) fn correct(bank: &Bank) -> Vec<usize> {
    let predicted = bank.outputs.labels();
    (0..bank.outputs.len()).filter(|&i| predicted[i] == bank.labels[i]).collect()
}

/// All samples, or only the correctly classified ones, of which there must be some.
pub(super) fn chosen(bank: &Bank, correct_only: bool, score: &str) -> Result<Vec<usize>> {
    if !correct_only {
        return Ok((0..bank.outputs.len()).collect());
    }
    let rows = correct(bank);
    if rows.is_empty() {
        return Err(lack(
            score,
            "correctly classified samples",
            "check that the labels number the model's outputs from 0",
        ));
    }
    Ok(rows)
}

/// A tap of the outputs, if it is as wide as at fit time.
pub(super) fn tap(outputs: &Outputs, index: usize, width: usize) -> Option<&Matrix> {
    outputs.features.get(index).filter(|f| f.cols() == width)
}

/// The energies of outputs that lack what the score was fitted on.
pub(super) fn undefined(outputs: &Outputs) -> Vec<f32> {
    vec![f32::NAN; outputs.len()]
}

/// No gradient at all.
pub(super) fn nothing(outputs: &Outputs) -> Cotangents {
    Cotangents { logits: None, features: vec![None; outputs.features.len()] }
}

/// A gradient of the logits only.
pub(super) fn on_logits(outputs: &Outputs, logits: Matrix) -> Cotangents {
    Cotangents { logits: Some(logits), ..nothing(outputs) }
}

/// A gradient of the first tap's features only.
pub(super) fn on_features(outputs: &Outputs, features: Matrix) -> Cotangents {
    let mut d = nothing(outputs);
    if let Some(first) = d.features.first_mut() {
        *first = Some(features);
    }
    d
}

/// A gradient of the logits, computed row by row.
pub(super) fn by_row(outputs: &Outputs, gradient: impl Fn(&[f32]) -> Vec<f64>) -> Cotangents {
    on_logits(outputs, rows_of(&outputs.logits, gradient))
}

/// Rounds to single precision; what is too small for a normal number is zero,
/// because products with subnormal numbers are many times slower.
pub(super) fn narrow(v: f64) -> f32 {
    let v = v as f32;
    if v.abs() < f32::MIN_POSITIVE { 0.0 } else { v }
}

/// A matrix whose rows are functions of another's rows.
pub(super) fn rows_of(m: &Matrix, row: impl Fn(&[f32]) -> Vec<f64>) -> Matrix {
    let mut out = Matrix::zeros(m.rows(), m.cols());
    for (i, z) in m.iter().enumerate() {
        for (d, v) in out.row_mut(i).iter_mut().zip(row(z)) {
            *d = narrow(v);
        }
    }
    out
}
