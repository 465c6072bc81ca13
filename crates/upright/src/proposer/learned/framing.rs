//! Choosing frames: whether inputs have a normal form, and which rotations
//! stand for all.

use super::cells::{Cells, Place};
use super::fit::Walk;
use super::frame::{Frames, Upright};
use crate::copies::{random_poses, under};
use crate::error::Result;
use crate::map::Map;
use crate::proposer::Bank;
use crate::proposer::moments::PLAIN;
use crate::proposer::shapes::{Covariance, Inverter, Shape, plane, shapes};
use crate::seed;
use crate::space::Space;

/// Samples whose moments are looked at.
const MEASURED: usize = 4096;
/// The share of normal forms that must come out right.
const NORMAL: f64 = 0.8;

/// How inputs of this space and kind are framed; by their normal form only if asked for.
///
/// Also tells whether they are photographs: images without a plain background.
pub(super) fn frames(bank: &mut Bank, classes: usize, normal: bool) -> Result<(Frames, bool)> {
    let space = bank.space;
    if matches!(space.map(&space.identity()), Map::Space(_)) {
        return Ok((if normal && solid(space) { Frames::Solid } else { Frames::Bare }, false));
    }
    let upright = upright(bank, classes)?;
    let photographs = upright.is_none();
    let Some(inverter) = Inverter::new(space).filter(|i| round(i, space)) else {
        return Ok((Frames::Bare, photographs));
    };
    let frames = Frames::Plane { inverter, upright };
    if let Frames::Plane { upright: Some(upright), .. } = &frames
        && normal
        && normal_forms(bank, &frames, upright)?
    {
        return Ok((frames, false));
    }
    let Frames::Plane { inverter, .. } = frames else { return Ok((Frames::Bare, photographs)) };
    let frames = match space.axes().len() {
        // Angles alone would leave the only other axis out; with more, points would be too few.
        2 => Frames::Bare,
        _ => Frames::Plane { inverter, upright: None },
    };
    Ok((frames, photographs))
}

/// Whether a space has all rotations of the cloud.
fn solid(space: &Space) -> bool {
    let turned = |k: usize| {
        let m = crate::rotation::about(k, 2.0).map(|v| v as f32);
        space.pose(&Map::Space(m)).is_some()
    };
    (0..3).all(turned)
}

/// Whether a space has all rotations of the plane.
fn round(inverter: &Inverter, space: &Space) -> bool {
    (0..8).all(|i| {
        let angle = std::f64::consts::TAU * f64::from(i) / 8.0 + 0.1;
        inverter.pose(space, &plane::rotation(angle)).is_some()
    })
}

/// The covariances of upright samples; `None` if the background is not plain.
fn upright(bank: &mut Bank, classes: usize) -> Result<Option<Upright>> {
    let count = bank.samples.len();
    let mut by_class: Vec<Vec<Covariance>> = vec![Vec::new(); classes];
    let mut all = Vec::new();
    let mut read = 0;
    let mut walk = Walk::new(count, MEASURED.min(count));
    while let Some((_, numbers)) = walk.next() {
        let (batch, labels) = bank.samples.read(&numbers)?;
        read += batch.len();
        for (shape, label) in shapes(&batch).into_iter().zip(labels) {
            if let Some(Shape::Plane(c)) = shape {
                all.push(c);
                if let Some(class) = by_class.get_mut(label as usize) {
                    class.push(c);
                }
            }
        }
    }
    let plain = all.len() as f64 >= PLAIN * read as f64;
    let Some(mean) = Covariance::mean(&all).filter(|_| plain) else { return Ok(None) };
    let classes = by_class.iter().map(|c| Covariance::mean(c).unwrap_or(mean)).collect();
    Ok(Some(Upright { all: mean, classes }))
}

/// Whether the space can bring copies to their normal form.
fn normal_forms(bank: &mut Bank, frames: &Frames, upright: &Upright) -> Result<bool> {
    let (space, some) = (bank.space, 256.min(bank.samples.len()));
    let numbers: Vec<usize> = Walk::new(bank.samples.len(), some).next().map_or(vec![], |w| w.1);
    let (batch, _) = bank.samples.read(&numbers)?;
    let poses = random_poses(&batch, space, bank.seed);
    let copies = under(&batch, &poses, space, bank.samples.resample())?;
    let right = (0..copies.len())
        .filter(|&i| frames.of(space, copies.signal(), copies.item(i)).normal(upright))
        .count();
    Ok(right as f64 >= NORMAL * copies.len() as f64)
}

/// Rotations that stand for those between principal axes and upright clouds.
pub(super) fn turns(bank: &mut Bank, frames: &Frames) -> Result<Option<Cells>> {
    let mut all = Vec::new();
    let mut walk = Walk::new(bank.samples.len(), 2 * MEASURED);
    while let Some((round, numbers)) = walk.next() {
        let (batch, _) = bank.samples.read(&numbers)?;
        let poses =
            random_poses(&batch, bank.space, seed::of_index(bank.seed, "turns", round as usize));
        let copies = under(&batch, &poses, bank.space, bank.samples.resample())?;
        for (i, pose) in poses.iter().enumerate() {
            let framed = frames.of(bank.space, copies.signal(), copies.item(i));
            let map = bank.space.map(pose);
            if let Some(Place::Turn(turn)) = frames.place(bank.space, &framed, None, &map) {
                all.push(turn);
            }
        }
    }
    Ok(Cells::of_turns(&all))
}
