//! Where the parts meet: a model, a score, a search, a readout, a gate and a
//! space make a [`Canonicalizer`]. No other module sees them all.
//!
//! [`Config::fit`] makes one from data; only then can it
//! [`Canonicalizer::predict`].

use serde::{Deserialize, Serialize};

use crate::abstain::Abstain;
use crate::config::Part;
use crate::error::{Error, Result};
use crate::gate::{self, Gate};
use crate::map::Map;
use crate::model::Model;
use crate::moments::Moments;
use crate::outputs::Outputs;
use crate::readout::{self, Readout};
use crate::score::{self, Score};
use crate::search::{self, Search};
use crate::space::{Space, SpaceConfig};
use crate::state::State;
use crate::tensor::{Batch, Signal};
use crate::warp::Resample;

mod calibrate;
mod fit;
mod held;
mod measure;
mod orbit;
mod predict;
mod report;
mod rig;
mod switch;
#[cfg(test)]
mod tests;
mod tune;
mod views;

pub use fit::{FitData, Silent, Watch, transformed_copies};
pub use measure::{Answered, Posed};
pub use orbit::{Consistency, Orbit};
pub use report::{Accuracy, Advice, FitReport, Transforms};
pub use tune::{Load, TuneConfig, TuneReport, TuneWatch};

/// Everything that is chosen before a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// How unfamiliar an input looks.
    pub score: Part,
    /// Where to look for a more familiar view.
    pub search: Part,
    /// How the views of a search become one answer.
    pub readout: Part,
    /// Which inputs to search and which results to believe.
    pub gate: Part,
    /// Fingerprint of the second model that unfamiliar inputs go to instead of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Largest share of right answers that may be withheld from searched inputs by
    /// abstaining; `None` always answers.
    pub abstain: Option<f64>,
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
}

impl Default for Config {
    /// `knn` + `rivals` + `conformal` over the affine family with 60 views.
    fn default() -> Self {
        Config {
            score: Part::new("knn"),
            search: Part::new("rivals"),
            readout: Part::new("lowest"),
            gate: Part::new("conformal"),
            switch: None,
            abstain: None,
            space: SpaceConfig::default(),
            resample: Resample::default(),
            budget: 60,
            seed: 0,
            bank: None,
            calibration: 1000,
        }
    }
}

impl Config {
    /// The default over the space that suits a signal; see [`SpaceConfig::of_signal`].
    pub fn of_signal(signal: Signal) -> Self {
        Config { space: SpaceConfig::of_signal(signal), ..Config::default() }
    }

    /// Whether every part exists and every setting is in its range.
    pub fn check(&self) -> Result<()> {
        self.space.build()?;
        self.score.resolve(score::row(&self.score.name)?.params)?;
        self.readout.resolve(readout::row(&self.readout.name)?.params)?;
        self.gate.resolve(gate::row(&self.gate.name)?.params)?;
        search::make(&self.search).map(drop)
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

/// A fitted canonicalizer.
#[derive(Debug)]
pub struct Canonicalizer {
    model: Model,
    second: Option<Model>,
    score: Box<dyn Score>,
    search: Box<dyn Search>,
    readout: Box<dyn Readout>,
    gate: Box<dyn Gate>,
    abstain: Option<Abstain>,
    moments: Option<Moments>,
    space: Space,
    config: Config,
    report: FitReport,
}

/// What the fitted parts store.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct States {
    /// The score.
    pub score: State,
    /// The readout.
    pub readout: State,
    /// The gate.
    pub gate: State,
    /// The limits of abstaining, if it may abstain.
    pub abstain: Option<State>,
    /// The moments of upright inputs, if they mean anything.
    pub moments: Option<State>,
}

impl Canonicalizer {
    /// Puts fitted parts together again, as an artifact does.
    pub fn restore(
        model: Model,
        config: Config,
        report: FitReport,
        states: &States,
    ) -> Result<Self> {
        let space = config.space.build()?;
        space.check(model.signal())?;
        let moments = match &states.moments {
            Some(state) => Moments::load(state, &space)?,
            None => None,
        };
        Ok(Canonicalizer {
            score: score::load(&config.score, &states.score)?,
            search: search::make(&config.search)?,
            readout: readout::load(&config.readout, &states.readout)?,
            gate: gate::load(&config.gate, &states.gate)?,
            abstain: states.abstain.as_ref().map(Abstain::load).transpose()?,
            moments,
            space,
            second: None,
            model,
            config,
            report,
        })
    }

    /// A model and its space, with a score that needs no fit and a closed gate.
    fn bare(config: &Config, model: Model) -> Result<Self> {
        let space = config.space.build()?;
        space.check(model.signal())?;
        Ok(Canonicalizer {
            score: score::load(&Part::new("energy"), &State::new())?,
            search: search::make(&config.search)?,
            readout: readout::candidates(&Part::new("lowest"), 0.0)?.swap_remove(0),
            gate: gate::fit(&Part::new("never"), &gate::Calibration::NONE)?,
            abstain: None,
            moments: None,
            space,
            second: None,
            model,
            config: config.clone(),
            report: FitReport::default(),
        })
    }

    /// What the fitted parts store; [`Canonicalizer::restore`] takes it back.
    pub fn states(&self) -> States {
        States {
            score: self.score.state(),
            readout: self.readout.state(),
            gate: self.gate.state(),
            abstain: self.abstain.as_ref().map(Abstain::state),
            moments: self.moments.as_ref().map(Moments::state),
        }
    }

    /// The same parts behind another search, with another budget.
    pub fn set_search(&mut self, search: Part, budget: usize) -> Result<()> {
        self.search = search::make(&search)?;
        self.config.search = search;
        self.config.budget = budget;
        Ok(())
    }

    /// The same parts behind another gate, which must need no calibration
    /// (`always`, `never`, or a `threshold` whose tau is given).
    pub fn set_gate(&mut self, gate: Part) -> Result<()> {
        self.gate = gate::fit(&gate, &gate::Calibration::NONE)?;
        self.config.gate = gate;
        Ok(())
    }

    /// The same parts behind another readout, which must need no calibration (`lowest`,
    /// or a `vote` whose temperature is given).
    pub fn set_readout(&mut self, part: Part) -> Result<()> {
        let mut candidates = readout::candidates(&part, 0.0)?;
        if candidates.len() > 1 {
            return Err(Error::BadSetting {
                part: format!("readout {}", part.name),
                name: "temperature".into(),
                value: "auto".into(),
                range: "a number; only a fit can choose it".into(),
            });
        }
        self.readout = candidates.swap_remove(0);
        self.config.readout = part;
        Ok(())
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
        self.gate.as_ref()
    }

    /// The fitted score.
    pub fn score(&self) -> &dyn Score {
        self.score.as_ref()
    }

    /// The poses that are searched.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The moments of upright inputs, if they mean anything.
    pub fn moments(&self) -> Option<&Moments> {
        self.moments.as_ref()
    }

    /// Energies of inputs as they are, and what the bare model says.
    pub fn raw(&self, batch: &Batch) -> Result<(Outputs, Vec<f32>)> {
        let outputs = self.model.run(batch)?;
        let energies = self.score.energy(&outputs);
        Ok((outputs, energies))
    }
}
