//! Learning: copies are framed, seen by the model, and their features summed up
//! with the places that would have to be found.

use rayon::prelude::*;

use super::cells::{Cells, Place};
use super::frame::Frames;
use super::framing::{frames, turns};
use super::held::Held;
use super::reader::Learning;
use super::votes::Quarters;
use super::{Learned, Targets, geometry, steps};
use crate::config::Settings;
use crate::copies::{Kind, random_poses};
use crate::dataset::{CHUNK, chunk};
use crate::error::Result;
use crate::outputs::Outputs;
use crate::proposer::shapes::{Shape, shape};
use crate::proposer::{Bank, Proposer};
use crate::seed;
use crate::tensor::Signal;
use crate::warp::{View, warp};

/// Most scores that are told apart for every class in every cell; beyond it, classes and cells
/// are scored by themselves.
const JOINT: usize = 4096;
/// With fewer samples of a class than this, its looks cannot be learnt from their copies.
const PER_CLASS: usize = 8;
/// Copies that teach poses per copy that teaches steps.
const STEPS: usize = 5;
/// Fewer copies than this teach nothing.
pub(super) const FEWEST: usize = 200;

pub(super) fn fit(settings: &Settings, bank: &mut Bank) -> Result<Box<dyn Proposer>> {
    let classes = bank.samples.classes();
    let (frames, photographs) = frames(bank, classes, settings.flag("normal"))?;
    let signal = signal(bank)?;
    let copies = settings.auto("copies").map_or(bank.copies, |copies| copies as usize);
    let cells = match &frames {
        Frames::Plane { .. } => Some(Cells::Angles),
        Frames::Solid => turns(bank, &frames)?,
        Frames::Bare => Some(Cells::of_space(bank.space)),
    };
    let Some(cells) = cells else {
        return Ok(Box::new(Learned::silent(classes, "no sample has a shape")));
    };
    let targets = if photographs && bank.samples.len() < PER_CLASS * classes {
        Targets::Poses
    } else if classes * cells.len() <= JOINT {
        Targets::Joint
    } else {
        Targets::Apart
    };
    let votes = photographs && settings.flag("votes");
    let quarters = if votes { Quarters::of(bank.space, &frames, &cells) } else { None };
    let mut learned = Learned {
        frames,
        cells,
        reader: None,
        step: None,
        classes,
        targets,
        quarters,
        heat: 1.0,
        photographs,
        kinds: settings.flag("kinds"),
        pooled: settings.real("pooled") as f32,
        note: None,
    };
    let learning = Learning::new(
        learned.outputs(),
        copies,
        settings.auto("landmarks").map(|count| count as usize),
        settings.auto("ridge"),
        Held::new(bank.samples.len(), copies),
    );
    match learned.learn(learning, bank, signal, copies)?.map(Learning::end) {
        Ok(Some((reader, read, held))) => {
            learned.note = held.tell(&mut learned, &read);
            learned.reader = Some(reader);
        }
        Ok(None) => {
            learned.note = Some(silent("the features of the copies cannot be regressed on"));
        }
        Err(why) => learned.note = Some(silent(&why)),
    }
    let normal_form = matches!(learned.frames, Frames::Plane { upright: Some(_), .. });
    if settings.flag("steps") && normal_form && learned.reader.is_some() {
        learned.step = steps::fit(&learned, bank, copies / STEPS)?;
    }
    Ok(Box::new(learned))
}

/// That nothing will be proposed.
pub(super) fn silent(why: &str) -> String {
    format!("the proposer `learned` proposes nothing: {why}")
}

impl Learned {
    /// How its copies are made.
    pub(super) fn kinds(&self) -> &'static [Kind] {
        // Exact turns are not resampled at all.
        let resampled = !matches!(&self.cells, Cells::Poses { poses, .. } if poses.len() <= 4);
        Kind::of(self.photographs && self.kinds && resampled)
    }

    /// Learns from all copies; or says why nothing can be learnt.
    fn learn(
        &self,
        mut learning: Learning,
        bank: &mut Bank,
        signal: Signal,
        copies: usize,
    ) -> Result<std::result::Result<Learning, String>> {
        bank.samples.phase("copies", copies);
        let kinds = self.kinds();
        let mut walk = Walk { chunk: chunk(signal), ..Walk::new(bank.samples.len(), copies) };
        while let Some((round, numbers)) = walk.next() {
            let kind = kinds[round as usize % kinds.len()];
            let made = Made::new(bank, &self.frames, kind, (&numbers, round))?;
            let held: Vec<bool> = made.samples.iter().map(|s| learning.held.wants(*s)).collect();
            let copies = (0..made.outputs.len()).filter_map(|i| {
                let cells = self.cells.weights(made.places[i].as_ref()?, bank.space);
                let aims = self.targets(&cells, made.labels[i] as usize);
                Some((features(&made.outputs, i, &made.own[i]), aims, held[i]))
            });
            if let Err(why) = learning.add(copies, kind) {
                return Ok(Err(why));
            }
            bank.samples.advance(numbers.len());
        }
        let count = learning.len();
        Ok(if count < FEWEST {
            Err(format!("{count} copies with features are too few, {FEWEST} are needed"))
        } else {
            Ok(learning)
        })
    }
}

/// What inputs are.
fn signal(bank: &mut Bank) -> Result<Signal> {
    let first = Walk::new(bank.samples.len(), 1).next().map_or(vec![], |w| w.1);
    Ok(bank.samples.read(&first)?.0.signal())
}

/// The samples of which copies are made, in rounds over all of them.
pub(super) struct Walk {
    samples: usize,
    left: usize,
    at: usize,
    round: u64,
    /// Most samples at a time.
    chunk: usize,
}

impl Walk {
    pub(super) fn new(samples: usize, copies: usize) -> Self {
        Walk { samples, left: if samples == 0 { 0 } else { copies }, at: 0, round: 0, chunk: CHUNK }
    }

    pub(super) fn next(&mut self) -> Option<(u64, Vec<usize>)> {
        let count = self.chunk.min(self.left).min(self.samples - self.at);
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
    /// A number for the content of the sample that each was made of.
    samples: Vec<u64>,
}

impl Made {
    fn new(
        bank: &mut Bank,
        frames: &Frames,
        kind: Kind,
        (numbers, round): (&[usize], u64),
    ) -> Result<Self> {
        let space = bank.space;
        let (samples, labels) = bank.samples.read(numbers)?;
        let salt = seed::of_index(bank.seed, "copies", round as usize);
        let poses = random_poses(&samples, space, salt);
        let copies = kind.copies(&samples, &poses, space, bank.samples.resample(), salt)?;
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
        let content = |i| seed::of_content(bank.seed, samples.item(i));
        let samples = (0..samples.len()).map(content).collect();
        Ok(Made { outputs: bank.samples.run(&probes)?, own, places, labels, samples })
    }
}

/// What the regression reads of a view: the features of all taps, then numbers of its own.
pub(super) fn features(outputs: &Outputs, row: usize, own: &[f32]) -> Vec<f32> {
    let taps = outputs.features.iter().flat_map(|f| f.row(row));
    taps.chain(own).copied().collect()
}
