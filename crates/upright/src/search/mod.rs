//! Searches: where to search for the pose of lowest energy. A search sees
//! numbers only (a space, a seed, energies and predicted labels), never
//! pixels, so it can be tested on a bowl.
//!
//! A [`Search`] holds settings; a [`Run`] is one search under way, for one
//! input. Runs of many inputs advance in step: each is asked for poses, all
//! views are evaluated together, each is told what was seen.
//!
//! One file per search; `Role::Search.rows()` lists them, [`add`] takes a row of one's own.

use crate::config::{Part, Settings};
use crate::error::Result;
use crate::proposer::Proposal;
use crate::registry::{Kind, Open, Requires};
use crate::space::Space;

mod adam;
mod annealing;
mod bayes;
mod coordinate;
mod descent;
mod design;
mod evolve;
mod follow;
mod grid;
mod its;
mod moves;
mod random;
mod random_refine;
mod rivals;
mod swarm;

#[cfg(test)]
pub(crate) use design::unit as unit_for_tests;

/// Settings of a search.
pub trait Search: Send + Sync + std::fmt::Debug {
    /// How many poses it wants proposed from the input alone ([`Brief::proposals`]).
    fn first(&self, budget: usize) -> usize {
        let _ = budget;
        0
    }

    /// Begins a search for one input.
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a>;
}

/// One search under way.
pub trait Run: Send {
    /// The next poses to evaluate, which together cost at most `room`: a pose
    /// costs 1, with gradient 2. None: the search is over.
    fn ask(&mut self, room: usize) -> Vec<Ask>;

    /// What was seen at the poses of the last ask, in the same order.
    fn tell(&mut self, seen: &[Seen]);

    /// What the proposer suggests after these views, best first. Proposals are numbered in
    /// the order of [`Brief::proposals`] and of telling; [`Ask::following`] names the number.
    fn suggest(&mut self, proposals: &[Proposal]) {
        let _ = proposals;
    }

    /// The chosen evaluation, numbered in the order of telling from 0.
    /// `None`: the lowest energy seen, the first of equals.
    fn pick(&self) -> Option<usize> {
        None
    }
}

/// What a search is told at its start. The space stays; the rest is there for the start alone.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a, 'b> {
    /// Where to search.
    pub space: &'a Space,
    /// Seed of everything random, derived from the input's content.
    pub seed: u64,
    /// How much all asks together may cost. The identity has been paid for already.
    pub budget: usize,
    /// What was seen at the identity.
    pub raw: &'b Seen,
    /// Poses that the proposer suggests, best first: from the input alone at most as many as
    /// the search wants ([`Search::first`]), then those it suggests after the identity.
    pub proposals: &'b [Proposal],
    /// The energy below which a view is surely right ([`crate::score::Score::sure`]), if the
    /// score can tell.
    pub sure: Option<f32>,
}

/// A pose to evaluate.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The pose, inside the space's domain.
    pub pose: Vec<f32>,
    /// Whether the gradient of the energy is wanted too, which doubles the cost.
    pub gradient: bool,
    /// The number of the proposal that it follows, if any.
    pub follows: Option<usize>,
}

impl Ask {
    /// A pose without gradient.
    pub fn plain(pose: Vec<f32>) -> Self {
        Ask { pose, gradient: false, follows: None }
    }

    /// A pose without gradient that follows a numbered proposal.
    pub fn following(pose: Vec<f32>, proposal: usize) -> Self {
        Ask { follows: Some(proposal), ..Ask::plain(pose) }
    }

    /// What it costs: 1 for a forward pass, 2 with the gradient.
    #[doc(hidden)]
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
    /// The number of the proposal that it follows, if any.
    pub follows: Option<usize>,
}

impl Seen {
    /// A view without gradient that follows no proposal.
    pub fn new(pose: Vec<f32>, energy: f32, label: u32) -> Self {
        Seen { pose, energy, label, gradient: None, follows: None }
    }
}

/// How to make a search.
#[derive(Debug)]
pub struct Make {
    /// Whether it asks for gradients.
    pub gradient: bool,
    /// Makes it from checked settings.
    pub build: fn(&Settings) -> Result<Box<dyn Search>>,
}

impl Requires for Make {
    fn requires(&self, _: &Settings) -> Vec<&'static str> {
        if self.gradient { vec!["gradients"] } else { vec![] }
    }
}

/// Every search.
#[doc(hidden)]
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
    follow::KIND,
];

static ROWS: Open<Make> = Open::new("search", TABLE);

/// Every row, with those that were added.
pub(crate) fn rows() -> Vec<&'static Kind<Make>> {
    ROWS.rows()
}

/// Adds a row of one's own, which is then known by its name like the others.
pub fn add(row: &'static Kind<Make>) -> Result<()> {
    ROWS.add(row)
}

/// The row of a search.
#[doc(hidden)]
pub fn row(name: &str) -> Result<&'static Kind<Make>> {
    ROWS.find(name)
}

/// Makes the named search.
#[doc(hidden)]
pub fn make(part: &Part) -> Result<Box<dyn Search>> {
    let row = row(&part.name)?;
    (row.make.build)(&part.resolve(row.params)?)
}

/// Index of the lowest energy; the first of equals; NaN last. `None` if empty.
#[doc(hidden)]
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
