//! Where the parts meet: a model, a score, a search, a readout, a gate and a
//! space make a [`Canonicalizer`]. No other module sees them all.
//!
//! [`Config::fit`] makes one from data; only then can it
//! [`Canonicalizer::predict`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::config::Part;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::map::Map;
use crate::model::Model;
use crate::outputs::Outputs;
use crate::proposer::Proposer;
use crate::role::{Parts, Role};
use crate::router::Models;
use crate::score::{self, Score};
use crate::search;
use crate::space::{Space, SpaceConfig};
use crate::tensor::{Batch, Signal};
use crate::warp::{Padding, Resample};

mod advice;
mod calibrate;
mod fit;
mod fitted;
mod held;
mod lessons;
mod measure;
mod orbit;
mod plan;
mod predict;
mod presets;
mod prove;
mod replay;
mod report;
mod resume;
mod session;
mod supply;
#[cfg(test)]
mod tests;
mod tune;
mod underway;
mod views;

pub use crate::copies::transformed_copies;
pub use advice::Advice;
pub use fit::{FitData, Silent, Watch};
use fitted::Fitted;
pub use fitted::States;
pub use measure::{Answered, Posed};
pub use orbit::{Consistency, Orbit};
pub use presets::{PRESETS, Preset};
pub use report::{Accuracy, Ceiling, FitReport, Transforms};
pub use session::{Looked, Outcome, Session};
pub use tune::{Load, TuneConfig, TuneReport, TuneWatch};

/// Everything that is chosen before a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The part of every role.
    #[serde(flatten)]
    pub parts: Parts,
    /// The poses an input may have.
    pub space: SpaceConfig,
    /// How views are resampled.
    pub resample: Resample,
    /// What a search may cost: views, those with gradient counting twice. The view of
    /// the input as it is comes on top.
    pub budget: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Most samples kept in the bank; `None` keeps all.
    pub bank: Option<usize>,
    /// Most held-out samples used to calibrate the gate and to prove the result.
    pub calibration: usize,
    /// Minutes that a fit should take: what a part may choose is cut to keep within, which the
    /// report notes. `None` cuts nothing, so that a fit is the same on every machine.
    pub minutes: Option<f64>,
    /// Held-out samples of either kind that parts were tuned on, which calibrate nothing.
    #[doc(hidden)]
    #[serde(default)]
    pub tuned_on: usize,
}

impl Default for Config {
    /// The usual part of every role, over the affine family, with 8 views: the preset `learned`.
    fn default() -> Self {
        Config {
            parts: Parts::default(),
            space: SpaceConfig::default(),
            resample: Resample { padding: Padding::Auto, ..Resample::default() },
            budget: PRESETS[0].budget,
            seed: 0,
            bank: None,
            calibration: PRESETS[0].calibration,
            minutes: None,
            tuned_on: 0,
        }
    }
}

/// Most forward passes that a search may cost.
const LARGEST_BUDGET: usize = 100_000;

impl Config {
    /// The default over the space that suits a signal; see [`SpaceConfig::of_signal`].
    pub fn of_signal(signal: Signal) -> Self {
        Config { space: SpaceConfig::of_signal(signal), ..Config::default() }
    }

    /// The same with another part for a role.
    #[must_use]
    pub fn with(mut self, role: Role, part: Part) -> Self {
        self.parts[role] = part;
        self
    }

    /// The part of a role.
    pub fn part(&self, role: Role) -> &Part {
        &self.parts[role]
    }

    /// Whether every part exists and every setting is in its range.
    pub fn check(&self) -> Result<()> {
        if self.budget > LARGEST_BUDGET {
            return Err(Error::BadSetting {
                part: "config".into(),
                name: "budget".into(),
                value: self.budget.to_string(),
                range: format!("at most {LARGEST_BUDGET}"),
            });
        }
        self.space.build()?;
        self.parts.iter().try_for_each(|(role, part)| role.settings(part).map(drop))?;
        search::make(self.part(Role::Search)).map(drop)
    }
}

/// What became of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It looked familiar and was not searched: the answer is the bare model's.
    Kept,
    /// It was searched and a more familiar view answered.
    Accepted,
    /// It was searched but the gate did not believe any view: the bare model's answer.
    Rejected,
    /// It looked unfamiliar and the second model answered instead of a search.
    Switched,
    /// It was searched, and no view looks familiar enough, or views of two classes look
    /// nearly equally familiar: the label is a best guess, with its rival.
    Abstained,
}

/// The answer for one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The predicted class.
    pub label: u32,
    /// After a search, the class of the most familiar view of another class.
    pub rival: Option<u32>,
    /// The logits it comes from: those of the winning view, or what the views voted.
    pub logits: Vec<f32>,
    /// The class the bare model predicts.
    pub raw_label: u32,
    /// Energy of the input as it is.
    pub energy_before: f32,
    /// Energy of the view that answered; equal to `energy_before` unless accepted.
    pub energy_after: f32,
    /// Pose of the view that answered.
    pub pose: Vec<f32>,
    /// Its map, from view to input.
    pub map: Map,
    /// What became of the input.
    pub verdict: Verdict,
    /// Model evaluations spent: 1, plus what the search cost.
    pub evaluations: usize,
}

impl Prediction {
    /// Whether the gate opened: the input was searched, or sent to the second model.
    pub fn searched(&self) -> bool {
        self.verdict != Verdict::Kept
    }
}

/// A fitted canonicalizer: a handle whose insides are shared, so that a clone costs next to
/// nothing and any number of threads may predict with one.
#[derive(Debug, Clone)]
pub struct Canonicalizer {
    model: Model,
    fitted: Fitted,
    space: Arc<Space>,
    config: Arc<Config>,
    report: Arc<FitReport>,
}

const _: () = {
    const fn shared<T: Clone + Send + Sync>() {}
    shared::<Canonicalizer>();
};

impl Canonicalizer {
    /// Puts fitted parts together again, as an artifact does.
    #[doc(hidden)]
    pub fn restore(
        models: impl Into<Models>,
        config: Config,
        report: FitReport,
        states: &States,
    ) -> Result<Self> {
        config.check()?;
        let models = models.into().joined()?;
        check_external(&config, &models.first)?;
        let space = space_for(&config, &models.first)?;
        let fitted = Fitted::load(&config.parts, states, &space, &models)?;
        Ok(Self::joined(models.first, fitted, space, config, report))
    }

    /// A model and its space, with parts that need no fit and a closed gate.
    fn bare(config: &Config, models: &Models) -> Result<Self> {
        check_external(config, &models.first)?;
        let space = space_for(config, &models.first)?;
        let fitted = Fitted::bare(&config.parts, &space, models)?;
        let (model, config) = (models.first.clone(), config.clone());
        Ok(Self::joined(model, fitted, space, config, FitReport::default()))
    }

    fn joined(
        model: Model,
        fitted: Fitted,
        space: Space,
        config: Config,
        report: FitReport,
    ) -> Self {
        let (space, config, report) = (Arc::new(space), Arc::new(config), Arc::new(report));
        Canonicalizer { model, fitted, space, config, report }
    }

    /// What the fitted parts store; [`Canonicalizer::restore`] takes it back.
    #[doc(hidden)]
    pub fn states(&self) -> States {
        self.fitted.states()
    }

    /// The same with another part for a role, which must need no fit: any search, the gates
    /// `always` and `never`, a `threshold` whose tau is given, the readout `lowest`, a `vote`
    /// whose temperature is given.
    pub fn with_part(&self, role: Role, part: Part) -> Result<Self> {
        let fitted = self.fitted.with(role, &part, &self.space)?;
        let config = Arc::new(Config::clone(&self.config).with(role, part));
        Ok(Canonicalizer { fitted, config, ..self.clone() })
    }

    /// The same with another budget.
    #[must_use]
    pub fn with_budget(&self, budget: usize) -> Self {
        let config = Arc::new(Config { budget, ..Config::clone(&self.config) });
        Canonicalizer { config, ..self.clone() }
    }

    /// The same, which fails soon after `stop` is set; see [`Model::stopped_by`].
    #[doc(hidden)]
    #[must_use]
    pub fn stopped_by(mut self, stop: &Arc<AtomicBool>) -> Self {
        self.model = self.model.stopped_by(stop);
        self
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What was chosen before the fit.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What the fit found out.
    pub fn report(&self) -> &FitReport {
        &self.report
    }

    /// The fitted gate.
    pub fn gate(&self) -> &dyn Gate {
        self.fitted.gate.as_ref()
    }

    /// The fitted score.
    pub fn score(&self) -> &dyn Score {
        self.fitted.score.as_ref()
    }

    /// The poses that are searched.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The fitted proposer.
    #[doc(hidden)]
    pub fn proposer(&self) -> &dyn Proposer {
        self.fitted.proposer.as_ref()
    }

    /// Whether unfamiliar inputs go to a second model instead of a search.
    #[doc(hidden)]
    pub fn switches(&self) -> bool {
        crate::router::row(&self.config.part(Role::Router).name).is_ok_and(|r| r.make.second)
    }

    /// Energies of inputs as they are, and what the bare model says.
    pub fn raw(&self, batch: &Batch) -> Result<(Outputs, Vec<f32>)> {
        let (outputs, energies, _) = self.identity(batch)?;
        Ok((outputs, energies))
    }
}

/// Whether an energy network is given where, and only where, the score needs one.
fn check_external(config: &Config, model: &Model) -> Result<()> {
    let score = config.part(Role::Score);
    let needed = score::needs(score)?.external;
    if needed == model.external().is_some() {
        return Ok(());
    }
    Err(Error::ExternalModel { score: score.name.clone(), needed })
}

/// The space of a config, which must be one of the model's signal.
fn space_for(config: &Config, model: &Model) -> Result<Space> {
    let space = config.space.clone().suited(model.signal()).build()?;
    space.check(model.signal())?;
    Ok(space)
}
