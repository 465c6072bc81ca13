//! Examples to train on: samples as they are, slightly moved, and transformed
//! copies of the same samples.
//!
//! Resampling leaves traces that a network finds sooner than it finds the pose. So
//! originals are moved a little (a pixel, three degrees, four percent), which
//! resamples them, too, and every image is blurred or sharpened by a random amount.

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use upright::internal::canonicalizer::transformed_copies;
use upright::{Batch, Dataset, Model, Resample, Signal, Space, SpaceConfig};

use super::RealSettings;
use super::schedule::shuffle;
use crate::experiments::{Folders, Rows, Scale, Task};

/// Originals of a step, and as many transformed copies.
pub(super) const HALF: usize = 64;

/// Every so many-th sample judges instead of being trained on.
const JUDGE: usize = 30;

/// Most samples that judge.
const JUDGES: usize = 1000;

/// Points of a cloud that a step sees.
const POINTS: usize = 256;

/// How originals are moved: one pixel of 40, three degrees, four percent.
const JITTER: &str = "rotate=-3..3,scale=0.96..1.04,shift-x=-0.05..0.05,shift-y=-0.05..0.05";

/// Samples with their classes.
pub(super) type Labelled = (Batch<'static>, Vec<u32>);

/// What is trained on.
pub(super) struct Examples {
    rows: Rows,
    trained: Vec<usize>,
    judges: Vec<usize>,
    space: Space,
    jitter: Option<Space>,
    seed: u64,
    /// The classifier of the data set, as it was trained without transforms.
    pub(super) model: Model,
}

impl Examples {
    /// The training samples of a data set; its test samples are never looked at.
    pub(super) fn open(settings: &RealSettings) -> Result<Self, String> {
        let folders = Folders {
            data: settings.folder.clone(),
            models: settings.models.clone(),
            trained: settings.models.clone(),
            engine: "rten".into(),
        };
        let task = Task::open(&settings.data, &folders, Scale::of("quick", false)?)?;
        let model = task.model(&[]).map_err(|e| e.to_string())?;
        if matches!(model.signal(), Signal::Strokes { .. }) {
            return Err("sketches are not trained on; give mnist, emnist or modelnet10".into());
        }
        let rows = task.train.some(settings.samples.unwrap_or(usize::MAX));
        let all = 0..rows.len();
        let (judges, trained): (Vec<usize>, Vec<usize>) = all.partition(|r| r % JUDGE == 0);
        let build = |space: SpaceConfig| space.build().map_err(|e| e.to_string());
        let image = matches!(model.signal(), Signal::Image { .. });
        let jitter = SpaceConfig::parse(JITTER).map_err(|e| e.to_string())?;
        Ok(Examples {
            rows,
            trained,
            judges: judges.into_iter().take(JUDGES).collect(),
            space: build(task.space.clone())?,
            jitter: image.then(|| build(jitter)).transpose()?,
            seed: settings.seed,
            model,
        })
    }

    /// How many samples are trained on.
    pub(super) fn len(&self) -> usize {
        self.trained.len()
    }

    /// Originals of a step with their classes, in a new order on every pass.
    fn originals(&self, step: u64) -> Result<Labelled, String> {
        let per_pass = (self.trained.len() / HALF).max(1) as u64;
        let mut order = self.trained.clone();
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ ((step / per_pass) << 32));
        shuffle(&mut order, &mut random);
        let from = (step % per_pass) as usize * HALF;
        self.read(&order[from..order.len().min(from + HALF)])
    }

    fn read(&self, rows: &[usize]) -> Result<Labelled, String> {
        let loaded = self.rows.read(rows).map_err(|e| e.to_string())?;
        let labels = loaded.rows.iter().filter_map(|&r| self.rows.label(r)).collect();
        Ok((loaded.batch, labels))
    }

    /// Originals, slightly moved, then transformed copies of the same, with their classes.
    /// `filtered` blurs or sharpens all of them.
    pub(super) fn step(&self, step: u64, filtered: bool) -> Result<Labelled, String> {
        let (batch, labels) = self.originals(step)?;
        let seed = self.seed ^ 0x7365_6564 ^ (step << 20);
        let copies = |space: &Space, salt: u64| {
            let seed = seed.wrapping_add(salt);
            transformed_copies(&batch, space, &Resample::default(), seed).map_err(|e| e.to_string())
        };
        let moved = copies(&self.space, 0)?;
        let jittered =
            self.jitter.as_ref().filter(|_| filtered).map(|j| copies(j, 1)).transpose()?;
        let first = jittered.as_ref().unwrap_or(&batch).data();
        let mut data = [first, moved.data()].concat();
        if let (true, Signal::Image { height, width, .. }) = (filtered, batch.signal()) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            for plane in data.chunks_exact_mut(height * width) {
                let by = (random.next_u64() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
                blur(plane, width, by);
            }
        }
        let both = Batch::new(batch.signal(), data).map_err(|e| e.to_string())?;
        Ok((both, labels.repeat(2)))
    }

    /// What a network sees of a step: of clouds some of their points, others in every step, which
    /// takes a fraction of the time.
    pub(super) fn thinned<'a>(&self, batch: Batch<'a>, step: u64) -> Result<Batch<'a>, String> {
        let Signal::Cloud { points } = batch.signal() else { return Ok(batch) };
        if points <= POINTS {
            return Ok(batch);
        }
        let mut order: Vec<usize> = (0..points).collect();
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ 0x7468_696e ^ (step << 20));
        shuffle(&mut order, &mut random);
        let item = |i: usize| {
            let cloud = batch.item(i);
            order[..POINTS].iter().flat_map(move |&p| &cloud[3 * p..3 * p + 3]).copied()
        };
        let data: Vec<f32> = (0..batch.len()).flat_map(item).collect();
        Batch::new(Signal::Cloud { points: POINTS }, data).map_err(|e| e.to_string())
    }

    /// As many originals as [`Examples::step`] has images, as they are.
    pub(super) fn upright(&self, step: u64) -> Result<Labelled, String> {
        let (first, mut labels) = self.originals(2 * step)?;
        let (second, more) = self.originals(2 * step + 1)?;
        let data = [first.data(), second.data()].concat();
        labels.extend(more);
        Ok((Batch::new(first.signal(), data).map_err(|e| e.to_string())?, labels))
    }

    /// Samples that are not trained on, as they are and transformed.
    pub(super) fn judges(&self) -> Result<(Labelled, Labelled), String> {
        let (batch, labels) = self.read(&self.judges)?;
        let copies = transformed_copies(&batch, &self.space, &Resample::default(), 43);
        let copies = copies.map_err(|e| e.to_string())?;
        Ok(((batch, labels.clone()), (copies, labels)))
    }

    /// What the classifier tells apart, in the order of its outputs.
    pub(super) fn classes(&self) -> usize {
        self.model.classes()
    }

    pub(super) fn signal(&self) -> Signal {
        self.model.signal()
    }
}

/// Mixes an image with itself blurred by 1, 2, 1: `x + by (blurred - x)`, which sharpens where
/// `by` is negative; clamped to 0..1.
fn blur(plane: &mut [f32], width: usize, by: f32) {
    let height = plane.len() / width;
    let at = |plane: &[f32], y: usize, x: usize| plane[y * width + x];
    let mut rows = plane.to_vec();
    for y in 0..height {
        for x in 0..width {
            let (left, right) = (x.saturating_sub(1), (x + 1).min(width - 1));
            rows[y * width + x] =
                0.25 * (at(plane, y, left) + 2.0 * at(plane, y, x) + at(plane, y, right));
        }
    }
    for y in 0..height {
        for x in 0..width {
            let (up, down) = (y.saturating_sub(1), (y + 1).min(height - 1));
            let soft = 0.25 * (at(&rows, up, x) + 2.0 * at(&rows, y, x) + at(&rows, down, x));
            let own = &mut plane[y * width + x];
            *own = (*own + by * (soft - *own)).clamp(0.0, 1.0);
        }
    }
}

/// Items as rows of numbers.
pub(super) fn items(batch: &Batch, device: &Device) -> Tensor<2> {
    let shape = [batch.len(), batch.signal().size()];
    Tensor::from_data(TensorData::new(batch.data().to_vec(), shape), device)
}

/// Classes as whole numbers.
pub(super) fn classes(labels: &[u32], device: &Device) -> Tensor<1, Int> {
    let labels: Vec<i64> = labels.iter().map(|&l| i64::from(l)).collect();
    let count = labels.len();
    Tensor::from_data(TensorData::new(labels, [count]), device)
}

#[cfg(test)]
mod tests {
    use super::blur;

    #[test]
    fn blurring_spreads_a_dot_and_sharpening_darkens_around_it() {
        let dot = || {
            let mut plane = vec![0.0; 25];
            plane[12] = 0.5;
            plane
        };
        let mut soft = dot();
        blur(&mut soft, 5, 1.0);
        assert!((soft[12] - 0.125).abs() < 1e-6 && (soft[13] - 0.0625).abs() < 1e-6);
        assert!((soft.iter().sum::<f32>() - 0.5).abs() < 1e-6);
        let mut sharp = dot();
        blur(&mut sharp, 5, -1.0);
        assert!((sharp[12] - 0.875).abs() < 1e-6 && sharp[13] == 0.0);
    }
}
