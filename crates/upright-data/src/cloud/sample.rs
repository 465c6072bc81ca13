//! Exactly as many points as the model takes.

use std::collections::HashSet;

use upright::internal::seed;

use super::{Cloud, POINT_FLOOR};
use crate::random;
use crate::skip::Unusable;

/// See [`Cloud::rows`].
pub(super) fn rows(cloud: &Cloud, count: usize, run: u64) -> Result<(Vec<f32>, bool), Unusable> {
    let seed = seed::of_content(run, cloud.points.as_flattened());
    if let Some(sums) = areas(cloud) {
        return Ok((surface(cloud, &sums, count, seed), false));
    }
    let floor = POINT_FLOOR.min(count);
    let distinct = distinct(&cloud.points, floor);
    if distinct < floor {
        let s = if distinct == 1 { "" } else { "s" };
        return Err(format!("{distinct} point{s} after de-duplication, need >= {floor}").into());
    }
    let points = &cloud.points;
    let n = points.len();
    let flat = |chosen: &mut dyn Iterator<Item = usize>| -> Vec<f32> {
        chosen.flat_map(|i| points[i]).collect()
    };
    if n <= count {
        let again = (n..count).map(|i| random::below(seed, i as u64, n));
        return Ok((flat(&mut (0..n).chain(again)), n < count));
    }
    let mut deck: Vec<u32> = (0..n as u32).collect();
    for i in 0..count {
        let j = i + random::below(seed, i as u64, n - i);
        deck.swap(i, j);
    }
    Ok((flat(&mut deck[..count].iter().map(|&i| i as usize)), false))
}

/// How many points differ; counting stops at `enough`.
fn distinct(points: &[[f32; 3]], enough: usize) -> usize {
    let mut seen = HashSet::new();
    for p in points {
        // Adding zero makes both zeros the same.
        seen.insert(p.map(|v| (v + 0.0).to_bits()));
        if seen.len() >= enough {
            break;
        }
    }
    seen.len()
}

/// Running sums of the triangles' areas; `None` if there is no area.
fn areas(cloud: &Cloud) -> Option<Vec<f64>> {
    let mut sum = 0.0;
    let sums: Vec<f64> = cloud
        .triangles
        .iter()
        .map(|t| {
            sum += area(t.map(|i| cloud.points[i as usize].map(f64::from)));
            sum
        })
        .collect();
    (sum > 0.0).then_some(sums)
}

fn area([a, b, c]: [[f64; 3]; 3]) -> f64 {
    let u: [f64; 3] = std::array::from_fn(|k| b[k] - a[k]);
    let v: [f64; 3] = std::array::from_fn(|k| c[k] - a[k]);
    let cross = |i: usize, j: usize| u[i] * v[j] - u[j] * v[i];
    let (x, y, z) = (cross(1, 2), cross(2, 0), cross(0, 1));
    (x * x + y * y + z * z).sqrt() / 2.0
}

fn surface(cloud: &Cloud, sums: &[f64], count: usize, seed: u64) -> Vec<f32> {
    let whole = sums.last().copied().unwrap_or(0.0);
    let mut rows = Vec::with_capacity(3 * count);
    for i in 0..count as u64 {
        let at = random::unit(seed, 3 * i) * whole;
        // A triangle without area is never the first whose sum exceeds a number.
        let t = sums.partition_point(|&s| s <= at).min(sums.len() - 1);
        let (mut u, mut v) = (random::unit(seed, 3 * i + 1), random::unit(seed, 3 * i + 2));
        if u + v > 1.0 {
            (u, v) = (1.0 - u, 1.0 - v);
        }
        let [a, b, c] = cloud.triangles[t].map(|i| cloud.points[i as usize].map(f64::from));
        rows.extend((0..3).map(|k| ((1.0 - u - v) * a[k] + u * b[k] + v * c[k]) as f32));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud(n: usize) -> Cloud {
        let points = (0..n).map(|i| [i as f32, (i % 7) as f32, 0.5]).collect();
        Cloud::new(points, vec![]).unwrap()
    }

    /// Two triangles in the plane: one of area 3 left of x = 0, one of area 1 right of it.
    fn mesh() -> Cloud {
        let points = vec![[-3., 0., 0.], [0., 0., 0.], [0., 2., 0.], [1., 0., 0.], [0., 0., 0.]];
        Cloud::new(points, vec![[0, 1, 2], [1, 1, 4], [1, 3, 2]]).unwrap()
    }

    #[test]
    fn exactly_enough_points_stay_as_they_are() {
        let (rows, repeated) = cloud(100).rows(100, 5).unwrap();
        assert_eq!(rows, cloud(100).points().as_flattened());
        assert!(!repeated);
    }

    #[test]
    fn some_of_many_points_are_drawn_without_repeating_any() {
        let (rows, repeated) = cloud(1000).rows(100, 5).unwrap();
        assert!(!repeated);
        let mut xs: Vec<f32> = rows.chunks(3).map(|r| r[0]).collect();
        xs.sort_by(f32::total_cmp);
        xs.dedup();
        assert_eq!(xs.len(), 100);
        assert_eq!(cloud(1000).rows(100, 5).unwrap().0, rows);
        assert_ne!(cloud(1000).rows(100, 6).unwrap().0, rows);
        let upper = xs.iter().filter(|&&x| x >= 500.0).count();
        assert!((30..=70).contains(&upper), "{upper}");
    }

    #[test]
    fn few_points_are_all_kept_and_some_repeated() {
        let (rows, repeated) = cloud(70).rows(100, 5).unwrap();
        assert!(repeated);
        assert_eq!(rows[..210], *cloud(70).points().as_flattened());
        assert!(rows[210..].chunks(3).all(|r| cloud(70).points().contains(&[r[0], r[1], r[2]])));
    }

    #[test]
    fn too_few_distinct_points_are_degenerate() {
        let same = Cloud::new(vec![[1., 2., 3.]; 500], vec![]).unwrap();
        assert_eq!(
            same.rows(100, 0).unwrap_err().to_string(),
            "1 point after de-duplication, need >= 64"
        );
        let zeros = Cloud::new(vec![[0., 0., 0.], [-0., 0., 0.], [1., 0., 0.]], vec![]).unwrap();
        assert_eq!(
            zeros.rows(1024, 0).unwrap_err().to_string(),
            "2 points after de-duplication, need >= 64"
        );
        assert!(zeros.rows(2, 0).is_ok(), "a model of two points is content with two");
        assert!(Cloud::new(vec![], vec![]).is_err());
        assert_eq!(Cloud::new(vec![[f32::NAN; 3]], vec![]).unwrap_err().to_string(), "holds NaN");
        let e = Cloud::new(vec![[0.; 3]; 3], vec![[0, 1, 3]]).unwrap_err().to_string();
        assert_eq!(e, "a face names vertex 3, there are 3");
    }

    #[test]
    fn a_mesh_is_sampled_by_area() {
        let (rows, _) = mesh().rows(8000, 1).unwrap();
        let left = rows.chunks(3).filter(|r| r[0] < 0.0).count();
        // Three quarters of 8000, within five standard deviations of 39.
        assert!((5800..=6200).contains(&left), "{left}");
        for r in rows.chunks(3) {
            let inside = r[1] >= 0.0
                && r[1] <= 2.0 * (1.0 + r[0] / 3.0) + 1e-5
                && r[1] <= 2.0 - 2.0 * r[0] + 1e-5;
            assert!(inside, "{r:?}");
        }
        // Within a triangle, too: the centroid of the left one is (-1, 2/3).
        let of_left = |c: usize| {
            rows.chunks(3).filter(|r| r[0] < 0.0).map(|r| r[c]).sum::<f32>() / left as f32
        };
        assert!((of_left(0) + 1.0).abs() < 0.05 && (of_left(1) - 2.0 / 3.0).abs() < 0.05);
    }

    #[test]
    fn a_mesh_without_area_counts_as_points() {
        let line =
            Cloud::new((0..80).map(|i| [i as f32, 0., 0.]).collect(), vec![[0, 1, 2]]).unwrap();
        assert_eq!(line.rows(80, 0).unwrap().0, line.points().as_flattened());
    }
}
