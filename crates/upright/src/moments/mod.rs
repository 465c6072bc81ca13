//! Moments: poses worth looking at first, from the second moments of an input.
//!
//! On a plain background the intensity covariance `Sx` of an input fixes the
//! linear map that makes it look upright up to a rotation: a view has the
//! covariance `St` of upright inputs if `M = Sx^(1/2) R St^(-1/2)` for some
//! rotation `R` (maps go from view to input). [`Moments`] remembers a few
//! covariances that upright inputs have, and offers the poses of such maps at
//! equally spaced angles. Where the background is not plain, moments mean
//! nothing and there are no such poses.

use crate::error::Result;
use crate::space::Space;
use crate::state::State;
use crate::tensor::{Batch, Signal};

mod invert;
mod plane;

use invert::Inverter;
pub use plane::Covariance;

/// Most covariances remembered.
const PROTOTYPES: usize = 6;

/// Share of inputs that must have a plain background.
const PLAIN: f64 = 0.9;

/// Candidate angles for each covariance, of which the feasible ones are used.
const ANGLES: usize = 48;

/// Covariances of upright inputs, and the way from maps to poses of one space.
#[derive(Debug)]
pub struct Moments {
    prototypes: Vec<Covariance>,
    inverter: Inverter,
}

impl Moments {
    /// Learns from the covariances of upright inputs, `None` standing for inputs
    /// without a plain background. `None` if there are too many of those, or if the space
    /// is not one of plane maps.
    pub fn fit(covariances: &[Option<Covariance>], space: &Space) -> Option<Self> {
        let inverter = Inverter::new(space)?;
        let known: Vec<Covariance> = covariances.iter().copied().flatten().collect();
        let enough = known.len() as f64 >= PLAIN * covariances.len() as f64;
        (enough && !known.is_empty())
            .then(|| Moments { prototypes: plane::prototypes(&known, PROTOTYPES), inverter })
    }

    /// About `count` poses under which an input looks upright by its moments, spread over
    /// the angles; none if its background is not plain.
    pub fn seeds(
        &self,
        space: &Space,
        signal: Signal,
        item: &[f32],
        count: usize,
    ) -> Vec<Vec<f32>> {
        let Some(own) = covariance(signal, item) else { return Vec::new() };
        let each = count.div_ceil(self.prototypes.len().max(1)).max(1);
        let mut seeds = Vec::with_capacity(count);
        for (p, prototype) in self.prototypes.iter().enumerate() {
            let feasible: Vec<Vec<f32>> = (0..ANGLES)
                .filter_map(|a| {
                    let turn = std::f64::consts::TAU * (a as f64 + p as f64 / PROTOTYPES as f64)
                        / ANGLES as f64;
                    self.inverter.pose(space, &plane::aligned(&own, turn, prototype))
                })
                .collect();
            let n = feasible.len();
            let take = each.min(n);
            seeds.extend(
                (0..take).map(|i| feasible[i * n / take + (n / take) * p / PROTOTYPES].clone()),
            );
        }
        seeds.truncate(count);
        seeds
    }

    /// What to store.
    pub fn state(&self) -> State {
        let numbers: Vec<f64> = self.prototypes.iter().flat_map(|s| [s.xx, s.xy, s.yy]).collect();
        State::new().f64("prototypes", &numbers)
    }

    /// Restores what [`Moments::state`] stored.
    pub fn load(state: &State, space: &Space) -> Result<Option<Self>> {
        let Some(inverter) = Inverter::new(space) else { return Ok(None) };
        let numbers = state.read_f64("prototypes")?;
        let prototypes = numbers
            .as_chunks::<3>()
            .0
            .iter()
            .map(|&[xx, xy, yy]| Covariance { xx, xy, yy })
            .collect();
        Ok(Some(Moments { prototypes, inverter }))
    }
}

/// The covariances of some inputs; `None` for those without a plain background and for
/// signals without plane moments.
pub fn covariances(batch: &Batch) -> Vec<Option<Covariance>> {
    (0..batch.len()).map(|i| covariance(batch.signal(), batch.item(i))).collect()
}

fn covariance(signal: Signal, item: &[f32]) -> Option<Covariance> {
    match signal {
        Signal::Image { channels, height, width } => plane::of_image(item, channels, height, width),
        Signal::Strokes { .. } => plane::of_strokes(item),
        Signal::Cloud { .. } => None,
    }
}
