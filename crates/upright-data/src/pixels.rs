//! Items of a batch as pictures.

use image::{DynamicImage, GrayImage, RgbImage};
use upright::Signal;

/// An image item as 8-bit pixels; `None` for other signals.
pub fn pixels(signal: Signal, item: &[f32]) -> Option<DynamicImage> {
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
