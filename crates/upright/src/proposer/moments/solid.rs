//! Second moments in space: principal frames of clouds, and the rotations that
//! turn one into another.
//!
//! Let `U` hold the principal axes of a cloud and `V` those of an upright one
//! as columns, by falling spread and right-handed. Maps go from view to input,
//! so the view of the cloud under `M` has the axes `M^T U`, and these are `V`
//! up to signs if `M = U S V^T` with `S` one of the four diagonal matrices of
//! signs whose determinant is 1.

use super::groups::{centre, groups};
use crate::linalg::eigen;
use crate::map::Map;
use crate::rotation::{Matrix3, angle, columns, cross, product, transpose};

/// The second moments of a cloud about its mean, over their sum on the diagonal:
/// xx, xy, xz, yy, yz, zz.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread(pub [f64; 6]);

/// The signs of the principal axes that keep a frame right-handed.
const SIGNS: [[f64; 3]; 4] =
    [[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]];

/// Rotations closer than this, in radians, are one.
const SAME: f64 = 0.15;

/// The second moments of a cloud; `None` if its points are one, or not finite.
pub(super) fn of_cloud(item: &[f32]) -> Option<Spread> {
    let points = item.chunks_exact(3);
    let n = points.len() as f64;
    let mut mean = [0.0; 3];
    for p in points.clone() {
        for (m, &v) in mean.iter_mut().zip(p) {
            *m += f64::from(v) / n;
        }
    }
    let mut sum = [0.0; 6];
    for p in points {
        let d: [f64; 3] = std::array::from_fn(|k| f64::from(p[k]) - mean[k]);
        let terms = [d[0] * d[0], d[0] * d[1], d[0] * d[2], d[1] * d[1], d[1] * d[2], d[2] * d[2]];
        for (sum, term) in sum.iter_mut().zip(terms) {
            *sum += term;
        }
    }
    let trace = sum[0] + sum[3] + sum[5];
    (trace.is_finite() && trace > 1e-12).then(|| Spread(sum.map(|v| v / trace)))
}

/// The principal frame of second moments: their spreads, falling, and the axes as columns.
fn frame(spread: &Spread) -> Option<([f64; 3], Matrix3)> {
    let [xx, xy, xz, yy, yz, zz] = spread.0;
    let found = eigen(&[xx, xy, xz, xy, yy, yz, xz, yz, zz], 3)?;
    let row = |i: usize| std::array::from_fn(|k| found.vectors[3 * i + k]);
    let (first, second) = (row(2), row(1));
    let spreads = [found.values[2], found.values[1], found.values[0]];
    Some((spreads, columns([first, second, cross(first, second)])))
}

/// At most `count` moments that stand for all, the most frequent first.
pub(super) fn prototypes(all: &[Spread], count: usize) -> Vec<Spread> {
    let points: Vec<[f64; 6]> = all.iter().map(|s| s.0).collect();
    let groups = groups(&points, count);
    groups.iter().map(|g| Spread(centre(&points, g.iter().copied()))).collect()
}

/// The rotations under which a cloud has the principal axes of upright ones: four for each
/// prototype, those first whose spreads are most like the cloud's own. None is given twice.
pub(super) fn aligned(own: &Spread, prototypes: &[Spread]) -> Vec<Map> {
    let Some((spreads, axes)) = frame(own) else { return Vec::new() };
    let unlike = |other: &[f64; 3]| -> f64 {
        spreads.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum()
    };
    let mut frames: Vec<(f64, Matrix3)> = prototypes
        .iter()
        .filter_map(|p| frame(p).map(|(spreads, axes)| (unlike(&spreads), axes)))
        .collect();
    frames.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found: Vec<Matrix3> = Vec::new();
    for (_, upright) in &frames {
        for signs in SIGNS {
            let turned: Matrix3 = std::array::from_fn(|i| axes[i] * signs[i % 3]);
            let map = product(&turned, &transpose(upright));
            if found.iter().all(|f| angle(&product(&transpose(f), &map)) > SAME) {
                found.push(map);
            }
        }
    }
    found.into_iter().map(|m| Map::Space(m.map(|v| v as f32))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rotation::around;
    use crate::seed::sobol;
    use crate::tensor::{Batch, Signal};
    use crate::warp::{Resample, View, warp};

    /// Points of a box of 6 x 3 x 1, a little more of them at its ends with x, y, z > 0.
    fn slab(seed: u64) -> Batch<'static> {
        let sides = [3.0, 1.5, 0.5];
        let points = (0..200).flat_map(|i| {
            let u = sobol(i, 3, seed);
            (0..3).map(move |k| sides[k] * (2.0 * u[k].powf(0.9) - 1.0))
        });
        Batch::new(Signal::Cloud { points: 200 }, points.collect()).unwrap()
    }

    /// Of the points (+-2, 0, 0) and (0, +-1, 0): xx = 8, yy = 2 of 10 in all.
    #[test]
    fn the_moments_of_four_points_are_worked_by_hand() {
        let cloud = [2.0, 0.0, 5.0, -2.0, 0.0, 5.0, 0.0, 1.0, 5.0, 0.0, -1.0, 5.0];
        let Spread(got) = of_cloud(&cloud).unwrap();
        for (g, w) in got.iter().zip([0.8, 0.0, 0.0, 0.2, 0.0, 0.0]) {
            assert!((g - w).abs() < 1e-12, "{got:?}");
        }
        assert_eq!(of_cloud(&[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]), None);
        assert_eq!(of_cloud(&[f32::NAN; 6]), None);
    }

    /// A turned slab has four aligned views, one of which is the slab as it was.
    #[test]
    fn one_of_the_four_frames_undoes_a_rotation() {
        let upright = slab(1);
        let prototypes = [of_cloud(slab(2).item(0)).unwrap()];
        for (axis, turn) in [([0.0, 0.6, 0.8], 2.5), ([1.0, 0.0, 0.0], 0.7), ([0.0, 0.0, 1.0], 3.1)]
        {
            let map = Map::Space(around(axis, turn).map(|v| v as f32));
            let turned = warp(&upright, &[View { item: 0, map }], &Resample::default()).unwrap();
            let maps = aligned(&of_cloud(turned.item(0)).unwrap(), &prototypes);
            assert_eq!(maps.len(), 4);
            let apart = |map: &Map| {
                let view = View { item: 0, map: *map };
                let view = warp(&turned, &[view], &Resample::default()).unwrap();
                view.data()
                    .iter()
                    .zip(upright.data())
                    .fold(0.0f32, |a, (v, w)| a.max((v - w).abs()))
            };
            let best = maps.iter().map(apart).fold(f32::INFINITY, f32::min);
            assert!(best < 0.25, "{axis:?} {turn}: {best}");
        }
    }

    #[test]
    fn prototypes_with_the_same_axes_give_their_maps_once() {
        let own = Spread([0.6, 0.0, 0.0, 0.3, 0.0, 0.1]);
        let alike = Spread([0.5, 0.0, 0.0, 0.3, 0.0, 0.2]);
        let other = Spread([0.1, 0.0, 0.0, 0.1, 0.0, 0.8]);
        assert_eq!(aligned(&own, &[alike, own]).len(), 4);
        let maps = aligned(&own, &[other, alike]);
        assert_eq!(maps.len(), 8);
        assert!(maps[..4].contains(&Map::IDENTITY_3), "{maps:?}");
        assert_eq!(prototypes(&[own, other, own], 2), [own, other]);
    }
}
