//! Numpy archives (`.npz`): named arrays.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use upright::SignalKind;
use zip::ZipArchive;

use crate::array::Array;
use crate::bytes::{RATIO_CAP, RATIO_FREE};
use crate::error::{Error, Result};
use crate::labels::Labels;

/// Largest member that is read, in bytes.
const MEMBER_CAP: u64 = 4 << 30;

/// An archive of which arrays are read by name.
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
}

impl Npz {
    /// Opens an archive.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|e| {
            let why = format!("not an npz archive: {e}");
            Error::unreadable(path, why, "write it with `numpy.savez`")
        })?;
        Ok(Npz { path: path.into(), archive })
    }

    /// The names of its arrays, sorted.
    pub fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().filter_map(std::result::Result::ok);
        let mut names: Vec<_> =
            names.filter_map(|n| n.strip_suffix(".npy").map(str::to_owned)).collect();
        names.sort();
        names
    }

    /// The array of a name, if there is one.
    pub fn array(&mut self, name: &str) -> Result<Option<Array>> {
        let Some(place) = self.archive.index_for_name(&format!("{name}.npy")) else {
            return Ok(None);
        };
        let bad = |why: String| {
            Error::unreadable(
                &self.path,
                format!("array `{name}`: {why}"),
                "write it again with `numpy.savez`",
            )
        };
        let member = self.archive.by_index(place).map_err(|e| bad(e.to_string()))?;
        let (size, packed) = (member.size(), member.compressed_size());
        if size > MEMBER_CAP {
            let what = format!("array `{name}` of {}", self.path.display());
            return Err(Error::TooLarge { what, size, limit: MEMBER_CAP });
        }
        if size > RATIO_FREE && size / packed.max(1) > RATIO_CAP {
            return Err(bad(format!(
                "{size} bytes packed into {packed} is more than {RATIO_CAP}:1, which no real data is"
            )));
        }
        Array::read(member, size).map(Some).map_err(|e| bad(e.to_string()))
    }

    /// The first array there is of some names.
    pub fn first(&mut self, names: &[&str]) -> Result<Option<Array>> {
        for name in names {
            if let Some(array) = self.array(name)? {
                return Ok(Some(array));
            }
        }
        Ok(None)
    }

    /// The array `y` or `labels`, if there is one; it must have an entry for every row.
    pub(crate) fn row_labels(&mut self, rows: usize, kind: SignalKind) -> Result<Labels> {
        let labels = self.first(&["y", "labels"])?;
        let bad = |why: String| Error::unreadable(&self.path, why, "give one label per row");
        match labels {
            None => Ok(Labels::None),
            Some(labels) if labels.len() != rows => {
                Err(bad(format!("{} labels for {rows} {}", labels.len(), kind.plural())))
            }
            Some(labels) => {
                Ok(Labels::Numbers(labels.labels().map_err(|e| bad(format!("labels: {e}")))?))
            }
        }
    }
}
