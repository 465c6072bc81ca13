//! The mean distance to the nearest remembered vectors, among all of them or
//! among those of the predicted class.
//!
//! If the predicted class has no vector, the energy is the distance that the
//! farthest remembered vector could have: `|f - mean| + max_b |b - mean|` for
//! the Euclidean part, 2 for the cosine part. So a class that was never seen
//! is finite, smooth, and never more familiar than one that was.

use crate::error::Result;
use crate::outputs::{Cotangents, Outputs};
use crate::score::{Neighbour, Score};
use crate::state::State;
use crate::tensor::{Matrix, argmax};

use super::index::{Index, norm};
use super::metric::Metric;
use super::scan::Found;

/// Among which vectors neighbours are sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::score) enum Among {
    /// All.
    All,
    /// Those whose label is the predicted class.
    Predicted,
}

/// Mean distance to the `k` nearest vectors.
#[derive(Debug)]
pub(in crate::score) struct Neighbours {
    pub(in crate::score) index: Index,
    pub(in crate::score) metric: Metric,
    pub(in crate::score) k: usize,
    pub(in crate::score) among: Among,
}

impl Neighbours {
    /// Restores what [`Score::state`] stored; the metric is made for the bank's width.
    pub(in crate::score) fn load(
        state: &State,
        metric: impl FnOnce(usize) -> Metric,
        k: usize,
        among: Among,
    ) -> Result<Box<dyn Score>> {
        let index = Index::load(state)?;
        let metric = metric(index.cols());
        Ok(Box::new(Neighbours { index, metric, k, among }))
    }

    /// The neighbours of each row; `None` where the features are not numbers.
    fn find(&self, outputs: &Outputs) -> Vec<Option<Vec<Found>>> {
        let mut found = vec![None; outputs.len()];
        for (rows, range) in self.groups(outputs) {
            let features = &outputs.features[0];
            let queries: Vec<&[f32]> = rows.iter().map(|&i| features.row(i)).collect();
            let nearest = self.index.nearest(&self.metric, &queries, range, self.k);
            for (i, f) in rows.into_iter().zip(nearest) {
                found[i] = Some(f);
            }
        }
        found
    }

    /// Rows that look for neighbours in the same range.
    fn groups(&self, outputs: &Outputs) -> Vec<(Vec<usize>, std::ops::Range<usize>)> {
        let rows = self.index.usable(outputs);
        if rows.is_empty() {
            return Vec::new();
        }
        if self.among == Among::All {
            return vec![(rows, 0..self.index.len())];
        }
        let mut rows: Vec<(usize, usize)> =
            rows.into_iter().map(|i| (argmax(outputs.logits.row(i)), i)).collect();
        rows.sort_unstable();
        rows.chunk_by(|a, b| a.0 == b.0)
            .map(|g| (g.iter().map(|r| r.1).collect(), self.index.class(g[0].0)))
            .collect()
    }
}

impl Neighbours {
    fn energies(&self, outputs: &Outputs, found: &[Option<Vec<Found>>]) -> Vec<f32> {
        let energy = |(i, found): (usize, &Option<Vec<Found>>)| match found.as_deref() {
            None => f32::NAN,
            Some([]) => self.index.unseen(&self.metric, outputs.features[0].row(i)) as f32,
            Some(found) => {
                let sum: f64 = found.iter().map(|f| f.distance).sum();
                (sum / found.len() as f64) as f32
            }
        };
        found.iter().enumerate().map(energy).collect()
    }

    fn slopes(&self, outputs: &Outputs, found: Vec<Option<Vec<Found>>>) -> Cotangents {
        self.index.pullback(outputs, found, |query, found, slope, row| {
            if found.is_empty() {
                self.index.add_unseen_slope(&self.metric, query, 1.0, slope);
            }
            for f in &found {
                self.index.read(f.row as usize, row);
                self.metric.add_slope(query, row, 1.0 / found.len() as f64, slope);
            }
        })
    }
}

impl Score for Neighbours {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        self.energies(outputs, &self.find(outputs))
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        self.slopes(outputs, self.find(outputs))
    }

    fn energy_and_pullback(&self, outputs: &Outputs) -> (Vec<f32>, Cotangents) {
        let found = self.find(outputs);
        (self.energies(outputs, &found), self.slopes(outputs, found))
    }

    fn state(&self) -> State {
        self.index.state()
    }

    fn neighbours(&self, outputs: &Outputs) -> Option<Vec<Vec<Neighbour>>> {
        let neighbour = |found: Found| Neighbour {
            class: self.index.class_of(found.row as usize),
            distance: found.distance as f32,
        };
        let found = self.find(outputs).into_iter().map(Option::unwrap_or_default);
        Some(found.map(|near| near.into_iter().map(neighbour).collect()).collect())
    }

    fn note(&self) -> Option<String> {
        self.index.note.clone()
    }
}

impl Index {
    /// The rows whose features are numbers and as many as the bank's.
    pub(in crate::score) fn usable(&self, outputs: &Outputs) -> Vec<usize> {
        match outputs.features.first() {
            Some(f) if f.cols() == self.cols() => {
                (0..f.rows()).filter(|&i| f.row(i).iter().all(|v| v.is_finite())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The energy of a query whose class has no vector.
    pub(in crate::score) fn unseen(&self, metric: &Metric, query: &[f32]) -> f64 {
        metric.farthest(self.away(query) + self.radius * self.unit)
    }

    /// Adds `weight` times the derivative of [`Index::unseen`].
    pub(in crate::score) fn add_unseen_slope(
        &self,
        metric: &Metric,
        query: &[f32],
        weight: f64,
        slope: &mut [f64],
    ) {
        let away = self.away(query);
        if away > 0.0 {
            let weight = weight * metric.farthest_slope(away + self.radius * self.unit) / away;
            for ((s, &q), &m) in slope.iter_mut().zip(query).zip(self.mean()) {
                *s += weight * (f64::from(q) - f64::from(m));
            }
        }
    }

    fn away(&self, query: &[f32]) -> f64 {
        norm(query.iter().zip(self.mean()).map(|(&q, &m)| f64::from(q) - f64::from(m)))
    }

    /// Cotangents of the first tap from what was found for each row: `slope`
    /// adds up a row's derivative, given its features and room for a vector.
    /// Rows for which nothing is known get NaN.
    pub(in crate::score) fn pullback<T>(
        &self,
        outputs: &Outputs,
        found: Vec<Option<T>>,
        slope: impl Fn(&[f32], T, &mut [f64], &mut [f32]),
    ) -> Cotangents {
        let mut features = vec![None; outputs.features.len()];
        if let (Some(first), Some(f)) = (features.first_mut(), outputs.features.first()) {
            let mut d = Matrix::zeros(f.rows(), f.cols());
            let mut row = vec![0.0; self.cols()];
            for (i, found) in found.into_iter().enumerate() {
                let mut sum = vec![0.0; f.cols()];
                match found {
                    Some(found) => slope(f.row(i), found, &mut sum, &mut row),
                    None => sum.fill(f64::NAN),
                }
                for (d, s) in d.row_mut(i).iter_mut().zip(&sum) {
                    *d = *s as f32;
                }
            }
            *first = Some(d);
        }
        Cotangents { logits: None, features }
    }
}
