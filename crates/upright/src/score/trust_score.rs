//! How much nearer the predicted class is than any other:
//! `-d(nearest other class) / (d(predicted class) + 1e-12)`.
//!
//! Jiang et al. 2018, "To Trust Or Not To Trust A Classifier". The distance to
//! a class is that of its k-th nearest sample, or of its farthest if it has
//! fewer. With `alpha > 0` each class first loses the samples whose k-th other
//! neighbour of their class is farther than the `1 - alpha` quantile (linear)
//! of these radii. A predicted class without samples is as far as the
//! farthest sample could be, which makes the energy at least -1.

use rayon::prelude::*;

use crate::config::{Param, Settings};
use crate::error::{Error, Result};
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::bank::{CORRECT_ONLY, Chosen, Found, Index, METRIC, Metric, STORAGE, W_COS};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::argmax;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: NAME,
    about: "minus the distance to the nearest other class over that to the predicted class; needs features and labels",
    params: &[
        Param::whole("k", 2, 1, 1000, "a class is as far as its k-th nearest sample")
            .tuned_log(1.0, 40.0),
        Param::real(
            "alpha",
            0.0,
            0.0,
            0.99,
            "share of each class's most isolated samples to forget",
        ),
        METRIC,
        W_COS,
        CORRECT_ONLY,
        STORAGE,
    ],
    make: Make {
        needs: |s| Needs {
            features: true,
            labels: true,
            samples: s.whole("k"),
            ..Needs::default()
        },
        fit,
        load,
    },
};

const NAME: &str = "trust-score";
const EPS: f64 = 1e-12;

#[derive(Debug)]
struct Trust {
    index: Index,
    metric: Metric,
    k: usize,
}

/// The samples that stand for the predicted and the nearest other class; no
/// sample for a predicted class that has none.
#[derive(Debug, Clone, Copy)]
struct Pair {
    own: Option<Found>,
    other: Found,
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let mut chosen = Chosen::new(NAME, settings, bank)?;
    let (k, alpha) = (settings.whole("k"), settings.real("alpha"));
    let filled = chosen.offsets.windows(2).filter(|o| o[0] < o[1]).count();
    if filled < 2 {
        return Err(Error::TooFew {
            part: NAME.into(),
            why: format!("{filled} class has samples, 2 are needed"),
            hint: Some("give a bank with samples of several classes".into()),
        });
    }
    let metric = Metric::plain(settings, chosen.features.cols());
    if alpha > 0.0 {
        chosen = dense(&chosen, settings, &metric, k, alpha);
    }
    Ok(Box::new(Trust { index: chosen.all(settings), metric, k }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let index = Index::load(state)?;
    let metric = Metric::plain(settings, index.cols());
    Ok(Box::new(Trust { index, metric, k: settings.whole("k") }))
}

/// The samples without the most isolated ones of each class.
fn dense<'a>(
    chosen: &Chosen<'a>,
    settings: &Settings,
    metric: &Metric,
    k: usize,
    alpha: f64,
) -> Chosen<'a> {
    let index = chosen.all(settings);
    let mut kept = Chosen { features: chosen.features, order: Vec::new(), offsets: vec![0] };
    for class in 0..index.classes() {
        let range = index.class(class);
        let members = &chosen.order[range.clone()];
        let queries: Vec<&[f32]> = members.iter().map(|&i| chosen.features.row(i)).collect();
        // Each sample is its own nearest neighbour.
        let nearest = index.nearest(metric, &queries, range, k + 1);
        let radii: Vec<f64> =
            nearest.iter().map(|f| f.last().map_or(0.0, |f| f.distance)).collect();
        let cut = quantile(&radii, 1.0 - alpha);
        let dense = members.iter().zip(&radii).filter(|(_, r)| **r <= cut).map(|(&i, _)| i);
        kept.order.extend(dense);
        kept.offsets.push(kept.order.len() as u32);
    }
    kept
}

/// The `p` quantile, linear between the order statistics.
fn quantile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = p * last as f64;
    let low = (at as usize).min(last);
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

impl Trust {
    fn find(&self, outputs: &Outputs) -> Vec<Option<Pair>> {
        let mut pairs = vec![None; outputs.len()];
        let rows = self.index.usable(outputs);
        let Some(features) = outputs.features.first() else { return pairs };
        let queries: Vec<&[f32]> = rows.iter().map(|&i| features.row(i)).collect();
        let filled: Vec<usize> =
            (0..self.index.classes()).filter(|&c| !self.index.class(c).is_empty()).collect();
        let lists: Vec<_> = filled
            .par_iter()
            .map(|&c| self.index.shortlist(&self.metric, &queries, self.index.class(c), self.k))
            .collect();
        let found: Vec<Option<Pair>> = rows
            .par_iter()
            .enumerate()
            .map(|(j, &i)| {
                let predicted = argmax(outputs.logits.row(i));
                let class = |n: usize| {
                    let found =
                        self.index.nearest_of(&self.metric, queries[j], &lists[n][j], self.k);
                    found.last().copied()
                };
                let own = filled.binary_search(&predicted).ok().and_then(class);
                // A class is at least as far as the k-th smallest bound of its samples.
                let least = |n: usize| {
                    let list = &lists[n][j];
                    list.get(self.k.min(list.len()).saturating_sub(1)).map_or(0.0, |m| m.bound)
                };
                let mut others: Vec<usize> =
                    (0..filled.len()).filter(|&n| filled[n] != predicted).collect();
                others.sort_by(|&a, &b| least(a).total_cmp(&least(b)).then(a.cmp(&b)));
                let mut other: Option<Found> = None;
                for n in others {
                    if other
                        .is_some_and(|o| self.index.beyond(&self.metric, queries[j], o, least(n)))
                    {
                        break;
                    }
                    let near = class(n)?;
                    let nearer = |o: Found| {
                        near.distance.total_cmp(&o.distance).then(near.row.cmp(&o.row)).is_lt()
                    };
                    if other.is_none_or(nearer) {
                        other = Some(near);
                    }
                }
                Some(Pair { own, other: other? })
            })
            .collect();
        for (i, pair) in rows.into_iter().zip(found) {
            pairs[i] = pair;
        }
        pairs
    }

    fn own(&self, pair: &Pair, query: &[f32]) -> f64 {
        pair.own.map_or_else(|| self.index.unseen(&self.metric, query), |f| f.distance) + EPS
    }
}

impl Score for Trust {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let pairs = self.find(outputs).into_iter().enumerate();
        pairs
            .map(|(i, pair)| match pair {
                None => f32::NAN,
                Some(p) => -(p.other.distance / self.own(&p, outputs.features[0].row(i))) as f32,
            })
            .collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        self.index.pullback(outputs, self.find(outputs), |query, pair, slope, row| {
            let own = self.own(&pair, query);
            self.index.read(pair.other.row as usize, row);
            self.metric.add_slope(query, row, -1.0 / own, slope);
            let weight = pair.other.distance / own / own;
            if let Some(found) = pair.own {
                self.index.read(found.row as usize, row);
                self.metric.add_slope(query, row, weight, slope);
            } else {
                self.index.add_unseen_slope(&self.metric, query, weight, slope);
            }
        })
    }

    fn state(&self) -> State {
        self.index.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::score;
    use crate::tensor::Matrix;

    /// On a line: class 0 at 0, 1, 2, 9; class 1 at 10, 12; class 2 at 30; class 3 empty.
    fn energy(part: &Part, at: f32, predicted: usize) -> f32 {
        let features = vec![0.0, 10.0, 1.0, 30.0, 2.0, 12.0, 9.0];
        let outputs =
            Outputs::new(Matrix::zeros(7, 4), vec![Matrix::new(7, 1, features).unwrap()]).unwrap();
        let labels = [0, 1, 0, 2, 0, 1, 0];
        let bank = Bank::of(&outputs, &labels);
        let mut logits = Matrix::zeros(1, 4);
        logits.row_mut(0)[predicted] = 1.0;
        let query = Outputs::new(logits, vec![Matrix::new(1, 1, vec![at]).unwrap()]).unwrap();
        score::fit(part, &bank).unwrap().energy(&query)[0]
    }

    fn near(got: f32, want: f64) {
        assert!((f64::from(got) - want).abs() < 1e-6 * (1.0 + want.abs()), "{got} {want}");
    }

    #[test]
    fn energies_equal_those_worked_by_hand() {
        // From 4 the second nearest of class 0 is 3 away, of class 1 8, of class 2 26.
        let part = Part::new("trust-score");
        near(energy(&part, 4.0, 0), -8.0 / 3.0);
        near(energy(&part, 4.0, 1), -3.0 / 8.0);
        near(energy(&part, 4.0, 2), -3.0 / 26.0);
        // k = 1: 2, 6, 26.
        near(energy(&part.clone().number("k", 1.0), 4.0, 0), -6.0 / 2.0);
        // Class 3 has no samples: the mean is 64/7, the farthest sample 30.
        let unseen = (64.0 / 7.0 - 4.0) + (30.0 - 64.0 / 7.0);
        near(energy(&part, 4.0, 3), -3.0 / unseen);
    }

    #[test]
    fn isolated_samples_are_forgotten() {
        // Radii to the first other neighbour in class 0: 1, 1, 1, 7; their 0.75 quantile
        // is 1 + 6 * 0.25 = 2.5, so 9 goes, and class 0 is 7 away from 9 instead of 0.
        let part = Part::new("trust-score").number("k", 1.0);
        near(energy(&part, 9.5, 0), -0.5 / 0.5);
        near(energy(&part.number("alpha", 0.25), 9.5, 0), -0.5 / 7.5);
    }

    #[test]
    fn one_class_is_too_few() {
        let outputs = Outputs::new(Matrix::zeros(2, 2), vec![Matrix::zeros(2, 1)]).unwrap();
        let bank = Bank::of(&outputs, &[1, 1]);
        let e = score::fit(&Part::new("trust-score"), &bank).unwrap_err();
        assert_eq!(e.to_string(), "trust-score: 1 class has samples, 2 are needed");
    }
}
