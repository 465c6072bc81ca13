//! Contact sheets: inputs and the views that were classified, side by side.

use std::path::Path;

use image::{Rgb, RgbImage};
use upright::Signal;
use upright::internal::samples;

use crate::figure::{blend, figure};
use crate::report::{Failure, Result};

/// One pair on a sheet.
pub struct Cell<'a> {
    /// The input as it came.
    pub before: &'a [f32],
    /// The view that was classified.
    pub after: &'a [f32],
    /// What the bare model says.
    pub model_label: u32,
    /// What is answered.
    pub label: u32,
    /// The true class.
    pub truth: u32,
}

const PAPER: Rgb<u8> = Rgb([247, 247, 244]);
const INK: Rgb<u8> = Rgb([40, 44, 52]);
const RIGHT: Rgb<u8> = Rgb([34, 139, 87]);
const WRONG: Rgb<u8> = Rgb([200, 55, 55]);

/// Pixels around pictures, between the two of a pair, and between pairs.
const FRAME: u32 = 3;
const GAP: u32 = 30;
const SPACE: u32 = 26;
/// Side of a letter drawn under a picture, and the distance to the next.
const LABEL: u32 = 22;
const ADVANCE: u32 = 11;
/// Seed of a neat hand.
const NEAT: u64 = 12;

/// Draws pairs, input left and classified view right, each framed in green if the answer
/// below it is right and in red if not. Answers are written as `names[label]`.
pub fn draw(
    path: &Path,
    signal: Signal,
    cells: &[Cell],
    names: &[&str],
    columns: u32,
) -> Result<()> {
    let side = if matches!(signal, Signal::Image { .. }) { 72 } else { 96 };
    let pictures: Vec<[RgbImage; 2]> = cells
        .iter()
        .map(|cell| Some([figure(signal, cell.before, side)?, figure(signal, cell.after, side)?]))
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::usage("such inputs cannot be drawn on a sheet", ""))?;
    let size = |of: fn(&RgbImage) -> u32| {
        pictures.iter().flatten().map(of).max().unwrap_or(side) + 2 * FRAME
    };
    let (w, h) = (size(RgbImage::width), size(RgbImage::height));
    let (pair, line) = (2 * w + GAP + SPACE, h + LABEL + SPACE);
    let rows = (cells.len() as u32).div_ceil(columns);
    let mut sheet = RgbImage::from_pixel(columns * pair + SPACE, rows * line + SPACE, PAPER);
    for (i, (cell, pictures)) in cells.iter().zip(&pictures).enumerate() {
        let x = SPACE + (i as u32 % columns) * pair;
        let y = SPACE + (i as u32 / columns) * line;
        for (at, picture, label) in
            [(x, &pictures[0], cell.model_label), (x + w + GAP, &pictures[1], cell.label)]
        {
            let colour = if label == cell.truth { RIGHT } else { WRONG };
            framed(&mut sheet, (at, y), picture, colour);
            let name = names.get(label as usize).copied().unwrap_or("");
            word(&mut sheet, (at + w / 2, y + h + 2), name, colour);
        }
        arrow(&mut sheet, (x + w + 6, y + h / 2));
    }
    sheet
        .save(path)
        .map_err(|e| Failure::data(path, e.to_string(), "check that the folder can be written"))
}

fn framed(sheet: &mut RgbImage, (x, y): (u32, u32), picture: &RgbImage, colour: Rgb<u8>) {
    let (w, h) = picture.dimensions();
    for dy in 0..h + 2 * FRAME {
        for dx in 0..w + 2 * FRAME {
            let inside = (FRAME..FRAME + w).contains(&dx) && (FRAME..FRAME + h).contains(&dy);
            let pixel = if inside { *picture.get_pixel(dx - FRAME, dy - FRAME) } else { colour };
            sheet.put_pixel(x + dx, y + dy, pixel);
        }
    }
}

/// Writes a word with the generator's own strokes around `x`; characters that it does not know
/// are left out.
fn word(sheet: &mut RgbImage, (x, y): (u32, u32), text: &str, colour: Rgb<u8>) {
    let glyph = |c: char| {
        let known = |n: &&str| n.chars().eq(c.to_uppercase());
        samples::NAMES.iter().position(known)
    };
    let glyphs: Vec<usize> = text.chars().filter_map(glyph).collect();
    let width = LABEL + ADVANCE * (glyphs.len().max(1) as u32 - 1);
    let left = x.saturating_sub(width / 2);
    for (i, label) in glyphs.into_iter().enumerate() {
        let ink = samples::render(&samples::draw(label as u32, NEAT), LABEL as usize);
        for (k, ink) in ink.iter().enumerate() {
            let (dx, dy) = (k as u32 % LABEL, k as u32 / LABEL);
            let at = (left + i as u32 * ADVANCE + dx, y + dy);
            if let Some(pixel) = sheet.get_pixel_mut_checked(at.0, at.1) {
                *pixel = blend(*pixel, colour.0.map(f32::from), *ink);
            }
        }
    }
}

fn arrow(sheet: &mut RgbImage, (x, y): (u32, u32)) {
    for i in 0..18 {
        sheet.put_pixel(x + i, y, INK);
        sheet.put_pixel(x + i, y + 1, INK);
    }
    for i in 0..6 {
        for thick in 0..2 {
            sheet.put_pixel(x + 17 - i + thick, y - i, INK);
            sheet.put_pixel(x + 17 - i + thick, y + 1 + i, INK);
        }
    }
}
