//! What would help against an [`Error`].

use std::borrow::Cow;
use std::path::PathBuf;

use upright::SignalKind;

use crate::error::{Error, Found};
use crate::formats;

/// What would help, for front ends to put into their own words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Give data.
    GiveData,
    /// Give one folder of class folders, or one list of paths and labels.
    GiveOneSet,
    /// Give a folder, a list, or a file that can hold items of this kind.
    GiveKnown {
        /// The kind.
        kind: SignalKind,
    },
    /// Give true classes: by class folders, a list, beside the data, or in a file of their own.
    GiveLabels,
    /// Put items into one folder per class.
    ClassFolders {
        /// The folder for the class folders.
        folder: PathBuf,
        /// How names of such items usually end, without the dot.
        ending: &'static str,
    },
    /// List the class names in the order of the model's outputs, or accept that some are missing.
    NameClasses,
    /// List the class names in the order of the model's outputs: which of them are missing cannot
    /// be told otherwise.
    ListClasses,
    /// Give files that can hold items of this kind.
    GiveSupported {
        /// The kind.
        kind: SignalKind,
        /// Whether there are HEIC files, which must be converted first.
        heic: bool,
    },
    /// Give items of this kind, or another model.
    MatchModel {
        /// The kind.
        kind: SignalKind,
    },
    /// Choose a split.
    ChooseSplit,
    /// Choose another split, or give its folder or file itself.
    OtherSplit {
        /// Whether splits are files here, not folders.
        files: bool,
    },
    /// Give patterns that fit whole names.
    WholeNames {
        /// Such a name.
        example: String,
    },
    /// Repair or remove what cannot be read, or tolerate more of it.
    Tolerate,
    /// Write the file as this sentence says.
    Fix(Cow<'static, str>),
    /// What would help against the library's own error.
    Model(upright::Hint),
}

impl Error {
    /// What would help; `None` if the message says it all.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Error::NoPath => Hint::GiveData,
            Error::ManyPaths { .. } => Hint::GiveOneSet,
            Error::NoClasses { folder, kind, .. } => {
                Hint::ClassFolders { folder: folder.clone(), ending: formats::usual(*kind) }
            }
            Error::Classes { missing, .. } if missing.is_empty() => Hint::ListClasses,
            Error::ClassList { .. }
            | Error::Beyond { .. }
            | Error::Unlisted { .. }
            | Error::Classes { .. } => Hint::NameClasses,
            Error::Empty { kind, found, .. } => {
                let heic =
                    matches!(found, Found::Files(files) if files.iter().any(|f| f.1 == ".heic"));
                Hint::GiveSupported { kind: *kind, heic }
            }
            Error::Kind { wants, .. } => Hint::MatchModel { kind: wants.kind() },
            Error::Splits { .. } => Hint::ChooseSplit,
            Error::NoSplit { files, .. } => Hint::OtherSplit { files: *files },
            Error::NoLabels { .. } => Hint::GiveLabels,
            Error::NoMatch { example, .. } => Hint::WholeNames { example: example.clone() },
            Error::UnknownName { kind, .. } => Hint::GiveKnown { kind: *kind },
            Error::Unreadable { fix, .. } if !fix.is_empty() => Hint::Fix(fix.clone()),
            Error::Skipped { .. } => Hint::Tolerate,
            Error::Model(e) => return e.hint().map(Hint::Model),
            Error::Unreadable { .. } | Error::TooLarge { .. } | Error::Io { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heic_is_mentioned_only_where_there_is_heic() {
        let hint = |ending: &str| {
            let (path, kind) = ("p".into(), SignalKind::Image);
            Error::Empty { path, kind, found: Found::Files(vec![(35, ending.into())]) }.hint()
        };
        let kind = SignalKind::Image;
        assert_eq!(hint(".heic"), Some(Hint::GiveSupported { kind, heic: true }));
        assert_eq!(hint(".txt"), Some(Hint::GiveSupported { kind, heic: false }));
    }
}
