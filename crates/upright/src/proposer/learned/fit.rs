//! Learning: copies are framed, seen by the model, and their features summed up
//! with the places that would have to be found.

use rayon::prelude::*;

use super::cells::{Cells, Place};
use super::frame::{Frames, Upright};
use super::{Learned, geometry, steps};
use crate::config::Settings;
use crate::copies::{random_poses, under};
use crate::dataset::CHUNK;
use crate::error::Result;
use crate::map::Map;
use crate::outputs::Outputs;
use crate::proposer::moments::PLAIN;
use crate::proposer::shapes::{Covariance, Inverter, Shape, plane, shape, shapes};
use crate::proposer::{Bank, Proposer};
use crate::ridge::Normal;
use crate::seed;
use crate::space::Space;
use crate::warp::{View, warp};

/// Samples whose moments are looked at.
const MEASURED: usize = 4096;
/// Most scores that are told apart for every class in every cell; beyond it, classes and cells
/// are scored by themselves.
const JOINT: usize = 4096;
/// The share of normal forms that must come out right.
const NORMAL: f64 = 0.8;
/// Copies that teach poses per copy that teaches steps.
const STEPS: usize = 5;
/// Fewer copies than this teach nothing.
pub(super) const FEWEST: usize = 200;

pub(super) fn fit(settings: &Settings, bank: &mut Bank) -> Result<Box<dyn Proposer>> {
    let classes = bank.samples.classes();
    let frames = frames(bank, classes)?;
    let copies = match settings.auto("copies") {
        Some(copies) => copies as usize,
        None if large(bank)? => 12_000,
        None => 40_000,
    };
    let cells = match &frames {
        Frames::Plane { .. } => Some(Cells::Angles),
        Frames::Solid => turns(bank, &frames)?,
        Frames::Bare => Some(Cells::of_space(bank.space)),
    };
    let Some(cells) = cells else {
        return Ok(Box::new(Learned::silent(classes, "no sample has a shape")));
    };
    let joint = classes * cells.len() <= JOINT;
    let targets = if joint { classes * cells.len() } else { classes + cells.len() };
    let mut learned = Learned {
        frames,
        cells,
        ridge: None,
        step: None,
        classes,
        joint,
        pooled: settings.real("pooled") as f32,
        note: None,
    };
    let mut normal: Option<Normal> = None;
    bank.samples.phase("copies", copies);
    let mut wide = false;
    let mut walk = Walk::new(bank.samples.len(), copies);
    while let Some((round, numbers)) = walk.next() {
        if wide {
            break;
        }
        let made = Made::new(bank, &learned.frames, numbers.as_slice(), round)?;
        for i in 0..made.outputs.len() {
            let Some(place) = &made.places[i] else { continue };
            let own = &made.own[i];
            let row = features(&made.outputs, i, own);
            if !Normal::fits(row.len(), targets) {
                wide = true;
                break;
            }
            let normal = normal.get_or_insert_with(|| Normal::new(row.len(), targets));
            let cells = learned.cells.weights(place, bank.space);
            normal.add(&row, learned.targets(&cells, made.labels[i] as usize));
        }
        bank.samples.advance(numbers.len());
    }
    let count = normal.as_ref().map_or(0, Normal::len);
    learned.ridge =
        normal.filter(|_| count >= FEWEST).and_then(|n| n.solve(settings.real("ridge")));
    if learned.ridge.is_none() {
        let why = if wide {
            "its taps have too many features; reduce them".to_string()
        } else if count < FEWEST {
            format!("{count} copies with features are too few, {FEWEST} are needed")
        } else {
            "the features of the copies cannot be regressed on".into()
        };
        learned.note = Some(format!("the proposer `learned` proposes nothing: {why}"));
    }
    let normal_form = matches!(learned.frames, Frames::Plane { upright: Some(_), .. });
    if settings.flag("steps") && normal_form && learned.ridge.is_some() {
        learned.step = steps::fit(&learned, bank, copies / STEPS)?;
    }
    Ok(Box::new(learned))
}

/// Whether inputs are so large that a network over them takes its time.
fn large(bank: &mut Bank) -> Result<bool> {
    let first = Walk::new(bank.samples.len(), 1).next().map_or(vec![], |w| w.1);
    Ok(bank.samples.read(&first)?.0.signal().large())
}

/// The samples of which copies are made, in rounds over all of them.
pub(super) struct Walk {
    samples: usize,
    left: usize,
    at: usize,
    round: u64,
}

impl Walk {
    pub(super) fn new(samples: usize, copies: usize) -> Self {
        Walk { samples, left: if samples == 0 { 0 } else { copies }, at: 0, round: 0 }
    }

    pub(super) fn next(&mut self) -> Option<(u64, Vec<usize>)> {
        let count = CHUNK.min(self.left).min(self.samples - self.at);
        if count == 0 {
            return None;
        }
        // Rows are ordered by class: a stride that shares no factor spreads them.
        let stride = spread(self.samples);
        let numbers = (self.at..self.at + count).map(|i| i * stride % self.samples).collect();
        let found = (self.round, numbers);
        self.left -= count;
        self.at += count;
        if self.at == self.samples {
            self.at = 0;
            self.round += 1;
        }
        Some(found)
    }
}

/// A step around `count` things that meets all of them and leads far.
fn spread(count: usize) -> usize {
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let wanted = (count as f64 * 0.618_033_988_749_895) as usize;
    (wanted.max(1)..=count).find(|step| gcd(*step, count) == 1).unwrap_or(1)
}

/// Copies in their frames, seen by the model.
struct Made {
    outputs: Outputs,
    own: Vec<Vec<f32>>,
    places: Vec<Option<Place>>,
    labels: Vec<u32>,
}

impl Made {
    fn new(bank: &mut Bank, frames: &Frames, numbers: &[usize], round: u64) -> Result<Self> {
        let space = bank.space;
        let (samples, labels) = bank.samples.read(numbers)?;
        let salt = seed::of_index(bank.seed, "copies", round as usize);
        let poses = random_poses(&samples, space, salt);
        let copies = under(&samples, &poses, space, bank.samples.resample())?;
        let signal = samples.signal();
        let (framed, places): (Vec<_>, Vec<_>) = (0..copies.len())
            .into_par_iter()
            .map(|i| {
                let framed = frames.of(space, signal, copies.item(i));
                let own = match shape(signal, samples.item(i)) {
                    Some(Shape::Plane(c)) => Some(c),
                    _ => None,
                };
                let place = frames.place(space, &framed, own, &space.map(&poses[i]));
                (framed, place)
            })
            .unzip();
        let views: Vec<View> = framed
            .iter()
            .enumerate()
            .map(|(item, f)| View { item, map: space.map(f.pose()) })
            .collect();
        let probes = warp(&copies, &views, bank.samples.resample())?;
        let own = (0..probes.len())
            .into_par_iter()
            .map(|i| geometry::of(signal, probes.item(i)))
            .collect();
        Ok(Made { outputs: bank.samples.run(&probes)?, own, places, labels })
    }
}

/// What the regression reads of a view: the features of all taps, then numbers of its own.
pub(super) fn features(outputs: &Outputs, row: usize, own: &[f32]) -> Vec<f32> {
    let taps = outputs.features.iter().flat_map(|f| f.row(row));
    taps.chain(own).copied().collect()
}

/// How inputs of this space and kind are framed.
fn frames(bank: &mut Bank, classes: usize) -> Result<Frames> {
    let space = bank.space;
    if matches!(space.map(&space.identity()), Map::Space(_)) {
        return Ok(if solid(space) { Frames::Solid } else { Frames::Bare });
    }
    let Some(inverter) = Inverter::new(space).filter(|i| round(i, space)) else {
        return Ok(Frames::Bare);
    };
    let upright = upright(bank, classes)?;
    let frames = Frames::Plane { inverter, upright };
    if let Frames::Plane { upright: Some(upright), .. } = &frames
        && normal_forms(bank, &frames, upright)?
    {
        return Ok(frames);
    }
    let Frames::Plane { inverter, .. } = frames else { return Ok(Frames::Bare) };
    Ok(match space.axes().len() {
        // Angles alone would leave the only other axis out; with more, points would be too few.
        2 => Frames::Bare,
        _ => Frames::Plane { inverter, upright: None },
    })
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
fn turns(bank: &mut Bank, frames: &Frames) -> Result<Option<Cells>> {
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
