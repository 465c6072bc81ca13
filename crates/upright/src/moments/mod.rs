//! Moments: poses worth looking at first, from the second moments of an input.
//!
//! On a plain background the intensity covariance `Sx` of an input fixes the
//! linear map that makes it look upright up to a rotation: a view has the
//! covariance `St` of upright inputs if `M = Sx^(1/2) R St^(-1/2)` for some
//! rotation `R` (maps go from view to input). [`Moments`] remembers a few
//! covariances that upright inputs have, and offers the poses of such maps at
//! equally spaced angles. Where the background is not plain, moments mean
//! nothing and there are no such poses.
//!
//! The principal axes of a cloud fix its rotation up to four choices of their
//! signs: a few frames that upright clouds have give four poses each.

use crate::error::Result;
use crate::space::Space;
use crate::state::State;
use crate::tensor::{Batch, Signal};

mod groups;
mod invert;
mod plane;
mod solid;

use invert::Inverter;
pub use plane::Covariance;
pub use solid::Spread;

/// Most covariances remembered.
const PROTOTYPES: usize = 6;

/// Share of inputs that must have a plain background.
const PLAIN: f64 = 0.9;

/// Candidate angles for each covariance, of which the feasible ones are used.
const ANGLES: usize = 24;

/// The second moments of one input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Of an image or strokes.
    Plane(Covariance),
    /// Of a cloud.
    Solid(Spread),
}

/// Moments of upright inputs, and the way from maps to poses of one space.
#[derive(Debug)]
pub struct Moments {
    kind: Known,
}

#[derive(Debug)]
enum Known {
    Plane { prototypes: Vec<Covariance>, inverter: Inverter },
    Solid { prototypes: Vec<Spread> },
}

impl Moments {
    /// Learns from the moments of upright inputs, `None` standing for inputs without a plain
    /// background. `None` if there are too many of those, or if the space is not one of
    /// their maps.
    pub fn fit(shapes: &[Option<Shape>], space: &Space) -> Option<Self> {
        let (mut plane, mut solid) = (Vec::new(), Vec::new());
        for shape in shapes.iter().flatten() {
            match shape {
                Shape::Plane(c) => plane.push(*c),
                Shape::Solid(s) => solid.push(*s),
            }
        }
        let enough = |n: usize| n > 0 && n as f64 >= PLAIN * shapes.len() as f64;
        if enough(solid.len()) {
            let prototypes = solid::prototypes(&solid, PROTOTYPES);
            return Some(Moments { kind: Known::Solid { prototypes } });
        }
        let inverter = Inverter::new(space)?;
        enough(plane.len()).then(|| {
            let prototypes = plane::prototypes(&plane, PROTOTYPES);
            Moments { kind: Known::Plane { prototypes, inverter } }
        })
    }

    /// At most `count` poses under which an input looks upright by its moments, those of
    /// images and strokes spread over the angles; none if its background is not plain.
    pub fn seeds(
        &self,
        space: &Space,
        signal: Signal,
        item: &[f32],
        count: usize,
    ) -> Vec<Vec<f32>> {
        let mut seeds = match (&self.kind, shape(signal, item)) {
            (Known::Plane { prototypes, inverter }, Some(Shape::Plane(own))) => {
                plane_seeds(prototypes, inverter, space, &own, count)
            }
            (Known::Solid { prototypes }, Some(Shape::Solid(own))) => {
                let maps = solid::aligned(&own, prototypes);
                maps.iter().filter_map(|map| space.pose(map)).collect()
            }
            _ => Vec::new(),
        };
        seeds.truncate(count);
        seeds
    }

    /// What to store.
    pub fn state(&self) -> State {
        match &self.kind {
            Known::Plane { prototypes, .. } => {
                let numbers: Vec<f64> =
                    prototypes.iter().flat_map(|s| [s.xx, s.xy, s.yy]).collect();
                State::new().f64("prototypes", &numbers)
            }
            Known::Solid { prototypes } => {
                let numbers: Vec<f64> = prototypes.iter().flat_map(|s| s.0).collect();
                State::new().f64("solids", &numbers)
            }
        }
    }

    /// Restores what [`Moments::state`] stored.
    pub fn load(state: &State, space: &Space) -> Result<Option<Self>> {
        if let Ok(numbers) = state.read_f64("solids") {
            let prototypes = numbers.as_chunks::<6>().0.iter().map(|&s| Spread(s)).collect();
            return Ok(Some(Moments { kind: Known::Solid { prototypes } }));
        }
        let Some(inverter) = Inverter::new(space) else { return Ok(None) };
        let numbers = state.read_f64("prototypes")?;
        let prototypes = numbers
            .as_chunks::<3>()
            .0
            .iter()
            .map(|&[xx, xy, yy]| Covariance { xx, xy, yy })
            .collect();
        Ok(Some(Moments { kind: Known::Plane { prototypes, inverter } }))
    }
}

fn plane_seeds(
    prototypes: &[Covariance],
    inverter: &Inverter,
    space: &Space,
    own: &Covariance,
    count: usize,
) -> Vec<Vec<f32>> {
    let each = count.div_ceil(prototypes.len().max(1)).max(1);
    let mut seeds = Vec::with_capacity(count);
    for (p, prototype) in prototypes.iter().enumerate() {
        let feasible: Vec<Vec<f32>> = (0..ANGLES)
            .filter_map(|a| {
                let turn = std::f64::consts::TAU * (a as f64 + p as f64 / PROTOTYPES as f64)
                    / ANGLES as f64;
                inverter.pose(space, &plane::aligned(own, turn, prototype))
            })
            .collect();
        let n = feasible.len();
        let take = each.min(n);
        seeds.extend(
            (0..take).map(|i| feasible[i * n / take + (n / take) * p / PROTOTYPES].clone()),
        );
    }
    seeds
}

/// The moments of some inputs; `None` for those without a plain background.
pub fn shapes(batch: &Batch) -> Vec<Option<Shape>> {
    (0..batch.len()).map(|i| shape(batch.signal(), batch.item(i))).collect()
}

fn shape(signal: Signal, item: &[f32]) -> Option<Shape> {
    match signal {
        Signal::Image { channels, height, width } => {
            plane::of_image(item, channels, height, width).map(Shape::Plane)
        }
        Signal::Strokes { .. } => plane::of_strokes(item).map(Shape::Plane),
        Signal::Cloud { .. } => solid::of_cloud(item).map(Shape::Solid),
    }
}
