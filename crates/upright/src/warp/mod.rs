//! Views of a batch: images resampled under a [`Map`], strokes and clouds
//! moved exactly, and the derivative of either with respect to the map.
//!
//! An image view equals torch's `affine_grid` followed by `grid_sample`, both
//! with `align_corners=False`. In pixels counted from the image centre the
//! view's pixel `(u, v)` is read at `(a u + b v + tx s, c u + d v + ty s)`,
//! `s` being half the longer side; coordinates are computed in `f64`, values
//! in `f32`. The bicubic kernel is that of Keys (1981) with a = -0.75; its
//! weights sum to one but are partly negative, so that values overshoot next
//! to edges unless [`Resample::clamp`] is set.
//!
//! Every view is computed on its own, in one fixed order of operations:
//! neither the number of threads nor the other views change a bit of it.

mod image;
mod kernel;
mod points;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::map::Map;
use crate::tensor::{Batch, Matrix, Signal};
use image::{Plan, Scratch};

/// How an image is read between its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Keys' cubic with a = -0.75 over 4 x 4 pixels; its derivative is continuous.
    #[default]
    Bicubic,
    /// Linear in both directions over 2 x 2 pixels.
    Bilinear,
    /// The nearest pixel, ties to the even index; its derivative is zero.
    Nearest,
}

/// What lies outside an image.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// Zeros.
    #[default]
    Zeros,
    /// The nearest pixel of the image.
    Border,
    /// A colour in raw pixel values: one number per channel, or one for all channels.
    Fill(Vec<f32>),
    /// Zeros around an image whose outermost pixels are nearly all black, nine in ten of
    /// them, and the nearest pixel around any other.
    Auto,
}

/// How images are resampled; strokes and clouds need none of it.
///
/// The default is bicubic, zeros and no clamp.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Resample {
    /// How to read between pixels.
    pub kernel: Kernel,
    /// What to read outside the image.
    pub padding: Padding,
    /// Whether values are limited to 0..1 after interpolation.
    pub clamp: bool,
}

/// One view to make: an item of a batch and the map it is seen under.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Index of the item in the batch.
    pub item: usize,
    /// Where each point of the view is read in the item.
    pub map: Map,
}

/// The views of a batch, in the order asked for.
///
/// The identity map copies its item bit for bit, whatever `resample` says.
///
/// Images take [`Map::Plane`] and keep their size.
///
/// Strokes take [`Map::Plane`] too. A map leads from the view to the input, so
/// a point of the input is seen where the map back puts it: points move by the
/// *inverse* map, as the ink of a drawing that fills its picture would. The
/// centre is that of the bounding box, one unit of a shift half its longer
/// side, as [`Map`](crate::Map) says. Pen states stay, and rows with a pen below
/// zero are padding, do not count for the box and stay whole. A map without
/// inverse is an error.
///
/// Clouds take [`Map::Space`], whose inverse, the transpose, multiplies their
/// points.
///
/// Errors: an item that does not exist, a map of the wrong dimension or with an
/// entry that is not finite, a fill colour of the wrong length.
pub fn warp(batch: &Batch, views: &[View], resample: &Resample) -> Result<Batch<'static>> {
    let signal = batch.signal();
    check(batch, views)?;
    let mut out = Batch::zeros(signal, views.len());
    let rows = out.data_mut().par_chunks_mut(signal.size()).zip(views);
    match signal {
        Signal::Image { channels, height, width } => {
            let plan = Plan::new(channels, height, width, resample)?;
            rows.for_each_init(Scratch::default, |scratch, (out, view)| match view.map {
                Map::Plane(map) if !view.map.is_identity() => {
                    plan.warp(scratch.pad(&plan, view.item, batch.item(view.item)), &map, out);
                }
                _ => out.copy_from_slice(batch.item(view.item)),
            });
        }
        Signal::Strokes { .. } | Signal::Cloud { .. } => {
            rows.for_each(|(out, view)| {
                out.copy_from_slice(batch.item(view.item));
                points::warp(&view.map, out);
            });
        }
    }
    Ok(out)
}

/// Derivatives of the number `sum(cotangent * warp(batch, views, resample))`
/// with respect to the entries of each view's map: one row per view, 6 columns
/// in the order of [`Map::Plane`] or 9 in that of [`Map::Space`].
///
/// `cotangent` has the signal of the batch and one item per view. Where a value
/// is clamped its derivative is zero; where a kernel has a kink the derivative
/// is that to the right or below. Sums are formed in `f64`.
pub fn pullback(
    batch: &Batch,
    views: &[View],
    resample: &Resample,
    cotangent: &Batch,
) -> Result<Matrix> {
    let signal = batch.signal();
    check(batch, views)?;
    if cotangent.signal() != signal || cotangent.len() != views.len() {
        return Err(Error::shape(
            "cotangent of the views",
            (views.len(), signal.shape()),
            (cotangent.len(), cotangent.signal().shape()),
        ));
    }
    let cols = if matches!(signal, Signal::Cloud { .. }) { 9 } else { 6 };
    let mut out = Matrix::zeros(views.len(), cols);
    let rows = out
        .data_mut()
        .par_chunks_mut(cols)
        .zip(views)
        .zip(cotangent.data().par_chunks(signal.size()));
    match signal {
        Signal::Image { channels, height, width } => {
            let plan = Plan::new(channels, height, width, resample)?;
            rows.for_each_init(Scratch::default, |scratch, ((out, view), cotangent)| {
                if let Map::Plane(map) = view.map {
                    let padded = scratch.pad(&plan, view.item, batch.item(view.item));
                    out.copy_from_slice(&plan.pullback(padded, &map, cotangent));
                }
            });
        }
        Signal::Strokes { .. } | Signal::Cloud { .. } => {
            rows.for_each(|((out, view), cotangent)| {
                points::pullback(&view.map, batch.item(view.item), cotangent, out);
            });
        }
    }
    Ok(out)
}

/// The median of an image's outermost pixels, one number per channel: a colour
/// for [`Padding::Fill`] that continues a plain background.
///
/// Each border pixel counts once; of an even number the two middle values are
/// averaged.
pub fn border_colour(batch: &Batch, item: usize) -> Result<Vec<f32>> {
    let Signal::Image { channels, height, width } = batch.signal() else {
        return Err(mismatch("batch for a border colour", "images", "points"));
    };
    if item >= batch.len() {
        return Err(Error::shape("item", format_args!("below {}", batch.len()), item));
    }
    let planes = batch.item(item).chunks_exact(height * width).take(channels);
    Ok(planes.map(|plane| median(border(plane, height, width).collect())).collect())
}

/// The outermost pixels, each once.
fn border(plane: &[f32], height: usize, width: usize) -> impl Iterator<Item = f32> {
    plane.chunks_exact(width).enumerate().flat_map(move |(y, row)| {
        // Of a row within, the first and the last pixel.
        let within = y > 0 && y + 1 < height;
        let step = if within { (width - 1).max(1) } else { 1 };
        row.iter().step_by(step).copied()
    })
}

fn median(mut values: Vec<f32>) -> f32 {
    values.sort_by(f32::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f32::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

fn check(batch: &Batch, views: &[View]) -> Result<()> {
    let space = matches!(batch.signal(), Signal::Cloud { .. });
    let strokes = matches!(batch.signal(), Signal::Strokes { .. });
    for (k, view) in views.iter().enumerate() {
        if view.item >= batch.len() {
            let below = format_args!("below {}", batch.len());
            return Err(Error::shape(format!("item of view {k}"), below, view.item));
        }
        match (space, view.map) {
            (true, Map::Plane(_)) => {
                return Err(mismatch(&format!("map of view {k}"), "a space map", "a plane map"));
            }
            (false, Map::Space(_)) => {
                return Err(mismatch(&format!("map of view {k}"), "a plane map", "a space map"));
            }
            _ => {}
        }
        let range = if !view.map.entries().iter().all(|v| v.is_finite()) {
            "finite entries"
        } else if strokes && view.map.inverse().is_none() {
            "a map with an inverse, as strokes need"
        } else {
            continue;
        };
        return Err(Error::BadSetting {
            part: format!("view {k}"),
            name: "map".into(),
            value: format!("{:?}", view.map.entries()),
            range: range.into(),
        });
    }
    Ok(())
}

fn mismatch(what: &str, expected: &str, got: &str) -> Error {
    Error::Shape { what: what.into(), expected: expected.into(), got: got.into() }
}
