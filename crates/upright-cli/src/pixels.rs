//! Items of a batch as picture files.

use std::path::Path;

use image::ImageFormat;
use upright::Signal;
pub use upright_data::pixels as picture;

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
