//! What the scores that remember samples share: [`Metric`], the searchable
//! [`Index`], and how a bank becomes one.

mod bounds;
mod compress;
mod index;
mod metric;
mod neighbours;
mod scan;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) mod worked;

use crate::config::{Param, Settings};
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::score::Bank;
use crate::tensor::{Matrix, argmax};

pub(super) use index::Index;
pub(super) use metric::{METRIC, Metric, SQUARED, W_COS};
pub(super) use neighbours::{Among, Neighbours};
pub(super) use scan::Found;

/// How many neighbours count.
pub(super) const K: Param =
    Param::whole("k", 3, 1, 1000, "neighbours averaged; all there are if fewer")
        .tuned_log(1.0, 40.0);

/// Whether misclassified samples are left out of the bank.
pub(super) const CORRECT_ONLY: Param =
    Param::flag("correct_only", false, "remember only samples that the model classifies correctly");

/// How vectors are stored.
pub(super) const STORAGE: Param = Param::word(
    "storage",
    &["auto", "f32", "i16"],
    "how features are stored: as given, in 16 bits, or in 16 bits from 4 million numbers on",
)
.untuned();

/// How many vectors stand for a class.
pub(super) const COMPRESS: Param = Param::whole(
    "compress",
    0,
    0,
    1 << 20,
    "remember this many k-means centres a class instead of all samples; 0: all samples",
)
.untuned();

/// The samples to remember, by class: which rows of the features, and where
/// each class starts among them.
#[derive(Debug)]
pub(super) struct Chosen<'a> {
    pub(super) features: &'a Matrix,
    pub(super) order: Vec<usize>,
    pub(super) offsets: Vec<u32>,
}

impl<'a> Chosen<'a> {
    /// The samples of a bank, without the misclassified ones if asked.
    /// Without labels all samples form one class.
    pub(super) fn new(score: &'static str, settings: &Settings, bank: &Bank<'a>) -> Result<Self> {
        let needs = |lacks: String, hint: Hint| {
            Err(Error::ScoreNeeds { score: score.into(), lacks, hint: Some(hint) })
        };
        let Some(features) = bank.outputs.features.first() else {
            return needs("features".into(), Hint::TapModel);
        };
        if features.cols() == 0 {
            return needs("features of at least one number".into(), "choose another tap".into());
        }
        if let Some(i) = features.iter().position(|r| r.iter().any(|v| !v.is_finite())) {
            return needs(
                format!("finite features; sample {i} has others"),
                "choose another tap, or leave that sample out".into(),
            );
        }
        let (n, logits) = (features.rows(), &bank.outputs.logits);
        let labelled =
            bank.labels.len() == n && bank.labels.iter().all(|&l| (l as usize) < logits.cols());
        let correct_only = settings.flag("correct_only");
        if correct_only && !labelled {
            return needs(
                "one valid label per sample for `correct_only`".into(),
                "give labelled data".into(),
            );
        }
        let class = |i: usize| if labelled { bank.labels[i] as usize } else { 0 };
        let mut order: Vec<usize> =
            (0..n).filter(|&i| !correct_only || argmax(logits.row(i)) == class(i)).collect();
        if order.is_empty() {
            return Err(Error::TooFew {
                part: score.into(),
                why: format!("none of {n} samples is classified correctly"),
                hint: Some(
                    "check that the labels match the model, or leave `correct_only` off".into(),
                ),
            });
        }
        order.sort_by_key(|&i| class(i));
        let mut offsets = vec![0; if labelled { logits.cols() } else { 1 } + 1];
        for &i in &order {
            offsets[class(i) + 1] += 1;
        }
        for c in 1..offsets.len() {
            offsets[c] += offsets[c - 1];
        }
        Ok(Chosen { features, order, offsets })
    }

    /// The mean of each class that has samples, by class.
    pub(super) fn means(&self) -> Result<Index> {
        let cols = self.features.cols();
        let mut data = Vec::new();
        let mut offsets = vec![0];
        for class in self.offsets.windows(2) {
            let members = &self.order[class[0] as usize..class[1] as usize];
            if !members.is_empty() {
                data.extend(mean(self.features, members));
            }
            offsets.push((data.len() / cols) as u32);
        }
        let means = Matrix::new(data.len() / cols, cols, data)?;
        let order: Vec<usize> = (0..means.rows()).collect();
        Ok(Index::build(&means, &order, offsets, index::Storage::Full))
    }

    /// The samples, stored as `storage` asks.
    pub(super) fn all(&self, settings: &Settings) -> Index {
        let numbers = self.order.len() * self.features.cols();
        let storage = index::Storage::chosen(settings.word("storage"), numbers);
        Index::build(self.features, &self.order, self.offsets.clone(), storage)
    }

    /// The samples, compressed and stored as `compress` and `storage` ask.
    pub(super) fn index(&self, settings: &Settings, seed: u64) -> Result<Index> {
        let count = settings.whole("compress");
        if count == 0 {
            return Ok(self.all(settings));
        }
        let (centres, offsets) = compress::centres(self, count, seed)?;
        let order = (0..centres.rows()).collect();
        let mut index = Chosen { features: &centres, order, offsets }.all(settings);
        index.note = Some(compress::effect(self, &index));
        Ok(index)
    }
}

/// The mean of some rows, summed in `f64`.
fn mean(features: &Matrix, rows: &[usize]) -> Vec<f32> {
    let mut sum = vec![0.0f64; features.cols()];
    for &i in rows {
        for (s, &v) in sum.iter_mut().zip(features.row(i)) {
            *s += f64::from(v);
        }
    }
    sum.iter().map(|s| (s / rows.len().max(1) as f64) as f32).collect()
}
