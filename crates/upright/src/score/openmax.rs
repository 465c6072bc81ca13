//! `OpenMax`: `E` = the probability of the unknown class after the logits are
//! revised by how far they lie from their classes; in `0..1`.
//!
//! Fit, for each class: the mean logit vector `m_c` and a Weibull distribution
//! of the `tail` largest distances of the class's logits to it. Query: the
//! class of rank `i = 1..alpha` by logit has `w = (alpha + 1 - i) / alpha *
//! CDF_c(d_c)`, all others `w = 0`; `z'_c = z_c (1 - w_c)`, unknown logit
//! `z'_0 = sum z_c w_c`, `E = softmax(z')_0`. Distances are
//! `(1 - w_cos) |z - m_c| + w_cos (1 - cos(z, m_c))`, the same in fit and query.
//!
//! Bendale and Boult 2016, "Towards Open Set Deep Networks". The Weibull is
//! that of pytorch-ood, not `LibMR`'s: two parameters by maximum likelihood on
//! `t = d - least + 10000`, `least` the smallest distance of the tail. A tail
//! without spread has the largest allowed shape: nearly a step. A class
//! without samples is unknown itself: its CDF is 1. `alpha` is capped by the
//! number of classes.

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::{by_row, chosen, finite, nothing, undefined};
use crate::score::weibull::Weibull;
use crate::score::{Bank, Make, Needs, Score};
use crate::state::{State, damaged};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "openmax",
    about: "probability of an unknown class, from the logits' distances to their class means",
    params: &[
        Param::whole("tail", 25, 1, 1_000_000, "how many of a class's largest distances are used"),
        Param::whole("alpha", 10, 1, 1_000_000, "how many of the largest logits are revised"),
        Param::real("w_cos", 0.0, 0.0, 1.0, "weight of the cosine distance; the rest is Euclidean"),
        Param::flag("correct_only", false, "fit on correctly classified samples only"),
    ],
    make: Make { needs: |_| Needs { labels: true, ..Needs::default() }, fit, load },
};

#[derive(Debug)]
struct OpenMax {
    alpha: usize,
    w_cos: f64,
    /// Mean logits, and the tail of the distances to them; `None` without samples.
    classes: Vec<Option<(Vec<f64>, Weibull)>>,
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let logits = &bank.outputs.logits;
    finite(logits, KIND.name, "logits")?;
    let rows = chosen(bank, settings.flag("correct_only"), KIND.name)?;
    let w_cos = settings.real("w_cos");
    let one = |class: usize| {
        let own = || rows.iter().filter(|&&i| bank.labels[i] as usize == class);
        own().next()?;
        let mean = crate::linalg::mean(own().map(|&i| logits.row(i)), logits.cols());
        let mut far: Vec<f64> = own().map(|&i| distance(logits.row(i), &mean, w_cos)).collect();
        far.sort_unstable_by(|a, b| b.total_cmp(a));
        far.truncate(settings.whole("tail"));
        Some((mean, Weibull::fit(&far)))
    };
    let classes = (0..logits.cols()).map(one).collect();
    Ok(Box::new(OpenMax { alpha: settings.whole("alpha"), w_cos, classes }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let (known, means) = (state.read_u32("known")?, state.read_f64("means")?);
    let tails = state.read_f64("tails")?;
    let count = known.len();
    if means.len() != count * count || tails.len() != 3 * count {
        return Err(damaged("`known`, `means` and `tails` disagree".into()));
    }
    let one = |c: usize| {
        let tail = Weibull::from_numbers(&tails[3 * c..3 * c + 3]);
        (known[c] != 0).then(|| (means[c * count..(c + 1) * count].to_vec(), tail))
    };
    let classes = (0..count).map(one).collect();
    let (alpha, w_cos) = (settings.whole("alpha"), settings.real("w_cos"));
    Ok(Box::new(OpenMax { alpha, w_cos, classes }))
}

/// Inner product, and the norms of both.
fn products(z: &[f32], m: &[f64]) -> (f64, f64, f64) {
    let dot: f64 = z.iter().zip(m).map(|(&z, m)| f64::from(z) * m).sum();
    let z: f64 = z.iter().map(|&z| f64::from(z) * f64::from(z)).sum();
    let m: f64 = m.iter().map(|m| m * m).sum();
    (dot, z.sqrt(), m.sqrt())
}

/// Zero vectors have cosine 0 with everything.
fn distance(z: &[f32], m: &[f64], w_cos: f64) -> f64 {
    let straight = z.iter().zip(m).map(|(&z, m)| (f64::from(z) - m).powi(2)).sum::<f64>().sqrt();
    if w_cos == 0.0 {
        return straight;
    }
    let (dot, a, b) = products(z, m);
    let cos = if a * b > 0.0 { dot / (a * b) } else { 0.0 };
    (1.0 - w_cos) * straight + w_cos * (1.0 - cos)
}

/// Adds `slope * d distance / d z`.
fn add_gradient(z: &[f32], m: &[f64], w_cos: f64, slope: f64, out: &mut [f64]) {
    let straight = distance(z, m, 0.0);
    let (dot, a, b) = products(z, m);
    for ((out, &z), m) in out.iter_mut().zip(z).zip(m) {
        let z = f64::from(z);
        if straight > 0.0 {
            *out += slope * (1.0 - w_cos) * (z - m) / straight;
        }
        if w_cos > 0.0 && a * b > 0.0 {
            *out -= slope * w_cos * (m / (a * b) - dot * z / (a * a * a * b));
        }
    }
}

/// One row, revised.
struct Revised {
    /// Rank weight of each class; 0 for those not revised.
    ranks: Vec<f64>,
    /// `w`.
    w: Vec<f64>,
    /// Softmax of the revised logits, without and for the unknown class.
    p: Vec<f64>,
    unknown: f64,
}

impl OpenMax {
    fn revise(&self, z: &[f32]) -> Revised {
        let count = z.len();
        let alpha = self.alpha.min(count);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| z[b].total_cmp(&z[a]).then(a.cmp(&b)));
        let mut ranks = vec![0.0; count];
        let mut w = vec![0.0; count];
        for (i, &c) in order.iter().take(alpha).enumerate() {
            ranks[c] = (alpha - i) as f64 / alpha as f64;
            let cdf = |(m, tail): &(Vec<f64>, Weibull)| tail.cdf(distance(z, m, self.w_cos));
            w[c] = ranks[c] * self.classes[c].as_ref().map_or(1.0, cdf);
        }
        let new: Vec<f64> = z.iter().zip(&w).map(|(&z, w)| f64::from(z) * (1.0 - w)).collect();
        let new_unknown: f64 = z.iter().zip(&w).map(|(&z, w)| f64::from(z) * w).sum();
        let top = new.iter().copied().fold(new_unknown, f64::max);
        let p: Vec<f64> = new.iter().map(|v| libm::exp(v - top)).collect();
        let unknown = libm::exp(new_unknown - top);
        let sum = unknown + p.iter().sum::<f64>();
        Revised { ranks, w, p: p.iter().map(|p| p / sum).collect(), unknown: unknown / sum }
    }

    fn gradient(&self, z: &[f32]) -> Vec<f64> {
        let r = self.revise(z);
        let unknown_slope = r.unknown * r.p.iter().sum::<f64>();
        let mut out: Vec<f64> = (0..z.len())
            .map(|c| unknown_slope * r.w[c] - r.unknown * r.p[c] * (1.0 - r.w[c]))
            .collect();
        for (c, class) in self.classes.iter().enumerate() {
            let Some((m, tail)) = class.as_ref().filter(|_| r.ranks[c] > 0.0) else { continue };
            let by_w = f64::from(z[c]) * (unknown_slope + r.unknown * r.p[c]);
            let slope = by_w * r.ranks[c] * tail.density(distance(z, m, self.w_cos));
            if slope != 0.0 {
                add_gradient(z, m, self.w_cos, slope, &mut out);
            }
        }
        out
    }
}

impl Score for OpenMax {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        if outputs.logits.cols() != self.classes.len() {
            return undefined(outputs);
        }
        outputs.logits.iter().map(|z| self.revise(z).unknown as f32).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        if outputs.logits.cols() != self.classes.len() {
            return nothing(outputs);
        }
        by_row(outputs, |z| self.gradient(z))
    }

    fn state(&self) -> State {
        let count = self.classes.len();
        let known: Vec<u32> = self.classes.iter().map(|c| u32::from(c.is_some())).collect();
        let (mut means, mut tails) = (Vec::new(), Vec::new());
        for class in &self.classes {
            if let Some((m, tail)) = class {
                means.extend_from_slice(m);
                tails.extend(tail.numbers());
            } else {
                means.extend(std::iter::repeat_n(0.0, count));
                tails.extend([0.0; 3]);
            }
        }
        State::new().u32("known", &known).f64("means", &means).f64("tails", &tails)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::tensor::Matrix;

    fn fitted(part: &Part, z: &[f32], labels: &[u32]) -> Box<dyn Score> {
        let logits = Matrix::new(labels.len(), z.len() / labels.len(), z.to_vec()).unwrap();
        let outputs = Outputs::new(logits, vec![]).unwrap();
        let bank = Bank::of(&outputs, labels);
        fit(&part.resolve(KIND.params).unwrap(), &bank).unwrap()
    }

    fn energy(score: &dyn Score, z: &[f32]) -> f32 {
        let z = Matrix::new(1, z.len(), z.to_vec()).unwrap();
        score.energy(&Outputs::new(z, vec![]).unwrap())[0]
    }

    #[test]
    fn revised_logits_are_worked_by_hand_where_the_tail_is_a_step() {
        // Class 0: one sample at (4, 0), so its CDF steps from 0 to 1 at distance 0;
        // class 1 has no sample, so its CDF is 1.
        let score = fitted(&Part::new("openmax").number("alpha", 2.0), &[4.0, 0.0], &[0]);
        // Far from the mean: w = (1, 1/2), z' = (0, 1), unknown 6 + 1.
        let want = 7f32.exp() / (7f32.exp() + 0f32.exp() + 1f32.exp());
        assert!((energy(&*score, &[6.0, 2.0]) - want).abs() < 1e-6);
        // alpha = 1 revises the first only: z' = (0, 2), unknown 6.
        let score = fitted(&Part::new("openmax").number("alpha", 1.0), &[4.0, 0.0], &[0]);
        let want = 6f32.exp() / (6f32.exp() + 1.0 + 2f32.exp());
        assert!((energy(&*score, &[6.0, 2.0]) - want).abs() < 1e-6);
    }

    #[test]
    fn huge_logits_and_one_class_stay_finite() {
        let part = Part::new("openmax").number("w_cos", 0.3);
        let score = fitted(&part, &[1e4, -1e4, 1.1e4, 0.0, -1e4, 1e4], &[0, 0, 1]);
        for z in [[1e4, -1e4], [-1e4, -1e4], [0.0, 0.0], [1e4, 1e4]] {
            assert!(energy(&*score, &z).is_finite(), "{z:?}");
        }
        assert!(energy(&*fitted(&part, &[3.0, 4.0], &[0, 0]), &[5.0]).is_finite());
    }
}
