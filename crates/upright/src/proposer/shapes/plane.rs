//! Second moments in the plane: measuring, grouping and aligning them.

use super::groups::{centre, groups};

/// A symmetric 2 x 2 matrix, in squared units of the map's coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Covariance {
    /// Spread along x.
    pub(crate) xx: f64,
    /// How x and y go together.
    pub(crate) xy: f64,
    /// Spread along y.
    pub(crate) yy: f64,
}

impl Covariance {
    fn det(&self) -> f64 {
        self.xx * self.yy - self.xy * self.xy
    }

    /// `S^(1/2) = (S + sqrt(det) I) / sqrt(trace + 2 sqrt(det))`, row-major.
    pub(in crate::proposer) fn root(&self) -> [f64; 4] {
        let s = self.det().max(0.0).sqrt();
        let t = (self.xx + self.yy + 2.0 * s).sqrt();
        [(self.xx + s) / t, self.xy / t, self.xy / t, (self.yy + s) / t]
    }

    /// Whether it has a root that can be inverted: neither a point nor a line.
    fn regular(&self) -> bool {
        let trace = self.xx + self.yy;
        trace.is_finite() && trace > 1e-9 && self.det() > 1e-4 * trace * trace
    }

    /// Coordinates in which covariances are compared: the logarithm of the size, and the
    /// elongation along x and along the diagonal.
    fn shape(&self) -> [f64; 3] {
        let trace = (self.xx + self.yy).max(1e-12);
        [libm::log(trace), (self.xx - self.yy) / trace, 2.0 * self.xy / trace]
    }
}

impl Covariance {
    /// That of a view under a linear map: `M^-1 S M^-T`.
    pub(in crate::proposer) fn under(&self, map: &[f64; 4]) -> Option<Covariance> {
        let m = inverse(map)?;
        let [xx, xy, _, yy] =
            product(&product(&m, &[self.xx, self.xy, self.xy, self.yy]), &transpose(&m));
        let c = Covariance { xx, xy, yy };
        c.regular().then_some(c)
    }

    /// The logarithm of the matrix: xx, xy, yy.
    pub(in crate::proposer) fn log(&self) -> [f64; 3] {
        let (mean, half) = (f64::midpoint(self.xx, self.yy), (self.xx - self.yy) / 2.0);
        let radius = libm::hypot(half, self.xy).max(1e-300);
        let (large, small) = (libm::log(mean + radius), libm::log((mean - radius).max(1e-12)));
        let (level, spread) = (f64::midpoint(large, small), (large - small) / 2.0 / radius);
        [level + spread * half, spread * self.xy, level - spread * half]
    }

    /// The matrix whose logarithm is given.
    pub(in crate::proposer) fn exp(log: [f64; 3]) -> Covariance {
        let [xx, xy, yy] = log;
        let (level, half) = (f64::midpoint(xx, yy), (xx - yy) / 2.0);
        let radius = libm::hypot(half, xy);
        let size = libm::exp(level);
        let cosh = size * libm::cosh(radius);
        let sinh = if radius > 1e-12 { size * libm::sinh(radius) / radius } else { size };
        Covariance { xx: cosh + sinh * half, xy: sinh * xy, yy: cosh - sinh * half }
    }

    /// The mean of some covariances by their logarithms (Arsigny et al. 2006).
    pub(in crate::proposer) fn mean(all: &[Covariance]) -> Option<Covariance> {
        let mut sum = [0.0; 3];
        for c in all {
            for (s, v) in sum.iter_mut().zip(c.log()) {
                *s += v / all.len() as f64;
            }
        }
        (!all.is_empty()).then(|| Covariance::exp(sum))
    }

    /// How far two covariances are apart: the length of the difference of their logarithms.
    pub(in crate::proposer) fn distance(&self, other: &Covariance) -> f64 {
        let (a, b) = (self.log(), other.log());
        libm::sqrt((a[0] - b[0]).powi(2) + 2.0 * (a[1] - b[1]).powi(2) + (a[2] - b[2]).powi(2))
    }
}

/// The inverse of a 2 x 2 matrix, row-major, if there is one.
pub(in crate::proposer) fn inverse(m: &[f64; 4]) -> Option<[f64; 4]> {
    let [a, b, c, d] = *m;
    let det = a * d - b * c;
    (det.is_finite() && det.abs() > 1e-12).then(|| [d / det, -b / det, -c / det, a / det])
}

pub(in crate::proposer) fn transpose(m: &[f64; 4]) -> [f64; 4] {
    [m[0], m[2], m[1], m[3]]
}

/// The rotation by an angle in radians.
pub(in crate::proposer) fn rotation(angle: f64) -> [f64; 4] {
    let (sin, cos) = libm::sincos(angle);
    [cos, -sin, sin, cos]
}

/// The angle of the rotation nearest to a matrix, `-pi..pi`; `None` if it mirrors.
pub(in crate::proposer) fn angle(m: &[f64; 4]) -> Option<f64> {
    (m[0] * m[3] - m[1] * m[2] > 0.0).then(|| libm::atan2(m[2] - m[1], m[0] + m[3]))
}

/// The linear part of `Sx^(1/2) R(turn) St^(-1/2)`, row-major.
pub(in crate::proposer) fn aligned(
    own: &Covariance,
    turn: f64,
    prototype: &Covariance,
) -> [f64; 4] {
    let [a, b, c, d] = prototype.root();
    let det = a * d - b * c;
    let back = [d / det, -b / det, -c / det, a / det];
    let (sin, cos) = (libm::sin(turn), libm::cos(turn));
    product(&product(&own.root(), &[cos, -sin, sin, cos]), &back)
}

pub(in crate::proposer) fn product(p: &[f64; 4], q: &[f64; 4]) -> [f64; 4] {
    [
        p[0] * q[0] + p[1] * q[2],
        p[0] * q[1] + p[1] * q[3],
        p[2] * q[0] + p[3] * q[2],
        p[2] * q[1] + p[3] * q[3],
    ]
}

/// Differences from the background below this fraction of the largest count as background.
const FAINT: f32 = 0.1;
/// Share of border pixels that may differ from the background.
const CUT: f64 = 0.25;

/// The covariance of what stands out from an image's background, which is each channel's
/// median over the border. `None` if the border is not plain or nothing stands out.
pub(in crate::proposer) fn of_image(
    item: &[f32],
    channels: usize,
    height: usize,
    width: usize,
) -> Option<Covariance> {
    let size = height * width;
    let on_border = |i: usize| {
        i < width || i >= size - width || i.is_multiple_of(width) || i % width == width - 1
    };
    let mut ink = vec![0.0f32; size];
    for channel in item.chunks_exact(size).take(channels) {
        let mut border: Vec<f32> =
            (0..size).filter(|&i| on_border(i)).map(|i| channel[i]).collect();
        border.sort_by(f32::total_cmp);
        let background = *border.get(border.len() / 2)?;
        for (ink, v) in ink.iter_mut().zip(channel) {
            *ink += (v - background).abs();
        }
    }
    let most = ink.iter().copied().fold(0.0, f32::max);
    if !most.is_finite() || most <= 1e-3 {
        return None;
    }
    let (mut cut, mut length) = (0usize, 0usize);
    for i in (0..size).filter(|&i| on_border(i)) {
        length += 1;
        cut += usize::from(ink[i] > FAINT * most);
    }
    if cut as f64 > CUT * length as f64 {
        return None;
    }
    let unit = 2.0 / height.max(width) as f64;
    of_points((0..size).filter(|&i| ink[i] > FAINT * most).map(|i| {
        let (x, y) = ((i % width) as f64 * unit, (i / width) as f64 * unit);
        (x, y, f64::from(ink[i]))
    }))
}

/// The covariance of a sketch's lines, evenly drawn. Padding (pen below 0) is left out.
pub(in crate::proposer) fn of_strokes(item: &[f32]) -> Option<Covariance> {
    let rows: Vec<&[f32]> = item.chunks_exact(3).take_while(|r| r[2] >= 0.0).collect();
    // Two points at 1 / sqrt(12) of the length from the middle have a line's moments.
    let line = |a: &[f32], b: &[f32]| {
        let length = libm::hypot(f64::from(b[0] - a[0]), f64::from(b[1] - a[1]));
        let at = |k: usize, side: f64| {
            let (a, b) = (f64::from(a[k]), f64::from(b[k]));
            f64::midpoint(a, b) + side * (b - a) / 12f64.sqrt()
        };
        [1.0, -1.0].map(|side| (at(0, side), at(1, side), length))
    };
    of_points(rows.windows(2).filter(|w| w[1][2] < 0.5).flat_map(|w| line(w[0], w[1])))
}

fn of_points(points: impl Iterator<Item = (f64, f64, f64)>) -> Option<Covariance> {
    let (mut w, mut x, mut y, mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (px, py, pw) in points {
        w += pw;
        x += pw * px;
        y += pw * py;
        xx += pw * px * px;
        xy += pw * px * py;
        yy += pw * py * py;
    }
    let (mx, my) = (x / w, y / w);
    let c = Covariance { xx: xx / w - mx * mx, xy: xy / w - mx * my, yy: yy / w - my * my };
    c.regular().then_some(c)
}

/// At most `count` covariances that stand for all, grouped by their shapes; the most populous
/// first.
pub(in crate::proposer) fn prototypes(all: &[Covariance], count: usize) -> Vec<Covariance> {
    let shapes: Vec<[f64; 3]> = all.iter().map(Covariance::shape).collect();
    let entries: Vec<[f64; 3]> = all.iter().map(|c| [c.xx, c.xy, c.yy]).collect();
    groups(&shapes, count)
        .iter()
        .map(|g| {
            let [xx, xy, yy] = centre(&entries, g.iter().copied());
            Covariance { xx, xy, yy }
        })
        .filter(Covariance::regular)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 5 x 9 image with ink at columns 2 and 6 of row 2: unit 2 / 9, x at +-2 pixels, so
    /// xx = (2 * 2/9)^2 = 0.1975 and the rest is zero: a line, hence not regular. With ink
    /// above and below too, yy = ((1 * 2/9)^2 * 2) / 4 and xx halves.
    #[test]
    fn the_covariance_of_four_pixels_is_worked_by_hand() {
        let mut image = vec![0.0; 45];
        image[2 * 9 + 2] = 1.0;
        image[2 * 9 + 6] = 1.0;
        assert_eq!(of_image(&image, 1, 5, 9), None);
        image[9 + 4] = 1.0;
        image[3 * 9 + 4] = 1.0;
        let c = of_image(&image, 1, 5, 9).unwrap();
        let unit = (2.0f64 / 9.0).powi(2);
        assert!((c.xx - 2.0 * unit).abs() < 1e-12, "{c:?}");
        assert!((c.yy - 0.5 * unit).abs() < 1e-12 && c.xy.abs() < 1e-12, "{c:?}");
    }

    #[test]
    fn an_image_without_a_plain_border_has_no_moments() {
        let busy: Vec<f32> = (0..64u8).map(|i| f32::from(i % 7) / 7.0).collect();
        assert_eq!(of_image(&busy, 1, 8, 8), None);
        assert_eq!(of_image(&[0.5; 64], 1, 8, 8), None);
    }

    #[test]
    fn the_aligned_map_turns_one_covariance_into_the_other() {
        let own = Covariance { xx: 0.3, xy: 0.1, yy: 0.2 };
        let want = Covariance { xx: 0.1, xy: -0.03, yy: 0.4 };
        for turn in [0.0, 1.0, 4.0] {
            let m = aligned(&own, turn, &want);
            let s = product(&m, &[want.xx, want.xy, want.xy, want.yy]);
            let back = product(&s, &[m[0], m[2], m[1], m[3]]);
            for (got, want) in back.iter().zip([own.xx, own.xy, own.xy, own.yy]) {
                assert!((got - want).abs() < 1e-9, "{back:?}");
            }
        }
    }

    #[test]
    fn prototypes_find_separate_groups_and_the_largest_is_first() {
        let flat = Covariance { xx: 0.4, xy: 0.0, yy: 0.05 };
        let tall = Covariance { xx: 0.05, xy: 0.0, yy: 0.4 };
        let all = [flat, tall, tall, flat, tall];
        assert_eq!(prototypes(&all, 2), [tall, flat]);
        assert_eq!(prototypes(&all[..1], 6), [flat]);
    }

    #[test]
    fn padding_does_not_change_a_sketch() {
        let sketch = [0.0, 0.0, 1.0, 3.0, 1.0, 0.0, 5.0, 5.0, 1.0, 5.0, 9.0, 0.0];
        let mut padded = sketch.to_vec();
        padded.extend([7.0, 7.0, -1.0, 0.0, 0.0, -1.0]);
        assert_eq!(of_strokes(&sketch), of_strokes(&padded));
        assert!(of_strokes(&sketch).is_some());
    }
}
