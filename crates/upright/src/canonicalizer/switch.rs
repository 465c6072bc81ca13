//! Switching: unfamiliar inputs go to a second model, e.g. one trained with
//! such transforms, instead of the search. The gate is calibrated as for a
//! search whose only view is what the second model says.

use super::{Canonicalizer, Config, FitData, Prediction, Verdict, Watch};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::search::Seen;
use crate::tensor::{Batch, argmax};
use crate::trace::Trace;

impl Config {
    /// Fits the gate between a model and a second one for unfamiliar inputs.
    pub fn fit_switch(
        &self,
        model: Model,
        second: Model,
        data: &FitData,
        watch: &mut dyn Watch,
    ) -> Result<Canonicalizer> {
        let switch = Some(second.fingerprint().to_string());
        let config = Config { switch, abstain: None, ..self.clone() };
        config.fit_parts(model, Some(second), data, watch)
    }
}

impl Canonicalizer {
    /// Gives a restored canonicalizer its second model, which must be the one it was
    /// fitted with.
    pub fn set_second(&mut self, second: Model) -> Result<()> {
        let start = |s: &str| s.chars().take(8).collect();
        let fitted = self.config.switch.as_deref().unwrap_or("none");
        if fitted != second.fingerprint() {
            return Err(Error::ArtifactModel {
                fitted: start(fitted),
                given: start(second.fingerprint()),
            });
        }
        self.agree(&second)?;
        self.second = Some(second);
        Ok(())
    }

    /// Whether a second model takes the same inputs and gives the same classes.
    pub(super) fn agree(&self, second: &Model) -> Result<()> {
        let pair = |m: &Model| (m.signal().shape(), m.classes(), m.preprocess().to_string());
        if pair(&self.model) == pair(second) {
            return Ok(());
        }
        Err(Error::shape(
            "second model (input, classes, preprocessing)",
            pair(&self.model),
            pair(second),
        ))
    }

    /// What the second model says of some rows, as a view of the lowest energy there is.
    pub(super) fn switch_rows(
        &self,
        batch: &Batch,
        rows: &[usize],
        mut traces: Vec<Trace>,
    ) -> Result<Vec<Trace>> {
        let Some(second) = &self.second else {
            return Err(Error::BadSetting {
                part: "canonicalizer".into(),
                name: "switch".into(),
                value: "no second model".into(),
                range: "the second model it was fitted with (`--switch`)".into(),
            });
        };
        let outputs = second.run(&batch.select(rows))?;
        for (trace, logits) in traces.iter_mut().zip(outputs.logits.iter()) {
            trace.seen.push(Seen {
                pose: trace.raw.pose.clone(),
                energy: f32::NEG_INFINITY,
                label: argmax(logits) as u32,
                gradient: None,
            });
            trace.logits.push(logits.to_vec());
            trace.cost = 1;
        }
        Ok(traces)
    }
}

/// Marks the answer of the second model.
pub(super) fn switched(prediction: &mut Prediction) {
    prediction.energy_after = prediction.energy_before;
    if prediction.verdict == Verdict::Accepted {
        prediction.verdict = Verdict::Switched;
    }
}
