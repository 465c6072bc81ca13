//! Files that hold one item each.

use std::path::PathBuf;

use super::clouds;
use super::ledger::Seen;
use super::media::{Item, Media};
use super::picture;
use super::source::{Decoded, Items};
use super::strokes;

/// Files of one kind.
pub(super) struct Files {
    /// Where they are.
    pub(super) paths: Vec<PathBuf>,
    /// What they hold.
    pub(super) media: Media,
    /// Whether EXIF orientations are left alone.
    pub(super) ignore_exif: bool,
}

impl Items for Files {
    fn len(&self) -> usize {
        self.paths.len()
    }

    fn name(&self, row: usize) -> String {
        self.paths[row].display().to_string()
    }

    fn item(&self, row: usize) -> Result<Decoded, String> {
        let path = &self.paths[row];
        if self.media == Media::Pictures {
            let photo = picture::decode(path, self.ignore_exif)?;
            let seen = if photo.turned { Seen::Turned } else { Seen::Plain };
            return Ok(Decoded { item: Item::Picture(photo.picture), seen });
        }
        if !self.media.is_one(path) {
            return Err(format!("no file of a known kind; supported: {}", self.media.supported()));
        }
        Ok(Decoded::plain(match self.media {
            Media::Drawings => Item::Drawing(strokes::read(path)?),
            _ => Item::Shape(clouds::read(path)?),
        }))
    }
}
