//! What one item of the data is, by the model's signal.

use std::path::Path;

use upright::tensor::Signal;

use super::bytes::ending;
use super::clouds::{self, Shape};
use super::picture::{self, Picture};
use super::strokes::{self, Drawing};

/// A kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// Pixels.
    Pictures,
    /// Pen strokes in the plane.
    Drawings,
    /// Points or meshes in space.
    Clouds,
}

impl Media {
    /// Every kind.
    pub const ALL: [Media; 3] = [Media::Pictures, Media::Drawings, Media::Clouds];

    /// The kind that becomes a signal.
    pub fn of(signal: Signal) -> Media {
        match signal {
            Signal::Strokes { .. } => Media::Drawings,
            Signal::Cloud { .. } => Media::Clouds,
            _ => Media::Pictures,
        }
    }

    /// What many of them are called in messages.
    pub fn plural(self) -> &'static str {
        match self {
            Media::Pictures => "images",
            Media::Drawings => "sketches",
            Media::Clouds => "clouds",
        }
    }

    /// What one is called in messages, with its article.
    pub fn singular(self) -> &'static str {
        match self {
            Media::Pictures => "an image",
            Media::Drawings => "a sketch",
            Media::Clouds => "a point cloud",
        }
    }

    /// What files can hold them, for messages.
    pub fn supported(self) -> &'static str {
        match self {
            Media::Pictures => "png jpg bmp tif webp gif pnm, idx, npz",
            Media::Drawings => "svg, QuickDraw ndjson, npy npz of [N,L,3] or [N,L,2]; also as .gz",
            Media::Clouds => "off ply pcd xyz, npy npz of [N,P,3]; also as .gz",
        }
    }

    /// An ending that such files usually have.
    pub fn usual(self) -> &'static str {
        match self {
            Media::Pictures => "png",
            Media::Drawings => "svg",
            Media::Clouds => "off",
        }
    }

    /// Whether a file's name is that of a single item.
    pub fn is_one(self, path: &Path) -> bool {
        let among = |endings: &[&str]| endings.contains(&ending(path).as_str());
        match self {
            Media::Pictures => picture::looks_like_one(path),
            Media::Drawings => among(strokes::ENDINGS),
            Media::Clouds => among(clouds::ENDINGS),
        }
    }
}

/// One item as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A picture.
    Picture(Picture),
    /// A drawing.
    Drawing(Drawing),
    /// Points or a mesh.
    Shape(Shape),
}

impl Item {
    /// What it is.
    pub fn media(&self) -> Media {
        match self {
            Item::Picture(_) => Media::Pictures,
            Item::Drawing(_) => Media::Drawings,
            Item::Shape(_) => Media::Clouds,
        }
    }
}
