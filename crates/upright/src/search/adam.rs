//! Adam (Kingma & Ba 2015) on the raw numbers of a pose, and chains of it.
//!
//! `m <- b1 m + (1 - b1) g`, `v <- b2 v + (1 - b2) g^2`,
//! `x <- x - rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)` with
//! `b1 = 0.9`, `b2 = 0.999`, `eps = 1e-8`; then the pose is confined: angles wrap,
//! bounded numbers reflect, scales on the log scale. Radians, shears and
//! factors share one rate, as in the paper.
//!
//! A chain of `k` steps asks for `k` gradients and, in the end, for the energy
//! of the pose it has reached: it costs `2 k + 1`.

use super::{Ask, Seen};
use crate::space::Space;

const MEAN: f64 = 0.9;
const SQUARE: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// The memory of one Adam.
#[derive(Debug)]
struct Adam {
    mean: Vec<f64>,
    square: Vec<f64>,
    left: (f64, f64),
}

impl Adam {
    fn new(size: usize) -> Self {
        Adam { mean: vec![0.0; size], square: vec![0.0; size], left: (1.0, 1.0) }
    }

    /// Moves a pose against the gradient; components that are not finite count as 0.
    fn step(&mut self, pose: &mut [f32], gradient: &[f32], rate: f64) {
        self.left = (self.left.0 * MEAN, self.left.1 * SQUARE);
        for (k, (x, &g)) in pose.iter_mut().zip(gradient).enumerate() {
            let g = if g.is_finite() { f64::from(g) } else { 0.0 };
            self.mean[k] = MEAN * self.mean[k] + (1.0 - MEAN) * g;
            self.square[k] = SQUARE * self.square[k] + (1.0 - SQUARE) * g * g;
            let mean = self.mean[k] / (1.0 - self.left.0);
            let square = self.square[k] / (1.0 - self.left.1);
            *x -= (rate * mean / (square.sqrt() + EPSILON)) as f32;
        }
    }
}

#[derive(Debug)]
struct Chain {
    pose: Vec<f32>,
    adam: Adam,
    rate: f64,
    /// Gradients still to ask for; `None` once the last energy has been asked for.
    steps: Option<usize>,
}

/// Chains of Adam that advance in step.
#[derive(Debug)]
pub(super) struct Chains<'a> {
    space: &'a Space,
    decay: f64,
    all: Vec<Chain>,
    asked: Vec<usize>,
}

impl<'a> Chains<'a> {
    /// Chains from poses, each with its number of steps; the rate is multiplied by
    /// `decay` after each step.
    pub(super) fn new(
        space: &'a Space,
        starts: impl IntoIterator<Item = (Vec<f32>, usize)>,
        rate: f64,
        decay: f64,
    ) -> Self {
        let all = starts
            .into_iter()
            .map(|(pose, steps)| Chain {
                adam: Adam::new(pose.len()),
                pose,
                rate,
                steps: Some(steps),
            })
            .collect();
        Chains { space, decay, all, asked: Vec::new() }
    }

    /// The poses the chains have reached, as far as `room` goes; none at the end.
    pub(super) fn ask(&mut self, room: usize) -> Vec<Ask> {
        let (mut asks, mut left) = (Vec::new(), room);
        self.asked.clear();
        for (i, chain) in self.all.iter().enumerate() {
            let Some(steps) = chain.steps else { continue };
            let ask = Ask { gradient: steps > 0, ..Ask::plain(chain.pose.clone()) };
            if ask.cost() > left {
                break;
            }
            left -= ask.cost();
            asks.push(ask);
            self.asked.push(i);
        }
        asks
    }

    /// Whether pose `i` of the last ask is where a chain ends.
    pub(super) fn ends(&self, i: usize) -> bool {
        self.asked.get(i).is_some_and(|&c| self.all[c].steps == Some(0))
    }

    /// Moves the chains. False if a gradient was asked for and not given.
    pub(super) fn tell(&mut self, seen: &[Seen]) -> bool {
        let mut given = true;
        for (&i, seen) in self.asked.iter().zip(seen) {
            let chain = &mut self.all[i];
            let steps = chain.steps.unwrap_or(0);
            chain.steps = steps.checked_sub(1);
            if steps == 0 {
                continue;
            }
            let Some(gradient) = &seen.gradient else {
                given = false;
                continue;
            };
            chain.adam.step(&mut chain.pose, gradient, chain.rate);
            chain.rate *= self.decay;
            self.space.confine(&mut chain.pose);
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    /// Three steps on `E = 1.5 a^2 + 0.5 (b - 0.3)^2` from (1, -0.2), by the formula of
    /// the module in numpy with 64-bit floats.
    #[test]
    fn the_trajectory_is_that_of_the_formula() {
        let trajectory = |decay: f64| {
            let (mut adam, mut x, mut rate) = (Adam::new(2), vec![1.0, -0.2], 0.1);
            let mut out = Vec::new();
            for _ in 0..3 {
                let gradient = [3.0 * x[0], x[1] - 0.3];
                adam.step(&mut x, &gradient, rate);
                rate *= decay;
                out.extend_from_slice(&x);
            }
            out
        };
        let close = |got: Vec<f32>, want: [f32; 6]| {
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-6), "{got:?}");
        };
        close(trajectory(1.0), CONSTANT);
        close(trajectory(0.8), DECAYED);
    }

    const CONSTANT: [f32; 6] = [0.9, -0.1, 0.800_412_2, -0.001_187_42, 0.701_586_3, 0.095_128_74];
    const DECAYED: [f32; 6] = [0.9, -0.1, 0.820_329_8, -0.020_949_94, 0.756_977_1, 0.041_077_08];

    #[test]
    fn gradients_that_are_not_finite_do_not_move_a_pose() {
        let (mut adam, mut x) = (Adam::new(2), vec![1.0, 1.0]);
        adam.step(&mut x, &[f32::NAN, f32::INFINITY], 0.1);
        assert_eq!(x, [1.0, 1.0]);
    }

    #[test]
    fn a_chain_asks_for_its_gradients_then_for_one_energy_and_wraps_on_the_way() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let mut chains = Chains::new(&space, [(vec![3.1], 2)], 0.1, 1.0);
        let mut asked = Vec::new();
        loop {
            let asks = chains.ask(100);
            let Some(ask) = asks.first() else { break };
            asked.push((ask.pose[0], ask.gradient, chains.ends(0)));
            let gradient = ask.gradient.then(|| vec![-2.0]);
            let pose = ask.pose.clone();
            assert!(chains.tell(&[Seen { pose, energy: 0.0, label: 0, gradient, follows: None }]));
        }
        let wrapped = 3.2 - std::f32::consts::TAU;
        assert_eq!(asked.len(), 3);
        assert_eq!((asked[0].1, asked[1].1, asked[2].1), (true, true, false));
        assert!((asked[1].0 - wrapped).abs() < 1e-5 && !asked[1].2 && asked[2].2);
    }
}
