//! Virtual-logit matching: `E = a |R^T (f - u)| - log sum exp(z)`.
//!
//! `u = -pinv(W) b` is the origin at which all logits vanish; `R` the
//! eigenvectors of the bank's second moments about `u` with the `D - dim`
//! smallest eigenvalues; `a` the mean largest logit over the mean residual
//! norm, both over the bank. A feature outside the bank's principal subspace
//! has a large residual, hence a high energy. Wang et al. 2022, "`ViM`:
//! Out-Of-Distribution with Virtual-logit Matching".
//!
//! `dim = 0` takes the authors' rule: 1000 for `D >= 2048`, 512 for
//! `D >= 768`, else `D / 2`. Features of the first tap.

use crate::config::{Param, Settings};
use crate::error::{Error, Result};
use crate::linalg::{eigen, matmul, matmul_t, scatter, single};
use crate::outputs::{Cotangents, Head, Outputs};
use crate::registry::Kind;
use crate::score::inputs::{head, lack, nothing, rows_of, tap, undefined};
use crate::score::softmax::{log_sum_exp, softmax};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::{State, damaged};
use crate::tensor::Matrix;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "vim",
    about: "energy plus the scaled distance of the features from their principal subspace",
    params: &[Param::whole(
        "dim",
        0,
        0,
        1_000_000,
        "dimensions of the principal subspace; 0 chooses by the features' width",
    )],
    make: Make { needs: |_| Needs { features: true, head: true, ..Needs::default() }, fit, load },
};

#[derive(Debug)]
struct Vim {
    origin: Vec<f32>,
    /// One row a residual direction.
    residual: Matrix,
    scale: f64,
}

fn principal(settings: &Settings, width: usize) -> Result<usize> {
    let dim = match (settings.whole("dim"), width) {
        (0, 2048..) => 1000,
        (0, 768..) => 512,
        (0, _) => width / 2,
        (dim, _) => dim,
    };
    if dim < width {
        return Ok(dim);
    }
    Err(Error::BadSetting {
        part: KIND.name.into(),
        name: "dim".into(),
        value: dim.to_string(),
        range: format!("less than the {width} features of the first tap"),
    })
}

/// `-pinv(W) b`, by way of the eigenvectors of `W W^T`.
fn origin(head: &Head) -> Option<Vec<f64>> {
    let (classes, width) = (head.weight.rows(), head.weight.cols());
    let rows: Vec<Vec<f64>> =
        head.weight.iter().map(|w| w.iter().map(|&v| f64::from(v)).collect()).collect();
    let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let gram: Vec<f64> = rows.iter().flat_map(|a| rows.iter().map(move |b| inner(a, b))).collect();
    let e = eigen(&gram, classes)?;
    let least = e.values.last().copied().unwrap_or(0.0) * classes as f64 * f64::EPSILON;
    let bias: Vec<f64> = head.bias.iter().map(|&b| f64::from(b)).collect();
    let mut u = vec![0.0; width];
    for (&value, vector) in e.values.iter().zip(e.vectors.chunks(classes)) {
        if value > least {
            let along = inner(vector, &bias) / value;
            for (row, v) in rows.iter().zip(vector) {
                u.iter_mut().zip(row).for_each(|(u, w)| *u -= along * v * w);
            }
        }
    }
    Some(u)
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let (features, head) = head(bank, KIND.name)?;
    let width = features.cols();
    let kept = width - principal(settings, width)?;
    let unusable = || lack(KIND.name, "finite head weights and features", "choose another score");
    let u = origin(head).ok_or_else(unusable)?;
    let e = eigen(&scatter(features, |_| &u), width).ok_or_else(unusable)?;
    let origin: Vec<f32> = u.iter().map(|&v| v as f32).collect();
    let residual = single(kept, width, &e.vectors[..kept * width]);
    let mut score = Vim { origin, residual, scale: 0.0 };
    let count = bank.outputs.len() as f64;
    let logit: f64 = bank
        .outputs
        .logits
        .iter()
        .map(|z| f64::from(z.iter().copied().fold(f32::NEG_INFINITY, f32::max)))
        .sum::<f64>()
        / count;
    let norm = score.norms(features).1.iter().sum::<f64>() / count;
    let length = (e.values.iter().sum::<f64>().max(0.0) / count).sqrt();
    if norm <= 1e-6 * length {
        return Err(lack(
            KIND.name,
            format!(
                "features of rank above {}: the bank has no residual outside that subspace",
                width - kept
            ),
            "set a smaller `dim`, give more samples, or use another score",
        ));
    }
    score.scale = logit / norm;
    Ok(Box::new(score))
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let (origin, residual) = (state.read_f32("origin")?, state.read_matrix("residual")?);
    let scale = state.read_f64("scale")?;
    match scale.as_slice() {
        &[scale] if residual.cols() == origin.len() => {
            Ok(Box::new(Vim { origin, residual, scale }))
        }
        _ => Err(damaged("`origin`, `residual` and `scale` disagree".into())),
    }
}

impl Vim {
    /// Residual coordinates and their norm, row by row.
    fn norms(&self, features: &Matrix) -> (Matrix, Vec<f64>) {
        let mut moved = features.clone();
        for i in 0..moved.rows() {
            moved.row_mut(i).iter_mut().zip(&self.origin).for_each(|(v, u)| *v -= u);
        }
        let along = matmul_t(&moved, &self.residual);
        let norm = |r: &[f32]| r.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
        let norms = along.iter().map(norm).collect();
        (along, norms)
    }
}

impl Score for Vim {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let Some(features) = tap(outputs, 0, self.origin.len()) else {
            return undefined(outputs);
        };
        let (_, norms) = self.norms(features);
        let energy = |(n, z): (&f64, &[f32])| (self.scale * n - log_sum_exp(z, 1.0)) as f32;
        norms.iter().zip(outputs.logits.iter()).map(energy).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let Some(features) = tap(outputs, 0, self.origin.len()) else {
            return nothing(outputs);
        };
        let (mut along, norms) = self.norms(features);
        for (i, n) in norms.iter().enumerate() {
            let slope = if *n > 0.0 { self.scale / n } else { 0.0 };
            along.row_mut(i).iter_mut().for_each(|v| *v = (f64::from(*v) * slope) as f32);
        }
        let mut d = nothing(outputs);
        d.logits = Some(rows_of(&outputs.logits, |z| softmax(z, 1.0).iter().map(|p| -p).collect()));
        d.features[0] = Some(matmul(&along, &self.residual));
        d
    }

    fn state(&self) -> State {
        State::new()
            .f32("origin", &self.origin)
            .matrix("residual", &self.residual)
            .f64("scale", &[self.scale])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;

    /// Logit = first feature - 1, hence u = (1, 0).
    fn bank_of(features: Vec<f32>) -> (Outputs, Head) {
        let head = Head::new(Matrix::new(1, 2, vec![1.0, 0.0]).unwrap(), vec![-1.0]).unwrap();
        let logits: Vec<f32> = features.chunks(2).map(|f| f[0] - 1.0).collect();
        let logits = Matrix::new(logits.len(), 1, logits).unwrap();
        let features = Matrix::new(logits.rows(), 2, features).unwrap();
        (Outputs::new(logits, vec![features]).unwrap(), head)
    }

    fn fitted(outputs: &Outputs, head: &Head, dim: f64) -> Result<Box<dyn Score>> {
        let bank = Bank { head: Some(head), ..Bank::of(outputs, &[]) };
        fit(&Part::new("vim").number("dim", dim).resolve(KIND.params)?, &bank)
    }

    #[test]
    fn the_residual_is_worked_by_hand() {
        // About u: (4, 0) (0, 1) (2, -1) (2, 1) (0, -1) (4, 0): second moments diag(40, 4).
        let (outputs, head) =
            bank_of(vec![5.0, 0.0, 1.0, 1.0, 3.0, -1.0, 3.0, 1.0, 1.0, -1.0, 5.0, 0.0]);
        let score = fitted(&outputs, &head, 1.0).unwrap();
        // Largest logits 4 0 2 2 0 4: mean 2; residuals |second| 0 1 1 1 1 0: mean 2/3; a = 3.
        let e = score.energy(&outputs);
        for (e, want) in e.iter().zip([-4.0, 3.0, 1.0, 1.0, 3.0, -4.0]) {
            assert!((e - want).abs() < 1e-5, "{e} {want}");
        }
    }

    #[test]
    fn a_bank_inside_the_subspace_is_refused_by_rank() {
        let (outputs, head) = bank_of(vec![5.0, 0.0, -3.0, 0.0]);
        let e = fitted(&outputs, &head, 1.0).unwrap_err().to_string();
        assert!(e.contains("vim") && e.contains("rank"), "{e}");
        assert!(fitted(&outputs, &head, 2.0).unwrap_err().to_string().contains("dim"));
    }

    #[test]
    fn the_default_dimension_follows_the_width() {
        let settings = Part::new("vim").resolve(KIND.params).unwrap();
        for (width, want) in [(64, 32), (512, 256), (768, 512), (1024, 512), (2048, 1000)] {
            assert_eq!(principal(&settings, width).unwrap(), want);
        }
    }
}
