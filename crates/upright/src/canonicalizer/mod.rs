//! Where the parts meet: a model, a score, a search, a gate and a space make
//! a [`Canonicalizer`]. No other module sees them all.
//!
//! [`Config::fit`] makes one from data; only then can it
//! [`Canonicalizer::predict`].

use serde::{Deserialize, Serialize};

use crate::config::Part;
use crate::error::{Error, Result};
use crate::gate::{self, Gate};
use crate::map::Map;
use crate::model::Model;
use crate::outputs::Outputs;
use crate::score::{self, Score};
use crate::search::{self, Brief, Run, Search, Seen};
use crate::seed;
use crate::space::{Space, SpaceConfig};
use crate::state::State;
use crate::tensor::{Batch, argmax};
use crate::warp::Resample;

mod fit;
mod report;
#[cfg(test)]
mod tests;
mod views;

pub use fit::{Silent, Watch, transformed_copies};
pub use report::{Accuracy, Advice, FitReport};

/// Everything that is chosen before a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// How unfamiliar an input looks.
    pub score: Part,
    /// Where to look for a more familiar view.
    pub search: Part,
    /// Which inputs to search and which results to believe.
    pub gate: Part,
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
    /// `knn` + `random` + `conformal` over the affine family with 60 views.
    fn default() -> Self {
        Config {
            score: Part::new("knn"),
            search: Part::new("random"),
            gate: Part::new("conformal"),
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
    /// Whether every part exists and every setting is in its range.
    pub fn check(&self) -> Result<()> {
        self.space.build()?;
        self.score.resolve(score::row(&self.score.name)?.params)?;
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
}

/// The answer for one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The predicted class.
    pub label: u32,
    /// The logits it comes from: those of the winning view.
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
    score: Box<dyn Score>,
    search: Box<dyn Search>,
    gate: Box<dyn Gate>,
    space: Space,
    config: Config,
    report: FitReport,
}

impl Canonicalizer {
    /// Puts fitted parts together again, as an artifact does.
    pub fn restore(
        model: Model,
        config: Config,
        report: FitReport,
        score: &State,
        gate: &State,
    ) -> Result<Self> {
        Ok(Canonicalizer {
            score: score::load(&config.score, score)?,
            search: search::make(&config.search)?,
            gate: gate::load(&config.gate, gate)?,
            space: config.space.build()?,
            model,
            config,
            report,
        })
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
        let none = gate::Calibration { upright: &[], transformed: &[] };
        self.gate = gate::fit(&gate, &none)?;
        self.config.gate = gate;
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
        if batch.signal() != self.model.signal() {
            return Err(Error::shape(
                "inputs",
                self.model.signal().shape(),
                batch.signal().shape(),
            ));
        }
        let (outputs, raw) = self.raw(batch)?;
        let identity = self.space.identity();
        let mut predictions: Vec<Prediction> = outputs
            .logits
            .iter()
            .zip(&raw)
            .map(|(logits, &energy)| {
                let label = argmax(logits) as u32;
                Prediction {
                    label,
                    logits: logits.to_vec(),
                    raw_label: label,
                    energy_before: energy,
                    energy_after: energy,
                    map: self.space.map(&identity),
                    pose: identity.clone(),
                    verdict: Verdict::Kept,
                    evaluations: 1,
                }
            })
            .collect();
        let searched: Vec<usize> = (0..batch.len()).filter(|&i| self.gate.search(raw[i])).collect();
        let found = self.search_rows(batch, &searched, &predictions)?;
        for (&row, found) in searched.iter().zip(found) {
            self.settle(&mut predictions[row], found);
        }
        Ok(predictions)
    }

    /// Runs the searches of some rows in step and returns each row's evaluations.
    fn search_rows(&self, batch: &Batch, rows: &[usize], raw: &[Prediction]) -> Result<Vec<Found>> {
        let starts: Vec<Seen> = rows
            .iter()
            .map(|&row| Seen {
                pose: raw[row].pose.clone(),
                energy: raw[row].energy_before,
                label: raw[row].raw_label,
                gradient: None,
            })
            .collect();
        let mut runs: Vec<Box<dyn Run + '_>> = rows
            .iter()
            .zip(&starts)
            .map(|(&row, raw)| {
                self.search.start(&Brief {
                    space: &self.space,
                    seed: seed::of_content(self.config.seed, batch.item(row)),
                    budget: self.config.budget,
                    raw,
                })
            })
            .collect();
        let mut found: Vec<Found> = rows.iter().map(|_| Found::default()).collect();
        loop {
            let mut asked = Vec::new();
            let mut counts = vec![0; runs.len()];
            for (i, run) in runs.iter_mut().enumerate() {
                let room = self.config.budget - found[i].cost;
                if room == 0 {
                    continue;
                }
                let asks = run.ask(room);
                let cost: usize = asks.iter().map(search::Ask::cost).sum();
                if cost > room {
                    return Err(Error::BadSetting {
                        part: format!("search {}", self.config.search.name),
                        name: "budget".into(),
                        value: format!("{cost} asked"),
                        range: format!("at most {room}"),
                    });
                }
                counts[i] = asks.len();
                found[i].cost += cost;
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
                    found[i].seen.extend(told);
                    found[i].logits.extend(logits);
                }
            }
        }
        for (found, run) in found.iter_mut().zip(&runs) {
            found.pick = run.pick();
        }
        Ok(found)
    }

    /// Lets the gate decide between the input as it is and the best view found.
    fn settle(&self, prediction: &mut Prediction, found: Found) {
        prediction.evaluations += found.cost;
        prediction.verdict = Verdict::Rejected;
        let best = found.pick.or_else(|| search::lowest(found.seen.iter().map(|s| s.energy)));
        let Some((best, logits)) =
            best.and_then(|i| found.seen.get(i).zip(found.logits.into_iter().nth(i)))
        else {
            return;
        };
        if self.gate.accept(prediction.energy_before, best.energy) {
            prediction.verdict = Verdict::Accepted;
            prediction.label = best.label;
            prediction.energy_after = best.energy;
            prediction.map = self.space.map(&best.pose);
            prediction.pose.clone_from(&best.pose);
            prediction.logits = logits;
        }
    }
}

/// What one search has evaluated so far.
#[derive(Debug, Default)]
struct Found {
    seen: Vec<Seen>,
    logits: Vec<Vec<f32>>,
    cost: usize,
    pick: Option<usize>,
}
