//! Calibrating: the readout, the gate and the limits of abstaining are chosen
//! on held-out inputs, upright and transformed.

use std::sync::Arc;

use super::fit::Watch;
use super::held::Held;
use super::{Canonicalizer, Config, FitReport};
use crate::abstain::{self, Doubt};
use crate::error::{Error, Result};
use crate::gate::{self, Calibration, Case};
use crate::readout::{self, Readout};
use crate::role::Role;
use crate::stats::auroc;
use crate::trace::Trace;

/// Held-out inputs of both kinds.
#[derive(Debug, Default)]
struct Cases {
    upright: Vec<Case>,
    transformed: Vec<Case>,
}

/// A readout that is tried, and what it makes of the calibration searches.
struct Candidate {
    readout: Arc<dyn Readout>,
    cases: Cases,
    doubts: Vec<(Case, Doubt)>,
}

/// What held-out inputs have shown, to calibrate on.
#[derive(Default)]
pub(super) struct Evidence {
    looks: Cases,
    /// Energies of the upright ones, resampled by a tiny pose.
    jittered: Vec<f32>,
    /// Empty where no part asks for searches.
    candidates: Vec<Candidate>,
}

impl Evidence {
    /// Upright inputs.
    pub(super) fn len(&self) -> usize {
        self.looks.upright.len()
    }

    /// The energies of the inputs as they are, upright and transformed.
    fn energies(&self) -> [Vec<f32>; 2] {
        [&self.looks.upright, &self.looks.transformed]
            .map(|cases| cases.iter().map(|k| k.raw.energy).collect())
    }
}

impl Config {
    /// Looks at held-out inputs, and searches them where a part asks for it.
    pub(super) fn gather(
        &self,
        evidence: &mut Evidence,
        c: &Canonicalizer,
        held: &Held,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        look_at_held(c, held, evidence, watch)?;
        if evidence.candidates.is_empty() {
            let readouts = self.readouts(evidence)?;
            let gate = gate::row(&self.part(Role::Gate).name)?;
            let abstain = abstain::row(&self.part(Role::Abstain).name)?;
            if !(gate.make.searched || readouts.len() > 1 || abstain.make.searched) {
                return Ok(());
            }
            let candidate =
                |readout| Candidate { readout, cases: Cases::default(), doubts: Vec::new() };
            evidence.candidates = readouts.into_iter().map(candidate).collect();
        }
        search_held(c, held, &mut evidence.candidates, watch)
    }

    /// Fits the readout, the gate and the limits of abstaining; with what is worth knowing.
    pub(super) fn calibrate(
        &self,
        c: &mut Canonicalizer,
        report: &mut FitReport,
        evidence: &Evidence,
    ) -> Result<Option<String>> {
        let [upright, transformed] = evidence.energies();
        report.calibrated_on = evidence.len();
        report.nan = self.check_numbers(&upright, &transformed)?;
        // Interpolation alone must not tell transformed inputs from upright ones.
        let resampled = if evidence.jittered.is_empty() { &upright } else { &evidence.jittered };
        report.auroc = auroc(resampled, &transformed);

        let candidates = &evidence.candidates;
        let best = (0..candidates.len()).rev().max_by_key(|&i| right(&candidates[i].cases));
        let mut doubts: &[(Case, Doubt)] = &[];
        let mut cases = &evidence.looks;
        if let Some(chosen) = best.map(|best| &candidates[best]) {
            c.fitted.readout = chosen.readout.clone();
            (cases, doubts) = (&chosen.cases, &chosen.doubts);
        } else {
            c.fitted.readout = self.readouts(evidence)?.swap_remove(0);
        }
        let part = self.part(Role::Gate);
        let mut upright = cases.upright.clone();
        if !gate::row(&part.name)?.make.searched {
            // The larger of both energies bounds the share of searched inputs for inputs as
            // they come and for resampled ones.
            for (case, &other) in upright.iter_mut().zip(&evidence.jittered) {
                case.raw.energy = case.raw.energy.max(other);
            }
        }
        let calibration = Calibration { upright: &upright, transformed: &cases.transformed };
        c.fitted.gate = gate::fit(part, &calibration)?.into();
        let searched = doubts.iter().filter(|(case, _)| c.fitted.gate.search(case.raw));
        let right: Vec<Doubt> = searched.map(|(_, doubt)| *doubt).collect();
        c.fitted.abstain = abstain::fit(self.part(Role::Abstain), &right)?.into();
        report.tau = Some(c.fitted.gate.tau()).filter(|t| t.is_finite());
        Ok(c.fitted.gate.note())
    }

    /// The readouts that are tried.
    fn readouts(&self, evidence: &Evidence) -> Result<Vec<Arc<dyn Readout>>> {
        let [upright, transformed] = evidence.energies();
        let spread = interquartile_range(&upright, &transformed);
        let all = readout::candidates(self.part(Role::Readout), spread)?;
        Ok(all.into_iter().map(Arc::from).collect())
    }

    /// How many energies are not numbers, which must be few.
    fn check_numbers(&self, upright: &[f32], transformed: &[f32]) -> Result<usize> {
        let nan = upright.iter().chain(transformed).filter(|e| e.is_nan()).count();
        let total = upright.len() + transformed.len();
        if nan * 100 > total {
            return Err(Error::NanScore {
                score: self.part(Role::Score).name.clone(),
                count: nan,
                total,
                cause: "the model's logits or features are not numbers for these inputs".into(),
            });
        }
        Ok(nan)
    }
}

/// Looks at held-out inputs as they are; also at the upright ones resampled by a tiny pose, if the
/// transformed ones are resampled copies.
fn look_at_held(
    c: &Canonicalizer,
    held: &Held,
    evidence: &mut Evidence,
    watch: &mut dyn Watch,
) -> Result<()> {
    watch.phase("look", held.upright.len() + held.transformed.len());
    for (upright, rows) in held.chunks() {
        let (batch, labels) = held.read(c, upright, rows)?;
        let looks = &mut evidence.looks;
        let cases = if upright { &mut looks.upright } else { &mut looks.transformed };
        for (begun, truth) in c.begin(&batch)?.iter().zip(labels) {
            cases.push(Case { raw: begun.trace.raw_look(), best: None, truth });
        }
        if upright && held.given.is_none() {
            evidence.jittered.extend(c.raw(&held.jittered(c, &batch)?)?.1);
        }
        watch.advance(rows.len());
    }
    Ok(())
}

/// Searches held-out inputs and tells every candidate.
fn search_held(
    c: &Canonicalizer,
    held: &Held,
    candidates: &mut [Candidate],
    watch: &mut dyn Watch,
) -> Result<()> {
    watch.phase("calibrate", held.upright.len() + held.transformed.len());
    for (upright, rows) in held.chunks() {
        let (batch, labels) = held.read(c, upright, rows)?;
        for (trace, truth) in c.trace(&batch)?.iter().zip(labels) {
            for candidate in candidates.iter_mut() {
                candidate.add(upright, trace, truth);
            }
        }
        watch.advance(rows.len());
    }
    Ok(())
}

impl Candidate {
    fn add(&mut self, upright: bool, trace: &Trace, truth: Option<u32>) {
        let raw = trace.raw_look();
        let best = self.readout.read(trace).map(|a| a.look);
        let case = Case { raw, best, truth };
        let cases = if upright { &mut self.cases.upright } else { &mut self.cases.transformed };
        cases.push(case);
        let answer = best.filter(|b| b.energy < raw.energy).unwrap_or(raw);
        if truth == Some(answer.label) {
            self.doubts.push((case, Doubt::of(trace, answer.label, answer.energy)));
        }
    }
}

/// Right answers if every input were searched.
fn right(cases: &Cases) -> usize {
    let all = cases.upright.iter().chain(&cases.transformed);
    all.filter(|c| {
        let best = c.best.filter(|b| b.energy < c.raw.energy).unwrap_or(c.raw);
        c.truth == Some(best.label)
    })
    .count()
}

/// The interquartile range of all energies.
fn interquartile_range(upright: &[f32], transformed: &[f32]) -> f32 {
    let mut all: Vec<f32> =
        upright.iter().chain(transformed).copied().filter(|e| e.is_finite()).collect();
    all.sort_by(f32::total_cmp);
    match all.len() {
        0 => 0.0,
        n => all[(3 * n / 4).min(n - 1)] - all[n / 4],
    }
}
