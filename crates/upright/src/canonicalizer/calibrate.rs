//! Calibrating: the readout, the gate and the limits of abstaining are chosen
//! on held-out inputs, upright and transformed.

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
    readout: Box<dyn Readout>,
    cases: Cases,
    doubts: Vec<(Case, Doubt)>,
}

impl Config {
    /// Fits the readout, the gate and the limits of abstaining.
    pub(super) fn calibrate(
        &self,
        c: &mut Canonicalizer,
        report: &mut FitReport,
        held: &Held,
        watch: &mut dyn Watch,
    ) -> Result<()> {
        let (looks, jittered) = raw_cases(c, held, watch)?;
        let energies =
            |cases: &[Case]| -> Vec<f32> { cases.iter().map(|k| k.raw.energy).collect() };
        let (upright, transformed) = (energies(&looks.upright), energies(&looks.transformed));
        report.nan = self.check_numbers(&upright, &transformed)?;
        // Interpolation alone must not tell transformed inputs from upright ones.
        let resampled = if jittered.is_empty() { &upright } else { &jittered };
        report.auroc = auroc(resampled, &transformed);

        let abstain = abstain::row(&self.part(Role::Abstain).name)?;
        let row = gate::row(&self.part(Role::Gate).name)?;
        let mut candidates: Vec<Candidate> = readout::candidates(
            self.part(Role::Readout),
            interquartile_range(&upright, &transformed),
        )?
        .into_iter()
        .map(|readout| Candidate { readout, cases: Cases::default(), doubts: Vec::new() })
        .collect();
        let search = row.make.searched || candidates.len() > 1 || abstain.make.searched;
        let mut doubts = Vec::new();
        let mut cases = if search {
            search_held(c, held, &mut candidates, watch)?;
            let best = (0..candidates.len()).rev().max_by_key(|&i| right(&candidates[i].cases));
            let chosen = candidates.swap_remove(best.unwrap_or(0));
            c.fitted.readout = chosen.readout.into();
            doubts = chosen.doubts;
            chosen.cases
        } else {
            c.fitted.readout = candidates.swap_remove(0).readout.into();
            looks
        };
        if !row.make.searched {
            // The larger of both energies bounds the share of searched inputs for inputs as
            // they come and for resampled ones.
            for (case, &other) in cases.upright.iter_mut().zip(&jittered) {
                case.raw.energy = case.raw.energy.max(other);
            }
        }
        let calibration = Calibration { upright: &cases.upright, transformed: &cases.transformed };
        c.fitted.gate = gate::fit(self.part(Role::Gate), &calibration)?.into();
        report.notes.extend(c.fitted.gate.note());
        doubts.retain(|(case, _)| c.fitted.gate.search(case.raw));
        let right: Vec<Doubt> = doubts.iter().map(|(_, doubt)| *doubt).collect();
        c.fitted.abstain = abstain::fit(self.part(Role::Abstain), &right)?.into();
        report.tau = Some(c.fitted.gate.tau()).filter(|t| t.is_finite());
        Ok(())
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

/// Looks at the held-out inputs as they are; also at the upright ones resampled by a
/// tiny pose, if the transformed ones are resampled copies.
fn raw_cases(c: &Canonicalizer, held: &Held, watch: &mut dyn Watch) -> Result<(Cases, Vec<f32>)> {
    let mut looks = Cases::default();
    let mut jittered = Vec::new();
    watch.phase("look", held.upright.len() + held.transformed.len());
    for (upright, rows) in held.chunks() {
        let (batch, labels) = held.read(c, upright, rows)?;
        let cases = if upright { &mut looks.upright } else { &mut looks.transformed };
        for (begun, truth) in c.begin(&batch)?.iter().zip(labels) {
            cases.push(Case { raw: begun.trace.raw_look(), best: None, truth });
        }
        if upright && held.given.is_none() {
            jittered.extend(c.raw(&held.jittered(c, &batch)?)?.1);
        }
        watch.advance(rows.len());
    }
    Ok((looks, jittered))
}

/// Searches all held-out inputs once and tells every candidate.
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
