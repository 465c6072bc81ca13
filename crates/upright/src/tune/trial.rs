//! One point tried, and what came of it.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::knobs::Point;

/// Trials whose values can be compared: the same stage on the same data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Series {
    /// The stage, from 1.
    pub stage: usize,
    /// The part of the data, from 0.
    pub part: usize,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was evaluated; higher is better; finite.
    Complete(f64),
    /// It was given up early, being worse than the others at its last step.
    Pruned,
    /// It could not be evaluated, for this reason.
    Failed(String),
}

/// A finished trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Where it belongs.
    pub series: Series,
    /// Its number within the series, from 0.
    pub number: usize,
    /// What was tried.
    pub point: Point,
    /// Steps and the finite values reported at them, in order.
    pub steps: Vec<(usize, f64)>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Trial {
    /// Its value, if it was completed.
    pub fn value(&self) -> Option<f64> {
        match self.outcome {
            Outcome::Complete(value) => Some(value),
            Outcome::Pruned | Outcome::Failed(_) => None,
        }
    }

    /// Better trials first: complete ones by value, then pruned ones by how far
    /// they came and their value there, then failed ones; ties by number.
    pub fn rank(&self, other: &Trial) -> Ordering {
        fn rung(trial: &Trial) -> u8 {
            match trial.outcome {
                Outcome::Complete(_) => 0,
                Outcome::Pruned => 1,
                Outcome::Failed(_) => 2,
            }
        }
        fn merit(trial: &Trial) -> (usize, f64) {
            let reached = trial.steps.last().copied().unwrap_or((0, f64::NEG_INFINITY));
            trial.value().map_or(reached, |value| (0, value))
        }
        let ((far, value), (far_other, value_other)) = (merit(self), merit(other));
        rung(self)
            .cmp(&rung(other))
            .then(far_other.cmp(&far))
            .then(value_other.total_cmp(&value))
            .then(self.number.cmp(&other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_trials_rank_before_pruned_and_failed_ones() {
        let series = Series { stage: 1, part: 0 };
        let trial = |number, steps: &[(usize, f64)], outcome| Trial {
            series,
            number,
            point: Point::new(),
            steps: steps.to_vec(),
            outcome,
        };
        let mut trials = [
            trial(0, &[], Outcome::Failed("no".into())),
            trial(1, &[(1, 9.0)], Outcome::Pruned),
            trial(2, &[(1, 1.0), (2, 2.0)], Outcome::Pruned),
            trial(3, &[(1, 1.0), (2, 3.0)], Outcome::Pruned),
            trial(4, &[(9, 9.0)], Outcome::Complete(0.5)),
            trial(5, &[(1, 1.0)], Outcome::Complete(0.5)),
            trial(6, &[], Outcome::Complete(0.7)),
        ];
        trials.sort_by(Trial::rank);
        assert_eq!(trials.map(|t| t.number), [6, 4, 5, 3, 2, 1, 0]);
    }
}
