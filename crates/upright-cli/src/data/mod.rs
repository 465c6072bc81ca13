//! Data as users have it, opened as an [`upright::dataset::Dataset`].
//!
//! [`open`] takes paths and tells by what lies there how to read them: a folder
//! of class folders, a folder of pictures, picture files, a `path,label` list,
//! idx files or an npz archive. Pictures are decoded when rows are read.

mod folder;
mod idx;
mod labels;
mod ledger;
mod manifest;
mod npy;
mod npz;
mod options;
mod picture;
mod source;

use std::path::{Path, PathBuf};

pub use npy::{Array, write_floats};
pub use npz::Npz;
pub use options::{DataArgs, Options, Split, Want};
pub use picture::{Picture, decode};
pub use source::{Prepare, Source};

use crate::report::{Failure, Result};
use source::Opened;

/// Opens paths as one data set whose rows are made ready for the model by `prepare`.
///
/// One path may be anything this module reads; several must be pictures and
/// folders of pictures, which have no labels.
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
        _ => folder::pictures(paths, options)?,
    };
    let origin = paths[0].display().to_string();
    Source::new(&origin, opened, options, prepare)
}

fn open_one(path: &Path, options: &Options) -> Result<Opened> {
    let kind = std::fs::metadata(path).map_err(|e| Failure::io(path, e))?;
    if kind.is_dir() {
        return folder::open(path, options);
    }
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    if idx::looks_like_images(path) {
        idx::open(path, options.transpose)
    } else if ending == "npz" {
        npz::open(path, options.transpose)
    } else if manifest::ENDINGS.contains(&ending.as_str()) {
        manifest::open(path, options)
    } else if picture::looks_like_one(path) {
        folder::pictures(&[path.into()], options)
    } else {
        Err(Failure::data(
            path,
            "not a kind of data that is known by its name",
            "give a folder, a picture, a .csv or .jsonl list, an idx images file, or an .npz archive",
        ))
    }
}
