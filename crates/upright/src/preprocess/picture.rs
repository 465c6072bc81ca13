//! Decoded pictures.

use crate::error::{Error, Result};

/// A decoded picture: rows of pixels, channels interleaved, values in 0..1.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) channels: usize,
    pub(super) data: Vec<f32>,
}

impl Picture {
    /// Wraps pixels of 1 (grey), 2 (grey, alpha), 3 (red, green, blue) or 4 (and alpha) channels.
    pub fn new(width: usize, height: usize, channels: usize, data: Vec<f32>) -> Result<Self> {
        let size = width.checked_mul(height).and_then(|s| s.checked_mul(channels));
        if size != Some(data.len()) || data.is_empty() || !(1..=4).contains(&channels) {
            return Err(Error::shape("picture", (height, width, channels), data.len()));
        }
        Ok(Picture { width, height, channels, data })
    }

    /// Wraps 8-bit pixels, dividing by 255.
    pub fn from_u8(width: usize, height: usize, channels: usize, data: &[u8]) -> Result<Self> {
        Self::new(width, height, channels, data.iter().map(|v| f32::from(*v) / 255.0).collect())
    }

    /// The same picture with rows and columns exchanged.
    #[must_use]
    #[doc(hidden)]
    pub fn transposed(&self) -> Self {
        let Picture { width, height, channels, .. } = *self;
        let pixel = |y: usize, x: usize| {
            let at = (y * width + x) * channels;
            &self.data[at..at + channels]
        };
        let pixels = (0..width).flat_map(|x| (0..height).map(move |y| (y, x)));
        let data = pixels.flat_map(|(y, x)| pixel(y, x)).copied().collect();
        Picture { width: height, height: width, channels, data }
    }

    /// Columns.
    #[doc(hidden)]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    #[doc(hidden)]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Values a pixel.
    #[doc(hidden)]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The values, pixel after pixel.
    #[doc(hidden)]
    pub fn data(&self) -> &[f32] {
        &self.data
    }
}
