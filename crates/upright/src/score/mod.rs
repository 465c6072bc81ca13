//! Scores: how unfamiliar an input looks to the model. A fitted [`Score`]
//! turns [`Outputs`] into one energy per input. **Lower = more familiar**,
//! for every score.
//!
//! One file per score; `Role::Score.rows()` lists them, [`add`] takes a row of one's own.

use crate::config::{Part, Settings};
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::outputs::{Cotangents, Head, Outputs};
use crate::proposer::{self, Proposal, Rating};
use crate::registry::{Kind, Open, Requires};
use crate::state::State;
use crate::tensor::{Matrix, Signal, argmax};

mod ash;
mod bank;
mod dice;
mod energy;
mod entropy;
mod external;
mod fisher;
mod gaussian;
mod r#gen;
mod inputs;
mod judge;
mod knn;
mod knn_mix;
mod laplace;
mod layers;
mod mahalanobis;
mod max_logit;
mod msp;
mod openmax;
mod pc_knn;
mod pc_knn_fisher;
mod pc_knn_mix;
mod pc_proto;
mod proto;
mod react;
mod rectify;
mod relative_mahalanobis;
mod she;
mod softmax;
mod trust_score;
mod vim;
mod weibull;
mod wrong;

/// A fitted score.
pub trait Score: Send + Sync + std::fmt::Debug {
    /// One energy per input; lower = more familiar. An input's energy does not
    /// depend on the other rows. Undefined energies are NaN, never a panic.
    fn energy(&self, outputs: &Outputs) -> Vec<f32>;

    /// Derivative of each row's energy with respect to that row of the outputs.
    /// At kinks (ties, class changes) it is the derivative on one side.
    fn pullback(&self, outputs: &Outputs) -> Cotangents;

    /// [`Score::energy`] and [`Score::pullback`] of the same outputs, for scores that find
    /// both out together.
    fn energy_and_pullback(&self, outputs: &Outputs) -> (Vec<f32>, Cotangents) {
        (self.energy(outputs), self.pullback(outputs))
    }

    /// [`Score::energy`] for scores that also weigh how each view came about.
    fn energy_of(&self, outputs: &Outputs, views: &[Context<'_>]) -> Vec<f32> {
        let _ = views;
        self.energy(outputs)
    }

    /// [`Score::energy_of`] with the derivative of each row's energy.
    fn energy_of_and_pullback(
        &self,
        outputs: &Outputs,
        views: &[Context<'_>],
    ) -> (Vec<f32>, Cotangents) {
        let _ = views;
        self.energy_and_pullback(outputs)
    }

    /// The energy below which the model is surely right on a view, so that a search may stop;
    /// `None` if the score cannot tell.
    fn sure(&self) -> Option<f32> {
        None
    }

    /// What to store so that `load` gives the same score, bit for bit.
    fn state(&self) -> State;

    /// The remembered samples that make each row's energy, nearest first; `None` if the score
    /// remembers no samples, no neighbours where a row has none.
    fn neighbours(&self, outputs: &Outputs) -> Option<Vec<Vec<Neighbour>>> {
        let _ = outputs;
        None
    }

    /// What is worth knowing about the fit, e.g. what compressing the bank has lost.
    fn note(&self) -> Option<String> {
        None
    }
}

/// How a view came about.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Its pose.
    pub pose: &'a [f32],
    /// Whether it is the input as it is.
    pub raw: bool,
    /// The proposal that it follows, if any.
    pub proposal: Option<&'a Proposal>,
    /// What the proposer knows of the input, views without gradient of this turn included.
    pub proposer: &'a dyn proposer::Run,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Context { pose, raw, proposal, .. } = self;
        write!(f, "Context({pose:?}, raw {raw}, {proposal:?})")
    }
}

/// A remembered sample near an input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its class; 0 if the bank had no labels.
    pub class: u32,
    /// Its distance in the score's metric.
    pub distance: f32,
}

/// The samples that a score is fitted on: familiar inputs seen by the model.
#[derive(Debug, Clone, Copy)]
pub struct Bank<'a> {
    /// Logits and features, one row per sample.
    pub outputs: &'a Outputs,
    /// The true class of each sample.
    pub labels: &'a [u32],
    /// The last linear layer, if the model's graph shows one. It belongs to the first tap.
    pub head: Option<&'a Head>,
    /// Outputs of transformed samples, for the few scores and options that learn from them.
    pub transformed: Option<&'a Outputs>,
    /// The true class of each of them, where it is known.
    pub transformed_labels: &'a [u32],
    /// Views of other samples, for scores that learn which views to believe.
    pub lessons: Option<&'a Lessons>,
    /// Seed of everything random in a fit.
    pub seed: u64,
}

impl<'a> Bank<'a> {
    /// Outputs and labels alone.
    #[doc(hidden)]
    pub fn of(outputs: &'a Outputs, labels: &'a [u32]) -> Self {
        Bank {
            outputs,
            labels,
            head: None,
            transformed: None,
            transformed_labels: &[],
            lessons: None,
            seed: 0,
        }
    }
}

/// Views of samples whose class is known, for scores that learn which views to believe.
#[derive(Debug, Clone, PartialEq)]
#[doc(hidden)]
pub struct Lessons {
    /// What the model makes of the views.
    pub outputs: Outputs,
    /// The views, in the same order.
    pub views: Vec<Lesson>,
    /// How many inputs they are of.
    pub inputs: usize,
}

impl Lessons {
    /// Stands for as many inputs as their size allows.
    pub(crate) const AUTO: usize = usize::MAX;

    /// How many inputs that is.
    pub(crate) fn usual(signal: Signal) -> usize {
        if signal.large() { 3000 } else { 16_000 }
    }
}

impl Default for Lessons {
    fn default() -> Self {
        let outputs = Outputs { logits: Matrix::zeros(0, 0), features: vec![] };
        Lessons { outputs, views: vec![], inputs: 0 }
    }
}

/// One view of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
#[doc(hidden)]
pub struct Lesson {
    /// The number of the input that it is a view of.
    pub input: usize,
    /// The number of the sample that the input was made of.
    pub sample: usize,
    /// Whether the input was upright.
    pub upright: bool,
    /// Whether the model is right on the view.
    pub right: bool,
    /// How the view came about.
    pub origin: Origin,
}

impl Lesson {
    pub(crate) fn new(
        (input, sample): (usize, usize),
        upright: bool,
        truth: u32,
        logits: &[f32],
        context: &Context<'_>,
    ) -> Self {
        let label = argmax(logits) as u32;
        Lesson { input, sample, upright, right: label == truth, origin: Origin::of(context, label) }
    }
}

/// What a score that learns from lessons knows of how a view came about.
#[derive(Debug, Clone, Copy, PartialEq)]
#[doc(hidden)]
pub struct Origin {
    /// Whether it is the input as it is.
    pub raw: bool,
    /// The score of the proposal that it follows and whether the model agrees with its class.
    pub proposal: Option<(f32, bool)>,
    /// How well the predicted class under its pose fits what the proposer knows.
    pub rating: Option<Rating>,
}

impl Origin {
    /// The origin of a view of which the model says `label`.
    pub(crate) fn of(context: &Context<'_>, label: u32) -> Self {
        let named = context.proposal.and_then(|p| p.class.map(|class| (p.score, class == label)));
        let rating = context.proposer.rate(context.pose, label);
        Origin { raw: context.raw, proposal: named, rating }
    }
}

/// What a score needs beside logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub struct Needs {
    /// Tapped features.
    pub features: bool,
    /// Weights and bias of the last linear layer.
    pub head: bool,
    /// True labels of the bank.
    pub labels: bool,
    /// Outputs of transformed samples.
    pub transformed: bool,
    /// Most transformed samples that it learns from; 0 leaves their number open.
    pub copies: usize,
    /// Of how many inputs it learns by views that the proposer led to; such a score needs no
    /// bank of its own. 0 if it learns from the bank.
    pub lessons: usize,
    /// Taps that it reads beside the usual ones where the model has them.
    pub taps: &'static [&'static str],
    /// An energy network beside the classifier, whose tap is then the only one it reads.
    pub external: bool,
    /// The most samples that one energy looks at, among those of a class if it needs labels:
    /// where there are fewer, all are used. 0 if it does not count samples.
    pub samples: usize,
}

/// How to make a score.
#[derive(Debug)]
pub struct Make {
    /// What it needs beside logits with these settings.
    pub needs: fn(&Settings) -> Needs,
    /// Fits it on a bank that has what it needs.
    pub fit: fn(&Settings, &Bank) -> Result<Box<dyn Score>>,
    /// Restores it from what [`Score::state`] stored.
    pub load: fn(&Settings, &State) -> Result<Box<dyn Score>>,
}

impl Requires for Make {
    fn requires(&self, settings: &Settings) -> Vec<&'static str> {
        let Needs { features, head, labels, transformed, lessons, external, .. } =
            (self.needs)(settings);
        let all = [
            ("logits", true),
            ("features", features),
            ("head", head),
            ("labels", labels),
            ("transformed", transformed),
            ("lessons", lessons > 0),
            ("an energy network", external),
        ];
        all.into_iter().filter_map(|(name, needed)| needed.then_some(name)).collect()
    }
}

/// Every score.
#[doc(hidden)]
pub const TABLE: &[Kind<Make>] = &[
    energy::KIND,
    entropy::KIND,
    r#gen::KIND,
    msp::KIND,
    max_logit::KIND,
    openmax::KIND,
    vim::KIND,
    laplace::energy::KIND,
    laplace::entropy::KIND,
    laplace::mi::KIND,
    laplace::weighted::KIND,
    react::KIND,
    ash::KIND,
    dice::KIND,
    mahalanobis::KIND,
    relative_mahalanobis::KIND,
    she::KIND,
    knn::KIND,
    pc_knn::KIND,
    knn_mix::KIND,
    pc_knn_mix::KIND,
    proto::KIND,
    pc_proto::KIND,
    trust_score::KIND,
    fisher::KIND,
    pc_knn_fisher::KIND,
    wrong::KIND,
    judge::KIND,
    external::KIND,
];

static ROWS: Open<Make> = Open::new("score", TABLE);

/// Every row, with those that were added.
pub(crate) fn rows() -> Vec<&'static Kind<Make>> {
    ROWS.rows()
}

/// Adds a row of one's own, which is then known by its name like the others.
pub fn add(row: &'static Kind<Make>) -> Result<()> {
    ROWS.add(row)
}

/// The row of a score.
pub(crate) fn row(name: &str) -> Result<&'static Kind<Make>> {
    ROWS.find(name)
}

/// What the named score needs with its settings.
#[doc(hidden)]
pub fn needs(part: &Part) -> Result<Needs> {
    let row = row(&part.name)?;
    Ok((row.make.needs)(&part.resolve(row.params)?))
}

/// Fits the named score, after checking that the bank has what it needs.
#[doc(hidden)]
pub fn fit(part: &Part, bank: &Bank) -> Result<Box<dyn Score>> {
    let row = row(&part.name)?;
    let settings = part.resolve(row.params)?;
    let needs = (row.make.needs)(&settings);
    let lack = |lacks: &str, hint: Hint| {
        Err(Error::ScoreNeeds { score: row.name.into(), lacks: lacks.into(), hint: Some(hint) })
    };
    if needs.lessons > 0 {
        if bank.lessons.is_none_or(|l| l.views.is_empty()) {
            return lack("views that a proposer led to", Hint::NeedsProposer);
        }
        return (row.make.fit)(&settings, bank);
    }
    if bank.outputs.is_empty() {
        return lack("at least one sample", "give a bank that is not empty".into());
    }
    if needs.features && bank.outputs.features.is_empty() {
        return lack("features", Hint::TapModel);
    }
    if needs.head && bank.head.is_none() {
        return lack(
            "the weights of the last linear layer",
            "use a model that ends in Gemm or MatMul, or another score".into(),
        );
    }
    if needs.transformed && bank.transformed.is_none_or(Outputs::is_empty) {
        return lack("outputs of transformed samples", "give some, or choose another score".into());
    }
    if needs.labels && bank.labels.len() != bank.outputs.len() {
        return lack("one label per sample", "give labelled data".into());
    }
    if needs.labels && bank.labels.iter().any(|&l| l as usize >= bank.outputs.logits.cols()) {
        return lack(
            "labels below the number of classes",
            "check that the labels number the model's outputs from 0".into(),
        );
    }
    (row.make.fit)(&settings, bank)
}

/// Restores the named score.
#[doc(hidden)]
pub fn load(part: &Part, state: &State) -> Result<Box<dyn Score>> {
    let row = row(&part.name)?;
    (row.make.load)(&part.resolve(row.params)?, state)
}
