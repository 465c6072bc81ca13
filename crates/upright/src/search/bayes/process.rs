//! A Gaussian process over maps: what is expected of a pose that was not seen.

/// Lengths tried, in the Frobenius norm between two maps' matrices. Two rotations by an angle
/// `a` apart lie `2 sqrt(2) sin(a / 2)` apart in the plane.
const LENGTHS: [f64; 5] = [0.2, 0.35, 0.6, 1.0, 1.8];

/// Variance of the noise, relative to that of the process.
const NOISE: f64 = 1e-3;

/// A process with a constant mean and a Matern 5/2 kernel of the distance between maps'
/// entries, so that angles close up and every axis counts by what it does to a point.
///
/// The length is the most likely one of a few, the mean and the variance follow from it in
/// closed form (Rasmussen & Williams 2006, section 5.4.1).
#[derive(Debug, Clone)]
pub(super) struct Process {
    points: Vec<Vec<f32>>,
    values: Vec<f64>,
    length: f64,
    /// Rows of the lower factor of the kernel matrix, each up to its diagonal.
    factor: Vec<Vec<f64>>,
    mean: f64,
    variance: f64,
    /// `factor \ (values - mean)`.
    whitened: Vec<f64>,
}

impl Process {
    /// Fits the process to values at points. `None` without points or if no length gives a
    /// usable matrix.
    pub(super) fn fit(points: &[Vec<f32>], values: &[f64]) -> Option<Self> {
        let fits = LENGTHS.iter().filter_map(|&length| {
            let mut process = Process {
                points: Vec::new(),
                values: Vec::new(),
                length,
                factor: Vec::new(),
                mean: 0.0,
                variance: 1.0,
                whitened: Vec::new(),
            };
            for (point, &value) in points.iter().zip(values) {
                process.push(point.clone(), value)?;
            }
            process.level();
            let n = points.len() as f64;
            let volume: f64 =
                process.factor.iter().filter_map(|r| r.last()).map(|&d| libm::log(d)).sum();
            let surprise = 0.5 * n * libm::log(process.variance) + volume;
            surprise.is_finite().then_some((surprise, process))
        });
        fits.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, process)| process)
    }

    /// What is expected at a point: mean and standard deviation.
    pub(super) fn expect(&self, point: &[f32]) -> (f64, f64) {
        let column = self.solve(&self.column(point));
        let mean = self.mean + dot(&column, &self.whitened);
        let left = (1.0 + NOISE - dot(&column, &column)).max(1e-9);
        (mean, (left * self.variance).sqrt())
    }

    /// Believes that a point has the value that is expected there.
    pub(super) fn believe(&mut self, point: Vec<f32>) {
        let (mean, _) = self.expect(&point);
        if self.push(point, mean).is_some() {
            self.whiten();
        }
    }

    /// Adds a point; the mean, the variance and what was whitened stay behind. `None` if it
    /// says nothing new.
    fn push(&mut self, point: Vec<f32>, value: f64) -> Option<()> {
        let mut row = self.solve(&self.column(&point));
        let left = 1.0 + NOISE - dot(&row, &row);
        if left.is_nan() || left <= 1e-12 {
            return None;
        }
        row.push(left.sqrt());
        self.factor.push(row);
        self.points.push(point);
        self.values.push(value);
        Some(())
    }

    /// The most likely mean and variance.
    fn level(&mut self) {
        let ones = self.solve(&vec![1.0; self.values.len()]);
        let values = self.solve(&self.values);
        self.mean = dot(&ones, &values) / dot(&ones, &ones).max(1e-12);
        self.whiten();
        let n = self.values.len().max(1) as f64;
        self.variance = (dot(&self.whitened, &self.whitened) / n).max(1e-12);
    }

    fn whiten(&mut self) {
        let centred: Vec<f64> = self.values.iter().map(|v| v - self.mean).collect();
        self.whitened = self.solve(&centred);
    }

    /// Kernel values between a point and the process' own.
    fn column(&self, point: &[f32]) -> Vec<f64> {
        self.points.iter().map(|p| kernel(p, point, self.length)).collect()
    }

    /// Forward substitution.
    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut answer: Vec<f64> = Vec::with_capacity(right.len());
        for (row, r) in self.factor.iter().zip(right) {
            let known = dot(&row[..answer.len()], &answer);
            answer.push((r - known) / row[row.len() - 1]);
        }
        answer
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Matern 5/2.
fn kernel(a: &[f32], b: &[f32], length: f64) -> f64 {
    let squared: f64 = a.iter().zip(b).map(|(x, y)| f64::from(x - y).powi(2)).sum();
    let r = (5.0 * squared).sqrt() / length;
    (1.0 + r + r * r / 3.0) * libm::exp(-r)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(angle: f32) -> Vec<f32> {
        vec![angle.cos(), angle.sin()]
    }

    /// Where it has seen, it knows; far away it expects the mean and the whole spread.
    #[test]
    fn what_was_seen_is_known_and_what_is_far_is_not() {
        let points = vec![vec![0.0], vec![0.1], vec![50.0]];
        let process = Process::fit(&points, &[1.0, 2.0, 3.0]).unwrap();
        for (point, value) in points.iter().zip([1.0, 2.0, 3.0]) {
            let (mean, deviation) = process.expect(point);
            assert!((mean - value).abs() < 0.05 && deviation < 0.1, "{mean} {deviation}");
        }
        let (mean, deviation) = process.expect(&[1000.0]);
        assert!((mean - process.mean).abs() < 1e-6);
        assert!((deviation - (process.variance * (1.0 + NOISE)).sqrt()).abs() < 1e-6);
    }

    /// Two points at 0 and 0.2 with values 0 and 1: the mean is 0.5, and by the inverse of
    /// the 2x2 kernel matrix the process expects
    /// `0.5 + 0.5 (k(x, 0.2) - k(x, 0)) / (1 + noise - k(0, 0.2))` at x.
    #[test]
    fn the_mean_between_two_points_is_the_one_worked_out_by_hand() {
        let process = Process::fit(&[vec![0.0], vec![0.2]], &[0.0, 1.0]).unwrap();
        let k = |a: f32, b: f32| kernel(&[a], &[b], process.length);
        let by_hand = 0.5 + 0.5 * (k(0.05, 0.2) - k(0.05, 0.0)) / (1.0 + NOISE - k(0.0, 0.2));
        let mean = process.expect(&[0.05]).0;
        assert!((mean - by_hand).abs() < 1e-6, "{mean} {by_hand}");
    }

    /// A wave sampled on one side of the circle is continued over the seam.
    #[test]
    fn the_circle_has_no_seam() {
        let angles: Vec<f32> = (0..12).map(|i| -3.1 + 0.52 * i as f32).collect();
        let points: Vec<Vec<f32>> = angles.iter().map(|&a| circle(a)).collect();
        let values: Vec<f64> = angles.iter().map(|&a| f64::from(a.cos())).collect();
        let process = Process::fit(&points, &values).unwrap();
        let (mean, _) = process.expect(&circle(std::f32::consts::PI));
        assert!((mean + 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn a_belief_changes_no_mean_but_the_doubt() {
        let points: Vec<Vec<f32>> = [0.0, 1.0, 2.0, 4.0].map(circle).into();
        let mut process = Process::fit(&points, &[0.3, 0.1, 0.9, 0.4]).unwrap();
        let before = process.expect(&circle(3.0));
        process.believe(circle(3.0));
        let after = process.expect(&circle(3.0));
        assert!((before.0 - after.0).abs() < 1e-3 && after.1 < 0.5 * before.1);
    }
}
