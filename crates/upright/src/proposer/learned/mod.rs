//! Learned: what a pose does to features, learnt from transformed copies of
//! the bank, tells class and pose of an input from one view of it.
//!
//! The view is the input's normal form ([`frame`]), which its second moments
//! fix up to a rotation, or the input itself where there is none. A regression
//! on its features, fitted on copies under known poses ([`reader`]), gives a
//! score for every class in every cell of poses ([`cells`]); the best cells
//! become proposals.

use super::shapes::{Covariance, Inverter};
use super::{Brief, Make, Proposer, Run};
use crate::config::{Param, Settings};
use crate::error::{Error, Result};
use crate::outputs::Outputs;
use crate::registry::Kind;
use crate::ridge::Ridge;
use crate::space::Space;
use crate::state::State;
use crate::tensor::Matrix;

mod cells;
mod fit;
mod frame;
mod framing;
mod geometry;
mod held;
mod reader;
mod run;
mod steps;
mod votes;
mod whole;

use cells::Cells;
use fit::{fit, joined};
use frame::{Frames, Upright};
use reader::Reader;
use votes::Quarters;
use whole::Whole;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "learned",
    about: "class and pose from the features of one view, learnt from transformed copies",
    params: &[
        Param::auto(
            "copies",
            100.0,
            1e7,
            "transformed copies to learn from; auto is 80000, and 12000 of large inputs",
        ),
        Param::auto(
            "ridge",
            1e-6,
            100.0,
            "penalty of the regression, per copy; auto is what suits held-out copies best",
        ),
        Param::auto(
            "landmarks",
            0.0,
            8192.0,
            "copies that views are compared with; auto is 4096 at most, and 0 where copies are few \
             beside features; 0 reads features linearly",
        )
        .untuned(),
        Param::real("pooled", 0.25, 0.0, 10.0, "weight of a pose's score over all classes")
            .tuned(0.0, 1.0),
        Param::flag(
            "steps",
            true,
            "learn what a view still lacks, and suggest that too if it pays",
        ),
        Param::flag("normal", true, "read the normal form, where inputs have one").untuned(),
        Param::flag("votes", true, "let quarter turns of photographs vote").untuned(),
        Param::flag(
            "whole",
            true,
            "let what the head reads have a say in these votes, where it is a tap",
        )
        .untuned(),
        Param::flag("kinds", true, "learn from several kinds of copies of photographs").untuned(),
    ],
    make: Make { bank: true, copies: true, taps: &["65%", "90%"], fit, load },
};

/// What was learnt.
#[derive(Debug)]
struct Learned {
    frames: Frames,
    cells: Cells,
    reader: Option<Reader>,
    /// What the head reads, as a second opinion on poses.
    whole: Option<Whole>,
    /// What still has to be undone of a view, where telling it pays.
    step: Option<Ridge>,
    classes: usize,
    targets: Targets,
    /// The turns whose views vote, where they do.
    quarters: Option<Quarters>,
    /// The factor that makes readings of poses log-probabilities.
    heat: f32,
    /// Whether inputs have no plain background.
    photographs: bool,
    /// Whether copies of photographs are of several kinds.
    kinds: bool,
    pooled: f32,
    note: Option<String>,
}

/// What has a score of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Targets {
    /// Every class in every cell.
    Joint,
    /// Every cell, then every class.
    Apart,
    /// Every cell.
    Poses,
}

impl Learned {
    fn silent(classes: usize, why: &str) -> Self {
        Learned {
            frames: Frames::Bare,
            cells: Cells::Angles,
            reader: None,
            whole: None,
            step: None,
            classes,
            targets: Targets::Joint,
            quarters: None,
            heat: 1.0,
            photographs: false,
            kinds: false,
            pooled: 0.0,
            note: Some(fit::silent(why)),
        }
    }

    /// How many scores there are.
    fn outputs(&self) -> usize {
        match self.targets {
            Targets::Joint => self.classes * self.cells.len(),
            Targets::Apart => self.classes + self.cells.len(),
            Targets::Poses => self.cells.len(),
        }
    }

    /// The targets of a copy.
    fn targets(&self, cells: &[(usize, f32)], class: usize) -> Vec<(u32, f32)> {
        let count = self.cells.len();
        let first = if self.targets == Targets::Joint { class * count } else { 0 };
        let poses = cells.iter().map(|(c, w)| ((first + c) as u32, *w));
        let class = (self.targets == Targets::Apart).then_some(((count + class) as u32, 1.0));
        poses.chain(class).collect()
    }

    /// The score of a class in a cell.
    fn score(&self, reading: &[f32], class: usize, cell: usize) -> f32 {
        let count = self.cells.len();
        match self.targets {
            Targets::Joint => reading[class * count + cell],
            Targets::Apart => reading[cell] + reading[count + class],
            Targets::Poses => reading[cell],
        }
    }

    /// The place in a reading of the same class, if it has one, in the cell that `to` names.
    fn turned(&self, place: usize, to: impl Fn(usize) -> usize) -> usize {
        let count = self.cells.len();
        match self.targets {
            Targets::Joint => place / count * count + to(place % count),
            Targets::Apart | Targets::Poses if place < count => to(place),
            Targets::Apart | Targets::Poses => place,
        }
    }

    /// The score of a cell over all classes.
    fn over_classes(&self, reading: &[f32], cell: usize) -> f32 {
        match self.targets {
            Targets::Joint => (0..self.classes).map(|class| self.score(reading, class, cell)).sum(),
            Targets::Apart | Targets::Poses => reading[cell],
        }
    }
}

impl Proposer for Learned {
    fn start<'a>(&'a self, brief: Brief<'a>) -> Box<dyn Run + 'a> {
        if self.reader.is_none() {
            return Box::new(super::none::Silent);
        }
        Box::new(run::Known::new(self, brief))
    }

    fn read(&self, outputs: &Outputs, own: &[Vec<f32>]) -> Option<Matrix> {
        self.readings(outputs, own)
    }

    fn state(&self) -> State {
        self.stored()
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }

    fn pooled(&self) -> bool {
        self.kinds().len() > 1
    }

    fn silent(&self) -> bool {
        self.reader.is_none()
    }
}

impl Learned {
    fn readings(&self, outputs: &Outputs, own: &[Vec<f32>]) -> Option<Matrix> {
        let reader = self.reader.as_ref()?;
        let taps = reader.taps(outputs, own.first().map_or(0, Vec::len))?;
        let rows: Vec<f32> =
            own.iter().enumerate().flat_map(|(i, own)| joined(taps, i, own)).collect();
        let mut read = reader.apply(&Matrix::new(own.len(), reader.width(), rows).ok()?);
        if let Some(whole) = &self.whole {
            whole.join(self, outputs.features.last()?, &mut read)?;
        }
        Some(read)
    }

    /// Adds a reading of poses alone, so often, to one of all targets.
    fn add_poses(&self, reading: &mut [f32], poses: &[f32], times: f32) {
        let cells = self.cells.len();
        match self.targets {
            Targets::Joint => {
                // So that the sum over all classes has it once.
                let times = times / self.classes as f32;
                for of_class in reading.chunks_exact_mut(cells) {
                    of_class.iter_mut().zip(poses).for_each(|(r, p)| *r += times * p);
                }
            }
            Targets::Apart | Targets::Poses => {
                reading.iter_mut().zip(poses).for_each(|(r, p)| *r += times * p);
            }
        }
    }

    fn stored(&self) -> State {
        let kind = match self.frames {
            Frames::Bare => 0,
            Frames::Plane { .. } => 1,
            Frames::Solid => 2,
        };
        let numbers = [
            self.classes as u32,
            self.targets as u32,
            kind,
            match &self.reader {
                None => 0,
                Some(Reader { landmarks: None, .. }) => 1,
                Some(_) => 2,
            },
            u32::from(self.step.is_some()),
            u32::from(self.photographs),
        ];
        let mut state = State::new()
            .u32("sizes", &numbers)
            .f32("heat", &[self.heat])
            .with_part("cells.", &self.cells.state());
        if let Some(reader) = &self.reader {
            state = state.with_part("reader.", &reader.state());
        }
        if let Some(whole) = &self.whole {
            state = state.with_part("whole.", &whole.state());
        }
        if let Some(step) = &self.step {
            state = state.with_part("step.", &step.state());
        }
        match &self.frames {
            Frames::Plane { upright, .. } => {
                let numbers: Vec<f64> = upright
                    .iter()
                    .flat_map(|u| std::iter::once(&u.all).chain(&u.classes))
                    .flat_map(|c| [c.xx, c.xy, c.yy])
                    .collect();
                state.f64("upright", &numbers)
            }
            Frames::Solid | Frames::Bare => state,
        }
    }
}

fn load(settings: &Settings, state: &State, space: &Space) -> Result<Box<dyn Proposer>> {
    let damaged = |why: &str| Error::Artifact { path: "state".into(), why: why.into() };
    let sizes = state.read_u32("sizes")?;
    let &[classes, targets, kind, reader, step, photographs] = sizes.as_slice() else {
        return Err(damaged("the proposer's sizes are not six numbers"));
    };
    let (frames, cells) = match kind {
        0 => (Frames::Bare, Cells::of_space(space)),
        1 => {
            let numbers = state.read_f64("upright")?;
            let (all, rest) = numbers.as_chunks::<3>();
            if !rest.is_empty() || !(all.is_empty() || all.len() == classes as usize + 1) {
                return Err(damaged("the covariances are not one per class"));
            }
            let all: Vec<Covariance> =
                all.iter().map(|&[xx, xy, yy]| Covariance { xx, xy, yy }).collect();
            let upright =
                all.split_first().map(|(all, c)| Upright { all: *all, classes: c.to_vec() });
            let inverter =
                Inverter::new(space).ok_or_else(|| damaged("the space is not of the plane"))?;
            (Frames::Plane { inverter, upright }, Cells::Angles)
        }
        _ => {
            let turns = state.part("cells.").read_f64("turns")?;
            let (turns, rest) = turns.as_chunks::<9>();
            if !rest.is_empty() || turns.is_empty() {
                return Err(damaged("the rotations are not of nine numbers"));
            }
            (Frames::Solid, Cells::Turns(turns.to_vec()))
        }
    };
    let reader = match reader {
        0 => None,
        stored => Some(Reader::load(&state.part("reader."), stored > 1)?),
    };
    let second = state.part("whole.");
    let whole = if second.tensors().is_empty() { None } else { Some(Whole::load(&second)?) };
    let step = match step {
        0 => None,
        _ => Some(Ridge::load(&state.part("step."))?),
    };
    if step.as_ref().is_some_and(|s| s.targets() != 4) {
        return Err(damaged("the proposer's steps are not of four numbers"));
    }
    let quarters = match photographs {
        1 if settings.flag("votes") => Quarters::of(space, &frames, &cells),
        _ => None,
    };
    let heat = state.read_f32("heat")?;
    let &[heat] = heat.as_slice() else {
        return Err(damaged("the proposer's heat is not one number"));
    };
    let learned = Learned {
        frames,
        cells,
        reader,
        whole,
        step,
        classes: classes as usize,
        targets: match targets {
            0 => Targets::Joint,
            1 => Targets::Apart,
            _ => Targets::Poses,
        },
        photographs: photographs == 1,
        kinds: settings.flag("kinds"),
        quarters,
        heat,
        pooled: settings.real("pooled") as f32,
        note: None,
    };
    let targets = learned.outputs();
    let cells = learned.cells.len();
    if learned.reader.as_ref().is_some_and(|r| r.targets() != targets)
        || learned.whole.as_ref().is_some_and(|w| w.targets() != cells)
    {
        return Err(damaged("the proposer's weights do not fit its cells"));
    }
    Ok(Box::new(learned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::ridge::{Landmarks, Normal};
    use crate::space::SpaceConfig;

    fn regression(targets: usize) -> Ridge {
        let mut normal = Normal::new(2, targets);
        for i in 0..9u8 {
            normal.add(&[f32::from(i), f32::from(i % 3)], vec![(0, f32::from(i))]);
        }
        normal.solve(0.1).unwrap()
    }

    /// Of points that three landmarks are compared with.
    fn reader(targets: usize) -> Reader {
        let rows = Matrix::new(3, 2, vec![0.0, 1.0, 4.0, 2.0, 8.0, 0.0]).unwrap();
        let landmarks = Landmarks::of(&regression(2), &rows).unwrap();
        let mut normal = Normal::new(landmarks.len(), targets);
        for row in landmarks.nearness(&rows).iter() {
            normal.add(row, vec![(0, row[0])]);
        }
        Reader { landmarks: Some(landmarks), ridge: normal.solve(0.1).unwrap() }
    }

    #[test]
    fn a_state_that_lacks_anything_is_refused() {
        let space = SpaceConfig::default().build().unwrap();
        let settings = Part::new("learned").resolve(KIND.params).unwrap();
        let one = Covariance { xx: 0.2, xy: 0.0, yy: 0.1 };
        let learned = Learned {
            frames: Frames::Plane {
                inverter: Inverter::new(&space).unwrap(),
                upright: Some(Upright { all: one, classes: vec![one; 2] }),
            },
            cells: Cells::Angles,
            reader: Some(reader(2 * Cells::Angles.len())),
            whole: Some(Whole::new(regression(Cells::Angles.len()), 2.0)),
            step: Some(regression(4)),
            classes: 2,
            targets: Targets::Joint,
            quarters: None,
            heat: 2.0,
            photographs: false,
            kinds: true,
            pooled: 0.25,
            note: None,
        };
        let state = learned.state();
        let again = load(&settings, &state, &space).unwrap();
        assert_eq!(again.state(), state);
        for missing in state.tensors().keys() {
            let mut less = State::new();
            for (name, tensor) in state.tensors().iter().filter(|(n, _)| *n != missing) {
                less.put(name, tensor.clone());
            }
            assert!(load(&settings, &less, &space).is_err(), "without {missing}");
        }
        let narrow = Whole::new(regression(3), 2.0).state();
        let narrow = state.clone().with_part("whole.", &narrow);
        assert!(load(&settings, &narrow, &space).is_err(), "a second reader of other cells");
        let few = state.clone().f64("upright", &[0.2, 0.0, 0.1]);
        assert!(load(&settings, &few, &space).is_err(), "covariances of no class");
    }
}
