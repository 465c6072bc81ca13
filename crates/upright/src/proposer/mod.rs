//! Proposers: poses worth looking at. Before any view a proposer may name
//! poses from the input alone; after every view it is told what the model made
//! of it and may suggest more. Suggestions cost nothing; a search looks at
//! those it follows.
//!
//! A [`Proposer`] is what a fit has learnt; a [`Run`] is what it knows of one
//! input. One file per proposer; `Role::Proposer.rows()` lists them, [`add`]
//! takes a row of one's own.

use crate::config::{Part, Settings};
use crate::copies::Copies;
use crate::error::Result;
use crate::outputs::Outputs;
use crate::registry::{Kind, Open, Requires};
use crate::space::Space;
use crate::state::State;
use crate::tensor::Signal;

mod moments;
mod none;

pub(crate) use moments::Shape;
pub(crate) use moments::shapes;

/// A pose worth looking at.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The pose, inside the space's domain.
    pub pose: Vec<f32>,
    /// The class that the input should show under it, if the proposer tells.
    pub class: Option<u32>,
    /// How promising it is, higher = more; comparable between proposals of one proposer only.
    pub score: f32,
}

impl Proposal {
    /// A pose of which nothing more is known.
    pub fn new(pose: Vec<f32>) -> Self {
        Proposal { pose, class: None, score: 0.0 }
    }
}

/// A fitted proposer.
pub trait Proposer: Send + Sync + std::fmt::Debug {
    /// Begins with one input.
    fn start<'a>(&'a self, brief: Brief<'a>) -> Box<dyn Run + 'a>;

    /// What to store so that `load` gives the same proposer, bit for bit.
    fn state(&self) -> State;

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

    /// Is told of views, the input as it is among them, and suggests poses, best first.
    fn tell(&mut self, views: &[Viewed<'_>]) -> Vec<Proposal> {
        let _ = views;
        Vec::new()
    }

    /// How well a class under a pose fits what it was told, on the scale of
    /// [`Proposal::score`]; `None` if it cannot say.
    fn rate(&self, pose: &[f32], class: u32) -> Option<f32> {
        let _ = (pose, class);
        None
    }
}

/// What a proposer is told of an input at the start.
#[derive(Debug, Clone, Copy)]
pub struct Brief<'a> {
    /// Where poses lie.
    pub space: &'a Space,
    /// What the input is.
    pub signal: Signal,
    /// Its numbers.
    pub item: &'a [f32],
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
}

/// What a proposer is fitted on: bank samples, as they are and transformed.
#[derive(Debug, Clone, Copy)]
pub struct Bank<'a> {
    /// Where poses lie.
    pub space: &'a Space,
    /// Moments of some samples; `None` for those without a plain background.
    pub(crate) shapes: &'a [Option<Shape>],
    /// What the model makes of the samples.
    pub outputs: &'a Outputs,
    /// Their classes.
    pub labels: &'a [u32],
    /// Transformed copies of some of them, for proposers that learn from copies.
    pub copies: Option<&'a Copies>,
    /// Seed of everything random in a fit.
    pub seed: u64,
}

/// How to make a proposer.
#[derive(Debug)]
pub struct Make {
    /// Whether it learns from the bank; otherwise it needs no fit.
    pub bank: bool,
    /// Whether it learns from transformed copies of the bank.
    pub copies: bool,
    /// Fits it.
    pub fit: fn(&Settings, &Bank) -> Result<Box<dyn Proposer>>,
    /// Restores it from what [`Proposer::state`] stored.
    pub load: fn(&Settings, &State, &Space) -> Result<Box<dyn Proposer>>,
}

impl Requires for Make {
    fn requires(&self, _: &Settings) -> Vec<&'static str> {
        if self.copies { vec!["transformed"] } else { vec![] }
    }
}

/// Every proposer.
const TABLE: &[Kind<Make>] = &[none::KIND, moments::KIND];

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
pub(crate) fn fit(part: &Part, bank: &Bank) -> Result<Box<dyn Proposer>> {
    let row = row(&part.name)?;
    (row.make.fit)(&part.resolve(row.params)?, bank)
}

/// Restores the named proposer.
pub(crate) fn load(part: &Part, state: &State, space: &Space) -> Result<Box<dyn Proposer>> {
    let row = row(&part.name)?;
    (row.make.load)(&part.resolve(row.params)?, state, space)
}
