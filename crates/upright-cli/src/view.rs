//! Views as files of a kind that upright reads itself: images as PNG, sketches
//! as SVG, clouds as XYZ.

use std::fmt::Write;
use std::path::Path;

use upright::Signal;
use upright_data::{Strokes, Unusable};

use crate::pixels;
use crate::report::{Failure, Result};

/// Writes an item as `STEM` with the ending of its signal.
pub fn save(folder: &Path, stem: &str, signal: Signal, item: &[f32]) -> Result<()> {
    let path = |ending: &str| folder.join(format!("{stem}.{ending}"));
    let (path, text) = match signal {
        Signal::Strokes { .. } => {
            let path = path("svg");
            let refused =
                |why: Unusable| Failure::data(&path, why.to_string(), "leave out `--views`");
            let text = svg(&Strokes::from_rows(item, 3).map_err(refused)?);
            (path, text)
        }
        Signal::Cloud { .. } => (path("xyz"), xyz(item)),
        _ => return pixels::save(&path("png"), signal, item),
    };
    Ok(upright::internal::artifact::write_whole(&path, text.as_bytes())?)
}

/// One path per stroke, in the sketch's own coordinates.
fn svg(sketch: &Strokes) -> String {
    let points = || sketch.strokes().iter().flatten();
    let low = |d: usize| points().map(|p| p[d]).fold(f32::INFINITY, f32::min);
    let high = |d: usize| points().map(|p| p[d]).fold(f32::NEG_INFINITY, f32::max);
    let (left, top) = (low(0), low(1));
    let (width, height) = (high(0) - left, high(1) - top);
    let pen = 0.01 * width.max(height);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{} {} {} {}\" fill=\"none\" \
         stroke=\"black\" stroke-width=\"{pen}\" stroke-linecap=\"round\">\n",
        left - pen,
        top - pen,
        width + 2.0 * pen,
        height + 2.0 * pen
    );
    for stroke in sketch.strokes() {
        text += "<path d=\"";
        for (i, [x, y]) in stroke.iter().enumerate() {
            let _ = write!(text, "{}{x} {y}", if i == 0 { 'M' } else { 'L' });
        }
        text += "\"/>\n";
    }
    text + "</svg>\n"
}

/// A line per point.
fn xyz(item: &[f32]) -> String {
    item.chunks_exact(3).fold(String::new(), |mut text, p| {
        let _ = writeln!(text, "{} {} {}", p[0], p[1], p[2]);
        text
    })
}
