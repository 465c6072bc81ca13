//! Items of a batch as picture files.

use std::path::Path;

use image::{DynamicImage, GrayImage, ImageFormat, RgbImage};
use upright::Signal;

use crate::report::{Failure, Result};

/// Writes an image item as the kind of file its name asks for.
pub fn save(path: &Path, signal: Signal, item: &[f32]) -> Result<()> {
    let format = ImageFormat::from_path(path).map_err(|_| {
        Failure::usage(
            format!("`{}` does not end like an image", path.display()),
            "write to a .png, .jpg, .bmp, .tif or .webp file",
        )
    })?;
    let Some(picture) = picture(signal, item) else {
        return Err(Failure::usage("only images can be written as image files", ""));
    };
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, format)
        .map_err(|e| Failure::data(path, e.to_string(), "try a .png file"))?;
    Ok(upright::internal::artifact::write_whole(path, bytes.get_ref())?)
}

/// An image item as 8-bit pixels; `None` for other signals.
pub fn picture(signal: Signal, item: &[f32]) -> Option<DynamicImage> {
    let Signal::Image { channels, height, width } = signal else { return None };
    let byte = |v: f32| (v.clamp(0.0, 1.0) * 255.0).round() as u8;
    let (w, h) = (width as u32, height as u32);
    if channels == 1 {
        let data = item.iter().map(|&v| byte(v)).collect();
        return GrayImage::from_raw(w, h, data).map(DynamicImage::ImageLuma8);
    }
    let plane = height * width;
    let pixel = |i: usize| (0..3).map(move |c| item[(c.min(channels - 1)) * plane + i]);
    let data = (0..plane).flat_map(pixel).map(byte).collect();
    RgbImage::from_raw(w, h, data).map(DynamicImage::ImageRgb8)
}
