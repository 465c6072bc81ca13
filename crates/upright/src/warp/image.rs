//! Resampling of images. Each item is first copied into a frame of [`MARGIN`]
//! padding pixels; coordinates are limited to that frame, whose outer part is
//! as constant as everything beyond it, so that no tap needs a test.

use super::kernel::{Bicubic, Bilinear, Nearest, Taps};
use super::{Kernel, Padding, Resample, border};
use crate::error::{Error, Result};

const MARGIN: usize = 4;

/// Pixels of a row whose weights are computed together and shared by the channels.
const BLOCK: usize = 32;

/// What all views of one call share.
pub(super) struct Plan<'a> {
    channels: usize,
    height: usize,
    width: usize,
    resample: &'a Resample,
    /// Colour outside, per channel; `None` repeats the border.
    colour: Option<Vec<f32>>,
    /// Whether the border is repeated even so, unless it is black.
    auto: bool,
}

/// Values up to this are black.
const BLACK: f32 = 0.02;

/// The padded copy of the item last used.
#[derive(Default)]
pub(super) struct Scratch {
    item: Option<usize>,
    data: Vec<f32>,
}

impl Scratch {
    pub(super) fn pad(&mut self, plan: &Plan, item: usize, image: &[f32]) -> &[f32] {
        if self.item != Some(item) {
            plan.pad(image, &mut self.data);
            self.item = Some(item);
        }
        &self.data
    }
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        channels: usize,
        height: usize,
        width: usize,
        resample: &'a Resample,
    ) -> Result<Self> {
        let colour = match &resample.padding {
            Padding::Zeros | Padding::Auto => Some(vec![0.0; channels]),
            Padding::Border => None,
            Padding::Fill(c) if !c.iter().all(|v| v.is_finite()) => return Err(bad_fill(c, 0)),
            Padding::Fill(c) if c.len() == channels => Some(c.clone()),
            Padding::Fill(c) => match c[..] {
                [grey] => Some(vec![grey; channels]),
                _ => return Err(bad_fill(c, channels)),
            },
        };
        let auto = resample.padding == Padding::Auto;
        Ok(Plan { channels, height, width, resample, colour, auto })
    }

    /// Whether nine in ten of the outermost pixels are black.
    fn is_framed(&self, image: &[f32]) -> bool {
        let edges = image
            .chunks_exact(self.height * self.width)
            .flat_map(|plane| border(plane, self.height, self.width));
        let (mut black, mut all) = (0, 0);
        for value in edges {
            black += usize::from(value <= BLACK);
            all += 1;
        }
        10 * black >= 9 * all
    }

    fn stride(&self) -> usize {
        self.width + 2 * MARGIN
    }

    fn plane(&self) -> usize {
        self.stride() * (self.height + 2 * MARGIN)
    }

    fn pad(&self, image: &[f32], out: &mut Vec<f32>) {
        let (height, width) = (self.height, self.width);
        out.clear();
        out.reserve(self.channels * self.plane());
        let colour = self.colour.as_ref().filter(|_| !self.auto || self.is_framed(image));
        for (c, plane) in image.chunks_exact(height * width).enumerate() {
            let outside = colour.map(|colour| colour[c]);
            for y in 0..height + 2 * MARGIN {
                let inside = (MARGIN..MARGIN + height).contains(&y);
                match outside {
                    Some(v) if !inside => out.resize(out.len() + self.stride(), v),
                    _ => {
                        let y = y.saturating_sub(MARGIN).min(height - 1);
                        let row = &plane[y * width..][..width];
                        out.resize(out.len() + MARGIN, outside.unwrap_or(row[0]));
                        out.extend_from_slice(row);
                        out.resize(out.len() + MARGIN, outside.unwrap_or(row[width - 1]));
                    }
                }
            }
        }
    }

    pub(super) fn warp(&self, padded: &[f32], map: &[f32; 6], out: &mut [f32]) {
        match self.resample.kernel {
            Kernel::Bicubic => self.warp_with::<Bicubic, 4>(padded, map, out),
            Kernel::Bilinear => self.warp_with::<Bilinear, 2>(padded, map, out),
            Kernel::Nearest => self.warp_with::<Nearest, 1>(padded, map, out),
        }
    }

    fn warp_with<K: Taps<N>, const N: usize>(
        &self,
        padded: &[f32],
        map: &[f32; 6],
        out: &mut [f32],
    ) {
        let grid = Grid::new(self.height, self.width, map);
        let (stride, size) = (self.stride(), self.height * self.width);
        let mut spots = [Spot { start: 0, tx: 0.0, ty: 0.0, wx: [0.0; N], wy: [0.0; N] }; BLOCK];
        for i in 0..self.height {
            let row = grid.row(i);
            for first in (0..self.width).step_by(BLOCK) {
                let spots = &mut spots[..BLOCK.min(self.width - first)];
                row.locate::<K, N>(first, stride, spots);
                let planes = padded.chunks_exact(self.plane());
                for (plane, out) in planes.zip(out.chunks_exact_mut(size)) {
                    let out = &mut out[i * self.width + first..][..spots.len()];
                    for (out, spot) in out.iter_mut().zip(spots.iter()) {
                        *out = dot(&columns(plane, spot.start, stride, &spot.wy), &spot.wx);
                    }
                }
            }
        }
        if self.resample.clamp {
            for v in out {
                *v = v.clamp(0.0, 1.0);
            }
        }
    }

    pub(super) fn pullback(&self, padded: &[f32], map: &[f32; 6], cotangent: &[f32]) -> [f32; 6] {
        match self.resample.kernel {
            Kernel::Bicubic => self.pullback_with::<Bicubic, 4>(padded, map, cotangent),
            Kernel::Bilinear => self.pullback_with::<Bilinear, 2>(padded, map, cotangent),
            Kernel::Nearest => [0.0; 6],
        }
    }

    fn pullback_with<K: Taps<N>, const N: usize>(
        &self,
        padded: &[f32],
        map: &[f32; 6],
        cotangent: &[f32],
    ) -> [f32; 6] {
        let grid = Grid::new(self.height, self.width, map);
        let (stride, size) = (self.stride(), self.height * self.width);
        let mut spots = [Spot { start: 0, tx: 0.0, ty: 0.0, wx: [0.0; N], wy: [0.0; N] }; BLOCK];
        let mut sum = [0.0_f64; 6];
        let clamp = self.resample.clamp;
        for i in 0..self.height {
            let row = grid.row(i);
            for first in (0..self.width).step_by(BLOCK) {
                let spots = &mut spots[..BLOCK.min(self.width - first)];
                row.locate::<K, N>(first, stride, spots);
                let mut slopes = [(0.0_f64, 0.0_f64); BLOCK];
                let planes = padded.chunks_exact(self.plane());
                for (plane, cotangent) in planes.zip(cotangent.chunks_exact(size)) {
                    let weights = &cotangent[i * self.width + first..][..spots.len()];
                    for ((slope, spot), weight) in slopes.iter_mut().zip(spots.iter()).zip(weights)
                    {
                        let across = columns(plane, spot.start, stride, &spot.wy);
                        if clamp && !(0.0..=1.0).contains(&dot(&across, &spot.wx)) {
                            continue;
                        }
                        let down = columns(plane, spot.start, stride, &K::slopes(spot.ty));
                        slope.0 += f64::from(weight * dot(&across, &K::slopes(spot.tx)));
                        slope.1 += f64::from(weight * dot(&down, &spot.wx));
                    }
                }
                let v = i as f64 - grid.centre_y;
                for (j, (gx, gy)) in (first..self.width).zip(slopes) {
                    let u = j as f64 - grid.centre_x;
                    let terms = [gx * u, gx * v, gx, gy * u, gy * v, gy];
                    for (sum, term) in sum.iter_mut().zip(terms) {
                        *sum += term;
                    }
                }
            }
        }
        sum[2] *= grid.unit;
        sum[5] *= grid.unit;
        sum.map(|v| v as f32)
    }
}

fn bad_fill(colour: &[f32], channels: usize) -> Error {
    Error::BadSetting {
        part: "resample".into(),
        name: "padding".into(),
        value: format!("fill {colour:?}"),
        range: match channels {
            0 => "finite numbers".into(),
            1 => "one number".into(),
            n => format!("one number or {n}, one per channel"),
        },
    }
}

/// Where the pixels of a view are read, in pixels of the padded item.
struct Grid {
    map: [f64; 6],
    centre_x: f64,
    centre_y: f64,
    /// Pixels per unit of the map's shift.
    unit: f64,
    last_x: f64,
    last_y: f64,
}

struct Row<'a> {
    grid: &'a Grid,
    x: f64,
    y: f64,
}

impl Grid {
    fn new(height: usize, width: usize, map: &[f32; 6]) -> Self {
        Grid {
            map: map.map(f64::from),
            centre_x: (width as f64 - 1.0) / 2.0,
            centre_y: (height as f64 - 1.0) / 2.0,
            unit: height.max(width) as f64 / 2.0,
            last_x: (width + MARGIN + 1) as f64,
            last_y: (height + MARGIN + 1) as f64,
        }
    }

    fn row(&self, i: usize) -> Row<'_> {
        let [_, b, tx, _, d, ty] = self.map;
        let v = i as f64 - self.centre_y;
        let margin = MARGIN as f64;
        Row {
            grid: self,
            x: b * v + tx * self.unit + self.centre_x + margin,
            y: d * v + ty * self.unit + self.centre_y + margin,
        }
    }
}

/// Where one pixel of a view is read.
#[derive(Clone, Copy)]
struct Spot<const N: usize> {
    /// Index of the upper left tap in a padded plane.
    start: usize,
    tx: f32,
    ty: f32,
    wx: [f32; N],
    wy: [f32; N],
}

impl Row<'_> {
    /// The spots of the pixels from column `first` on.
    ///
    /// Coordinates are limited to 1 ..= size + margin + 1, where up to 4 taps lie in the frame.
    #[inline]
    fn locate<K: Taps<N>, const N: usize>(
        &self,
        first: usize,
        stride: usize,
        spots: &mut [Spot<N>],
    ) {
        let Grid { map: [a, _, _, c, ..], centre_x, last_x, last_y, .. } = *self.grid;
        for (k, spot) in spots.iter_mut().enumerate() {
            let u = (first + k) as f64 - centre_x;
            let (x, tx) = K::split((a * u + self.x).max(1.0).min(last_x));
            let (y, ty) = K::split((c * u + self.y).max(1.0).min(last_y));
            let (wx, wy) = (K::weights(tx), K::weights(ty));
            *spot = Spot { start: y * stride + x, tx, ty, wx, wy };
        }
    }
}

/// The rows of the taps added up with their weights: one number per column.
#[inline]
fn columns<const N: usize>(
    plane: &[f32],
    start: usize,
    stride: usize,
    weights: &[f32; N],
) -> [f32; N] {
    let mut sum = [0.0; N];
    for (k, w) in weights.iter().enumerate() {
        let at = start + k * stride;
        for (sum, v) in sum.iter_mut().zip(&plane[at..at + N]) {
            *sum += w * v;
        }
    }
    sum
}

#[inline]
fn dot<const N: usize>(a: &[f32; N], b: &[f32; N]) -> f32 {
    let mut sum = 0.0;
    for (a, b) in a.iter().zip(b) {
        sum += a * b;
    }
    sum
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the numbers are exact in binary
mod tests {
    use super::*;

    #[test]
    fn no_coordinate_leaves_the_frame() {
        let resample = Resample::default();
        let plan = Plan::new(1, 3, 5, &resample).unwrap();
        let mut padded = Vec::new();
        plan.pad(&[1.0; 15], &mut padded);
        for shift in [-1e30, -3.0, -1.6, 1.6, 3.0, 1e30] {
            let mut out = [9.0; 15];
            plan.warp(&padded, &[1.0, 0.0, shift, 0.0, 1.0, -shift], &mut out);
            if shift.abs() > 2.9 {
                assert_eq!(out, [0.0; 15]);
            }
        }
    }
}
