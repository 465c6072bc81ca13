//! Contact sheets: inputs and the views that were classified, side by side.

use std::path::Path;

use image::{Rgb, RgbImage};
use upright::samples;
use upright::tensor::Signal;

use crate::pixels;
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
/// Side of the label drawn under a picture.
const LABEL: u32 = 22;

/// Draws pairs, input left and classified view right, each framed in green if the answer
/// below it is right and in red if not. Labels must be digits.
pub fn draw(path: &Path, signal: Signal, cells: &[Cell], columns: u32) -> Result<()> {
    let Signal::Image { height, width, .. } = signal else {
        return Err(Failure::usage("only images can be drawn on a sheet", ""));
    };
    let zoom = (72 / width.max(height).max(1)).max(1) as u32;
    let (w, h) = (width as u32 * zoom + 2 * FRAME, height as u32 * zoom + 2 * FRAME);
    let (pair, line) = (2 * w + GAP + SPACE, h + LABEL + SPACE);
    let rows = (cells.len() as u32).div_ceil(columns);
    let mut sheet = RgbImage::from_pixel(columns * pair + SPACE, rows * line + SPACE, PAPER);
    for (i, cell) in cells.iter().enumerate() {
        let x = SPACE + (i as u32 % columns) * pair;
        let y = SPACE + (i as u32 / columns) * line;
        for (at, item, label) in
            [(x, cell.before, cell.model_label), (x + w + GAP, cell.after, cell.label)]
        {
            let colour = if label == cell.truth { RIGHT } else { WRONG };
            framed(&mut sheet, (at, y), signal, item, zoom, colour);
            let middle = at + (w - LABEL) / 2;
            digit(&mut sheet, (middle, y + h + 2), label, colour);
        }
        arrow(&mut sheet, (x + w + 6, y + h / 2));
    }
    sheet
        .save(path)
        .map_err(|e| Failure::data(path, e.to_string(), "check that the folder can be written"))
}

fn framed(
    sheet: &mut RgbImage,
    (x, y): (u32, u32),
    signal: Signal,
    item: &[f32],
    zoom: u32,
    colour: Rgb<u8>,
) {
    let Some(picture) = pixels::picture(signal, item) else { return };
    let picture = picture.to_rgb8();
    let (w, h) = (picture.width() * zoom, picture.height() * zoom);
    for dy in 0..h + 2 * FRAME {
        for dx in 0..w + 2 * FRAME {
            let inside = (FRAME..FRAME + w).contains(&dx) && (FRAME..FRAME + h).contains(&dy);
            let pixel = if inside {
                *picture.get_pixel((dx - FRAME) / zoom, (dy - FRAME) / zoom)
            } else {
                colour
            };
            sheet.put_pixel(x + dx, y + dy, pixel);
        }
    }
}

/// Draws a class number with the generator's own strokes.
fn digit(sheet: &mut RgbImage, (x, y): (u32, u32), label: u32, colour: Rgb<u8>) {
    let pixels = samples::render(&samples::draw(label, 0), LABEL as usize);
    for (i, ink) in pixels.iter().enumerate() {
        let (dx, dy) = (i as u32 % LABEL, i as u32 / LABEL);
        let mix = |paper: u8, ink_colour: u8| {
            (f32::from(paper) * (1.0 - ink) + f32::from(ink_colour) * ink) as u8
        };
        let blended = Rgb(std::array::from_fn(|c| mix(PAPER.0[c], colour.0[c])));
        sheet.put_pixel(x + dx, y + dy, blended);
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
