//! Steps: from the features of a view that is nearly upright to what still has
//! to be undone.
//!
//! A view under `P` of a copy that was made by `M` shows the sample under
//! `A = M P`. A ridge regression tells `A^-1 - I` from the view's features; the
//! view under `P A^-1` is the sample as it was. Learnt on proposals near the
//! truth, and kept only if following the step makes the model right more often.

use super::Learned;
use super::fit::{FEWEST, Walk, joined, regions};
use super::frame::Framed;
use super::run::Known;
use crate::copies::{random_poses, under};
use crate::error::Result;
use crate::outputs::Outputs;
use crate::proposer::shapes::linear;
use crate::proposer::shapes::plane::{inverse, product};
use crate::proposer::{Bank, Brief, Proposal};
use crate::ridge::{Normal, Ridge};
use crate::seed;
use crate::space::Space;
use crate::tensor::{Batch, Matrix, argmax};
use crate::warp::{View, warp};

/// Proposals per copy.
const PROPOSALS: usize = 2;
/// What is farther from upright than this is no nearly upright view.
const NEAR: f64 = 0.5;
/// Penalty of the regression, per view.
const RIDGE: f64 = 0.2;
/// Of how many copies one is for the trial.
const TRIAL: usize = 5;
/// Copies on which a step has to prove itself, and points of accuracy it has to gain.
const PROOF: usize = 1000;
const GAIN: f64 = 1.0;

/// Learns steps from some copies; `None` if they are not worth a view, which a trial on few of
/// them tells first.
pub(super) fn fit(learned: &Learned, bank: &mut Bank, copies: usize) -> Result<Option<Ridge>> {
    let trial = (copies / TRIAL).max(FEWEST).min(copies);
    if trial < copies && worth(learned, bank, ("step trial", trial), GAIN / 2.0)?.is_none() {
        return Ok(None);
    }
    worth(learned, bank, ("steps", copies), GAIN)
}

/// Learns steps from some copies; `None` if they gain less than so many points.
fn worth(
    learned: &Learned,
    bank: &mut Bank,
    (purpose, copies): (&'static str, usize),
    least: f64,
) -> Result<Option<Ridge>> {
    let mut normal: Option<Normal> = None;
    bank.samples.phase("steps", copies + PROOF);
    let mut walk = Walk::new(bank.samples.len(), copies);
    while let Some((round, numbers)) = walk.next() {
        let seen = Seen::new(learned, bank, &numbers, (purpose, round))?;
        for (row, view) in seen.views.iter().enumerate() {
            let Some(left) = left(bank.space, &view.made_by, &view.proposal.pose) else { continue };
            if left.iter().any(|v| v.abs() > NEAR) {
                continue;
            }
            let x = joined(regions(&seen.outputs, bank.samples.whole()).0, row, &[]);
            let targets = (0..4).map(|t| (t as u32, left[t] as f32)).collect();
            normal.get_or_insert_with(|| Normal::new(x.len(), 4)).add(&x, targets);
        }
        bank.samples.advance(numbers.len());
    }
    let ridge = normal.filter(|n| n.len() >= FEWEST).and_then(|mut n| n.solve(RIDGE));
    let Some(ridge) = ridge else { return Ok(None) };
    Ok(if gain(learned, bank, &ridge)? >= least { Some(ridge) } else { None })
}

/// How many points more often the model is right on first proposals after a step.
fn gain(learned: &Learned, bank: &mut Bank, ridge: &Ridge) -> Result<f64> {
    let (mut before, mut after, mut count) = (0usize, 0usize, 0usize);
    let mut walk = Walk::new(bank.samples.len(), PROOF);
    while let Some((round, numbers)) = walk.next() {
        let seen = Seen::new(learned, bank, &numbers, ("step proof", round))?;
        let first: Vec<usize> = (0..seen.views.len())
            .filter(|&i| i == 0 || seen.views[i].item != seen.views[i - 1].item)
            .collect();
        let moved: Vec<View> = first
            .iter()
            .map(|&i| {
                let view = &seen.views[i];
                let features = joined(&seen.outputs.features, i, &[]);
                let pose = moved(learned, bank.space, ridge, &view.proposal.pose, &features);
                let pose = pose.unwrap_or_else(|| view.proposal.pose.clone());
                View { item: view.item, map: bank.space.map(&pose) }
            })
            .collect();
        let batch = warp(&seen.copies, &moved, bank.samples.resample())?;
        let stepped = bank.samples.run(&batch)?;
        for (row, &i) in first.iter().enumerate() {
            let truth = seen.labels[seen.views[i].item] as usize;
            before += usize::from(argmax(seen.outputs.logits.row(i)) == truth);
            after += usize::from(argmax(stepped.logits.row(row)) == truth);
            count += 1;
        }
        bank.samples.advance(numbers.len());
    }
    Ok(100.0 * (after as f64 - before as f64) / count.max(1) as f64)
}

/// The pose after a step from a view with these features, if there is one.
pub(super) fn moved(
    learned: &Learned,
    space: &Space,
    ridge: &Ridge,
    pose: &[f32],
    features: &[f32],
) -> Option<Vec<f32>> {
    let own = features.get(..ridge.width())?;
    let row = Matrix::new(1, own.len(), own.to_vec()).ok()?;
    let step = ridge.apply(&row);
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| f64::from(step.row(0)[i]));
    let target = product(&linear(&space.map(pose))?, &[1.0 + a, b, c, 1.0 + d]);
    learned.frames.undone(space, &target)
}

/// What still has to be undone of a copy seen under a pose.
fn left(space: &Space, made_by: &[f64; 4], pose: &[f32]) -> Option<[f64; 4]> {
    let shown = product(made_by, &linear(&space.map(pose))?);
    let [a, b, c, d] = inverse(&shown)?;
    Some([a - 1.0, b, c, d - 1.0])
}

/// A proposal of a copy, and the map by which the copy was made.
struct Shown {
    item: usize,
    proposal: Proposal,
    made_by: [f64; 4],
}

/// Copies, and what the model makes of their first proposals.
struct Seen {
    copies: Batch<'static>,
    labels: Vec<u32>,
    views: Vec<Shown>,
    outputs: Outputs,
}

impl Seen {
    fn new(
        learned: &Learned,
        bank: &mut Bank,
        numbers: &[usize],
        (purpose, round): (&str, u64),
    ) -> Result<Self> {
        let space = bank.space;
        let (samples, labels) = bank.samples.read(numbers)?;
        let poses =
            random_poses(&samples, space, seed::of_index(bank.seed, purpose, round as usize));
        let copies = under(&samples, &poses, space, bank.samples.resample())?;
        let signal = copies.signal();
        let framed: Vec<Framed> =
            (0..copies.len()).map(|i| learned.frames.of(space, signal, copies.item(i))).collect();
        let probes: Vec<View> = framed
            .iter()
            .enumerate()
            .map(|(item, f)| View { item, map: space.map(f.pose()) })
            .collect();
        let probes = bank.samples.run(&warp(&copies, &probes, bank.samples.resample())?)?;
        let readings = learned.readings(&probes, &vec![Vec::new(); copies.len()]);
        let mut views = Vec::new();
        for (item, pose) in poses.iter().enumerate() {
            let (Some(readings), Some(made_by)) = (&readings, linear(&space.map(pose))) else {
                continue;
            };
            let brief = Brief { space, signal, item: copies.item(item).into(), seed: 0 };
            let known = Known::new(learned, brief);
            let found = known.proposals(readings.row(item)).into_iter().take(PROPOSALS);
            views.extend(found.map(|proposal| Shown { item, proposal, made_by }));
        }
        let maps: Vec<View> =
            views.iter().map(|v| View { item: v.item, map: space.map(&v.proposal.pose) }).collect();
        let outputs = bank.samples.run(&warp(&copies, &maps, bank.samples.resample())?)?;
        Ok(Seen { copies, labels, views, outputs })
    }
}
