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

use super::none::Silent;
use super::shapes::{Covariance, Inverter, Shape, Spread, plane, shape, shapes, solid};
use super::{Bank, Brief, Make, Proposal, Proposer, Run};
use crate::config::Settings;
use crate::dataset::CHUNK;
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;
use crate::state::State;

/// Most covariances remembered.
const PROTOTYPES: usize = 6;

/// Share of inputs that must have a plain background.
pub(super) const PLAIN: f64 = 0.9;

/// Bank samples whose moments are looked at.
const MEASURED: usize = 4096;

/// Candidate angles for each covariance, of which the feasible ones are used.
const ANGLES: usize = 24;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "moments",
    about: "poses under which the second moments are those of upright inputs",
    params: &[],
    make: Make { bank: true, copies: false, taps: &[], fit, load },
};

/// Moments of upright inputs, and the way from maps to poses of one space.
#[derive(Debug)]
enum Moments {
    Plane {
        prototypes: Vec<Covariance>,
        inverter: Inverter,
    },
    Solid {
        prototypes: Vec<Spread>,
    },
    /// Too many inputs have no plain background, or the space is not one of their maps.
    Unknown,
}

fn fit(_: &Settings, bank: &mut Bank) -> Result<Box<dyn Proposer>> {
    let count = bank.samples.len();
    let stride = count.div_ceil(MEASURED).max(1);
    let mut found = Vec::new();
    for first in (0..count).step_by(CHUNK) {
        let some: Vec<usize> = (first..count.min(first + CHUNK)).step_by(stride).collect();
        found.extend(shapes(&bank.samples.read(&some)?.0));
    }
    Ok(Box::new(Moments::of(&found, bank.space)))
}

fn load(_: &Settings, state: &State, space: &Space) -> Result<Box<dyn Proposer>> {
    let has = |name: &str| state.tensors().contains_key(name);
    if has("solids") {
        let numbers = state.read_f64("solids")?;
        let prototypes = numbers.as_chunks::<6>().0.iter().map(|&s| Spread(s)).collect();
        return Ok(Box::new(Moments::Solid { prototypes }));
    }
    let Some(inverter) = Inverter::new(space).filter(|_| has("prototypes")) else {
        return Ok(Box::new(Moments::Unknown));
    };
    let numbers = state.read_f64("prototypes")?;
    let prototypes =
        numbers.as_chunks::<3>().0.iter().map(|&[xx, xy, yy]| Covariance { xx, xy, yy }).collect();
    Ok(Box::new(Moments::Plane { prototypes, inverter }))
}

impl Moments {
    /// Learns from the moments of upright inputs, `None` standing for inputs without a plain
    /// background.
    fn of(shapes: &[Option<Shape>], space: &Space) -> Self {
        let (mut plane, mut solid) = (Vec::new(), Vec::new());
        for shape in shapes.iter().flatten() {
            match shape {
                Shape::Plane(c) => plane.push(*c),
                Shape::Solid(s) => solid.push(*s),
            }
        }
        let enough = |n: usize| n > 0 && n as f64 >= PLAIN * shapes.len() as f64;
        if enough(solid.len()) {
            return Moments::Solid { prototypes: solid::prototypes(&solid, PROTOTYPES) };
        }
        match Inverter::new(space).filter(|_| enough(plane.len())) {
            Some(inverter) => {
                Moments::Plane { prototypes: plane::prototypes(&plane, PROTOTYPES), inverter }
            }
            None => Moments::Unknown,
        }
    }

    /// At most `count` poses under which an input looks upright by its moments, those of
    /// images and strokes spread over the angles; none if its background is not plain.
    fn poses(&self, brief: &Brief<'_>, count: usize) -> Vec<Vec<f32>> {
        let own = || shape(brief.signal, &brief.item);
        let mut poses = match self {
            Moments::Plane { prototypes, inverter } => match own() {
                Some(Shape::Plane(own)) => {
                    plane_poses(prototypes, inverter, brief.space, &own, count)
                }
                _ => Vec::new(),
            },
            Moments::Solid { prototypes } => match own() {
                Some(Shape::Solid(own)) => {
                    let maps = solid::aligned(&own, prototypes);
                    maps.iter().filter_map(|map| brief.space.pose(map)).collect()
                }
                _ => Vec::new(),
            },
            Moments::Unknown => Vec::new(),
        };
        poses.truncate(count);
        poses
    }
}

impl Proposer for Moments {
    fn start<'a>(&'a self, brief: Brief<'a>) -> Box<dyn Run + 'a> {
        match self {
            Moments::Unknown => Box::new(Silent),
            _ => Box::new(Known { moments: self, brief }),
        }
    }

    fn state(&self) -> State {
        match self {
            Moments::Plane { prototypes, .. } => {
                let numbers: Vec<f64> =
                    prototypes.iter().flat_map(|s| [s.xx, s.xy, s.yy]).collect();
                State::new().f64("prototypes", &numbers)
            }
            Moments::Solid { prototypes } => {
                let numbers: Vec<f64> = prototypes.iter().flat_map(|s| s.0).collect();
                State::new().f64("solids", &numbers)
            }
            Moments::Unknown => State::new(),
        }
    }
}

/// An input whose moments are known; all they tell is told at the start.
struct Known<'a> {
    moments: &'a Moments,
    brief: Brief<'a>,
}

impl Run for Known<'_> {
    fn first(&mut self, count: usize) -> Vec<Proposal> {
        if count == 0 {
            return Vec::new();
        }
        self.moments.poses(&self.brief, count).into_iter().map(Proposal::new).collect()
    }
}

fn plane_poses(
    prototypes: &[Covariance],
    inverter: &Inverter,
    space: &Space,
    own: &Covariance,
    count: usize,
) -> Vec<Vec<f32>> {
    let each = count.div_ceil(prototypes.len().max(1)).max(1);
    let mut poses = Vec::with_capacity(count);
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
        poses.extend(
            (0..take).map(|i| feasible[i * n / take + (n / take) * p / PROTOTYPES].clone()),
        );
    }
    poses
}
