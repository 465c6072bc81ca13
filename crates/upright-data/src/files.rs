//! Files that hold one item each.

use std::path::PathBuf;

use rayon::prelude::*;

use crate::bytes::Content;
use crate::formats;
use crate::item::{Decoded, Items};
use crate::options::Options;
use crate::skip::Unusable;

/// Files of one kind.
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    options: Options,
}

impl Files {
    /// Files to be read as the options say.
    pub(crate) fn new(paths: Vec<PathBuf>, options: &Options) -> Self {
        Files { paths, options: options.clone() }
    }
}

impl Items for Files {
    fn len(&self) -> usize {
        self.paths.len()
    }

    fn name(&self, row: usize) -> String {
        self.paths[row].display().to_string()
    }

    fn item(&self, row: usize) -> Result<Decoded, Unusable> {
        let (path, kind) = (&self.paths[row], self.options.kind());
        let read = formats::one_called(path, kind).ok_or_else(|| {
            format!("no file of a known kind; supported: {}", formats::supported(kind))
        })?;
        read(Content::File(path), &self.options)
    }

    fn bytes(&self) -> u64 {
        let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |meta| meta.len());
        self.paths.par_iter().map(length).sum()
    }
}
