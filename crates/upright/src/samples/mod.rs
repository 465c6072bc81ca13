//! Data that we make ourselves, so that the demo and the tests need no download.

mod alphabet;
pub(crate) mod glyphs;
mod hand;
pub(crate) mod solids;
pub(crate) mod strokes;
mod surface;

pub use glyphs::digits;
pub use solids::solids;
pub use strokes::strokes;

/// A small digit classifier as an ONNX file: input `image` `[n, 1, 40, 40]` with values in
/// 0..1, output `logits` for the classes 0 to 9, and the tensor `features` before its last layer.
///
/// It has only ever seen upright [`digits`]. Made by
/// `cargo run --release -p upright-lab --features train -- train glyphs`, whose settings are in
/// the file's properties.
pub fn glyph_model() -> &'static [u8] {
    include_bytes!("glyphs.onnx")
}

/// A small digit classifier as an ONNX file: input `strokes` `[n, 64, 3]` as [`strokes()`] makes
/// them, outputs `logits` for the classes 0 to 9 and `features` before its last layer.
///
/// It centres and scales strokes itself and does not see what padding holds. It has only ever
/// seen upright digits. Made by
/// `cargo run --release -p upright-lab --features train -- train strokes`.
pub fn stroke_model() -> &'static [u8] {
    include_bytes!("strokes.onnx")
}

/// A small classifier of ten kinds of solids as an ONNX file: input `points` `[n, 256, 3]` as
/// [`solids()`] makes them, in any order, outputs `logits` and `features` before its last layer.
///
/// It centres and scales clouds itself. It has only ever seen upright solids. Made by
/// `cargo run --release -p upright-lab --features train -- train solids`.
pub fn solid_model() -> &'static [u8] {
    include_bytes!("solids.onnx")
}

#[cfg(test)]
mod tests;
