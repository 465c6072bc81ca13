//! Measuring methods on the inputs of a test.

use std::ops::Range;

use upright::internal::dataset::CHUNK;
use upright::score::Score;
use upright::{Batch, Canonicalizer, Matrix, Model, Resample, Space, Trace, View, search, warp};

/// Answers for some inputs, and what they cost together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    pub(crate) labels: Vec<u32>,
    pub(crate) evaluations: usize,
}

impl Answers {
    /// Whether each is right.
    pub(crate) fn right(&self, truth: &[u32]) -> Vec<bool> {
        self.labels.iter().zip(truth).map(|(a, b)| a == b).collect()
    }

    /// Mean evaluations of an input.
    pub(crate) fn mean(&self) -> f64 {
        self.evaluations as f64 / self.labels.len().max(1) as f64
    }
}

/// Searches every input and tells of each search.
pub(crate) fn traces(
    c: &Canonicalizer,
    batch: &Batch,
    mut tell: impl FnMut(&Trace),
) -> upright::Result<()> {
    let all: Vec<usize> = (0..batch.len()).collect();
    for rows in all.chunks(2 * CHUNK) {
        c.trace(&batch.select(rows))?.iter().for_each(&mut tell);
    }
    Ok(())
}

/// Answers of a search of every input: of the views that were searched alone, which is the
/// paper's own recipe, and with the input as it is among the candidates.
pub(crate) fn searched(c: &Canonicalizer, batch: &Batch) -> upright::Result<[Answers; 2]> {
    let [mut alone, mut with_raw] = [Answers::default(), Answers::default()];
    traces(c, batch, |trace| {
        let raw = trace.raw_look();
        let best = c.read(trace).map(|a| a.look);
        alone.labels.push(best.unwrap_or(raw).label);
        alone.evaluations += trace.cost;
        let lower = best.filter(|b| b.energy < raw.energy);
        with_raw.labels.push(lower.unwrap_or(raw).label);
        with_raw.evaluations += trace.cost + 1;
    })?;
    Ok([alone, with_raw])
}

/// Answers always on and behind the gate, from one search of every input.
pub(crate) fn always_and_gated(c: &Canonicalizer, batch: &Batch) -> upright::Result<[Answers; 2]> {
    let [mut always, mut gated] = [Answers::default(), Answers::default()];
    traces(c, batch, |trace| {
        let raw = trace.raw_look();
        let best = c.read(trace).map(|a| a.look).filter(|b| b.energy < raw.energy);
        always.labels.push(best.unwrap_or(raw).label);
        always.evaluations += trace.cost + 1;
        let decided = c.decide(trace);
        gated.labels.push(decided.label);
        gated.evaluations += decided.evaluations;
    })?;
    Ok([always, gated])
}

/// Answers behind the gate.
pub(crate) fn gated(c: &Canonicalizer, batch: &Batch) -> upright::Result<Answers> {
    let mut answers = Answers::default();
    let all: Vec<usize> = (0..batch.len()).collect();
    for rows in all.chunks(2 * CHUNK) {
        for p in c.predict(&batch.select(rows))? {
            answers.labels.push(p.label);
            answers.evaluations += p.evaluations;
        }
    }
    Ok(answers)
}

/// Inputs whose views run together.
const TOGETHER: usize = 32;

/// The classes with the largest mean probability over some views of each input.
pub(crate) fn averaged(
    model: &Model,
    space: &Space,
    batch: &Batch,
    poses: impl Fn(usize) -> Vec<Vec<f32>>,
) -> upright::Result<Answers> {
    let mut answers = Answers::default();
    let all: Vec<usize> = (0..batch.len()).collect();
    for items in all.chunks(TOGETHER) {
        let (views, ends) = views(space, items, &poses);
        let logits = model.run(&warp(batch, &views, &Resample::default())?)?.logits;
        for own in ends {
            answers.evaluations += own.len();
            answers.labels.push(mean_class(&logits.select(&own.collect::<Vec<_>>())));
        }
    }
    Ok(answers)
}

/// The class of the view of lowest energy among some views of each input, by each of some
/// scores; the outputs of a view are computed once.
pub(crate) fn lowest(
    model: &Model,
    scores: &[&dyn Score],
    space: &Space,
    batch: &Batch,
    poses: impl Fn(usize) -> Vec<Vec<f32>>,
) -> upright::Result<Vec<Answers>> {
    let mut answers = vec![Answers::default(); scores.len()];
    let all: Vec<usize> = (0..batch.len()).collect();
    for items in all.chunks(TOGETHER) {
        let (views, ends) = views(space, items, &poses);
        let outputs = model.run(&warp(batch, &views, &Resample::default())?)?;
        let labels = outputs.labels();
        for (score, answers) in scores.iter().zip(&mut answers) {
            let energies = score.energy(&outputs);
            for own in &ends {
                let best = search::lowest(energies[own.clone()].iter().copied()).unwrap_or(0);
                answers.labels.push(labels[own.start + best]);
                answers.evaluations += own.len();
            }
        }
    }
    Ok(answers)
}

/// Views of some inputs under their poses, and where those of each are.
fn views(
    space: &Space,
    items: &[usize],
    poses: &impl Fn(usize) -> Vec<Vec<f32>>,
) -> (Vec<View>, Vec<Range<usize>>) {
    let (mut views, mut ends) = (Vec::new(), Vec::new());
    for &item in items {
        let start = views.len();
        views.extend(poses(item).iter().map(|p| View { item, map: space.map(p) }));
        ends.push(start..views.len());
    }
    (views, ends)
}

/// The class with the largest mean probability over rows of logits.
pub(crate) fn mean_class(logits: &Matrix) -> u32 {
    let mut sums = vec![0f64; logits.cols()];
    for row in logits.iter() {
        let most = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let e: Vec<f64> = row.iter().map(|z| (f64::from(*z) - most).exp()).collect();
        let total: f64 = e.iter().sum();
        sums.iter_mut().zip(&e).for_each(|(s, e)| *s += e / total);
    }
    let best = (0..sums.len()).max_by(|&a, &b| sums[a].total_cmp(&sums[b]).then(b.cmp(&a)));
    best.unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probabilities (0.5, 0.5) and about (0, 1): the second class has the larger mean.
    #[test]
    fn views_are_averaged_as_probabilities() {
        let logits = Matrix::new(2, 2, vec![3.0, 3.0, 0.0, 9.0]).unwrap();
        assert_eq!(mean_class(&logits), 1);
        let tied = Matrix::new(1, 2, vec![1.0, 1.0]).unwrap();
        assert_eq!(mean_class(&tied), 0);
    }
}
