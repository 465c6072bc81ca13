//! Data as users have it, opened as an [`upright::Dataset`].
//!
//! [`open`] takes paths and tells by what lies there, and by the model's signal,
//! how to read them: a folder of class folders, a folder of items, files of one
//! item, a list of paths and labels, or a file of many items. Items are decoded
//! when rows are read; a row that cannot be read is [`Skipped`], not an error.
//! [`FORMATS`] is the table of what is read.
//!
//! ```
//! use upright::Dataset;
//! use upright::Signal;
//! use upright_data::{Allowance, Options, Prepare, Want, open};
//!
//! let folder = tempfile::tempdir()?;
//! for (class, name, text) in [
//!     ("line", "a.xyz", "0 0 0\n1 0 0\n"),
//!     ("line", "b.xyz", "0 0 0\nbroken\n"),
//!     ("mesh", "c.off", "OFF 3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"),
//! ] {
//!     std::fs::create_dir_all(folder.path().join(class))?;
//!     std::fs::write(folder.path().join(class).join(name), text)?;
//! }
//!
//! let signal = Signal::Cloud { points: 2 };
//! let options = Options {
//!     allowance: Allowance::Count(1),
//!     ..Options::new(Want::Labelled, signal)
//! };
//! let source = open(&[folder.path().into()], &options, Prepare::for_points(signal, 0))?;
//! assert_eq!(source.classes(), ["line", "mesh"]);
//!
//! let read = source.load(&[0, 1, 2])?;
//! assert_eq!(read.rows, [0, 2]);
//! assert_eq!(read.batch.item(0), [0., 0., 0., 1., 0., 0.]);
//! assert_eq!(read.skipped[0].why.to_string(), "`broken` is not a point x y z");
//! assert_eq!(source.label(2), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod archive;
mod array;
mod bytes;
mod chain;
mod choice;
mod cloud;
mod error;
mod examples;
mod files;
mod folder;
mod formats;
mod glob;
mod hint;
mod item;
mod label_file;
mod labels;
mod log;
mod names;
mod note;
mod options;
mod pixels;
mod prepare;
mod random;
mod skip;
mod source;
mod strokes;

use std::path::{Path, PathBuf};

pub use archive::Npz;
pub use array::{Array, Number, write_floats};
pub use bytes::Content;
pub use cloud::Cloud;
pub use error::{Error, Found, Result};
pub use formats::{
    FORMATS, Format, Holds, Read, ReadMany, ReadOne, decode, decode_bytes, decode_item, supported,
};
pub use hint::Hint;
pub use item::{Change, Decoded, Item, Set};
pub use note::Note;
pub use options::{Allowance, Options, Split, Want};
#[doc(hidden)]
pub use pixels::pixels;
pub use prepare::{Apply, Prepare, Prepared};
pub use skip::{Skipped, Unusable};
pub use source::{Rows, Source};
pub use strokes::Strokes;

/// Opens paths as one data set whose rows are made ready for the model by `prepare`.
///
/// One path may be anything that is read; several may be files and folders, but no
/// lists, and have no labels.
pub fn open(paths: &[PathBuf], options: &Options, prepare: Prepare) -> Result<Source> {
    let mut set = match paths {
        [] => return Err(Error::NoPath),
        [path] => open_one(path, options)?,
        _ if options.want == Want::Labelled => {
            return Err(Error::ManyPaths { count: paths.len() });
        }
        _ => folder::inputs(paths, options)?,
    };
    if let Some(file) = &options.labels {
        set.labels = label_file::read(file, set.items.len(), options.kind())?;
    }
    Source::new(&paths[0], set, options, prepare)
}

fn open_one(path: &Path, options: &Options) -> Result<Set> {
    let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if meta.is_dir() {
        return folder::open(path, options);
    }
    let kind = options.kind();
    if let Some((_, read)) = formats::many(path, kind) {
        formats::open(read, path, options)
    } else if let Some(gives) = formats::other(path, kind) {
        Err(Error::Kind { path: path.into(), wants: options.signal, gives })
    } else if let Some(read) = formats::names(path) {
        read(path, options)
    } else if formats::one(path, kind).is_some() {
        folder::inputs(&[path.into()], options)
    } else {
        Err(Error::UnknownName { path: path.into(), kind })
    }
}
