//! Searches: where to look for the pose of lowest energy. A search sees
//! numbers only (a space, a seed, energies and predicted labels), never
//! pixels, so it can be tested on a bowl.
//!
//! A [`Search`] holds settings; a [`Run`] is one search under way, for one
//! input. Runs of many inputs advance in step: each is asked for poses, all
//! views are evaluated together, each is told what was seen. One file a
//! search; [`TABLE`] lists them.

use crate::config::{Part, Settings};
use crate::error::Result;
use crate::registry::{Kind, find};
use crate::space::Space;

mod adam;
mod annealing;
mod bayes;
mod coordinate;
mod descent;
mod design;
mod evolve;
mod grid;
mod its;
mod moves;
mod random;
mod random_refine;
mod rivals;
mod swarm;

pub use design::sobol;
#[cfg(test)]
pub(crate) use design::unit as unit_for_tests;
pub(crate) use moves::moved;

/// Settings of a search.
pub trait Search: Send + Sync + std::fmt::Debug {
    /// How many poses it wants to be told that the input's moments suggest
    /// ([`Brief::seeds`]).
    fn seeds(&self, budget: usize) -> usize {
        let _ = budget;
        0
    }

    /// Begins a search for one input.
    fn start<'a>(&'a self, brief: &Brief<'a>) -> Box<dyn Run + 'a>;
}

/// One search under way.
pub trait Run: Send {
    /// The next poses to evaluate, which together cost at most `room`: a pose
    /// costs 1, with gradient 2. None: the search is over.
    fn ask(&mut self, room: usize) -> Vec<Ask>;

    /// What was seen at the poses of the last ask, in the same order.
    fn tell(&mut self, seen: &[Seen]);

    /// The chosen evaluation, numbered in the order of telling from 0.
    /// `None`: the lowest energy seen, the first of equals.
    fn pick(&self) -> Option<usize> {
        None
    }
}

/// What a search is told at its start.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    /// Where to search.
    pub space: &'a Space,
    /// Seed of everything random, derived from the input's content.
    pub seed: u64,
    /// How much all asks together may cost. The identity has been paid for already.
    pub budget: usize,
    /// What was seen at the identity.
    pub raw: &'a Seen,
    /// Poses inside the domain that the input's moments suggest, spread over the angles:
    /// as many as the search wants, fewer, or none where moments mean nothing.
    pub seeds: &'a [Vec<f32>],
}

/// A pose to evaluate.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The pose, inside the space's domain.
    pub pose: Vec<f32>,
    /// Whether the gradient of the energy is wanted too, which doubles the cost.
    pub gradient: bool,
}

impl Ask {
    /// A pose without gradient.
    pub fn plain(pose: Vec<f32>) -> Self {
        Ask { pose, gradient: false }
    }

    /// What it costs: 1 for a forward pass, 2 with the gradient.
    pub fn cost(&self) -> usize {
        if self.gradient { 2 } else { 1 }
    }
}

/// What was seen at a pose.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The pose.
    pub pose: Vec<f32>,
    /// Its energy; NaN counts as worse than anything.
    pub energy: f32,
    /// The class the model predicts for the view.
    pub label: u32,
    /// Derivative of the energy with respect to the pose, if it was asked for.
    pub gradient: Option<Vec<f32>>,
}

/// How to make a search.
#[derive(Debug)]
pub struct Make {
    /// Whether it asks for gradients.
    pub gradient: bool,
    /// Makes it from checked settings.
    pub build: fn(&Settings) -> Result<Box<dyn Search>>,
}

/// Every search.
pub const TABLE: &[Kind<Make>] = &[
    random::KIND,
    random_refine::KIND,
    descent::KIND,
    annealing::KIND,
    coordinate::CD,
    coordinate::CD_S,
    coordinate::WCD,
    coordinate::WCD_L,
    its::KIND,
    swarm::KIND,
    grid::KIND,
    bayes::KIND,
    rivals::KIND,
];

/// The row of a search.
pub fn row(name: &str) -> Result<&'static Kind<Make>> {
    find("search", TABLE, name)
}

/// Makes the named search.
pub fn make(part: &Part) -> Result<Box<dyn Search>> {
    let row = row(&part.name)?;
    (row.make.build)(&part.resolve(row.params)?)
}

/// Index of the lowest energy; the first of equals; NaN last. `None` if empty.
pub fn lowest(energies: impl IntoIterator<Item = f32>) -> Option<usize> {
    let rank = |e: f32| if e.is_nan() { f32::INFINITY } else { e };
    let mut best: Option<(usize, f32)> = None;
    for (i, e) in energies.into_iter().enumerate() {
        if best.is_none_or(|(_, b)| rank(e) < rank(b)) {
            best = Some((i, e));
        }
    }
    best.map(|(i, _)| i)
}
