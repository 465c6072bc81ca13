//! Items of any signal as small pictures to look at: images enlarged, strokes
//! as lines, clouds as shaded points seen from the front, the right and above.

use image::{Rgb, RgbImage};
use upright::Signal;
use upright::internal::samples::{Glyph, render};

use crate::pixels;

const NIGHT: Rgb<u8> = Rgb([16, 18, 24]);
/// Colours of the nearest and of the farthest point of a cloud.
const NEAR: [f32; 3] = [255.0, 214.0, 140.0];
const FAR: [f32; 3] = [58.0, 84.0, 138.0];

/// Part of a picture's half side that strokes and clouds fill.
const FILL: f32 = 0.82;
/// Half the width of a drawn line, in half sides.
const NIB: f32 = 0.045;
/// Radius of a drawn point, in half sides.
const DOT: f32 = 0.038;

/// A picture of an item, square and about `side` pixels wide unless the item is an image, which
/// keeps its proportions. Strokes and clouds are centred and scaled to fit. `None` if the item
/// cannot be shown.
pub fn figure(signal: Signal, item: &[f32], side: u32) -> Option<RgbImage> {
    match signal {
        Signal::Image { height, width, .. } => {
            let picture = pixels::picture(signal, item)?.to_rgb8();
            let zoom = (side / width.max(height).max(1) as u32).max(1);
            let (w, h) = (picture.width() * zoom, picture.height() * zoom);
            Some(RgbImage::from_fn(w, h, |x, y| *picture.get_pixel(x / zoom, y / zoom)))
        }
        Signal::Strokes { .. } => Some(strokes(item, side)),
        Signal::Cloud { .. } => Some(cloud(item, side)),
        _ => None,
    }
}

/// Side of a thumbnail, at most.
const THUMBNAIL: u32 = 64;

/// A small picture of an item for pages: images in their own pixels or reduced, other signals
/// as [`figure`] draws them, a grey square if they cannot be shown.
pub fn thumbnail(signal: Signal, item: &[f32]) -> RgbImage {
    let picture = match pixels::picture(signal, item) {
        Some(p) if p.width().max(p.height()) > THUMBNAIL => {
            Some(p.thumbnail(THUMBNAIL, THUMBNAIL).into_rgb8())
        }
        Some(p) => Some(p.into_rgb8()),
        None => figure(signal, item, THUMBNAIL),
    };
    picture.unwrap_or_else(|| RgbImage::from_pixel(THUMBNAIL, THUMBNAIL, Rgb([128; 3])))
}

fn strokes(item: &[f32], side: u32) -> RgbImage {
    let mut paths: Vec<Vec<[f32; 2]>> = Vec::new();
    for row in item.chunks_exact(3).filter(|row| row[2] >= 0.0) {
        match paths.last_mut() {
            Some(path) if row[2] < 0.5 => path.push([row[0], row[1]]),
            _ => paths.push(vec![[row[0], row[1]]]),
        }
    }
    let fit = Fit::new(paths.iter().flatten());
    paths.iter_mut().flatten().for_each(|p| *p = fit.apply(*p));
    let nib = paths.iter().map(|p| vec![NIB; p.len()]).collect();
    let ink = render(&Glyph { label: 0, strokes: paths, nib }, side as usize);
    RgbImage::from_fn(side, side, |x, y| {
        let ink = ink[(y * side + x) as usize];
        blend(NIGHT, [255.0; 3], ink)
    })
}

fn cloud(item: &[f32], side: u32) -> RgbImage {
    let mut points: Vec<[f32; 3]> = item.chunks_exact(3).map(seen).collect();
    let fit = Fit::new(points.iter().map(|[x, y, _]| [*x, *y]).collect::<Vec<_>>().iter());
    points.sort_by(|a, b| b[2].total_cmp(&a[2]));
    let (far, near) = match (points.first(), points.last()) {
        (Some(first), Some(last)) => (first[2], last[2]),
        _ => (0.0, 0.0),
    };
    let mut picture = RgbImage::from_pixel(side, side, NIGHT);
    let half = side as f32 / 2.0;
    for [x, y, depth] in points {
        let [x, y] = fit.apply([x, y]).map(|v| (v + 1.0) * half - 0.5);
        let t = if far > near { (depth - near) / (far - near) } else { 0.0 };
        let colour = std::array::from_fn(|c| NEAR[c] + t * (FAR[c] - NEAR[c]));
        disc(&mut picture, [x, y], DOT * half * (1.15 - 0.3 * t), colour);
    }
    picture
}

/// A point of space in the picture: x to the right, y down, and its depth. The eye stands in
/// front of the thing (against y), turned to its right side and looking down a little.
fn seen(point: &[f32]) -> [f32; 3] {
    const TURN: f32 = 0.6;
    const TILT: f32 = 0.4;
    let (sin, cos) = TURN.sin_cos();
    let (x, y, z) = (point[0], point[1], point[2]);
    let (right, back) = (cos * x + sin * y, cos * y - sin * x);
    let (sin, cos) = TILT.sin_cos();
    [right, -(cos * z + sin * back), cos * back - sin * z]
}

/// Moves and scales points so that they fill a square picture.
struct Fit {
    middle: [f32; 2],
    scale: f32,
}

impl Fit {
    fn new<'a>(points: impl Iterator<Item = &'a [f32; 2]>) -> Self {
        let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
        for p in points {
            for d in 0..2 {
                low[d] = low[d].min(p[d]);
                high[d] = high[d].max(p[d]);
            }
        }
        let extent = (high[0] - low[0]).max(high[1] - low[1]);
        let scale = if extent > 0.0 { 2.0 * FILL / extent } else { 1.0 };
        let middle = [0, 1].map(|d| f32::midpoint(low[d], high[d]));
        Fit { middle, scale: if scale.is_finite() { scale } else { 0.0 } }
    }

    fn apply(&self, p: [f32; 2]) -> [f32; 2] {
        let place = |d: usize| {
            let v = (p[d] - self.middle[d]) * self.scale;
            if v.is_finite() { v } else { 0.0 }
        };
        [place(0), place(1)]
    }
}

fn disc(picture: &mut RgbImage, [x, y]: [f32; 2], radius: f32, colour: [f32; 3]) {
    let reach = |v: f32, size: u32| {
        let low = (v - radius - 1.0).max(0.0) as u32;
        let high = (v + radius + 2.0).clamp(0.0, size as f32) as u32;
        low..high
    };
    for row in reach(y, picture.height()) {
        for col in reach(x, picture.width()) {
            let away = (col as f32 - x).hypot(row as f32 - y);
            let cover = (radius - away + 0.5).clamp(0.0, 1.0);
            let pixel = picture.get_pixel_mut(col, row);
            *pixel = blend(*pixel, colour, cover);
        }
    }
}

/// `over` laid on `under`, covering the given part of it.
pub fn blend(under: Rgb<u8>, over: [f32; 3], cover: f32) -> Rgb<u8> {
    Rgb(std::array::from_fn(|c| {
        (f32::from(under.0[c]) * (1.0 - cover) + over[c] * cover).round() as u8
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit(picture: &RgbImage, x: u32, y: u32) -> bool {
        picture.get_pixel(x, y) != &NIGHT
    }

    #[test]
    fn strokes_are_lines_between_their_points_and_not_across_gaps() {
        // Two vertical lines, and padding far away that must not be drawn.
        let item = [
            0.0, 0.0, 1.0, 0.0, 2.0, 0.0, //
            2.0, 0.0, 1.0, 2.0, 2.0, 0.0, //
            99.0, 99.0, -1.0,
        ];
        let picture = figure(Signal::Strokes { length: 5 }, &item, 101).unwrap();
        let edge = (101.0 * (1.0 - FILL) / 2.0) as u32;
        assert!(lit(&picture, edge, 50) && lit(&picture, 100 - edge, 50));
        assert!(!lit(&picture, 50, 50) && !lit(&picture, 50, edge));
    }

    #[test]
    fn what_is_high_is_drawn_above_and_what_is_near_in_front() {
        let up = seen(&[0.0, 0.0, 1.0]);
        assert!(up[1] < -0.8 && up[0].abs() < 1e-6);
        assert!(seen(&[1.0, 0.0, 0.0])[0] > 0.8);
        assert!(seen(&[0.0, -1.0, 0.0])[2] < seen(&[0.0, 1.0, 0.0])[2]);
    }

    #[test]
    fn odd_items_are_drawn_without_complaint() {
        let nowhere = [f32::NAN, 0.0, 1.0, f32::INFINITY, 1.0, 0.0];
        assert!(figure(Signal::Strokes { length: 2 }, &nowhere, 20).is_some());
        assert!(figure(Signal::Cloud { points: 2 }, &nowhere, 20).is_some());
        assert!(figure(Signal::Strokes { length: 1 }, &[0.0, 0.0, -1.0], 20).is_some());
        assert!(figure(Signal::Cloud { points: 1 }, &[1.0, 2.0, 3.0], 20).is_some());
    }
}
