//! Second moments of inputs: measuring, grouping and aligning them, and from
//! linear maps back to poses.

use crate::tensor::{Batch, Signal};

mod groups;
mod invert;
pub(super) mod plane;
pub(super) mod solid;

pub(super) use invert::{Inverter, linear};
pub(crate) use plane::Covariance;
pub(crate) use solid::Spread;

/// The second moments of one input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// Of an image or strokes.
    Plane(Covariance),
    /// Of a cloud.
    Solid(Spread),
}

/// The moments of some inputs; `None` for those without a plain background.
pub(super) fn shapes(batch: &Batch) -> Vec<Option<Shape>> {
    (0..batch.len()).map(|i| shape(batch.signal(), batch.item(i))).collect()
}

/// The moments of an input; `None` if it has no plain background.
pub(super) fn shape(signal: Signal, item: &[f32]) -> Option<Shape> {
    match signal {
        Signal::Image { channels, height, width } => {
            plane::of_image(item, channels, height, width).map(Shape::Plane)
        }
        Signal::Strokes { .. } => plane::of_strokes(item).map(Shape::Plane),
        Signal::Cloud { .. } => solid::of_cloud(item).map(Shape::Solid),
    }
}
