//! From a decoded picture to what the network sees.
//!
//! Two steps, because views are warped between them: [`Preprocess::prepare`]
//! resizes, crops, pads and converts channels but keeps raw pixels in 0..1;
//! [`Preprocess::normalise`] applies scale, mean, deviation and channel order:
//! `(255 scale x - mean) / std`. What a crop would cut off is kept around an item
//! until then ([`Preprocess::kept`]), so that views show it where a pose moves it in.

use std::ops::Range;

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::F32;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::tensor::{Batch, Signal};

mod display;
mod overrides;
mod picture;
#[cfg(test)]
mod tests;

pub use overrides::Overrides;
pub use picture::Picture;

/// How a picture is brought to another size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resize {
    /// The shorter side becomes this long; the other follows, rounded down.
    Shorter(usize),
    /// Both sides are given.
    Exact {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
}

/// How pixels are blended when resizing; all but `nearest` average when shrinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// Linear, as in Pillow and torchvision.
    #[default]
    Bilinear,
    /// The closest pixel.
    Nearest,
    /// Cubic with a = -0.5, as in Pillow.
    Bicubic,
    /// Lanczos with three lobes.
    Lanczos,
    /// The mean of the pixels covered.
    Box,
}

/// The channels a network expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    /// Luminance `0.299 R + 0.587 G + 0.114 B`, repeated if the network has three channels.
    Gray,
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Blue, green, red: the order is changed by [`Preprocess::normalise`] only.
    Bgr,
    /// Nothing to choose: strokes and points are taken as they are.
    AsGiven,
}

/// Rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

/// How pictures become what a network sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Preprocess {
    /// First a change of size.
    pub resize: Option<Resize>,
    /// Used when resizing.
    pub filter: Filter,
    /// Then the centre of this size is kept.
    pub crop: Option<Size>,
    /// Then the picture is centred on a canvas of this size.
    pub pad: Option<Size>,
    /// Value of the canvas, in 0..1; also what warps show outside the picture.
    pub fill: f32,
    /// The channels the network expects.
    pub channels: Channels,
    /// Factor on pixels in 0..255: `1/255` feeds 0..1, `1` feeds 0..255.
    pub scale: f64,
    /// Subtracted after scaling: one number, or one per channel.
    pub mean: Vec<f64>,
    /// Divides after that: one number, or one per channel.
    pub std: Vec<f64>,
}

impl Default for Preprocess {
    fn default() -> Self {
        Preprocess {
            resize: None,
            filter: Filter::Bilinear,
            crop: None,
            pad: None,
            fill: 0.0,
            channels: Channels::Rgb,
            scale: 1.0 / 255.0,
            mean: vec![0.0],
            std: vec![1.0],
        }
    }
}

impl Preprocess {
    /// The size pictures come out with, if the settings alone say it.
    pub fn size(&self) -> Option<Size> {
        let resized = match self.resize {
            Some(Resize::Exact { height, width }) => Some(Size { height, width }),
            _ => None,
        };
        self.pad.or(self.crop).or(resized)
    }

    /// The size that items keep around a crop: that of every resized picture, where the
    /// settings alone say it, but no more than half the crop's, which a turn would not show.
    pub(crate) fn kept(&self) -> Option<Size> {
        let crop = self.crop.filter(|_| self.pad.is_none())?;
        let whole = match self.resize? {
            Resize::Shorter(side) => Size { height: side, width: side },
            Resize::Exact { height, width } => Size { height, width },
        };
        let within = |whole: usize, crop: usize| whole.min(crop + crop / 2);
        (crop.height <= whole.height && crop.width <= whole.width).then_some(Size {
            height: within(whole.height, crop.height),
            width: within(whole.width, crop.width),
        })
    }

    /// Checks that every number can be used with so many channels.
    pub fn check(&self, channels: usize) -> Result<()> {
        let bad = |why: String, hint: Hint| Err(Error::Preprocess { why, hint: Some(hint) });
        for (name, values) in [("mean", &self.mean), ("std", &self.std)] {
            if values.len() != 1 && values.len() != channels {
                return bad(
                    format!("{name} has {} numbers, the model {channels} channels", values.len()),
                    "give one number, or one per channel".into(),
                );
            }
            if !values.iter().all(|v| v.is_finite()) {
                return bad(format!("{name} is not finite"), "give plain numbers".into());
            }
        }
        if self.std.iter().any(|s| *s <= 0.0) || !self.scale.is_finite() || self.scale == 0.0 {
            return bad(
                "scale must not be 0, and std must be positive".into(),
                "a negative scale turns dark into light".into(),
            );
        }
        if !(0.0..=1.0).contains(&self.fill) {
            return bad(
                format!("fill {} is not in 0..1", self.fill),
                "0 is black, 1 is white".into(),
            );
        }
        let none = |s: &Size| s.height == 0 || s.width == 0;
        let empty = match self.resize {
            Some(Resize::Shorter(0)) => true,
            Some(Resize::Exact { height, width }) => height == 0 || width == 0,
            _ => false,
        };
        if empty || self.crop.iter().chain(&self.pad).any(none) {
            return bad("a size is 0".into(), "give sizes of at least 1".into());
        }
        let sizes = self.crop.iter().chain(&self.pad).copied();
        let resized = match self.resize {
            Some(Resize::Shorter(n)) => Some(Size { height: n, width: 1 }),
            Some(Resize::Exact { height, width }) => Some(Size { height, width }),
            None => None,
        };
        sizes.chain(resized).try_for_each(handy)?;
        if channels == 1 && self.channels != Channels::Gray {
            return bad(format!("the model has one channel, not {}", self.channels), Hint::SayGray);
        }
        Ok(())
    }

    /// A picture as one item for the network, still raw pixels in 0..1, channel-major, in the
    /// order red, green, blue.
    pub fn prepare(&self, picture: &Picture, signal: Signal) -> Result<Vec<f32>> {
        let Signal::Image { channels, height, width } = signal else {
            return Err(Error::Picture {
                wants: format!("{:?}", signal.shape()),
                gives: format!("[{},{}]", picture.height, picture.width),
                hint: Some("give strokes or points, not pictures".into()),
            });
        };
        let mut planes = self.planes(picture, channels)?;
        let mut size = Size { height: picture.height, width: picture.width };
        if let Some(resize) = self.resize {
            let to = target(resize, size);
            handy(to)?;
            for plane in &mut planes {
                *plane = resized(plane, size, to, self.filter)?;
            }
            size = to;
        }
        if let Some(crop) = self.crop
            && crop.height <= size.height
            && crop.width <= size.width
        {
            let to = self.kept().filter(|kept| *kept == Size { height, width }).unwrap_or(crop);
            let top = around(size.height, to.height, crop.height);
            let left = around(size.width, to.width, crop.width);
            let row = |plane: &[f32], y: usize| {
                let from = (top + y) * size.width + left;
                plane[from..from + to.width].to_vec()
            };
            for plane in &mut planes {
                *plane = (0..to.height).flat_map(|y| row(plane, y)).collect();
            }
            size = to;
        }
        if let Some(to) = self.pad
            && size.height <= to.height
            && size.width <= to.width
        {
            let (top, left) = ((to.height - size.height) / 2, (to.width - size.width) / 2);
            for plane in &mut planes {
                let mut canvas = vec![self.fill; to.height * to.width];
                for (y, row) in plane.chunks_exact(size.width).enumerate() {
                    let at = (top + y) * to.width + left;
                    canvas[at..at + size.width].copy_from_slice(row);
                }
                *plane = canvas;
            }
            size = to;
        }
        if size != (Size { height, width }) {
            return Err(self.misfit(picture, channels, Size { height, width }, size));
        }
        Ok(planes.concat())
    }

    /// Raw items as the network is fed with: the centre of images that are larger. Strokes and
    /// clouds pass unchanged.
    pub fn normalise(&self, batch: &Batch, fed: Signal) -> Vec<f32> {
        let Signal::Image { channels, .. } = fed else {
            return batch.data().to_vec();
        };
        let centre = Centre::of(batch.signal(), fed);
        let mut out = Vec::with_capacity(batch.len() * fed.size());
        for i in 0..batch.len() {
            for c in 0..channels {
                let (gain, offset) = self.affine(c);
                for row in centre.rows(self.source(c, channels)) {
                    out.extend(batch.item(i)[row].iter().map(|x| x * gain + offset));
                }
            }
        }
        out
    }

    /// What a derivative with respect to what the network is fed with is with respect to raw
    /// items: nothing outside their centre.
    pub fn pullback(&self, items: Signal, fed: Signal, d: &[f32]) -> Vec<f32> {
        let Signal::Image { channels, height, width } = fed else {
            return d.to_vec();
        };
        let centre = Centre::of(items, fed);
        let mut out = vec![0.0; d.len() / fed.size().max(1) * items.size()];
        for (d, out) in d.chunks_exact(fed.size()).zip(out.chunks_exact_mut(items.size())) {
            for (c, plane) in d.chunks_exact(height * width).enumerate() {
                let (gain, _) = self.affine(c);
                let rows = centre.rows(self.source(c, channels));
                for (row, d) in rows.zip(plane.chunks_exact(width)) {
                    for (o, d) in out[row].iter_mut().zip(d) {
                        *o = gain * d;
                    }
                }
            }
        }
        out
    }

    /// The raw plane that network channel `c` shows.
    fn source(&self, c: usize, channels: usize) -> usize {
        if self.channels == Channels::Bgr && channels == 3 { 2 - c } else { c }
    }

    fn affine(&self, c: usize) -> (f32, f32) {
        let of = |v: &[f64], or: f64| v.get(c).or(v.first()).copied().unwrap_or(or);
        let (mean, std) = (of(&self.mean, 0.0), of(&self.std, 1.0));
        ((255.0 * self.scale / std) as f32, (-mean / std) as f32)
    }

    fn planes(&self, picture: &Picture, channels: usize) -> Result<Vec<Vec<f32>>> {
        let gray = |p: &[f32]| match *p {
            [r, g, b, ..] => 0.299 * r + 0.587 * g + 0.114 * b,
            [v, ..] => v,
            [] => 0.0,
        };
        let pixels = || picture.data.chunks_exact(picture.channels);
        let coloured = picture.channels >= 3;
        match channels {
            1 => Ok(vec![pixels().map(gray).collect()]),
            3 if coloured && self.channels != Channels::Gray => {
                Ok((0..3).map(|c| pixels().map(|p| p[c]).collect()).collect())
            }
            3 => Ok(vec![pixels().map(gray).collect(); 3]),
            _ => Err(Error::Picture {
                wants: format!("{channels} channels"),
                gives: format!("{}", picture.channels),
                hint: Some(
                    "pictures feed models of 1 or 3 channels; give such a model arrays".into(),
                ),
            }),
        }
    }

    fn misfit(&self, picture: &Picture, channels: usize, wants: Size, came: Size) -> Error {
        let (height, width) = (wants.height, wants.width);
        let hint = match (self.resize, self.pad) {
            (None, None) => {
                Hint::Resize { height, width, rgb: channels == 3 && picture.channels < 3 }
            }
            (None, Some(_)) => Hint::ResizeForPad,
            _ => Hint::ChangeSteps { gives: (came.height, came.width), steps: self.to_string() },
        };
        Error::Picture {
            wants: format!("[N,{channels},{},{}]", wants.height, wants.width),
            gives: format!("[1,{},{},{}]", picture.channels, picture.height, picture.width),
            hint: Some(hint),
        }
    }
}

/// Checks that a picture of some size can be held: at most 2^26 pixels, 2^16 in a row.
fn handy(size: Size) -> Result<()> {
    let Size { height, width } = size;
    let fits = height.max(width) <= 1 << 16 && height.saturating_mul(width) <= 1 << 26;
    if fits {
        return Ok(());
    }
    Err(Error::Preprocess {
        why: format!("a picture of {height} x {width} pixels is too large"),
        hint: Some("check the size asked for".into()),
    })
}

/// Where the centre of images lies in larger ones.
#[derive(Debug, Clone, Copy)]
struct Centre {
    whole: Size,
    size: Size,
}

impl Centre {
    /// Of images of one size in those of another that is no smaller.
    fn of(whole: Signal, centre: Signal) -> Self {
        let size = |signal: Signal| match signal {
            Signal::Image { height, width, .. } => Size { height, width },
            Signal::Strokes { .. } | Signal::Cloud { .. } => Size { height: 0, width: 0 },
        };
        Centre { whole: size(whole), size: size(centre) }
    }

    /// The places of its rows in a plane of the larger image.
    fn rows(self, plane: usize) -> impl Iterator<Item = Range<usize>> {
        let Centre { whole, size } = self;
        let top = middle(whole.height - size.height);
        let left = middle(whole.width - size.width);
        (0..size.height).map(move |y| {
            let from = (plane * whole.height + top + y) * whole.width + left;
            from..from + size.width
        })
    }
}

/// The centre of each image, as large as another signal says; what is as large stays.
pub(crate) fn cut(batch: Batch<'static>, to: Signal) -> Result<Batch<'static>> {
    let (Signal::Image { channels, .. }, true) = (to, batch.signal() != to) else {
        return Ok(batch);
    };
    let centre = Centre::of(batch.signal(), to);
    let mut out = Vec::with_capacity(batch.len() * to.size());
    for i in 0..batch.len() {
        for row in (0..channels).flat_map(|c| centre.rows(c)) {
            out.extend_from_slice(&batch.item(i)[row]);
        }
    }
    Batch::new(to, out)
}

/// Images in the centre of larger ones, with a value around them.
pub(crate) fn framed(batch: &Batch, to: Signal, fill: f32) -> Result<Batch<'static>> {
    let Signal::Image { channels, width, .. } = batch.signal() else {
        return Batch::new(batch.signal(), batch.data().to_vec());
    };
    let centre = Centre::of(to, batch.signal());
    let mut out = vec![fill; batch.len() * to.size()];
    for (i, out) in out.chunks_exact_mut(to.size()).enumerate() {
        let places = (0..channels).flat_map(|c| centre.rows(c));
        for (place, row) in places.zip(batch.item(i).chunks_exact(width)) {
            out[place].copy_from_slice(row);
        }
    }
    Batch::new(to, out)
}

/// Where what is kept around a crop begins, so that the centre of it is the crop, as far as
/// there is room.
fn around(whole: usize, kept: usize, crop: usize) -> usize {
    middle(whole - crop).saturating_sub(middle(kept - crop)).min(whole - kept)
}

/// Half the margin, halves to the even side, as torchvision crops.
fn middle(margin: usize) -> usize {
    (margin as f64 / 2.0).round_ties_even() as usize
}

fn target(resize: Resize, size: Size) -> Size {
    match resize {
        Resize::Exact { height, width } => Size { height, width },
        Resize::Shorter(to) if size.height <= size.width => {
            Size { height: to, width: to.saturating_mul(size.width) / size.height }
        }
        Resize::Shorter(to) => {
            Size { height: to.saturating_mul(size.height) / size.width, width: to }
        }
    }
}

fn resized(plane: &[f32], from: Size, to: Size, filter: Filter) -> Result<Vec<f32>> {
    if from == to {
        return Ok(plane.to_vec());
    }
    let bad =
        |why: String| Error::Preprocess { why, hint: Some("check the size asked for".into()) };
    let side = |n: usize| match u32::try_from(n) {
        Ok(n) if n <= 1 << 16 => Ok(n),
        _ => Err(bad(format!("a picture side of {n} is too long"))),
    };
    let algorithm = match filter {
        Filter::Nearest => ResizeAlg::Nearest,
        Filter::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
        Filter::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
        Filter::Lanczos => ResizeAlg::Convolution(FilterType::Lanczos3),
        Filter::Box => ResizeAlg::Convolution(FilterType::Box),
    };
    let pixels: Vec<F32> = plane.iter().map(|v| F32::new(*v)).collect();
    let source = TypedImageRef::new(side(from.width)?, side(from.height)?, &pixels)
        .map_err(|e| bad(e.to_string()))?;
    let mut out = TypedImage::<F32>::new(side(to.width)?, side(to.height)?);
    Resizer::new()
        .resize_typed(&source, &mut out, &ResizeOptions::new().resize_alg(algorithm))
        .map_err(|e| bad(e.to_string()))?;
    Ok(out.pixels().iter().map(|p| p.0.clamp(0.0, 1.0)).collect())
}
