//! Frames: the view that is read first, and what a place in it means for the
//! input.
//!
//! **Plane.** Let `C` be the covariance of an input and `T_c` the mean one of
//! upright samples of class `c`. The normal form of the input is its view
//! under `N = C^(1/2) T^(-1/2)` with the mean `T` of all samples: it has no
//! size and no elongation of its own, only a direction. If `V` is the
//! covariance of the normal form, the input looks upright under
//! `P = N V^(1/2) R(-a) T_c^(-1/2)` for one angle `a`. Of a copy that was made
//! of a sample with covariance `S` by the map `M`, the angle is that of
//! `S^(-1/2) M N V^(1/2)`. Where the background is not plain, or the space has
//! only rotations, all covariances are taken as the identity, and the normal
//! form is the input itself.
//!
//! **Solid.** `N` holds the principal axes of a cloud; the cloud looks upright
//! under `P = N A^T` for one rotation `A`, which for a copy is `M N`.

use super::cells::Place;
use crate::map::Map;
use crate::proposer::shapes::plane::{angle, inverse, product, rotation};
use crate::proposer::shapes::{Covariance, Inverter, Shape, linear, shape, solid};
use crate::rotation::{self, Matrix3};
use crate::space::Space;
use crate::tensor::Signal;

/// How far the map by which an input would have come may lie outside the domain, as a share of
/// its size.
const PLAUSIBLE: f64 = 0.5;

const ONE: [f64; 4] = [1.0, 0.0, 0.0, 1.0];

/// How inputs are framed.
#[derive(Debug)]
pub(super) enum Frames {
    /// By an angle; with covariances where there is a normal form.
    Plane { inverter: Inverter, upright: Option<Upright> },
    /// By a rotation from the principal axes.
    Solid,
    /// Not at all: a place is a pose.
    Bare,
}

/// The covariances of upright samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Upright {
    pub(super) all: Covariance,
    pub(super) classes: Vec<Covariance>,
}

/// An input in its frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Framed {
    Plane {
        /// The map of the normal form, and its pose.
        map: [f64; 4],
        pose: Vec<f32>,
        own: Option<Covariance>,
        /// `V^(1/2)`.
        root: [f64; 4],
    },
    Solid {
        axes: Matrix3,
        pose: Vec<f32>,
    },
    Bare {
        pose: Vec<f32>,
    },
}

impl Frames {
    /// The frame of an input.
    pub(super) fn of(&self, space: &Space, signal: Signal, item: &[f32]) -> Framed {
        match self {
            Frames::Plane { inverter, upright } => {
                let own = self.shape(signal, item);
                let normal = upright.as_ref().zip(own).and_then(|(upright, own)| {
                    let wanted = product(&own.root(), &inverse(&upright.all.root())?);
                    let pose = inverter.exact(space, &wanted)?;
                    let map = linear(&space.map(&pose))?;
                    let root = own.under(&map)?.root();
                    Some(Framed::Plane { map, pose, own: Some(own), root })
                });
                normal.unwrap_or_else(|| Framed::Plane {
                    map: ONE,
                    pose: space.identity(),
                    own,
                    root: own.or(upright.as_ref().map(|u| u.all)).map_or(ONE, |c| c.root()),
                })
            }
            Frames::Solid => {
                let found = solid::principal(item).and_then(|axes| {
                    let pose = space.pose(&Map::Space(axes.map(|v| v as f32)))?;
                    Some(Framed::Solid { axes, pose })
                });
                found.unwrap_or_else(|| Framed::Solid {
                    axes: rotation::about(0, 0.0),
                    pose: space.identity(),
                })
            }
            Frames::Bare => Framed::Bare { pose: space.identity() },
        }
    }

    /// What would have to be found for a copy that was made of a sample, whose own covariance
    /// is given, by a map; `None` where it cannot be told.
    pub(super) fn place(
        &self,
        space: &Space,
        copy: &Framed,
        sample: Option<Covariance>,
        made_by: &Map,
    ) -> Option<Place> {
        match (self, copy) {
            (Frames::Plane { upright, .. }, Framed::Plane { map, root, own, .. }) => {
                let back = match upright {
                    Some(_) => {
                        own.as_ref()?;
                        inverse(&sample?.root())?
                    }
                    None => ONE,
                };
                let whole = product(&product(&product(&back, &linear(made_by)?), map), root);
                angle(&whole).map(Place::Angle)
            }
            (Frames::Solid, Framed::Solid { axes, .. }) => {
                let Map::Space(made_by) = made_by else { return None };
                Some(Place::Turn(rotation::product(&made_by.map(f64::from), axes)))
            }
            (Frames::Bare, Framed::Bare { .. }) => {
                let undo = made_by.inverse()?;
                let pose = space.pose(&undo).or_else(|| {
                    let inverter = Inverter::new(space)?;
                    inverter.pose(space, &linear(&undo)?)
                })?;
                Some(Place::Pose(pose))
            }
            _ => None,
        }
    }

    /// The pose under which an input looks upright if a place is right for a class; `None` if
    /// the space has none.
    pub(super) fn pose(
        &self,
        space: &Space,
        input: &Framed,
        place: &Place,
        class: usize,
    ) -> Option<Vec<f32>> {
        match (self, input, place) {
            (
                Frames::Plane { inverter, upright },
                Framed::Plane { map, root, .. },
                Place::Angle(a),
            ) => {
                let turned = product(&product(map, root), &rotation(-a));
                let target = match upright {
                    Some(upright) => {
                        product(&turned, &inverse(&upright.classes.get(class)?.root())?)
                    }
                    None => turned,
                };
                undone(inverter, space, &target)
            }
            (Frames::Solid, Framed::Solid { axes, .. }, Place::Turn(turn)) => {
                let map = rotation::product(axes, &rotation::transpose(turn));
                space.pose(&Map::Space(map.map(|v| v as f32)))
            }
            (Frames::Bare, _, Place::Pose(pose)) => Some(pose.clone()),
            _ => None,
        }
    }

    /// A pose with this linear map, if an input may have come by what it undoes.
    pub(super) fn undone(&self, space: &Space, target: &[f64; 4]) -> Option<Vec<f32>> {
        match self {
            Frames::Plane { inverter, .. } => undone(inverter, space, target),
            Frames::Solid | Frames::Bare => None,
        }
    }

    /// The place that a pose implies for an input of a class: the way back from
    /// [`Frames::pose`].
    pub(super) fn place_of(
        &self,
        space: &Space,
        input: &Framed,
        pose: &[f32],
        class: usize,
    ) -> Option<Place> {
        match (self, input) {
            (Frames::Plane { upright, .. }, Framed::Plane { map, root, .. }) => {
                let back = inverse(&linear(&space.map(pose))?)?;
                let shaped = match upright {
                    Some(upright) => inverse(&upright.classes.get(class)?.root())?,
                    None => ONE,
                };
                angle(&product(&product(&product(&shaped, &back), map), root)).map(Place::Angle)
            }
            (Frames::Solid, Framed::Solid { axes, .. }) => {
                let Map::Space(map) = space.map(pose) else { return None };
                let back = rotation::transpose(&map.map(f64::from));
                Some(Place::Turn(rotation::product(&back, axes)))
            }
            (Frames::Bare, _) => Some(Place::Pose(pose.to_vec())),
            _ => None,
        }
    }

    /// The covariance of an input, where it matters.
    pub(super) fn shape(&self, signal: Signal, item: &[f32]) -> Option<Covariance> {
        match (self, shape(signal, item)) {
            (Frames::Plane { upright: Some(_), .. }, Some(Shape::Plane(own))) => Some(own),
            _ => None,
        }
    }

    /// How unlike upright samples of a class a view is in size and elongation.
    pub(super) fn unlike(
        &self,
        space: &Space,
        own: Option<&Covariance>,
        pose: &[f32],
        class: usize,
    ) -> f32 {
        let (Frames::Plane { upright: Some(upright), .. }, Some(own)) = (self, own) else {
            return 0.0;
        };
        let viewed = linear(&space.map(pose)).and_then(|map| own.under(&map));
        match (viewed, upright.classes.get(class)) {
            (Some(viewed), Some(usual)) => viewed.distance(usual) as f32,
            _ => 0.0,
        }
    }
}

/// The input may have come by any pose of the domain; what undoes that need not lie in it.
fn undone(inverter: &Inverter, space: &Space, target: &[f64; 4]) -> Option<Vec<f32>> {
    let came = inverse(target)?;
    let (off, _) = inverter.nearest(space, &came)?;
    let size = came.iter().map(|v| v * v).sum::<f64>().sqrt();
    if off > PLAUSIBLE * size {
        return None;
    }
    inverter.exact(space, target)
}

impl Framed {
    /// The pose of the view to read.
    pub(super) fn pose(&self) -> &[f32] {
        match self {
            Framed::Plane { pose, .. } | Framed::Solid { pose, .. } | Framed::Bare { pose } => pose,
        }
    }

    /// Whether the space's maps and the mean covariance of samples make normal forms: whether
    /// most inputs' normal form is as it should be.
    pub(super) fn normal(&self, upright: &Upright) -> bool {
        match self {
            Framed::Plane { map, own: Some(own), .. } => {
                own.under(map).is_some_and(|c| c.distance(&upright.all) < 0.3)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    /// A sample of covariance S is seen under M: the place found for the copy leads back to
    /// the inverse of M.
    #[test]
    fn the_place_of_a_copy_leads_back_to_what_undoes_it() {
        let space = SpaceConfig::default().build().unwrap();
        let sample = Covariance { xx: 0.2, xy: 0.05, yy: 0.1 };
        let upright =
            Upright { all: Covariance { xx: 0.12, xy: 0.01, yy: 0.15 }, classes: vec![sample] };
        let frames =
            Frames::Plane { inverter: Inverter::new(&space).unwrap(), upright: Some(upright) };
        let made_by = [0.6, -0.8, 0.9, 0.7];
        let own = sample.under(&made_by).unwrap();
        let map = [0.9, 0.1, -0.2, 1.1];
        let root = own.under(&map).unwrap().root();
        let framed = Framed::Plane { map, pose: vec![], own: Some(own), root };
        let plane = |m: [f64; 4]| {
            let [a, b, c, d] = m.map(|v| v as f32);
            Map::Plane([a, b, 0.0, c, d, 0.0])
        };
        let place = frames.place(&space, &framed, Some(sample), &plane(made_by)).unwrap();
        let pose = frames.pose(&space, &framed, &place, 0).unwrap();
        let whole = product(&made_by, &linear(&space.map(&pose)).unwrap());
        for (got, want) in whole.iter().zip(ONE) {
            assert!((got - want).abs() < 0.05, "{whole:?}");
        }
        let Some(Place::Angle(again)) = frames.place_of(&space, &framed, &pose, 0) else {
            panic!("no angle")
        };
        let Place::Angle(first) = place else { panic!("no angle") };
        assert!((again - first).abs() < 0.05);
        assert!(frames.unlike(&space, Some(&own), &pose, 0) < 0.1);
    }
}
