//! From a linear map to a pose of a space: the pose inside the domain whose
//! map is nearest, by damped least squares from the best of some spread poses.

use crate::map::Map;
use crate::seed::sobol;
use crate::space::Space;

/// Poses spread over the domain, from which the nearest are improved.
const STARTS: usize = 96;
/// How many of them.
const TRIES: usize = 3;
const ROUNDS: usize = 8;
/// Rounds without a domain.
const EXACT: usize = 12;
/// A round that leaves more than this fraction of the difference is the last.
const STALLED: f64 = 0.9;
/// Largest difference of a map's entries, as a fraction of the map's size, that still counts
/// as the same map.
const NEAR: f64 = 0.12;

/// Finds poses of maps.
#[derive(Debug)]
pub(in crate::proposer) struct Inverter {
    starts: Vec<(Vec<f32>, [f64; 4])>,
}

impl Inverter {
    /// For a space of plane maps; `None` for others.
    pub(in crate::proposer) fn new(space: &Space) -> Option<Self> {
        linear(&space.map(&space.identity()))?;
        let starts = (0..STARTS)
            .filter_map(|i| {
                let pose = space.draw(&sobol(i as u32, space.cube(), 0));
                linear(&space.map(&pose)).map(|m| (pose, m))
            })
            .collect();
        Some(Inverter { starts })
    }

    /// A pose inside the domain whose map has nearly the given linear part, if there is one.
    pub(in crate::proposer) fn pose(&self, space: &Space, target: &[f64; 4]) -> Option<Vec<f32>> {
        let size = target.iter().map(|v| v * v).sum::<f64>().sqrt();
        self.nearest(space, target).filter(|(left, _)| *left <= NEAR * size).map(|(_, pose)| pose)
    }

    /// A pose whose map has the given linear part, inside the domain or not, if there is one.
    ///
    /// What undoes a pose of the domain often lies outside of it.
    pub(in crate::proposer) fn exact(&self, space: &Space, target: &[f64; 4]) -> Option<Vec<f32>> {
        let size = target.iter().map(|v| v * v).sum::<f64>().sqrt();
        let (_, mut pose) = self.nearest(space, target)?;
        for _ in 0..EXACT {
            let m = linear(&space.map(&pose))?;
            if apart(&m, target) < 1e-3 * size {
                return Some(pose);
            }
            step(space, &mut pose, &m, target);
        }
        None
    }

    /// The pose inside the domain whose map is nearest, and how far it is from the target.
    pub(in crate::proposer) fn nearest(
        &self,
        space: &Space,
        target: &[f64; 4],
    ) -> Option<(f64, Vec<f32>)> {
        let mut order: Vec<(f64, usize)> =
            self.starts.iter().enumerate().map(|(i, (_, m))| (apart(m, target), i)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let size = target.iter().map(|v| v * v).sum::<f64>().sqrt();
        let mut best: Option<(f64, Vec<f32>)> = None;
        for &(_, start) in order.iter().take(TRIES) {
            let mut pose = self.starts[start].0.clone();
            let mut before = f64::INFINITY;
            for round in 0..=ROUNDS {
                let Some(m) = linear(&space.map(&pose)) else { break };
                let left = apart(&m, target);
                if left > STALLED * before {
                    break;
                }
                before = left;
                if best.as_ref().is_none_or(|(b, _)| left < *b) {
                    best = Some((left, pose.clone()));
                }
                if left < 1e-3 * size || round == ROUNDS {
                    break;
                }
                improve(space, &mut pose, &m, target);
            }
            if best.as_ref().is_some_and(|(b, _)| *b < 0.3 * NEAR * size) {
                break;
            }
        }
        best
    }
}

/// The linear part of a plane map, row-major.
pub(in crate::proposer) fn linear(map: &Map) -> Option<[f64; 4]> {
    match map {
        Map::Plane([a, b, _, c, d, _]) => Some([*a, *b, *c, *d].map(f64::from)),
        Map::Space(_) => None,
    }
}

fn apart(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// One damped Gauss-Newton step, `d = W J' (J W J' + s I)^-1 (target - m)`, with the squared
/// extents of the axes in `W`, then back into the domain.
fn improve(space: &Space, pose: &mut [f32], m: &[f64; 4], target: &[f64; 4]) {
    step(space, pose, m, target);
    space.confine(pose);
}

/// The step itself.
fn step(space: &Space, pose: &mut [f32], m: &[f64; 4], target: &[f64; 4]) {
    let weights: Vec<f64> = space
        .axes()
        .iter()
        .flat_map(|a| std::iter::repeat_n(f64::from(a.extent()).powi(2), a.size()))
        .collect();
    let columns: Vec<[f64; 4]> = space.derivative(pose).iter().filter_map(linear).collect();
    let mut system = [[0.0; 5]; 4];
    for (i, row) in system.iter_mut().enumerate() {
        for j in 0..4 {
            row[j] = columns.iter().zip(&weights).map(|(c, w)| w * c[i] * c[j]).sum();
        }
        row[i] += 1e-3;
        row[4] = target[i] - m[i];
    }
    let solved = solve(system);
    for ((p, c), w) in pose.iter_mut().zip(&columns).zip(&weights) {
        let step: f64 = c.iter().zip(&solved).map(|(c, s)| c * s).sum();
        *p += (w * step) as f32;
    }
}

/// Gaussian elimination of a positive definite system with its right side in the last
/// column.
fn solve(mut s: [[f64; 5]; 4]) -> [f64; 4] {
    for i in 0..4 {
        let pivot = s[i];
        for row in s.iter_mut().skip(i + 1) {
            let factor = row[i] / pivot[i];
            for (r, p) in row.iter_mut().zip(&pivot) {
                *r -= factor * p;
            }
        }
    }
    let mut x = [0.0; 4];
    for i in (0..4).rev() {
        let known: f64 = (i + 1..4).map(|j| s[i][j] * x[j]).sum();
        x[i] = (s[i][4] - known) / s[i][i];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    #[test]
    fn maps_of_poses_in_the_domain_are_found_again() {
        for text in ["affine", "rotate", "rotate,scale", "rotate,shift-x,scale-x"] {
            let space = SpaceConfig::parse(text).unwrap().build().unwrap();
            let inverter = Inverter::new(&space).unwrap();
            let mut found = 0;
            for i in 0..200 {
                let pose = space.draw(&sobol(i, space.cube(), 77));
                let target = linear(&space.map(&pose)).unwrap();
                if let Some(pose) = inverter.pose(&space, &target) {
                    assert!(space.contains(&pose), "{text} {pose:?}");
                    let m = linear(&space.map(&pose)).unwrap();
                    let size = target.iter().map(|v| v * v).sum::<f64>().sqrt();
                    assert!(apart(&m, &target) <= NEAR * size);
                    found += 1;
                }
            }
            assert!(found >= 196, "{text}: {found} of 200");
        }
    }

    #[test]
    fn a_map_outside_the_domain_has_no_pose() {
        let space = SpaceConfig::parse("rotate=-30..30").unwrap().build().unwrap();
        let inverter = Inverter::new(&space).unwrap();
        assert!(inverter.pose(&space, &[-1.0, 0.0, 0.0, -1.0]).is_none());
        assert!(inverter.pose(&space, &[3.0, 0.0, 0.0, 3.0]).is_none());
    }
}
