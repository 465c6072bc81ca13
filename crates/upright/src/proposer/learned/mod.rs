//! Learned: what a pose does to features, learnt from transformed copies of
//! the bank, tells class and pose of an input from one view of it.
//!
//! The view is the input's normal form ([`frame`]), which its second moments
//! fix up to a rotation, or the input itself where there is none. A regression
//! on its features, fitted on copies under known poses ([`reader`]), gives a
//! score for every class in every cell of poses ([`cells`]); the best cells
//! become proposals.

use super::{Brief, Make, Proposer, Run};
use crate::config::Param;
use crate::outputs::Outputs;
use crate::registry::Kind;
use crate::ridge::Ridge;
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
mod stored;
mod votes;
mod whole;

use cells::Cells;
use fit::{fit, joined};
use frame::Frames;
use reader::Reader;
use stored::load;
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
}
