//! Material for tuning the score: the outputs of all taps for a fixed set of
//! views of held-out inputs, computed once. A trial then costs a fit of the
//! score and its energies, no model evaluation.

use std::ops::ControlFlow;

use super::fit::{COPIES, Watch, extend, run_rows};
use super::fitted::Fitted;
use super::held::Held;
use super::{Canonicalizer, Config};
use crate::config::Value;
use crate::copies;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::gate::{self, Calibration, Case, Look};
use crate::hint::Hint;
use crate::outputs::{Head, Outputs};
use crate::score::{self, Bank};
use crate::search::lowest;
use crate::seed::{self, sobol};
use crate::tensor::{Batch, Matrix, argmax};
use crate::tune::{Objective, Point, Report, Subset, knobs};
use crate::warp::{View, warp};

/// Share of the views that are proposed, where any are.
const SEEDED: f64 = 0.7;
/// Disjoint parts of the inputs for the first stage, each a sixth.
const PARTS: usize = 3;
const SIXTHS: usize = 6;
/// Slices of a trial after which it may be given up.
const SLICES: usize = 4;

/// What a trial is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Worth {
    /// Share of inputs that come transformed.
    pub(super) share: f64,
    /// Points of upright accuracy that may be lost.
    pub(super) drop: f64,
}

impl Worth {
    /// Accuracy in percent behind the best gate.
    pub(super) fn of(&self, cases: &[(bool, Case)]) -> f64 {
        let kind = |upright: bool| -> Vec<Case> {
            cases.iter().filter(|(u, _)| *u == upright).map(|(_, c)| *c).collect()
        };
        let (upright, transformed) = (kind(true), kind(false));
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        gate::potential(&calibration, self.share, self.drop)
    }
}

struct Input {
    upright: bool,
    truth: Option<u32>,
    /// Which sample it is; an upright input and its transformed copy share it.
    sample: usize,
}

/// Outputs of all taps, kept.
pub(super) struct Replay {
    bank: Outputs,
    /// Of transformed copies of some of the bank.
    copies: Option<Outputs>,
    /// The classes of the copies.
    copied: Vec<u32>,
    labels: Vec<u32>,
    head: Option<Head>,
    inputs: Vec<Input>,
    /// Of each input as it is, then of its views.
    outputs: Outputs,
    views: usize,
    worth: Worth,
    seed: u64,
}

impl Replay {
    /// Runs a model with all its taps over the bank and over `views` views of each held-out
    /// input.
    pub(super) fn build(
        config: &Config,
        c: &Canonicalizer,
        bank: (&dyn Dataset, &[usize]),
        held: &Held,
        (views, worth): (usize, Worth),
        watch: &mut dyn Watch,
    ) -> Result<Self> {
        watch.phase("bank", bank.1.len());
        let (outputs, labels) = run_rows(&c.model, bank.0, bank.1, &Ok, watch)?;
        let none = || Outputs { logits: Matrix::zeros(0, c.model.classes()), features: vec![] };
        let outputs = outputs.unwrap_or_else(none);
        let (transformed, copied) = config.copies(c, bank.0, bank.1, COPIES, &Ok, watch)?;
        let proposer =
            config.proposer(c, bank.0, bank.1, copies::usual(c.model.signal()), watch)?;
        let c = &Canonicalizer {
            fitted: Fitted { proposer: proposer.into(), ..c.fitted.clone() },
            ..c.clone()
        };
        let mut replay = Replay {
            bank: outputs,
            copies: transformed,
            copied,
            labels,
            head: c.model.head().cloned(),
            inputs: Vec::new(),
            outputs: Outputs { logits: Matrix::zeros(0, c.model.classes()), features: vec![] },
            views,
            worth,
            seed: config.seed,
        };
        let mut all: Option<Outputs> = None;
        let mut samples = [0, 0];
        watch.phase("views", held.upright.len() + held.transformed.len());
        for (upright, rows) in held.chunks() {
            let (batch, labels) = held.read(c, upright, rows)?;
            for (i, truth) in labels.into_iter().enumerate() {
                let sample = &mut samples[usize::from(upright)];
                replay.inputs.push(Input { upright, truth, sample: *sample });
                *sample += 1;
                let poses = replay.poses(c, &batch, i);
                extend(&mut all, outputs_under(c, &batch, i, &poses)?)?;
                watch.advance(1);
            }
        }
        replay.outputs = all.ok_or_else(|| Error::TooFew {
            part: "tuning".into(),
            why: "there are no held-out inputs".into(),
            hint: Some(Hint::MoreHeldOut),
        })?;
        Ok(replay)
    }

    /// The poses that an input is seen under: the identity, what the proposer suggests, and
    /// spread ones.
    fn poses(&self, c: &Canonicalizer, batch: &Batch, i: usize) -> Vec<Vec<f32>> {
        let seeded = (SEEDED * self.views as f64) as usize;
        let mut poses = vec![c.space.identity()];
        poses.extend(c.propose(batch.item(i).into()).first(seeded).into_iter().map(|p| p.pose));
        let content = seed::of_content(self.seed, batch.item(i));
        for k in 0..(self.views + 1).saturating_sub(poses.len()) {
            poses.push(c.space.draw(&sobol(k as u32, c.space.cube(), content)));
        }
        poses.truncate(self.views + 1);
        poses
    }

    /// The outputs of some rows, of one tap only.
    fn select(outputs: &Outputs, rows: &[usize], tap: usize) -> Outputs {
        let features = outputs.features.get(tap).map(|f| f.select(rows));
        Outputs { logits: outputs.logits.select(rows), features: features.into_iter().collect() }
    }

    fn case(&self, outputs: &Outputs, energies: &[f32], at: usize, input: &Input) -> Case {
        let look = |row: usize| Look {
            energy: energies[row],
            label: argmax(outputs.logits.row(row)) as u32,
        };
        let best = lowest(energies[at + 1..=at + self.views].iter().copied());
        Case { raw: look(at), best: best.map(|b| look(at + 1 + b)), truth: input.truth }
    }
}

/// The outputs of one input under some poses.
fn outputs_under(
    c: &Canonicalizer,
    batch: &Batch,
    item: usize,
    poses: &[Vec<f32>],
) -> Result<Outputs> {
    let views: Vec<View> = poses.iter().map(|p| View { item, map: c.space.map(p) }).collect();
    c.model.run(&warp(batch, &views, &c.config.resample)?)
}

impl Objective for Replay {
    fn parts(&self) -> usize {
        PARTS
    }

    fn evaluate(&mut self, point: &Point, subset: Subset, report: &mut Report<'_>) -> Result<f64> {
        let part = knobs::part(point, SCORE)
            .ok_or_else(|| Error::Tune { why: "the point names no score".into(), hint: None })?;
        let tap = match point.get(TAP) {
            Some(Value::Number(tap)) => *tap as usize,
            _ => 0,
        };
        let all: Vec<usize> = (0..self.labels.len()).collect();
        let outputs = Replay::select(&self.bank, &all, tap);
        let copies = self.copies.as_ref().map(|copies| {
            let all: Vec<usize> = (0..copies.len()).collect();
            Replay::select(copies, &all, tap)
        });
        let score = score::fit(
            &part,
            &Bank {
                head: self.head.as_ref().filter(|_| tap == 0),
                transformed: copies.as_ref(),
                transformed_labels: &self.copied,
                seed: self.seed,
                ..Bank::of(&outputs, &self.labels)
            },
        )?;
        let chosen: Vec<usize> = (0..self.inputs.len())
            .filter(|&i| match subset {
                Subset::Part(part) => self.inputs[i].sample % SIXTHS == part,
                Subset::Full => true,
            })
            .collect();
        let mut cases = Vec::with_capacity(chosen.len());
        let width = self.views + 1;
        for slice in 0..SLICES {
            // Every slice holds upright and transformed inputs of the same samples.
            let group: Vec<usize> = chosen
                .iter()
                .copied()
                .filter(|&i| self.inputs[i].sample / SIXTHS % SLICES == slice)
                .collect();
            let rows: Vec<usize> = group.iter().flat_map(|&i| i * width..(i + 1) * width).collect();
            let outputs = Replay::select(&self.outputs, &rows, tap);
            let energies = score.energy(&outputs);
            for (n, &i) in group.iter().enumerate() {
                let input = &self.inputs[i];
                cases.push((input.upright, self.case(&outputs, &energies, n * width, input)));
            }
            if report(slice, self.worth.of(&cases)) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(self.worth.of(&cases))
    }
}

/// The knob that chooses the score.
pub(super) const SCORE: &str = "score";
/// The knob that chooses the tap, by its number.
pub(super) const TAP: &str = "tap";
