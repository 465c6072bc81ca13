//! Files that hold many items, by their names.

use std::path::Path;

use super::bytes::ending;
use super::media::Media;
use super::options::Options;
use super::source::Opened;
use super::{arrays, idx, npz, strokes};
use crate::report::{Failure, Result};

/// Whether a file holds many items of a kind.
pub(super) fn is_one(path: &Path, media: Media) -> bool {
    let ending = ending(path);
    match media {
        Media::Pictures => idx::looks_like_images(path) || ending == "npz",
        _ if ending == "npz" => true,
        _ if ending == "npy" => arrays::is_stack(path),
        Media::Drawings => is_lines(path) && strokes::quickdraw::looks_like_drawings(path),
        Media::Clouds => false,
    }
}

/// Whether a file's name is that of JSON lines.
pub(super) fn is_lines(path: &Path) -> bool {
    matches!(ending(path).as_str(), "ndjson" | "jsonl")
}

/// The kind of a file that is surely of another one.
pub(super) fn other(path: &Path, media: Media) -> Option<Media> {
    let drawings = is_lines(path) && strokes::quickdraw::looks_like_drawings(path);
    let shared = matches!(ending(path).as_str(), "npy" | "npz" | "txt");
    let is = |other: &Media| {
        *other != media
            && (other.is_one(path)
                || *other == Media::Pictures && idx::looks_like_images(path)
                || *other == Media::Drawings && drawings)
    };
    Media::ALL.into_iter().find(is).filter(|_| !shared)
}

/// Opens a file of many items.
pub(super) fn open(path: &Path, options: &Options) -> Result<Opened> {
    match (options.media(), ending(path).as_str()) {
        (Media::Pictures, "npz") => npz::open(path, options.transpose),
        (Media::Pictures, _) => idx::open(path, options.transpose),
        (_, "npz") => arrays::open_npz(path, options),
        (_, "npy") => arrays::open(path, options),
        (Media::Drawings, _) => strokes::quickdraw::open(path),
        (Media::Clouds, _) => Err(Failure::data(path, "not a file of clouds", "")),
    }
}
