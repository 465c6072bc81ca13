//! The paper's learned energy: a network of the classifier's kind with one output
//! that learns on which views the classifier is wrong. Its output is the log-odds of
//! that, so that lower = more familiar; the score `external` takes it.

use burn::tensor::{Device, Tensor, TensorData};
use upright::{Batch, Signal};

use super::RealSettings;
use super::course::{self, Lesson, Network};
use super::examples::{Examples, Labelled, items};
use super::net::Net;
use super::pooled_net::CloudNet;

/// Half the paper's widths, and a quarter of them.
const WIDTHS: [[usize; 4]; 2] = [[32, 64, 128, 256], [16, 32, 64, 128]];

/// Of networks for clouds.
const CLOUD: [[usize; 3]; 2] = [[64, 128, 256], [32, 64, 128]];

/// Trains the energy of a data set.
pub(super) fn train(settings: &RealSettings) -> Result<(), String> {
    let examples = Examples::open(settings)?;
    let lesson = Wrong { examples: &examples, device: Device::flex().autodiff() };
    let at = usize::from(settings.small);
    let name = if settings.small { "energy-small" } else { "energy" };
    if let Signal::Cloud { points } = examples.signal() {
        let widths = &CLOUD[at];
        let make = |device: &Device| CloudNet::new(points, widths, 1, device);
        let properties = [("task", "energy"), ("signal", "cloud")];
        return course::run(settings, name, widths, &examples, make, &lesson, &properties);
    }
    let widths = &WIDTHS[at];
    let make = |device: &Device| Net::new(widths, 1, device);
    let properties =
        [("task", "energy"), ("channels", "gray"), ("scale", "1/255"), ("mean", "0"), ("std", "1")];
    course::run(settings, name, widths, &examples, make, &lesson, &properties)
}

/// Where the classifier is wrong.
struct Wrong<'a> {
    examples: &'a Examples,
    device: Device,
}

impl Wrong<'_> {
    /// 1 where the classifier is wrong, else 0.
    fn goals(&self, batch: &Batch, labels: &[u32]) -> Result<Vec<f32>, String> {
        let said = self.examples.model.run(batch).map_err(|e| e.to_string())?.labels();
        Ok(said.iter().zip(labels).map(|(s, l)| f32::from(u8::from(s != l))).collect())
    }
}

impl<N: Network> Lesson<N> for Wrong<'_> {
    /// Binary cross entropy.
    fn loss(&self, net: &N, step: u64) -> Result<Tensor<1>, String> {
        let (batch, labels) = self.examples.step(step, true)?;
        let goals = self.goals(&batch, &labels)?;
        let count = goals.len();
        let goals = Tensor::<2>::from_data(TensorData::new(goals, [count, 1]), &self.device);
        let batch = self.examples.thinned(batch, step)?;
        let odds = net.outputs(items(&batch, &self.device));
        let own = odds.clone().clamp_min(0.0) - odds.clone() * goals;
        Ok((own + (odds.abs() * -1.0).exp().log1p()).mean())
    }

    /// How often it tells right from wrong on samples as they are and on transformed ones.
    fn reached(&self, net: &N) -> Result<String, String> {
        let device = self.device.clone().without_autodiff();
        let told = |(batch, labels): &Labelled| -> Result<f64, String> {
            let goals = self.goals(batch, labels)?;
            let mut hits = 0;
            let rows: Vec<usize> = (0..batch.len()).collect();
            for (rows, goals) in rows.chunks(250).zip(goals.chunks(250)) {
                let odds = net.outputs(items(&batch.select(rows), &device)).into_data();
                let odds = odds.try_to_vec::<f32>().map_err(|why| format!("{why:?}"))?;
                hits += odds.iter().zip(goals).filter(|(o, g)| (**o > 0.0) == (**g > 0.5)).count();
            }
            Ok(100.0 * hits as f64 / batch.len() as f64)
        };
        let (upright, transformed) = self.examples.judges()?;
        Ok(format!(
            "tells where the classifier is wrong on {:.1} % of {} upright and {:.1} % of as many \
             transformed held-out samples",
            told(&upright)?,
            upright.1.len(),
            told(&transformed)?
        ))
    }
}
