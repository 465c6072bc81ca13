//! Fewer points for the same sketch: Ramer-Douglas-Peucker with growing
//! tolerance, then without the shortest strokes.
//!
//! The algorithm splits a stroke where it is farthest from the chord of its
//! part, whatever the tolerance is; a point survives as long as the tolerance
//! is below its own distance and those of all splits above it. The least of
//! these is its weight, and one pass gives the result for every tolerance.

/// Largest tolerance, as a part of the sketch's larger side, before strokes
/// are left out.
const COARSEST: f64 = 1.0 / 16.0;
/// Strokes with more points are thinned out evenly first: the algorithm's time
/// grows with their square.
const LONG: usize = 4096;

type Stroke = Vec<[f32; 2]>;

/// At most `most` points, and the number of strokes left out for that.
pub(super) fn to_fit(strokes: &[Stroke], most: usize) -> (Vec<Stroke>, usize) {
    if strokes.iter().map(Vec::len).sum::<usize>() <= most {
        return (strokes.to_vec(), 0);
    }
    let mut strokes: Vec<Stroke> = strokes.iter().map(|s| thinned(s)).collect();
    let mut weights: Vec<Vec<f64>> = strokes.iter().map(|s| weights_of(s)).collect();
    let coarsest = COARSEST * extent(&strokes);
    let tolerance = fitting(&weights, most);
    if tolerance <= coarsest {
        return (above(&strokes, &weights, tolerance), 0);
    }
    let all = strokes.len();
    let mut order: Vec<usize> = (0..all).collect();
    let lengths: Vec<f64> = strokes.iter().map(|s| length(s)).collect();
    order.sort_by(|&a, &b| lengths[a].total_cmp(&lengths[b]).then(b.cmp(&a)));
    let count = |w: &[f64]| w.iter().filter(|&&w| w > coarsest).count();
    let mut points: usize = weights.iter().map(|w| count(w)).sum();
    for &shortest in &order[..all - 1] {
        if points <= most {
            break;
        }
        points -= count(&weights[shortest]);
        strokes[shortest].clear();
        weights[shortest].clear();
    }
    let tolerance = fitting(&weights, most).max(coarsest);
    let mut kept = above(&strokes, &weights, tolerance);
    kept.retain(|s| !s.is_empty());
    let dropped = all - kept.len();
    (kept, dropped)
}

/// The smallest tolerance that leaves at most `most` points; the ends of strokes stay.
fn fitting(weights: &[Vec<f64>], most: usize) -> f64 {
    let mut all: Vec<f64> = weights.iter().flatten().copied().collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.get(most).copied().unwrap_or(0.0)
}

fn above(strokes: &[Stroke], weights: &[Vec<f64>], tolerance: f64) -> Vec<Stroke> {
    let keep = |w: f64| w > tolerance || w.is_infinite();
    strokes
        .iter()
        .zip(weights)
        .map(|(s, w)| s.iter().zip(w).filter(|(_, w)| keep(**w)).map(|(p, _)| *p).collect())
        .collect()
}

fn thinned(stroke: &[[f32; 2]]) -> Stroke {
    let step = stroke.len().div_ceil(LONG).max(1);
    let last = stroke.len() - 1;
    stroke
        .iter()
        .enumerate()
        .filter(|(i, _)| i % step == 0 || *i == last)
        .map(|(_, p)| *p)
        .collect()
}

/// The tolerance at which each point disappears; never for the ends.
fn weights_of(stroke: &[[f32; 2]]) -> Vec<f64> {
    let mut weights = vec![f64::INFINITY; stroke.len()];
    let mut parts = vec![(0, stroke.len() - 1, f64::INFINITY)];
    while let Some((from, to, most)) = parts.pop() {
        let mut far = (from, -1.0);
        for i in from + 1..to {
            let d = distance(stroke[i], stroke[from], stroke[to]);
            if d > far.1 {
                far = (i, d);
            }
        }
        if far.1 >= 0.0 {
            let weight = far.1.min(most);
            weights[far.0] = weight;
            parts.push((from, far.0, weight));
            parts.push((far.0, to, weight));
        }
    }
    weights
}

/// From a point to the piece of line between two others.
fn distance(p: [f32; 2], a: [f32; 2], b: [f32; 2]) -> f64 {
    let [p, a, b] = [p, a, b].map(|q| q.map(f64::from));
    let (ab, ap) = ([b[0] - a[0], b[1] - a[1]], [p[0] - a[0], p[1] - a[1]]);
    let square = ab[0] * ab[0] + ab[1] * ab[1];
    let along =
        if square > 0.0 { ((ap[0] * ab[0] + ap[1] * ab[1]) / square).clamp(0.0, 1.0) } else { 0.0 };
    let off = [ap[0] - along * ab[0], ap[1] - along * ab[1]];
    (off[0] * off[0] + off[1] * off[1]).sqrt()
}

fn length(stroke: &[[f32; 2]]) -> f64 {
    let step = |w: &[[f32; 2]]| distance(w[0], w[1], w[1]);
    stroke.windows(2).map(step).sum()
}

/// The larger side of the box around all points.
fn extent(strokes: &[Stroke]) -> f64 {
    let side = |c: usize| {
        let (low, high) =
            strokes.iter().flatten().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| {
                (l.min(p[c].into()), h.max(p[c].into()))
            });
        high - low
    };
    side(0).max(side(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(points: usize) -> Stroke {
        (0..points).map(|i| [i as f32, 10.0 * (i as f32 * 0.3).sin()]).collect()
    }

    /// The textbook recursion, for comparison.
    fn textbook(stroke: &[[f32; 2]], tolerance: f64) -> Stroke {
        let last = stroke.len() - 1;
        let far = (1..last)
            .map(|i| (i, distance(stroke[i], stroke[0], stroke[last])))
            .fold((0, -1.0), |best, new| if new.1 > best.1 { new } else { best });
        if far.1 <= tolerance {
            return vec![stroke[0], stroke[last]];
        }
        let mut out = textbook(&stroke[..=far.0], tolerance);
        out.pop();
        out.extend(textbook(&stroke[far.0..], tolerance));
        out
    }

    #[test]
    fn one_pass_equals_the_textbook_at_every_tolerance() {
        let stroke = wave(200);
        let weights = weights_of(&stroke);
        for tolerance in [0.0, 0.01, 0.3, 1.0, 4.0, 9.0, 30.0] {
            let ours =
                above(std::slice::from_ref(&stroke), std::slice::from_ref(&weights), tolerance);
            assert_eq!(ours[0], textbook(&stroke, tolerance), "{tolerance}");
        }
    }

    #[test]
    fn distances_worked_by_hand() {
        for (p, b, far) in [([1.0, 2.0], 4.0, 2.0), ([-3.0, 4.0], 4.0, 5.0), ([3.0, 4.0], 0.0, 5.0)]
        {
            assert!((distance(p, [0.0, 0.0], [b, 0.0]) - far).abs() < 1e-12, "{p:?}");
        }
    }

    #[test]
    fn points_on_a_line_go_first_and_corners_stay() {
        let mut corner: Stroke = (0..50).map(|i| [i as f32, 0.0]).collect();
        corner.extend((1..50).map(|i| [49.0, i as f32]));
        let (kept, dropped) = to_fit(&[corner], 3);
        assert_eq!((kept, dropped), (vec![vec![[0.0, 0.0], [49.0, 0.0], [49.0, 49.0]]], 0));
    }

    #[test]
    fn what_fits_is_left_alone_and_nothing_ever_exceeds_its_room() {
        for room in 1..150 {
            for strokes in
                [vec![wave(100)], vec![wave(30), wave(7), wave(1), wave(62)], vec![wave(2); 50]]
            {
                let (kept, dropped) = to_fit(&strokes, room);
                let points: usize = kept.iter().map(Vec::len).sum();
                assert!(points <= room.max(2), "{points} in {room}");
                assert_eq!(kept.len() + dropped, strokes.len());
                if room >= 100 {
                    assert_eq!(kept, strokes);
                }
            }
        }
    }

    #[test]
    fn the_shortest_strokes_go_when_simplifying_is_not_enough() {
        let dash = |i: usize| vec![[0.0, i as f32], [(i * 7 % 30) as f32, i as f32]];
        let dashes: Vec<Stroke> = (0..30).map(dash).collect();
        let (kept, dropped) = to_fit(&dashes, 41);
        let long: Vec<Stroke> = dashes.into_iter().filter(|d| d[1][0] >= 10.0).collect();
        assert_eq!((kept, dropped), (long, 10));
    }

    #[test]
    fn a_hundred_thousand_points_are_simplified_in_no_time() {
        let spiral: Stroke = (0..100_000)
            .map(|i| {
                let t = i as f32 / 100.0;
                [t * t.cos(), t * t.sin()]
            })
            .collect();
        let (kept, _) = to_fit(&[spiral], 128);
        assert_eq!(kept[0].len(), 128);
    }
}
