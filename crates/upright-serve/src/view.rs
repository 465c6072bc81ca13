//! The view that answered, as a picture.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use upright::{Batch, Canonicalizer, Map, View};

/// The view of an image under a map as a `data:` URL; `None` for other signals.
pub fn url(c: &Canonicalizer, item: &[f32], map: Map) -> Option<String> {
    let batch = Batch::borrowed(c.model().signal(), item).ok()?;
    let view = c.shown(&batch, &[View { item: 0, map }]).ok()?;
    let picture = upright_data::pixels(view.signal(), view.item(0))?;
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, ImageFormat::Png).ok()?;
    Some(format!("data:image/png;base64,{}", STANDARD.encode(bytes.into_inner())))
}
