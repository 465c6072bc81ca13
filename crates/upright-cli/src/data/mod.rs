//! Data as users have it, opened as an [`upright::dataset::Dataset`].
//!
//! [`open`] takes paths and tells by what lies there, and by the model's signal,
//! how to read them: a folder of class folders, a folder of items, files of one
//! item, a `path,label` list, or a file of many items. Items are decoded when
//! rows are read.

mod arrays;
mod bytes;
mod chain;
mod choice;
mod clouds;
mod files;
mod folder;
mod glob;
mod idx;
mod label_file;
mod labels;
mod ledger;
mod lot;
mod manifest;
mod media;
mod npy;
mod npz;
mod options;
mod picture;
mod prepare;
mod source;
mod stack;
mod strokes;

use std::path::{Path, PathBuf};

pub use clouds::Shape;
pub use labels::Labels;
pub use ledger::Seen;
pub use media::{Item, Media};
pub use npy::{Array, write_floats};
pub use npz::Npz;
pub use options::{Allowance, DataArgs, Options, Split, Want};
pub use picture::{Picture, decode};
pub use prepare::{Apply, Prepare};
pub use source::Source;
pub use strokes::Drawing;

use crate::report::{Failure, Result};
use source::Opened;

/// Opens paths as one data set whose rows are made ready for the model by `prepare`.
///
/// One path may be anything this module reads; several may be files and folders,
/// but no lists, and have no labels.
pub fn open(paths: &[PathBuf], options: &Options, prepare: Prepare) -> Result<Source> {
    let opened = match paths {
        [] => return Err(Failure::usage("no data given", "give a folder or a file")),
        [path] => open_one(path, options)?,
        _ if options.want == Want::Labelled => {
            return Err(Failure::usage(
                format!("{} paths given where one labelled set is needed", paths.len()),
                "give one folder of class folders, or one list with the columns path,label",
            ));
        }
        _ => folder::inputs(paths, options)?,
    };
    let opened = match &options.labels {
        None => opened,
        Some(file) => {
            let labels = label_file::read(file, opened.items.len(), options.media())?;
            Opened { labels, ..opened }
        }
    };
    let origin = paths[0].display().to_string();
    Source::new(&origin, opened, options, prepare)
}

fn open_one(path: &Path, options: &Options) -> Result<Opened> {
    let kind = std::fs::metadata(path).map_err(|e| Failure::io(path, e))?;
    if kind.is_dir() {
        return folder::open(path, options);
    }
    let media = options.media();
    if stack::is_one(path, media) {
        stack::open(path, options)
    } else if let Some(other) = stack::other(path, media) {
        Err(Failure::Kind {
            path: path.into(),
            wants: format!("{} {}", media.plural(), shape(options)),
            gives: other.singular(),
            media,
        })
    } else if manifest::ENDINGS.contains(&bytes::ending(path).as_str()) {
        manifest::open(path, options)
    } else if media.is_one(path) {
        folder::inputs(&[path.into()], options)
    } else {
        Err(Failure::data(
            path,
            "not a kind of data that is known by its name",
            format!("give a folder, a .csv or .jsonl list, or {}", media.supported()),
        ))
    }
}

fn shape(options: &Options) -> String {
    let dims: Vec<String> = options.signal.shape().iter().map(ToString::to_string).collect();
    format!("[N,{}]", dims.join(","))
}
