//! What the head reads of a view, the whole of it in one vector: a second
//! opinion on the pose of photographs. Alone it hardly tells a view's angle,
//! but how upright a view looks beside its quarter turns it tells better than
//! the regions of earlier taps.

use super::Learned;
use super::fit::{joined, regions};
use super::reader::Reader;
use super::votes::Quarters;
use crate::copies::random_poses;
use crate::dataset::chunk;
use crate::error::Result;
use crate::map::Map;
use crate::outputs::Outputs;
use crate::proposer::Bank;
use crate::ridge::Ridge;
use crate::seed;
use crate::state::{State, damaged};
use crate::stats::log_softmax;
use crate::tensor::{Matrix, Signal};
use crate::warp::{View, warp};

/// Most samples whose votes weigh it.
const MOST: usize = 300;
/// Weights that are tried.
const WEIGHTS: [f32; 10] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0];

/// A second reader of poses.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Whole {
    ridge: Ridge,
    /// What its readings count beside those of the first.
    weight: f32,
}

impl Whole {
    #[cfg(test)]
    pub(super) fn new(ridge: Ridge, weight: f32) -> Self {
        Whole { ridge, weight }
    }

    /// With the weight that makes the poses of copies of some samples likeliest by the votes of
    /// their quarter turns; `None` if it had better be silent.
    pub(super) fn weighed(
        ridge: Ridge,
        learned: &Learned,
        reader: &Reader,
        bank: &mut Bank,
        (signal, samples): (Signal, &[usize]),
    ) -> Result<Option<Self>> {
        let readers = Readers { learned, reader, whole: &ridge };
        let some = &samples[..samples.len().min(MOST)];
        let weight = best(&readers.cases(bank, signal, some)?);
        Ok((weight > 0.0).then_some(Whole { ridge, weight }))
    }

    /// Scores that it gives.
    pub(super) fn targets(&self) -> usize {
        self.ridge.targets()
    }

    /// Adds what it reads to the readings of the first; `None` if the features are not its own.
    pub(super) fn join(
        &self,
        learned: &Learned,
        features: &Matrix,
        readings: &mut Matrix,
    ) -> Option<()> {
        if features.cols() != self.ridge.width() || features.rows() != readings.rows() {
            return None;
        }
        self.add(learned, &self.ridge.apply(features), readings);
        Some(())
    }

    /// Adds what it has read.
    pub(super) fn add(&self, learned: &Learned, read: &Matrix, readings: &mut Matrix) {
        for (row, said) in read.iter().enumerate() {
            learned.add_poses(readings.row_mut(row), said, self.weight);
        }
    }

    pub(super) fn state(&self) -> State {
        State::new().f32("weight", &[self.weight]).with_part("ridge.", &self.ridge.state())
    }

    pub(super) fn load(state: &State) -> Result<Self> {
        let ridge = Ridge::load(&state.part("ridge."))?;
        match *state.read_f32("weight")?.as_slice() {
            [weight] => Ok(Whole { ridge, weight }),
            _ => Err(damaged("the second reader's weight is not one number".into())),
        }
    }
}

/// A copy: what both readers' votes say of every cell, and the cells of its pose.
struct Case {
    votes: [Vec<f32>; 2],
    right: Vec<usize>,
}

/// Both readers, the second not weighed yet.
struct Readers<'a> {
    learned: &'a Learned,
    reader: &'a Reader,
    whole: &'a Ridge,
}

impl Readers<'_> {
    /// What their votes say of copies of some samples; of nothing where no turns vote.
    fn cases(&self, bank: &mut Bank, signal: Signal, samples: &[usize]) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        let Some(quarters) = &self.learned.quarters else { return Ok(cases) };
        let kinds = self.learned.kinds();
        for (round, some) in samples.chunks(chunk(signal)).enumerate() {
            let salt = seed::of_index(bank.seed, "votes", round);
            let (samples, _) = bank.samples.read(some)?;
            let poses = random_poses(&samples, bank.space, salt);
            let resample = bank.samples.resample();
            let kind = kinds[round % kinds.len()];
            let copies = kind.copies(&samples, &poses, bank.space, resample, salt)?;
            let maps: Vec<Map> =
                (0..quarters.len()).map(|turn| bank.space.map(quarters.pose(turn))).collect();
            let views: Vec<View> = (0..copies.len())
                .flat_map(|item| maps.iter().map(move |&map| View { item, map }))
                .collect();
            let outputs = bank.samples.run(&warp(&copies, &views, resample)?)?;
            let Some(read) = self.read(&outputs) else { return Ok(Vec::new()) };
            for (item, pose) in poses.iter().enumerate() {
                let frames = &self.learned.frames;
                let framed = frames.of(bank.space, signal, copies.item(item));
                let Some(place) = frames.place(bank.space, &framed, None, &bank.space.map(pose))
                else {
                    continue;
                };
                let cells = self.learned.cells.weights(&place, bank.space);
                cases.push(Case {
                    votes: self.votes(quarters, &read, item * quarters.len()),
                    right: cells.into_iter().map(|(cell, _)| cell).collect(),
                });
            }
        }
        Ok(cases)
    }

    /// What both read of views.
    fn read(&self, outputs: &Outputs) -> Option<[Matrix; 2]> {
        let (parts, last) = regions(outputs, true);
        let rows: Vec<f32> = (0..outputs.len()).flat_map(|row| joined(parts, row, &[])).collect();
        let rows = Matrix::new(outputs.len(), self.reader.width(), rows).ok()?;
        Some([self.reader.apply(&rows), self.whole.apply(last?)])
    }

    /// The sums over all turns, whose views begin at a row, for every cell of the input.
    fn votes(&self, quarters: &Quarters, read: &[Matrix; 2], first: usize) -> [Vec<f32>; 2] {
        [0, 1].map(|which| {
            let said = |turn: usize, cell: usize| {
                let reading = read[which].row(first + turn);
                let cell = quarters.cell(turn, cell);
                if which == 0 { self.learned.over_classes(reading, cell) } else { reading[cell] }
            };
            let all = |cell: usize| (0..quarters.len()).map(|turn| said(turn, cell)).sum();
            (0..self.learned.cells.len()).map(all).collect()
        })
    }
}

/// The weight of the second votes with which the right cells are likeliest, however far votes
/// are to be believed; the smallest of equals.
fn best(cases: &[Case]) -> f32 {
    let likely = |weight: f32, heat: f64| -> f64 {
        let one = |case: &Case| {
            let [first, second] = &case.votes;
            let sum: Vec<f32> = first.iter().zip(second).map(|(a, b)| a + weight * b).collect();
            let logs = log_softmax(&sum, 1.0 / heat);
            case.right.iter().map(|&c| libm::exp(logs[c])).sum::<f64>().max(1e-6).ln()
        };
        cases.iter().map(one).sum()
    };
    let at_best = |weight: f32| {
        let heats = (-6..14).map(|step| 2f64.powf(0.5 * f64::from(step)));
        heats.map(|heat| likely(weight, heat)).fold(f64::NEG_INFINITY, f64::max)
    };
    let mut found = (f64::NEG_INFINITY, 0.0);
    for weight in WEIGHTS {
        let value = at_best(weight);
        if value > found.0 + 1e-9 {
            found = (value, weight);
        }
    }
    found.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four cells, the first of them right. Votes that tell it from the last two alone are worth
    /// nothing where the first reader does so, too, and much where it takes it for the second.
    #[test]
    fn what_the_first_reader_does_not_know_has_weight() {
        let case = |first: [f32; 4], second: [f32; 4]| Case {
            votes: [first.to_vec(), second.to_vec()],
            right: vec![0],
        };
        let sure = [1.0, 0.0, 0.0, 0.0];
        let torn = [1.0, 1.1, 0.0, 0.0];
        let noise = |i: usize| [0.0, 1.0, 2.0, 3.0].map(|c| ((i * 7) as f32 + c * 5.0).sin());
        let idle: Vec<Case> = (0..40).map(|i| case(sure, noise(i))).collect();
        assert!(best(&idle).abs() < 1e-6);
        let helped: Vec<Case> = (0..40).map(|_| case(torn, [0.2, 0.0, 0.0, 0.2])).collect();
        assert!(best(&helped) >= 0.5);
        assert!(best(&[]).abs() < 1e-6);
    }
}
