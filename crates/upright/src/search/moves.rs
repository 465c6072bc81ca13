//! What searches share: ordering energies, and steps from pose to pose.

use super::design::Design;
use super::{Ask, Brief, Seen};
use crate::space::Space;

/// An energy that can be compared: NaN counts as infinite.
pub(super) fn rank(energy: f32) -> f32 {
    if energy.is_nan() { f32::INFINITY } else { energy }
}

/// Indices by rising energy; the first of equals first; NaN last.
pub(super) fn order(energies: &[f32]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..energies.len()).collect();
    indices.sort_by(|&a, &b| rank(energies[a]).total_cmp(&rank(energies[b])));
    indices
}

/// The identity and its energy; where the domain leaves it out, the pose
/// it is confined to, of which nothing is known yet.
pub(super) fn home(brief: &Brief<'_, '_>) -> (Vec<f32>, f32) {
    let mut pose = brief.space.identity();
    if brief.space.contains(&pose) {
        return (pose, rank(brief.raw.energy));
    }
    brief.space.confine(&mut pose);
    (pose, f32::INFINITY)
}

/// The step that leads from one pose to another, in fractions of each axis'
/// extent; the short way round on a periodic axis.
pub(super) fn toward(space: &Space, from: &[f32], to: &[f32]) -> Vec<f32> {
    let mut step = vec![0.0; space.size()];
    for (i, axis) in space.axes().iter().enumerate() {
        let part = space.part(i);
        let (a, b) = (&from[part.clone()], &to[part.clone()]);
        if axis.size() > 1 {
            let extent = axis.extent();
            for (s, (a, b)) in step[part].iter_mut().zip(a.iter().zip(b)) {
                *s = if extent > 0.0 { (b - a) / extent } else { 0.0 };
            }
            continue;
        }
        let distance = axis.distance(a, b);
        let left = |step: f32| {
            let mut pose = a.to_vec();
            axis.step(&mut pose, &[step]);
            axis.distance(&pose, b)
        };
        step[part.start] = if left(distance) <= left(-distance) { distance } else { -distance };
    }
    step
}

/// Views for a part of a budget, at least one.
pub(super) fn part(budget: usize, fraction: f64) -> usize {
    ((budget as f64 * fraction).ceil() as usize).clamp(1, budget.max(1)).min(budget)
}

/// The first `count` poses to look at: those that are proposed, then those of a
/// design; and how many the design gave.
pub(super) fn opening(brief: &Brief<'_, '_>, count: usize, design: Design) -> (Vec<Ask>, usize) {
    let proposals = &brief.proposals[..count.min(brief.proposals.len())];
    let drawn = count - proposals.len();
    let followed = proposals.iter().enumerate().map(|(i, p)| Ask::following(p.pose.clone(), i));
    let points = design.points(0..drawn, brief.space.cube(), brief.seed);
    let points = points.iter().map(|p| Ask::plain(brief.space.draw(p)));
    (followed.chain(points).collect(), drawn)
}

/// Poses of one class count as different basins from this distance on, which is that of
/// [`Space::distance`].
const APART: f32 = 0.2;

/// The lowest poses of different classes, then the lowest that lie apart.
pub(super) fn rivals(space: &Space, seen: &[Seen], count: usize) -> Vec<Seen> {
    let energies: Vec<f32> = seen.iter().map(|s| s.energy).collect();
    let order = order(&energies);
    let mut starts: Vec<Seen> = Vec::new();
    for classes in [true, false] {
        for &i in &order {
            let apart = |s: &Seen| {
                if classes {
                    s.label != seen[i].label
                } else {
                    space.distance(&s.pose, &seen[i].pose) >= APART
                }
            };
            if starts.len() < count && starts.iter().all(apart) {
                starts.push(seen[i].clone());
            }
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    fn space(text: &str) -> Space {
        SpaceConfig::parse(text).unwrap().build().unwrap()
    }

    #[test]
    fn the_step_between_two_poses_leads_there_the_short_way_round() {
        let space = space("affine");
        let (a, b) = ([3.0, 0.4, -0.1, 1.5, 0.6], [-3.0, -0.2, 0.3, 0.7, 1.0]);
        let step = toward(&space, &a, &b);
        // 3 to -3 radians is 2 pi - 6 = 0.2832 forwards, 0.0451 of the circle.
        assert!((step[0] - 0.0451).abs() < 1e-3, "{step:?}");
        assert!((step[1] + 0.6).abs() < 1e-5, "{step:?}");
        assert!(space.distance(&space.moved(&a, &step), &b) < 1e-4);
    }

    #[test]
    fn a_flip_is_one_whole_step() {
        let space = space("flip,rotate");
        let step = toward(&space, &[0.0, 1.0], &[1.0, 1.0]);
        assert_eq!(step[0].to_bits(), 1f32.to_bits());
        assert_eq!(space.moved(&[0.0, 1.0], &step)[0].to_bits(), 1f32.to_bits());
    }

    /// Lowest first: class 1 at 0.0 and 0.1, class 2 at 3.0; then, since only two classes
    /// were seen, the lowest pose a fifth of the circle (1.26) away from both.
    #[test]
    fn rivals_are_of_different_classes_first_and_apart_then() {
        let space = space("rotate");
        let seen: Vec<Seen> = [(0.0, 1.0, 1), (0.1, 1.5, 1), (-1.5, 2.5, 1), (3.0, 2.0, 2)]
            .into_iter()
            .map(|(angle, energy, label)| Seen {
                pose: vec![angle],
                energy,
                label,
                gradient: None,
                follows: None,
            })
            .collect();
        let angles =
            |n| -> Vec<f32> { rivals(&space, &seen, n).iter().map(|s| s.pose[0]).collect() };
        assert_eq!(angles(2), [0.0, 3.0]);
        assert_eq!(angles(3), [0.0, 3.0, -1.5]);
        assert_eq!(angles(9).len(), 3);
    }
}
