//! Grouping of points: Lloyd's iterations.

/// At most `count` groups of the points, the most populous first, as indices: Lloyd's
/// iterations from the mean and then always the farthest point.
pub(super) fn groups<const N: usize>(points: &[[f64; N]], count: usize) -> Vec<Vec<usize>> {
    const ROUNDS: usize = 20;
    let mut centres = vec![centre(points, 0..points.len())];
    while centres.len() < count.min(points.len()) {
        let far = |p: &[f64; N]| centres.iter().map(|c| apart(c, p)).fold(f64::INFINITY, f64::min);
        let Some(next) = points.iter().max_by(|a, b| far(a).total_cmp(&far(b))) else { break };
        centres.push(*next);
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for _ in 0..ROUNDS {
        groups = vec![Vec::new(); centres.len()];
        for (i, p) in points.iter().enumerate() {
            let near =
                |a: &usize, b: &usize| apart(&centres[*a], p).total_cmp(&apart(&centres[*b], p));
            groups[(0..centres.len()).min_by(near).unwrap_or(0)].push(i);
        }
        groups.retain(|g| !g.is_empty());
        centres = groups.iter().map(|g| centre(points, g.iter().copied())).collect();
    }
    groups.sort_by_key(|g| std::cmp::Reverse(g.len()));
    groups
}

fn apart<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The mean of some of the points.
pub(super) fn centre<const N: usize>(
    points: &[[f64; N]],
    rows: impl ExactSizeIterator<Item = usize>,
) -> [f64; N] {
    let n = rows.len().max(1) as f64;
    let mut sum = [0.0; N];
    for i in rows {
        for (s, v) in sum.iter_mut().zip(points[i]) {
            *s += v / n;
        }
    }
    sum
}
