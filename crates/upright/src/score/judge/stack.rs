//! What is weighed of a view beside its features: what the model says of it
//! and how it came about, joined with the trust in it.

use crate::ridge::{conditional, logistic};
use crate::score::Origin;
use crate::tensor::argmax;

/// Numbers of a proposed view.
pub(super) const NUMBERS: usize = 12;
/// Numbers of the input as it is.
pub(super) const RAW: usize = 6;
/// All numbers, and whether a view is the input as it is.
const WIDTH: usize = NUMBERS + RAW + 1;
/// Small penalties, so that numbers that never vary do no harm.
const PENALTY: f64 = 1.0;
/// By how much of itself the error on the lessons may grow for stopping earlier, and by how many
/// points at most: where few are wrong, views are few anyway.
const SHARE: f64 = 0.05;
const COST: f64 = 0.75;

/// The numbers of a view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Numbers {
    /// Of the input as it is: trust, log of the largest probability, margin, unlikeness, how
    /// upright it looks, and what the proposer says of it.
    Raw([f64; RAW]),
    /// Of another view: the same, then what the proposer says of it.
    View([f64; NUMBERS]),
}

impl Numbers {
    pub(super) fn new(trust: f64, upright: f64, logits: &[f32], origin: &Origin) -> Self {
        let (certainty, margin) = certainty(logits);
        let rating = origin.rating.unwrap_or_default();
        let unlike = f64::from(rating.unlike).min(4.0);
        if origin.raw {
            let here = f64::from(rating.here);
            return Numbers::Raw([trust, certainty, margin, unlike, upright, here]);
        }
        let (score, agrees) =
            origin.proposal.map_or((0.0, 0.0), |(s, same)| (s, f64::from(u8::from(same))));
        Numbers::View([
            trust,
            certainty,
            margin,
            unlike,
            f64::from(score),
            f64::from(rating.here),
            f64::from(rating.best),
            f64::from(rating.class),
            f64::from(rating.lead),
            agrees,
            f64::from(rating.raw[0]),
            f64::from(rating.raw[1]),
        ])
    }
}

impl Numbers {
    /// Whether all are finite: one that is not would spoil every weight.
    pub(super) fn finite(&self) -> bool {
        match self {
            Numbers::Raw(n) => n.iter().all(|v| v.is_finite()),
            Numbers::View(n) => n.iter().all(|v| v.is_finite()),
        }
    }
}

/// The log of the largest probability, at least -8, and the distance to the second, at most 1:
/// the largest logit's lead over the second as `tanh(lead / 4)`.
fn certainty(logits: &[f32]) -> (f64, f64) {
    let top = argmax(logits);
    let most = f64::from(logits[top]);
    let sum: f64 = logits.iter().map(|&z| libm::exp(f64::from(z) - most)).sum();
    let second = logits
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != top)
        .map(|(_, &z)| f64::from(z))
        .fold(f64::NEG_INFINITY, f64::max);
    let lead = if second.is_finite() { most - second } else { 8.0 };
    ((-libm::log(sum)).max(-8.0), libm::tanh(lead / 4.0))
}

/// The derivative of a weighted sum of both with respect to the logits.
pub(super) fn certainty_slope(logits: &[f32], certainty: f64, margin: f64) -> Vec<f32> {
    let top = argmax(logits);
    let most = f64::from(logits[top]);
    let e: Vec<f64> = logits.iter().map(|&z| libm::exp(f64::from(z) - most)).collect();
    let sum: f64 = e.iter().sum();
    let mut d: Vec<f64> = vec![0.0; logits.len()];
    if -libm::log(sum) > -8.0 {
        for (i, (d, e)) in d.iter_mut().zip(&e).enumerate() {
            *d += certainty * (f64::from(u8::from(i == top)) - e / sum);
        }
    }
    let second = (0..logits.len())
        .filter(|&i| i != top)
        .max_by(|&a, &b| logits[a].total_cmp(&logits[b]).then(b.cmp(&a)));
    if let Some(second) = second {
        let t = libm::tanh((most - f64::from(logits[second])) / 4.0);
        let slope = margin * (1.0 - t * t) / 4.0;
        d[top] += slope;
        d[second] -= slope;
    }
    d.iter().map(|d| *d as f32).collect()
}

/// The weights of everything.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stack {
    /// Of the numbers of a view, then of those of the input as it is, then of being it.
    weights: Vec<f64>,
    /// From a sum to the log-odds that the model is right: factor and constant.
    odds: [f64; 2],
    /// The log-odds from which on a view is surely right.
    pub(super) sure: f64,
}

/// One candidate among the views of an input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) input: usize,
    pub(super) numbers: Numbers,
    pub(super) right: bool,
}

impl Stack {
    /// Fitted on candidates, those of one input next to each other in the order of looking.
    pub(super) fn fit(candidates: &[Candidate]) -> Self {
        let mut stack = Stack { weights: vec![0.0; WIDTH], odds: [1.0, 0.0], sure: f64::INFINITY };
        let by_input: Vec<&[Candidate]> = candidates.chunk_by(|a, b| a.input == b.input).collect();
        let groups: Vec<Vec<(Vec<f64>, bool)>> = by_input
            .iter()
            .map(|group| group.iter().map(|c| (row(&c.numbers), c.right)).collect())
            .collect();
        let weights = conditional(&groups, PENALTY);
        if weights.len() == WIDTH {
            stack.weights = weights;
        }
        let sums: Vec<Vec<f64>> = candidates.iter().map(|c| vec![stack.sum(&c.numbers)]).collect();
        let labels: Vec<bool> = candidates.iter().map(|c| c.right).collect();
        if let [factor, constant] = logistic(&sums, &labels, 1e-3)[..]
            && factor > 0.0
        {
            stack.odds = [factor, constant];
        }
        stack.sure = stack.stop(&by_input);
        stack
    }

    /// The least log-odds at which the first view that has them may end the search: answers on
    /// the candidates are at most [`SHARE`] of their error, and [`COST`], worse than they can be.
    fn stop(&self, by_input: &[&[Candidate]]) -> f64 {
        let odds: Vec<Vec<(f64, bool)>> = by_input
            .iter()
            .map(|group| group.iter().map(|c| (self.odds(&c.numbers), c.right)).collect())
            .collect();
        let right = |sure: f64| {
            odds.iter()
                .filter(|group| {
                    let mut best: Option<(f64, bool)> = None;
                    for &(odds, right) in *group {
                        if best.is_none_or(|(b, _)| odds > b) {
                            best = Some((odds, right));
                        }
                        if odds >= sure {
                            break;
                        }
                    }
                    best.is_some_and(|(_, right)| right)
                })
                .count() as f64
        };
        let tried: Vec<(f64, f64)> = (0..180)
            .map(|step| 0.5 + 0.05 * f64::from(step))
            .chain([f64::INFINITY])
            .map(|sure| (sure, right(sure)))
            .collect();
        let best = tried.iter().map(|t| t.1).fold(0.0, f64::max);
        let all = by_input.len() as f64;
        let allowed = (SHARE * (all - best)).min(COST / 100.0 * all);
        let found = tried.iter().find(|(_, right)| *right >= best - allowed);
        found.map_or(f64::INFINITY, |(sure, _)| *sure)
    }

    fn sum(&self, numbers: &Numbers) -> f64 {
        row(numbers).iter().zip(&self.weights).map(|(x, w)| x * w).sum()
    }

    /// The log-odds that the model is right on a view.
    pub(super) fn odds(&self, numbers: &Numbers) -> f64 {
        self.odds[0] * self.sum(numbers) + self.odds[1]
    }

    /// Derivatives of the log-odds with respect to trust, certainty and margin.
    pub(super) fn slopes(&self, raw: bool) -> [f64; 3] {
        let first = if raw { NUMBERS } else { 0 };
        [0, 1, 2].map(|i| self.odds[0] * self.weights[first + i])
    }

    /// Derivative of the log-odds with respect to how upright the input as it is looks.
    pub(super) fn upright_slope(&self) -> f64 {
        self.odds[0] * self.weights[NUMBERS + 4]
    }

    pub(super) fn numbers(&self) -> Vec<f64> {
        self.weights.iter().chain(&self.odds).copied().chain([self.sure]).collect()
    }

    pub(super) fn load(numbers: &[f64]) -> Option<Self> {
        let (weights, rest) = numbers.split_at_checked(WIDTH)?;
        let &[factor, constant, sure] = rest else { return None };
        Some(Stack { weights: weights.to_vec(), odds: [factor, constant], sure })
    }
}

/// The numbers of a view at their place among all.
fn row(numbers: &Numbers) -> Vec<f64> {
    let mut row = vec![0.0; WIDTH];
    match numbers {
        Numbers::Raw(n) => {
            row[NUMBERS..NUMBERS + RAW].copy_from_slice(n);
            row[NUMBERS + RAW] = 1.0;
        }
        Numbers::View(n) => row[..NUMBERS].copy_from_slice(n),
    }
    row
}
