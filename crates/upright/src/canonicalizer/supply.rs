//! Bank samples as proposers are given them while they are fitted.

use super::fit::Watch;
use super::fitted::Taps;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::model::Model;
use crate::outputs::Outputs;
use crate::proposer::Samples;
use crate::tensor::Batch;
use crate::warp::Resample;

/// Some rows of a data set, and the model that looks at them.
pub(super) struct Supply<'a> {
    pub(super) model: &'a Model,
    pub(super) taps: &'a Taps,
    pub(super) data: &'a dyn Dataset,
    pub(super) rows: &'a [usize],
    pub(super) resample: &'a Resample,
    pub(super) watch: &'a mut dyn Watch,
}

impl Samples for Supply<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn classes(&self) -> usize {
        self.model.classes()
    }

    fn resample(&self) -> &Resample {
        self.resample
    }

    fn read(&mut self, numbers: &[usize]) -> Result<(Batch<'static>, Vec<u32>)> {
        let rows: Vec<usize> = numbers.iter().map(|&n| self.rows[n]).collect();
        let loaded = self.data.read(&rows)?;
        // A label that the model does not know teaches nothing.
        let known = |row: usize| self.data.label(row).filter(|&l| (l as usize) < self.classes());
        let labels: Vec<Option<u32>> = loaded.rows.iter().map(|&row| known(row)).collect();
        if labels.iter().all(Option::is_some) {
            return Ok((loaded.batch, labels.into_iter().flatten().collect()));
        }
        let kept: Vec<usize> = (0..labels.len()).filter(|&i| labels[i].is_some()).collect();
        Ok((loaded.batch.select(&kept), labels.into_iter().flatten().collect()))
    }

    fn run(&mut self, batch: &Batch) -> Result<Outputs> {
        let outputs = self.model.run(batch)?;
        Ok(self.taps.for_proposer(&outputs)?.into_owned())
    }

    fn whole(&self) -> bool {
        self.taps.whole()
    }

    fn phase(&mut self, name: &str, steps: usize) {
        self.watch.phase(name, steps);
    }

    fn advance(&mut self, steps: usize) {
        self.watch.advance(steps);
    }
}
