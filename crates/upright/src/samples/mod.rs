//! Data that we make ourselves, so that the demo and the tests need no download.

mod alphabet;
mod glyphs;
mod hand;
mod solids;
mod strokes;
mod surface;

pub use glyphs::{Glyph, NAMES, SIZE, digits, draw, glyphs, render};
pub use solids::{CLOUD_POINTS, SOLID_NAMES, solid, solids};
pub use strokes::{STROKE_LENGTH, sequence, strokes};

/// A small digit classifier as an ONNX file: input `image` `[n, 1, 40, 40]` with values in
/// 0..1, output `logits` for the classes 0 to 9, and the tensor `features` before its last layer.
///
/// It has only ever seen upright [`digits`]. Made by
/// `cargo run --release -p upright-lab --features train -- train glyphs`, whose settings are in
/// the file's properties.
pub fn glyph_model() -> &'static [u8] {
    include_bytes!("glyphs.onnx")
}

#[cfg(test)]
mod tests {
    use rten_tensor::prelude::*;

    use super::*;
    use crate::dataset::Dataset;
    use crate::tensor::argmax;

    #[test]
    fn the_built_in_model_reads_digits_it_has_not_seen() {
        let model = rten::Model::load(glyph_model().to_vec()).unwrap();
        let samples = digits(200, 77).unwrap();
        let images = samples.batch().data().to_vec();
        let images = rten_tensor::NdTensor::from_data([200, 1, SIZE, SIZE], images);
        let logits = model.run_one(images.into(), None).unwrap();
        let logits: rten_tensor::NdTensor<f32, 2> = logits.try_into().unwrap();
        let logits = logits.to_vec();
        let right = (0..200)
            .filter(|&i| samples.label(i) == Some(argmax(&logits[i * 10..i * 10 + 10]) as u32));
        assert!(right.count() >= 194);
        assert!(model.find_node("features").is_some());
    }

    #[test]
    fn the_built_in_model_stays_small() {
        assert!(glyph_model().len() < 600_000);
    }
}
