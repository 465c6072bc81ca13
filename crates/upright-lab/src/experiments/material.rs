//! Outputs of fixed views, computed once: every score can then be judged, and
//! tuned, without running the classifier again.

use std::ops::ControlFlow;

use upright::internal::seed;
use upright::internal::tune::{
    Knob, Knobs, Objective, Point, Protocol, Report, Setup, Subset, knobs,
};
use upright::score::{self, Bank};
use upright::{
    Batch, Error, Head, Model, Outputs, Part, Resample, Result, Share, Space, Value, View, search,
    warp,
};

use super::Lab;
use super::fits::Filled;
use super::tasks::Task;

/// Views of an input that scores choose among.
pub(super) const VIEWS: usize = 60;
/// Inputs whose views run together.
const TOGETHER: usize = 32;

/// Random views of some inputs, and the inputs as they are.
pub(super) struct Seen {
    /// Of every input as it is, then of its views.
    outputs: Outputs,
    labels: Vec<u32>,
    truth: Vec<u32>,
}

impl Seen {
    /// Runs a classifier over random views of inputs.
    pub(super) fn of(
        model: &Model,
        space: &Space,
        batch: &Batch,
        truth: &[u32],
        run: u64,
    ) -> Result<Self> {
        let mut all: Option<Outputs> = None;
        let items: Vec<usize> = (0..batch.len()).collect();
        for items in items.chunks(TOGETHER) {
            let poses = |item: usize| {
                let content = seed::of_content(run, batch.item(item));
                let drawn = move |i: u32| space.draw(&seed::sobol(i, space.cube(), content));
                std::iter::once(space.identity()).chain((0..VIEWS as u32).map(drawn))
            };
            let views: Vec<View> = items
                .iter()
                .flat_map(|&item| poses(item).map(move |p| View { item, map: space.map(&p) }))
                .collect();
            let outputs = model.run(&warp(batch, &views, &Resample::default())?)?;
            match &mut all {
                None => all = Some(outputs),
                Some(all) => all.append(&outputs)?,
            }
        }
        let outputs = all.ok_or_else(|| Error::shape("inputs", "some", 0))?;
        Ok(Seen { labels: outputs.labels(), outputs, truth: truth.to_vec() })
    }

    pub(super) fn len(&self) -> usize {
        self.truth.len()
    }

    /// Whether the bare classifier is right on each input.
    pub(super) fn alone(&self) -> Vec<bool> {
        (0..self.len()).map(|i| self.labels[i * (VIEWS + 1)] == self.truth[i]).collect()
    }

    /// The same of some of the inputs.
    fn some(&self, inputs: &[usize]) -> Self {
        let rows: Vec<usize> =
            inputs.iter().flat_map(|i| i * (VIEWS + 1)..(i + 1) * (VIEWS + 1)).collect();
        Seen {
            outputs: self.outputs.select(&rows),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
            truth: inputs.iter().map(|&i| self.truth[i]).collect(),
        }
    }

    /// Energies of the inputs as they are, by a score that reads one tap.
    fn raw(&self, score: &dyn score::Score, tap: usize) -> Vec<f32> {
        let rows: Vec<usize> = (0..self.len()).map(|i| i * (VIEWS + 1)).collect();
        score.energy(&one_tap(&self.outputs, tap).select(&rows))
    }

    /// Whether the view of lowest energy is right, the input as it is left out.
    pub(super) fn right(&self, score: &dyn score::Score, tap: usize) -> Vec<bool> {
        let energies = score.energy(&one_tap(&self.outputs, tap));
        let right = |i: usize| {
            let first = i * (VIEWS + 1) + 1;
            let best = search::lowest(energies[first..first + VIEWS].iter().copied());
            self.labels[first + best.unwrap_or(0)] == self.truth[i]
        };
        (0..self.len()).map(right).collect()
    }
}

/// Outputs as a score that reads one tap sees them.
fn one_tap(outputs: &Outputs, tap: usize) -> Outputs {
    let features = outputs.features.get(tap).cloned().into_iter().collect();
    Outputs { logits: outputs.logits.clone(), features }
}

/// What scores are fitted on, tuned on and judged on.
pub(super) struct Material {
    bank: Vec<(Outputs, Option<Outputs>)>,
    labels: Vec<u32>,
    /// The classes of the transformed copies.
    copied: Vec<u32>,
    head: Option<Head>,
    pub(super) taps: Vec<String>,
    /// Held-out inputs, upright and transformed, to tune on.
    pub(super) tuning: [Seen; 2],
    /// Inputs to judge by, upright and transformed.
    pub(super) test: [Seen; 2],
    seed: u64,
}

impl Material {
    /// Runs a classifier over all that is needed.
    pub(super) fn of(lab: &Lab, task: &Task, inputs: usize) -> Result<Self> {
        let model = task.usual()?;
        let space = task.space.build()?;
        let tuning = lab.scale.tuning.of_many();
        let parts: Vec<Part> = score::TABLE.iter().map(|row| Part::new(row.name)).collect();
        let filled = Filled::for_scores(task, &model, Some(tuning.bank), &parts)?;
        let seen = |rows: &super::rows::Rows, most: usize, salt: u64| -> Result<[Seen; 2]> {
            let (batch, labels) = rows.some(most).load()?;
            let copies = task.copies(&batch, salt)?;
            let of = |batch: &Batch| Seen::of(&model, &space, batch, &labels, lab.seed);
            Ok([of(&batch)?, of(&copies)?])
        };
        let taps = model.taps().len().max(1);
        Ok(Material {
            bank: (0..taps)
                .map(|t| {
                    let copies = filled.transformed.as_ref().map(|(o, _)| one_tap(o, t));
                    (one_tap(&filled.outputs, t), copies)
                })
                .collect(),
            labels: filled.labels,
            copied: filled.transformed.map_or_else(Vec::new, |(_, labels)| labels),
            head: model.head().cloned(),
            taps: model.taps().iter().map(|t| t.name.clone()).collect(),
            tuning: seen(&task.held, tuning.samples, 43)?,
            test: seen(&task.judged(usize::MAX), inputs, 44)?,
            seed: lab.seed,
        })
    }

    /// Fits a score on one tap.
    pub(super) fn score(&self, part: &Part, tap: usize) -> Result<Box<dyn score::Score>> {
        let (outputs, transformed) = &self.bank[tap];
        let bank = Bank {
            head: self.head.as_ref().filter(|_| tap == 0),
            transformed: transformed.as_ref(),
            transformed_labels: &self.copied,
            seed: self.seed,
            ..Bank::of(outputs, &self.labels)
        };
        score::fit(part, &bank)
    }

    /// The settings and the tap of a score that are worth most.
    pub(super) fn tuned(&self, lab: &Lab, name: &str, worth: Worth) -> Result<(Part, usize)> {
        let row = score::TABLE.iter().find(|row| row.name == name);
        let params = row.map_or(&[][..], |row| row.params);
        let mut all = vec![Knob::words(SCORE, &[name])];
        all.extend(Knob::of_row(SCORE, name, params));
        let needs = score::needs(&Part::new(name))?;
        if needs.features && !needs.head && self.taps.len() > 1 {
            let numbers = (0..self.taps.len()).map(|i| Value::Number(i as f64)).collect();
            all.push(Knob::choice(TAP, numbers));
        }
        let t = lab.scale.tuning.of_many();
        let protocol = Protocol { first: t.first, second: t.second, ..Protocol::default() };
        let setup = Setup::new(Knobs::new(all)?, self.seed, name);
        let mut objective = Trials { material: self, worth };
        let found = protocol.run(setup, None, &mut objective, &mut || false, &mut |_| {})?;
        let point = found.best.map(|t| t.point).unwrap_or_default();
        Ok((knobs::part(&point, SCORE).unwrap_or_else(|| Part::new(name)), tap(&point)))
    }
}

/// The knobs that choose the score and its tap.
const SCORE: &str = "score";
const TAP: &str = "tap";

fn tap(point: &Point) -> usize {
    match point.get(TAP) {
        Some(Value::Number(tap)) => *tap as usize,
        _ => 0,
    }
}

/// What a score is tuned by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    /// Right answers on transformed inputs, the view of lowest energy answering.
    Accuracy,
    /// How often a transformed input scores higher than an upright one.
    Auroc,
    /// The share of transformed inputs above the energy that 95 % of upright ones are below.
    Fpr95,
    /// How often an input scores lower than its own transformed copy.
    Pairwise,
}

impl Worth {
    pub(super) const ALL: [Worth; 4] =
        [Worth::Accuracy, Worth::Auroc, Worth::Fpr95, Worth::Pairwise];

    pub(super) fn name(self) -> &'static str {
        match self {
            Worth::Accuracy => "accuracy",
            Worth::Auroc => "AUROC",
            Worth::Fpr95 => "FPR95",
            Worth::Pairwise => "pairwise",
        }
    }

    /// Its value in percent on upright and transformed inputs, by a score that reads one tap;
    /// higher is better.
    fn of(self, seen: &[Seen; 2], score: &dyn score::Score, tap: usize) -> f64 {
        if self == Worth::Accuracy {
            return Share::count(seen[1].right(score, tap)).percent();
        }
        let [upright, transformed] = seen.each_ref().map(|seen| seen.raw(score, tap));
        let share = |hit: &mut dyn Iterator<Item = bool>| Share::count(hit).percent();
        match self {
            Worth::Auroc => {
                100.0 * upright::internal::stats::auroc(&upright, &transformed).unwrap_or(0.5)
            }
            Worth::Fpr95 => {
                let mut sorted = upright.clone();
                sorted.sort_by(f32::total_cmp);
                let limit = sorted.get(sorted.len() * 95 / 100).copied().unwrap_or(f32::NAN);
                share(&mut transformed.iter().map(|e| *e > limit))
            }
            _ => share(&mut upright.iter().zip(&transformed).map(|(u, t)| u < t)),
        }
    }
}

struct Trials<'a> {
    material: &'a Material,
    worth: Worth,
}

/// Disjoint parts of the inputs for the first stage, each a sixth.
const PARTS: usize = 3;
const SIXTHS: usize = 6;

impl Objective for Trials<'_> {
    fn parts(&self) -> usize {
        PARTS
    }

    fn evaluate(&mut self, point: &Point, subset: Subset, report: &mut Report<'_>) -> Result<f64> {
        let part =
            knobs::part(point, SCORE).ok_or_else(|| Error::shape("point", "a score", "none"))?;
        let tap = tap(point);
        let score = self.material.score(&part, tap)?;
        let inputs: Vec<usize> = (0..self.material.tuning[1].len())
            .filter(|i| match subset {
                Subset::Part(part) => i % SIXTHS == part,
                Subset::Full => true,
            })
            .collect();
        let seen = self.material.tuning.each_ref().map(|seen| seen.some(&inputs));
        let value = self.worth.of(&seen, score.as_ref(), tap);
        match report(0, value) {
            ControlFlow::Continue(()) | ControlFlow::Break(()) => Ok(value),
        }
    }
}
