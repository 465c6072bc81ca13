//! Parzen estimators: a mixture with one kernel for each observed point and
//! one for the prior. A kernel is a product over knobs, of normal densities
//! truncated to the range for numbers, and of probabilities for choices.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::knobs::Range;

/// Draws after which a truncated normal is taken as uniform; the chance of
/// getting there is below 1e-11 as the mean lies inside and the deviation is
/// at most the range.
const DRAWS: usize = 64;

/// A uniform number in 0..1, of 53 bits.
pub(super) fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A place drawn evenly from a range.
pub(super) fn even(range: &Range, rng: &mut ChaCha8Rng) -> f64 {
    match (range, range.ends()) {
        (_, Some((low, high))) => low + (high - low) * unit(rng),
        (Range::Choice(values), None) => (values.len() as f64 * unit(rng)).floor(),
        _ => 0.0,
    }
}

/// A mixture of kernels over the knobs of a group.
#[derive(Debug)]
pub(super) struct Parzen<'a> {
    /// Weights of the kernels, adding up to 1; the prior is last.
    weights: Vec<f64>,
    factors: Vec<Factor<'a>>,
}

/// All kernels' factors for one knob.
#[derive(Debug)]
enum Factor<'a> {
    Normal {
        range: &'a Range,
        ends: (f64, f64),
        /// Mean, deviation and the logarithm of the mass between the ends.
        kernels: Vec<(f64, f64, f64)>,
    },
    /// Probabilities of each value in each kernel.
    Choice(Vec<Vec<f64>>),
}

impl<'a> Parzen<'a> {
    /// The mixture for points given by their places, oldest first.
    pub(super) fn new(ranges: &[&'a Range], points: &[Vec<f64>]) -> Self {
        let mut weights = recency(points.len());
        weights.push(1.0);
        let sum: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= sum;
        }
        let column = |at: usize| points.iter().map(|p| p[at]).collect::<Vec<f64>>();
        let factors = ranges.iter().enumerate().map(|(at, range)| Factor::new(range, &column(at)));
        Parzen { weights, factors: factors.collect() }
    }

    /// A point's places.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let kernel = pick(&self.weights, unit(rng));
        self.factors.iter().map(|factor| factor.draw(kernel, rng)).collect()
    }

    /// The logarithm of the density at a point's places.
    pub(super) fn ln_density(&self, point: &[f64]) -> f64 {
        let terms: Vec<f64> = (0..self.weights.len())
            .map(|kernel| {
                let factors = self.factors.iter().zip(point);
                libm::log(self.weights[kernel])
                    + factors.map(|(f, &place)| f.ln_density(kernel, place)).sum::<f64>()
            })
            .collect();
        let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        top + libm::log(terms.iter().map(|t| libm::exp(t - top)).sum())
    }
}

impl<'a> Factor<'a> {
    fn new(range: &'a Range, places: &[f64]) -> Self {
        let Some(ends) = range.ends() else {
            let Range::Choice(values) = range else { return Factor::Choice(Vec::new()) };
            return Factor::Choice(chances(values.len(), places));
        };
        let middle = ends.0.midpoint(ends.1);
        let means = places.iter().map(|p| p.clamp(ends.0, ends.1)).chain([middle]);
        let deviations = deviations(places, ends).into_iter().chain([ends.1 - ends.0]);
        let kernels = means.zip(deviations).map(|(mean, deviation)| {
            let whole = mass((ends.0 - mean) / deviation, (ends.1 - mean) / deviation);
            (mean, deviation, libm::log(whole))
        });
        Factor::Normal { range, ends, kernels: kernels.collect() }
    }

    fn draw(&self, kernel: usize, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Factor::Choice(rows) => pick(&rows[kernel], unit(rng)) as f64,
            Factor::Normal { range, ends, kernels } => {
                let (mean, deviation, _) = kernels[kernel];
                let drawn = (0..DRAWS)
                    .map(|_| mean + deviation * normal(rng))
                    .find(|place| (ends.0..=ends.1).contains(place));
                let place = drawn.unwrap_or_else(|| even(range, rng));
                range.place(&range.value(place)).unwrap_or(place)
            }
        }
    }

    fn ln_density(&self, kernel: usize, place: f64) -> f64 {
        match self {
            Factor::Choice(rows) => libm::log(rows[kernel][place as usize]),
            Factor::Normal { range, kernels, .. } => {
                let (mean, deviation, ln_whole) = kernels[kernel];
                let z = |at: f64| (at - mean) / deviation;
                match range.cell(place) {
                    Some((low, high)) => libm::log(mass(z(low), z(high))) - ln_whole,
                    None => -0.5 * z(place) * z(place) - libm::log(deviation) - LN_ROOT - ln_whole,
                }
            }
        }
    }
}

/// `ln sqrt(2 pi)`.
const LN_ROOT: f64 = 0.918_938_533_204_672_7;

/// Weights of observations, oldest first: the last 25 count 1, the older ones
/// rise linearly from `1/n` to 1.
fn recency(n: usize) -> Vec<f64> {
    let old = n.saturating_sub(25);
    let least = 1.0 / n.max(1) as f64;
    let rising = |i: usize| least + (1.0 - least) * i as f64 / (old.max(2) - 1) as f64;
    (0..n).map(|i| if i < old { rising(i) } else { 1.0 }).collect()
}

/// A kernel is as wide as the larger gap to its neighbours, clipped to
/// `range / min(100, n + 2)` below and the range above ("magic clip"). At the
/// rims only the inner gap counts; a single one is measured to the ends.
fn deviations(places: &[f64], (low, high): (f64, f64)) -> Vec<f64> {
    let n = places.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let at = |i: usize| places[order[i]];
    let narrowest = (high - low) / (n as f64 + 2.0).min(100.0);
    let mut result = vec![0.0; n];
    for i in 0..n {
        let gap = match (i > 0, i + 1 < n) {
            (true, true) => (at(i) - at(i - 1)).max(at(i + 1) - at(i)),
            (true, false) => at(i) - at(i - 1),
            (false, true) => at(i + 1) - at(i),
            (false, false) => (at(i) - low).max(high - at(i)),
        };
        result[order[i]] = gap.clamp(narrowest, high - low);
    }
    result
}

/// Each kernel gives its own value 1 and every value `1 / kernels`, normalised;
/// the prior is even.
fn chances(values: usize, places: &[f64]) -> Vec<Vec<f64>> {
    let share = 1.0 / (places.len() + 1) as f64;
    let own = places.iter().map(|&p| Some(p as usize)).chain([None]);
    own.map(|own| {
        let mut row = vec![share; values];
        if let Some(chance) = own.and_then(|at| row.get_mut(at)) {
            *chance += 1.0;
        }
        let sum: f64 = row.iter().sum();
        for chance in &mut row {
            *chance /= sum;
        }
        row
    })
    .collect()
}

/// The index at which the running sum of chances passes `u`.
fn pick(chances: &[f64], u: f64) -> usize {
    let mut sum = 0.0;
    let passed = chances.iter().position(|chance| {
        sum += chance;
        u < sum
    });
    passed.unwrap_or(chances.len().saturating_sub(1))
}

/// A standard normal number (Box & Muller 1958).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(rng)));
    radius * libm::cos(std::f64::consts::TAU * unit(rng))
}

/// The standard normal's mass between two numbers, accurate in both tails.
fn mass(a: f64, b: f64) -> f64 {
    let upper = |z: f64| 0.5 * libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2);
    if a > 0.0 { upper(a) - upper(b) } else { upper(-b) - upper(-a) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Value;
    use crate::seed::stream;

    fn real() -> Range {
        Range::Real { low: 0.0, high: 10.0, log: false }
    }

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-12, "{got} is not {want}");
    }

    #[test]
    fn deviations_equal_those_worked_by_hand() {
        // Sorted 1, 2, 6: gaps 1 | max(1, 4) | 4; none below 10 / 5.
        assert_eq!(deviations(&[6.0, 1.0, 2.0], (0.0, 10.0)), [4.0, 2.0, 4.0]);
        assert_eq!(deviations(&[3.0], (0.0, 10.0)), [7.0]);
        assert_eq!(deviations(&[3.0, 3.0], (0.0, 10.0)), [2.5, 2.5]);
        assert!(deviations(&[], (0.0, 10.0)).is_empty());
    }

    #[test]
    fn the_last_twenty_five_observations_count_fully() {
        assert_eq!(recency(24), [1.0; 24]);
        let weights = recency(28);
        near(weights[0], 1.0 / 28.0);
        near(weights[1], 29.0 / 56.0);
        assert_eq!(weights[2..], [1.0; 26]);
        near(recency(26)[0], 1.0 / 26.0);
    }

    #[test]
    fn chances_equal_those_worked_by_hand() {
        // Two kernels, of which one saw the last of three values: 1/2, 1/2, 3/2 of 5/2.
        let rows = chances(3, &[2.0]);
        for (got, want) in rows[0].iter().zip([0.2, 0.2, 0.6]) {
            near(*got, want);
        }
        near(rows[1][2], 1.0 / 3.0);
    }

    #[test]
    fn densities_are_those_of_the_mixture_and_add_up_to_one() {
        let points: Vec<Vec<f64>> = [3.0, 7.5, 9.0].map(|p| vec![p]).to_vec();
        let log = Range::Real { low: 0.5, high: 20.0, log: true };
        for range in [real(), log] {
            let (low, high) = range.ends().unwrap();
            let inside: Vec<_> = points.iter().map(|p| vec![p[0].min(high)]).collect();
            let mixture = Parzen::new(&[&range], &inside);
            let cells = 20_000;
            let width = (high - low) / f64::from(cells);
            let sum: f64 = (0..cells)
                .map(|i| mixture.ln_density(&[low + width * (f64::from(i) + 0.5)]).exp() * width)
                .sum();
            assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        }
        for log in [false, true] {
            let range = Range::Whole { low: 1, high: 40, log };
            let place = |k: u32| range.place(&Value::Number(f64::from(k))).unwrap();
            let seen: Vec<_> = [2, 3, 17].map(|k| vec![place(k)]).to_vec();
            let mixture = Parzen::new(&[&range], &seen);
            let sum: f64 = (1..=40).map(|k| mixture.ln_density(&[place(k)]).exp()).sum();
            near(sum, 1.0);
        }
        // The prior alone: a normal of mean 5 and deviation 10 in 0..10; at its mean
        // 1 / (10 sqrt(2 pi) (2 Phi(1/2) - 1)).
        let prior = Parzen::new(&[&real()], &[]).ln_density(&[5.0]).exp();
        assert!((prior - 0.039_894_228_040_143 / 0.382_924_922_548_026).abs() < 1e-12);
    }

    #[test]
    fn draws_follow_the_density() {
        let range = Range::Whole { low: 0, high: 9, log: false };
        let words = Range::Choice(["a", "b", "c"].map(|w| Value::Word(w.into())).to_vec());
        let mixture = Parzen::new(&[&range, &words], &[vec![2.0, 0.0], vec![8.0, 2.0]]);
        let mut rng = stream(3);
        let mut counts = [[0u32; 3]; 10];
        let draws = 40_000;
        for _ in 0..draws {
            let point = mixture.draw(&mut rng);
            counts[point[0] as usize][point[1] as usize] += 1;
        }
        for (k, row) in counts.iter().enumerate() {
            for (w, &count) in row.iter().enumerate() {
                let want = mixture.ln_density(&[k as f64, w as f64]).exp();
                let got = f64::from(count) / f64::from(draws);
                let tolerance = 5.0 * (want / f64::from(draws)).sqrt();
                assert!((got - want).abs() < tolerance, "{k} {w}: {got} is not {want}");
            }
        }
    }

    #[test]
    fn masses_are_accurate_in_the_tails() {
        near(mass(-1.0, 1.0), 0.682_689_492_137_085_9);
        // Phi(-8) - Phi(-9).
        let tail = 6.220_960_574_271_785e-16 - 1.128_588_405_953_840_6e-19;
        assert!((mass(8.0, 9.0) / tail - 1.0).abs() < 1e-9);
        assert!((mass(-9.0, -8.0) / tail - 1.0).abs() < 1e-9);
    }
}
