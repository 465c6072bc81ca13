//! Energies of one transformed input over angle and shear, the other axes at what
//! undoes its transform best, for several scores.

use upright::{Batch, Model, Outputs, Resample, Space, Tap, View, warp};

use super::Lab;
use super::fits::Filled;
use super::ledger::Found;
use super::tasks::Task;

/// Scores whose landscapes are drawn.
pub(super) const SCORES: [&str; 6] = ["knn", "energy", "entropy", "mahalanobis", "vim", "pc-knn"];

const COLUMNS: usize = 48;
const ROWS: usize = 24;
/// Candidates for the axes that stay fixed.
const TRIED: u32 = 256;

pub(super) fn of(lab: &Lab, task: &Task) -> upright::Result<Found> {
    let model = task.model(&[Tap::auto()])?;
    let space = task.space.build()?;
    let filled = Filled::of(task, &model, Some(lab.scale.tuning.bank.max(4000)))?;
    let test = task.test()?;
    let knn = filled.score(&upright::Part::new("pc-knn"), &model, lab.seed)?;
    // The first input that the bare classifier gets wrong and some view gets right.
    let alone = test.kinds(&task.model(&[])?)?[1].2;
    let wrong = (0..test.labels.len()).filter(|&i| !alone[i]);
    let mut chosen: Option<(usize, Vec<f32>)> = None;
    for item in wrong.take(20) {
        let poses: Vec<Vec<f32>> = (0..TRIED)
            .map(|i| space.draw(&upright::internal::seed::sobol(i, space.cube(), item as u64)))
            .collect();
        let outputs = looked(&model, &space, &test.transformed, item, &poses)?;
        let energies = knn.energy(&outputs);
        let labels = outputs.labels();
        let best = (0..poses.len())
            .filter(|&i| labels[i] == test.labels[item])
            .min_by(|&a, &b| energies[a].total_cmp(&energies[b]));
        if let Some(best) = best {
            chosen = Some((item, poses[best].clone()));
            break;
        }
    }
    let Some((item, pose)) = chosen else { return Ok(Found::default()) };
    let poses: Vec<Vec<f32>> = (0..ROWS * COLUMNS).map(|i| at(&space, &pose, i)).collect();
    let outputs = looked(&model, &space, &test.transformed, item, &poses)?;
    let mut found = Found::of(&(item, &pose, SCORES));
    for name in SCORES {
        let Ok(score) = filled.score(&upright::Part::new(name), &model, lab.seed) else { continue };
        found.curves.insert(name.into(), grid(&ranks(&score.energy(&outputs))));
    }
    let right: Vec<f64> =
        outputs.labels().iter().map(|l| f64::from(u8::from(*l == test.labels[item]))).collect();
    found.curves.insert("right".into(), grid(&right));
    Ok(found)
}

/// A pose with angle and first shear moved over their domains.
fn at(space: &Space, pose: &[f32], i: usize) -> Vec<f32> {
    let mut pose = pose.to_vec();
    let places =
        [((i % COLUMNS) as f32 + 0.5) / COLUMNS as f32, ((i / COLUMNS) as f32 + 0.5) / ROWS as f32];
    for (axis, place) in places.into_iter().enumerate().take(space.axes().len()) {
        let part = space.part(axis);
        space.axes()[axis].along(0, place, &mut pose[part]);
    }
    pose
}

fn looked(
    model: &Model,
    space: &Space,
    batch: &Batch,
    item: usize,
    poses: &[Vec<f32>],
) -> upright::Result<Outputs> {
    let views: Vec<View> = poses.iter().map(|p| View { item, map: space.map(p) }).collect();
    model.run(&warp(batch, &views, &Resample::default())?)
}

/// Places in the order of energies, 0 the lowest and 1 the highest, to two decimals.
fn ranks(energies: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..energies.len()).collect();
    order.sort_by(|&a, &b| energies[a].total_cmp(&energies[b]));
    let mut ranks = vec![0.0; energies.len()];
    let last = energies.len().saturating_sub(1).max(1) as f64;
    for (place, i) in order.into_iter().enumerate() {
        ranks[i] = (place as f64 / last * 100.0).round() / 100.0;
    }
    ranks
}

fn grid(values: &[f64]) -> Vec<Vec<f64>> {
    values.chunks(COLUMNS).map(<[f64]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_run_from_the_lowest_to_the_highest() {
        assert_eq!(ranks(&[3.0, -1.0, 2.0]), [1.0, 0.0, 0.5]);
    }
}
