//! Where the parts meet: a model, a score, a search, a readout, a gate and a
//! space make a [`Canonicalizer`]. No other module sees them all.
//!
//! [`Config::fit`] makes one from data; only then can it
//! [`Canonicalizer::predict`].

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::abstain::{Abstain, Doubt};
use crate::config::Part;
use crate::error::{Error, Result};
use crate::gate::{self, Gate, Look};
use crate::map::Map;
use crate::model::Model;
use crate::moments::Moments;
use crate::outputs::Outputs;
use crate::readout::{self, Answer, Readout};
use crate::score::{self, Score};
use crate::search::{self, Brief, Run, Search, Seen};
use crate::seed;
use crate::space::{Space, SpaceConfig};
use crate::state::State;
use crate::tensor::{Batch, Signal, argmax};
use crate::trace::Trace;
use crate::warp::Resample;

mod calibrate;
mod fit;
mod orbit;
mod report;
mod rig;
mod switch;
#[cfg(test)]
mod tests;
mod tune;
mod views;

pub use fit::{FitData, Silent, Watch, transformed_copies};
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

    /// Answers for a batch of prepared inputs, in order.
    ///
    /// An input's answer depends on its content, the fitted parts and the seed alone, not
    /// on the batch it comes in, the thread count or the order. An input that is kept or
    /// rejected gets the bare model's logits bit for bit.
    pub fn predict(&self, batch: &Batch) -> Result<Vec<Prediction>> {
        let raw = self.begin(batch)?;
        let mut predictions: Vec<Prediction> = raw.iter().map(|t| self.kept(t)).collect();
        let (rows, raw): (Vec<usize>, Vec<Trace>) = raw
            .into_iter()
            .enumerate()
            .filter(|(_, trace)| self.gate.search(trace.raw_look()))
            .unzip();
        for (row, trace) in rows.iter().zip(self.search_rows(batch, &rows, raw)?) {
            self.settle(&mut predictions[*row], &trace);
        }
        Ok(predictions)
    }

    /// Searches every input of a batch, whatever the gate says, and returns all that was
    /// looked at.
    pub fn trace(&self, batch: &Batch) -> Result<Vec<Trace>> {
        let rows: Vec<usize> = (0..batch.len()).collect();
        self.search_rows(batch, &rows, self.begin(batch)?)
    }

    /// What the gate makes of a finished search of an input.
    pub fn decide(&self, trace: &Trace) -> Prediction {
        let mut prediction = self.kept(trace);
        if self.gate.search(trace.raw_look()) {
            self.settle(&mut prediction, trace);
        }
        prediction
    }

    /// The answer that the readout gives for a search.
    pub fn read(&self, trace: &Trace) -> Option<Answer> {
        self.readout.read(trace)
    }

    /// Looks at inputs as they are.
    fn begin(&self, batch: &Batch) -> Result<Vec<Trace>> {
        if batch.signal() != self.model.signal() {
            return Err(Error::shape(
                "inputs",
                self.model.signal().shape(),
                batch.signal().shape(),
            ));
        }
        let (outputs, energies) = self.raw(batch)?;
        let seen = |energy, logits: &[f32]| Seen {
            pose: self.space.identity(),
            energy,
            label: argmax(logits) as u32,
            gradient: None,
        };
        Ok(energies
            .into_iter()
            .zip(outputs.logits.iter())
            .map(|(energy, logits)| Trace::new(seen(energy, logits), logits.to_vec()))
            .collect())
    }

    /// The bare model's answer.
    fn kept(&self, trace: &Trace) -> Prediction {
        let Look { energy, label } = trace.raw_look();
        Prediction {
            label,
            rival: None,
            logits: trace.raw_logits.clone(),
            raw_label: label,
            energy_before: energy,
            energy_after: energy,
            map: self.space.map(&trace.raw.pose),
            pose: trace.raw.pose.clone(),
            verdict: Verdict::Kept,
            evaluations: 1,
        }
    }

    /// Runs the searches of some rows in step, each going on from its trace.
    fn search_rows(
        &self,
        batch: &Batch,
        rows: &[usize],
        mut traces: Vec<Trace>,
    ) -> Result<Vec<Trace>> {
        if self.config.switch.is_some() {
            return self.switch_rows(batch, rows, traces);
        }
        let starts: Vec<Seen> = traces.iter().map(|t| t.raw.clone()).collect();
        let seeds: Vec<Vec<Vec<f32>>> =
            rows.par_iter().map(|&row| self.seeds(batch, row)).collect();
        let mut runs: Vec<Box<dyn Run + '_>> = rows
            .iter()
            .zip(&starts)
            .zip(&seeds)
            .map(|((&row, raw), seeds)| {
                self.search.start(&Brief {
                    space: &self.space,
                    seed: seed::of_content(self.config.seed, batch.item(row)),
                    budget: self.config.budget,
                    raw,
                    seeds,
                })
            })
            .collect();
        // A gradient that cannot be had is not paid for.
        let gradients = self.model.differentiable().is_ok();
        loop {
            let mut asked = Vec::new();
            let mut counts = vec![0; runs.len()];
            for (i, run) in runs.iter_mut().enumerate() {
                let room = self.config.budget - traces[i].cost;
                if room == 0 {
                    continue;
                }
                let asks = run.ask(room);
                let cost: usize =
                    if gradients { asks.iter().map(search::Ask::cost).sum() } else { asks.len() };
                if cost > room {
                    return Err(Error::BadSetting {
                        part: format!("search {}", self.config.search.name),
                        name: "budget".into(),
                        value: format!("{cost} asked"),
                        range: format!("at most {room}"),
                    });
                }
                counts[i] = asks.len();
                traces[i].cost += cost;
                asked.extend(asks.into_iter().map(|ask| (rows[i], ask)));
            }
            if asked.is_empty() {
                break;
            }
            let mut seen = self.evaluate(batch, &asked)?.into_iter();
            for (i, run) in runs.iter_mut().enumerate() {
                if counts[i] > 0 {
                    let (told, logits): (Vec<Seen>, Vec<Vec<f32>>) =
                        seen.by_ref().take(counts[i]).unzip();
                    run.tell(&told);
                    traces[i].seen.extend(told);
                    traces[i].logits.extend(logits);
                }
            }
        }
        for (trace, run) in traces.iter_mut().zip(&runs) {
            trace.pick = run.pick();
        }
        Ok(traces)
    }

    /// The poses that the search wants to be told of an input.
    fn seeds(&self, batch: &Batch, row: usize) -> Vec<Vec<f32>> {
        let count = self.search.seeds(self.config.budget);
        match &self.moments {
            Some(moments) if count > 0 => {
                moments.seeds(&self.space, batch.signal(), batch.item(row), count)
            }
            _ => Vec::new(),
        }
    }

    /// Lets the gate decide between the input as it is and the answer of its search.
    fn settle(&self, prediction: &mut Prediction, trace: &Trace) {
        prediction.evaluations += trace.cost;
        prediction.verdict = Verdict::Rejected;
        let answer = self.readout.read(trace);
        let believed = answer.filter(|a| self.gate.accept(trace.raw_look(), a.look));
        if let Some(answer) = believed {
            let pose = &trace.seen[answer.view].pose;
            prediction.verdict = Verdict::Accepted;
            prediction.label = answer.look.label;
            prediction.energy_after = answer.look.energy;
            prediction.map = self.space.map(pose);
            prediction.pose.clone_from(pose);
            prediction.logits = answer.logits;
        }
        if self.config.switch.is_some() {
            switch::switched(prediction);
            return;
        }
        let doubt = Doubt::of(trace, prediction.label, prediction.energy_after);
        prediction.rival = doubt.rival;
        if self.abstain.is_some_and(|a| a.holds(&doubt)) {
            prediction.verdict = Verdict::Abstained;
        }
    }
}
