//! A box found in the canonical view, carried back to the input through the map found.
//!
//! `cargo run --example boxes`
#![allow(clippy::print_stdout, reason = "a program")]

use upright::{
    Config, FitData, Map, Model, ModelOptions, Part, Resample, Result, Role, Silent, View, samples,
    warp,
};

/// A point in pixels, pixel centres at whole numbers.
type Point = (f32, f32);

/// From pixels to the map's coordinates: from the centre, in halves of the longer side.
fn to_map((x, y): Point, width: usize, height: usize) -> Point {
    let unit = width.max(height) as f32 / 2.0;
    ((x + 0.5 - width as f32 / 2.0) / unit, (y + 0.5 - height as f32 / 2.0) / unit)
}

/// And back to pixels.
fn to_pixels((x, y): Point, width: usize, height: usize) -> Point {
    let unit = width.max(height) as f32 / 2.0;
    (x * unit + width as f32 / 2.0 - 0.5, y * unit + height as f32 / 2.0 - 0.5)
}

/// The corners of the smallest upright box around the ink, clockwise from the top left.
fn ink(pixels: &[f32], width: usize) -> Option<[Point; 4]> {
    let dark = |(i, _): (usize, &f32)| ((i % width) as f32, (i / width) as f32);
    let points = pixels.iter().enumerate().filter(|(_, p)| **p > 0.5).map(dark);
    let (left, top, right, bottom) = points
        .map(|(x, y)| (x, y, x, y))
        .reduce(|a, b| (a.0.min(b.0), a.1.min(b.1), a.2.max(b.2), a.3.max(b.3)))?;
    Some([(left, top), (right, top), (right, bottom), (left, bottom)])
}

fn main() -> Result<()> {
    let model = Model::from_bytes("digits", samples::glyph_model(), &ModelOptions::default())?;
    let config = Config { calibration: 60, ..Config::default() };
    let fitted = config.fit(model, &FitData::new(&samples::digits(300, 1)?), &mut Silent)?;
    let searching = fitted.with_part(Role::Gate, Part::new("always"))?;

    let (sin, cos) = 40_f32.to_radians().sin_cos();
    let map = Map::Plane([cos, -sin, 0.0, sin, cos, 0.0]);
    let digits = samples::digits(3, 7)?;
    let views: Vec<View> = (0..3).map(|item| View { item, map }).collect();
    let turned = warp(digits.batch(), &views, &Resample::default())?;

    let size = 40;
    for (item, answer) in searching.predict(&turned)?.iter().enumerate() {
        let seen = warp(&turned, &[View { item, map: answer.map }], &Resample::default())?;
        let Some(corners) = ink(seen.item(0), size) else { continue };
        println!("digit {}", answer.label);
        for corner in corners {
            let Some(there) = answer.map.apply(to_map(corner, size, size)) else { continue };
            let (x, y) = to_pixels(there, size, size);
            println!("  view ({:4.1}, {:4.1}) is input ({x:4.1}, {y:4.1})", corner.0, corner.1);
        }
    }
    Ok(())
}
