//! Learning: copies are framed, seen by the model, and their features summed up
//! with the places that would have to be found.

use rayon::prelude::*;

use super::cells::{Cells, Place};
use super::frame::Frames;
use super::framing::{frames, turns};
use super::held::Held;
use super::reader::Learning;
use super::votes::Quarters;
use super::whole::Whole;
use super::{Learned, Targets, geometry, steps};
use crate::config::Settings;
use crate::copies::{Kind, random_poses};
use crate::dataset::{CHUNK, chunk};
use crate::error::Result;
use crate::outputs::Outputs;
use crate::proposer::shapes::{Shape, shape};
use crate::proposer::{Bank, Proposer};
use crate::seed;
use crate::tensor::{Matrix, Signal};
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
        whole: None,
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
    let (samples, ridge) = (bank.samples.len(), settings.auto("ridge"));
    let whole = learned.quarters.is_some() && settings.flag("whole") && bank.samples.whole();
    let course = Course {
        first: Learning::new(
            learned.outputs(),
            copies,
            settings.auto("landmarks").map(|count| count as usize),
            ridge,
            Held::new(samples, copies),
        ),
        whole: whole.then(|| {
            let held = Held::new(samples, copies);
            Learning::new(learned.cells.len(), copies, Some(0), ridge, held)
        }),
        held: Vec::new(),
    };
    match learned.learn(course, bank, signal, copies)? {
        Ok(course) => learned.end(course, bank, signal)?,
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

/// Readers that are being learnt.
struct Course {
    first: Learning,
    whole: Option<Learning>,
    /// The numbers of samples that nothing is learnt from.
    held: Vec<usize>,
}

impl Learned {
    /// Takes over what was learnt.
    fn end(&mut self, course: Course, bank: &mut Bank, signal: Signal) -> Result<()> {
        let Course { first, whole, held: samples } = course;
        let Some((reader, mut read, held)) = first.end() else {
            self.note = Some(silent("the features of the copies cannot be regressed on"));
            return Ok(());
        };
        if let Some((second, said, _)) = whole.and_then(Learning::end) {
            let from = (signal, samples.as_slice());
            self.whole = Whole::weighed(second.ridge, self, &reader, bank, from)?;
            if let Some(whole) = self.whole.as_ref().filter(|_| said.rows() == read.rows()) {
                whole.add(self, &said, &mut read);
            }
        }
        self.note = held.tell(self, &read);
        self.reader = Some(reader);
        Ok(())
    }

    /// How its copies are made.
    pub(super) fn kinds(&self) -> &'static [Kind] {
        // Exact turns are not resampled at all.
        let resampled = !matches!(&self.cells, Cells::Poses { poses, .. } if poses.len() <= 4);
        Kind::of(self.photographs && self.kinds && resampled)
    }

    /// Learns from all copies; or says why nothing can be learnt.
    fn learn(
        &self,
        mut course: Course,
        bank: &mut Bank,
        signal: Signal,
        copies: usize,
    ) -> Result<std::result::Result<Course, String>> {
        bank.samples.phase("copies", copies);
        let kinds = self.kinds();
        let mut walk = Walk { chunk: chunk(signal), ..Walk::new(bank.samples.len(), copies) };
        while let Some((round, numbers)) = walk.next() {
            let kind = kinds[round as usize % kinds.len()];
            let made = Made::new(bank, &self.frames, kind, (&numbers, round))?;
            let wants = |s: &u64| course.first.held.wants(*s);
            let held: Vec<bool> = made.samples.iter().map(wants).collect();
            if round == 0 && held.len() == numbers.len() {
                course.held.extend(numbers.iter().zip(&held).filter(|(_, h)| **h).map(|(n, _)| *n));
            }
            let space = bank.space;
            let cells = |i: usize| Some(self.cells.weights(made.places[i].as_ref()?, space));
            let (parts, last) = regions(&made.outputs, bank.samples.whole());
            let copies = (0..made.outputs.len()).filter_map(|i| {
                let aims = self.targets(&cells(i)?, made.labels[i] as usize);
                Some((joined(parts, i, &made.own[i]), aims, held[i]))
            });
            if let Err(why) = course.first.add(copies, kind) {
                return Ok(Err(why));
            }
            if let (Some(whole), Some(last)) = (&mut course.whole, last) {
                let copies = (0..last.rows()).filter_map(|i| {
                    let aims = cells(i)?.into_iter().map(|(c, w)| (c as u32, w)).collect();
                    Some((last.row(i).to_vec(), aims, held[i]))
                });
                if whole.add(copies, kind).is_err() {
                    course.whole = None;
                }
            }
            bank.samples.advance(numbers.len());
        }
        let count = course.first.len();
        Ok(if count < FEWEST {
            Err(format!("{count} copies with features are too few, {FEWEST} are needed"))
        } else {
            Ok(course)
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

/// The taps that the first reader reads, and what the head reads where that comes last.
pub(super) fn regions(outputs: &Outputs, whole: bool) -> (&[Matrix], Option<&Matrix>) {
    match outputs.features.split_last() {
        Some((last, rest)) if whole && !rest.is_empty() => (rest, Some(last)),
        _ => (&outputs.features, None),
    }
}

/// What a regression reads of a view: the features of taps, then numbers of its own.
pub(super) fn joined(taps: &[Matrix], row: usize, own: &[f32]) -> Vec<f32> {
    taps.iter().flat_map(|f| f.row(row)).chain(own).copied().collect()
}
