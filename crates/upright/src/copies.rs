//! Transformed copies of inputs: made under known poses, so that parts can
//! learn what a pose does to what the model says.

use crate::error::Result;
use crate::map::Map;
use crate::seed;
use crate::space::Space;
use crate::tensor::Batch;
use crate::warp::{Resample, View, warp};

/// Largest pose that upright inputs are jittered by, as a fraction of each axis' extent.
const JITTER: f32 = 0.01;

/// Copies of inputs under random poses of a space, one each; images are clamped to 0..1.
///
/// The pose of an input follows from the seed and its content, so a copy does not depend
/// on the batch it is made in.
pub fn transformed_copies(
    batch: &Batch,
    space: &Space,
    resample: &Resample,
    seed: u64,
) -> Result<Batch<'static>> {
    under(batch, &random_poses(batch, space, seed), space, resample)
}

/// The poses of [`transformed_copies`].
pub(crate) fn random_poses(batch: &Batch, space: &Space, seed: u64) -> Vec<Vec<f32>> {
    let pose = |item: usize| {
        let mut rng = seed::stream(seed::of_content(seed ^ 0x7472_616e, batch.item(item)));
        let unit: Vec<f32> = (0..space.cube()).map(|_| seed::unit(&mut rng)).collect();
        space.draw(&unit)
    };
    (0..batch.len()).map(pose).collect()
}

/// Copies under tiny poses, resampled as transformed copies are.
pub(crate) fn jittered(
    batch: &Batch,
    space: &Space,
    resample: &Resample,
    seed: u64,
) -> Result<Batch<'static>> {
    let pose = |item: usize| {
        let mut rng = seed::stream(seed::of_content(seed ^ 0x6a69_7474, batch.item(item)));
        let steps: Vec<f32> =
            (0..space.size()).map(|_| JITTER * (2.0 * seed::unit(&mut rng) - 1.0)).collect();
        space.moved(&space.identity(), &steps)
    };
    let poses: Vec<Vec<f32>> = (0..batch.len()).map(pose).collect();
    under(batch, &poses, space, resample)
}

/// A copy of each input under its pose; images are clamped to 0..1.
pub(crate) fn under(
    batch: &Batch,
    poses: &[Vec<f32>],
    space: &Space,
    resample: &Resample,
) -> Result<Batch<'static>> {
    let map = |pose: &Vec<f32>| -> Map { space.map(pose) };
    let views: Vec<View> =
        poses.iter().enumerate().map(|(item, pose)| View { item, map: map(pose) }).collect();
    warp(batch, &views, &Resample { clamp: true, ..resample.clone() })
}
