//! Proposers: poses worth looking at. Before any view a proposer may name
//! poses from the input alone; after every view it is told what the model made
//! of it and may suggest more. Suggestions cost nothing; a search looks at
//! those it follows.
//!
//! A [`Proposer`] is what a fit has learnt; a [`Run`] is what it knows of one
//! input. One file per proposer; `Role::Proposer.rows()` lists them, [`add`]
//! takes a row of one's own.

use std::borrow::Cow;

use crate::config::{Part, Settings};
use crate::error::Result;
use crate::outputs::Outputs;
use crate::registry::{Kind, Open, Requires};
use crate::space::Space;
use crate::state::State;
use crate::tensor::{Batch, Matrix, Signal};
use crate::warp::Resample;

mod learned;
mod moments;
mod none;
mod shapes;

/// A pose worth looking at.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The pose, inside the space's domain.
    pub pose: Vec<f32>,
    /// The class that the input should show under it, if the proposer tells.
    pub class: Option<u32>,
    /// How promising it is, higher = more; comparable between proposals of one proposer only.
    pub score: f32,
    /// Whether to look at this view together with the next ones that say so: only when the
    /// proposer has seen them all can it say more, or rate them.
    pub probe: bool,
}

impl Proposal {
    /// A pose of which nothing more is known.
    pub fn new(pose: Vec<f32>) -> Self {
        Proposal { pose, class: None, score: 0.0, probe: false }
    }
}

/// A fitted proposer.
pub trait Proposer: Send + Sync + std::fmt::Debug {
    /// Begins with one input.
    fn start<'a>(&'a self, brief: Brief<'a>) -> Box<dyn Run + 'a>;

    /// What it reads off the features of views, many at a time: one row per view that a run
    /// wants read, with the numbers that the run adds ([`Run::reads`]). A row must not depend
    /// on the others.
    fn read(&self, outputs: &Outputs, own: &[Vec<f32>]) -> Option<Matrix> {
        let _ = (outputs, own);
        None
    }

    /// What to store so that `load` gives the same proposer, bit for bit.
    fn state(&self) -> State;

    /// Whether it learnt from copies of several kinds, as photographs ask for: parts that learn
    /// from what it proposes then need them, too.
    #[doc(hidden)]
    fn pooled(&self) -> bool {
        false
    }

    /// Whether nothing could be learnt, so that it proposes nothing.
    #[doc(hidden)]
    fn silent(&self) -> bool {
        false
    }

    /// What is worth knowing about the fit, e.g. why it proposes nothing.
    fn note(&self) -> Option<String> {
        None
    }
}

/// What a proposer knows of one input.
///
/// What it suggests follows from the input, the views it was told and the seed, in this
/// order, and from nothing else.
pub trait Run: Send + Sync {
    /// Poses from the input alone, best first, at most `count`.
    fn first(&mut self, count: usize) -> Vec<Proposal> {
        let _ = count;
        Vec::new()
    }

    /// Whether it wants the view at a pose read by [`Proposer::read`], and with which numbers
    /// of its own beside the features.
    fn reads(&self, pose: &[f32]) -> Option<Vec<f32>> {
        let _ = pose;
        None
    }

    /// Is told of views, the input as it is among them, and suggests poses, best first.
    fn tell(&mut self, views: &[Viewed<'_>]) -> Vec<Proposal> {
        let _ = views;
        Vec::new()
    }

    /// How well a class under a pose fits what it was told; `None` if it cannot say.
    fn rate(&self, pose: &[f32], class: u32) -> Option<Rating> {
        let _ = (pose, class);
        None
    }
}

/// How well a class under a pose fits what a proposer was told. Higher = better, but for
/// `unlike`; comparable between ratings of one proposer only.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rating {
    /// The class under this very pose.
    pub here: f32,
    /// The class under its best pose.
    pub best: f32,
    /// The class under any pose.
    pub class: f32,
    /// How far `best` is above that of the best other class.
    pub lead: f32,
    /// How unlike the class' usual size and elongation the view is; 0 = equal or not known.
    pub unlike: f32,
    /// What the view competes with: the class that the model names in the input as it is, under
    /// that pose and under its best one; 0 where it is not known.
    pub raw: [f32; 2],
}

/// What a proposer is told of an input at the start.
#[derive(Debug, Clone)]
pub struct Brief<'a> {
    /// Where poses lie.
    pub space: &'a Space,
    /// What the input is.
    pub signal: Signal,
    /// Its numbers: read where they lie, or the proposer's own where the input may go first.
    pub item: Cow<'a, [f32]>,
    /// Seed of everything random, derived from the input's content.
    pub seed: u64,
}

/// What a proposer is told of a view.
#[derive(Debug, Clone, Copy)]
pub struct Viewed<'a> {
    /// Its pose.
    pub pose: &'a [f32],
    /// What the model says of it.
    pub logits: &'a [f32],
    /// Its features, tap by tap.
    pub features: &'a [&'a [f32]],
    /// What the proposer has read off them, if it was wanted.
    pub reading: Option<&'a [f32]>,
}

/// What a proposer is fitted on.
pub struct Bank<'a> {
    /// Where poses lie.
    pub space: &'a Space,
    /// Bank samples and the model's view of them.
    pub samples: &'a mut dyn Samples,
    /// Copies to learn from, unless a setting says how many.
    pub copies: usize,
    /// Seed of everything random in a fit.
    pub seed: u64,
}

impl std::fmt::Debug for Bank<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bank({} samples, {:?})", self.samples.len(), self.space)
    }
}

/// Bank samples, read on demand, and what the model makes of inputs.
pub trait Samples {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many classes there are.
    fn classes(&self) -> usize;

    /// How inputs are resampled.
    fn resample(&self) -> &Resample;

    /// Some samples, by number, with their classes; those that cannot be read are left out.
    fn read(&mut self, numbers: &[usize]) -> Result<(Batch<'static>, Vec<u32>)>;

    /// What the model makes of inputs, with the features that the proposer reads.
    fn run(&mut self, batch: &Batch) -> Result<Outputs>;

    /// Whether the last of these features are what the model's head reads, beside those of the
    /// taps that the proposer names.
    fn whole(&self) -> bool {
        false
    }

    /// Work of so many steps begins.
    fn phase(&mut self, name: &str, steps: usize);

    /// So many steps are done.
    fn advance(&mut self, steps: usize);
}

/// How to make a proposer.
#[derive(Debug)]
pub struct Make {
    /// Whether it learns from the bank; otherwise it needs no fit.
    pub bank: bool,
    /// Whether it learns from transformed copies of the bank.
    pub copies: bool,
    /// The taps that it reads where a part names none and the model has them; otherwise all.
    pub taps: &'static [&'static str],
    /// Fits it.
    pub fit: fn(&Settings, &mut Bank) -> Result<Box<dyn Proposer>>,
    /// Restores it from what [`Proposer::state`] stored.
    pub load: fn(&Settings, &State, &Space) -> Result<Box<dyn Proposer>>,
}

impl Requires for Make {
    fn requires(&self, _: &Settings) -> Vec<&'static str> {
        if self.copies { vec!["transformed"] } else { vec![] }
    }
}

/// Every proposer.
const TABLE: &[Kind<Make>] = &[none::KIND, moments::KIND, learned::KIND];

static ROWS: Open<Make> = Open::new("proposer", TABLE);

/// Every row, with those that were added.
pub(crate) fn rows() -> Vec<&'static Kind<Make>> {
    ROWS.rows()
}

/// Adds a row of one's own, which is then known by its name like the others.
pub fn add(row: &'static Kind<Make>) -> Result<()> {
    ROWS.add(row)
}

/// The row of a proposer.
pub(crate) fn row(name: &str) -> Result<&'static Kind<Make>> {
    ROWS.find(name)
}

/// Fits the named proposer.
pub(crate) fn fit(part: &Part, bank: &mut Bank) -> Result<Box<dyn Proposer>> {
    let row = row(&part.name)?;
    (row.make.fit)(&part.resolve(row.params)?, bank)
}

/// Restores the named proposer.
pub(crate) fn load(part: &Part, state: &State, space: &Space) -> Result<Box<dyn Proposer>> {
    let row = row(&part.name)?;
    (row.make.load)(&part.resolve(row.params)?, state, space)
}
