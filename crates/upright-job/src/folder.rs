//! The folder of a job: what may lie in it, and files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::facts::{self, Facts};
use crate::journal::{self, Journal};
use crate::shard::Shard;

/// Makes the folder of a job or a shard ready, and opens its journal: a new one, or one that was begun
/// with the same facts.
pub(crate) fn open(root: &Path, shard: Shard, facts: &Facts) -> Result<(PathBuf, Journal)> {
    create(root)?;
    let folder = match shard.folder() {
        Some(name) => {
            beside(root, shard, facts)?;
            let folder = root.join(name);
            create(&folder)?;
            folder
        }
        None => root.into(),
    };
    refuse_foreign(&folder)?;
    let mut journal = Journal::open(&folder)?;
    match &journal.facts {
        Some(was) => same(&folder, was, facts)?,
        None if names(&folder)?.iter().any(|name| is_part(name)) => {
            return Err(Error::NotAJob {
                folder,
                why: format!("there are parts, but `{}` is empty", journal::NAME),
            });
        }
        None => {
            journal.begin(facts.clone())?;
            sync(&folder)?;
        }
    }
    for name in names(&folder)?.iter().filter(|name| is_temporary(name)) {
        fs::remove_file(folder.join(name)).ok();
    }
    Ok((folder, journal))
}

/// Writes a file that appears under its name once all of it is on the disk.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (path, temporary) = (folder.join(name), folder.join(format!(".{name}.tmp")));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    });
    if let Err(e) = written {
        fs::remove_file(&temporary).ok();
        return Err(Error::io(&path, e));
    }
    sync(folder)
}

/// BLAKE3 of a file; `None` if it cannot be read.
pub(crate) fn hash(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(BufReader::new(File::open(path).ok()?)).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

fn same(folder: &Path, was: &Facts, is: &Facts) -> Result<()> {
    match facts::changes(was, is) {
        changes if changes.is_empty() => Ok(()),
        changes => Err(Error::Differs { folder: folder.into(), changes }),
    }
}

/// Whether the other shards in a folder are of the same job.
fn beside(root: &Path, shard: Shard, facts: &Facts) -> Result<()> {
    for name in names(root)?.into_iter().filter(|name| !name.starts_with('.')) {
        let folder = root.join(&name);
        let Some(other) = Shard::of_folder(&name) else {
            let why = format!("it holds `{name}`, not only shards");
            return Err(Error::NotAJob { folder: root.into(), why });
        };
        if other.of() != shard.of() {
            let why = format!("its job has {} shards, not {}", other.of(), shard.of());
            return Err(Error::NotAJob { folder: root.into(), why });
        }
        if let Some(mut was) = Journal::peek(&folder) {
            was.insert("shard".into(), shard.to_string().into());
            same(&folder, &was, facts)?;
        }
    }
    Ok(())
}

/// Refuses a folder with anything in it, hidden files apart, but no journal.
fn refuse_foreign(folder: &Path) -> Result<()> {
    let mut names = names(folder)?;
    names.retain(|name| !name.starts_with('.'));
    if names.is_empty() || names.iter().any(|name| name == journal::NAME) {
        return Ok(());
    }
    let why = if names.iter().any(|name| Shard::of_folder(name).is_some()) {
        "it holds the shards of one".into()
    } else {
        format!("it holds `{}` and no `{}`", names[0], journal::NAME)
    };
    Err(Error::NotAJob { folder: folder.into(), why })
}

fn is_part(name: &str) -> bool {
    name.starts_with("part-")
}

fn is_temporary(name: &str) -> bool {
    name.starts_with(".part-") && name.strip_suffix(".tmp").is_some()
}

/// What lies in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>> {
    let io = |e| Error::io(folder, e);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        names.push(entry.map_err(io)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn create(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
        _ => sync(Path::new(".")),
    }
}

/// Makes the names in a folder last.
fn sync(folder: &Path) -> Result<()> {
    // Other systems cannot open folders, and keep their names by themselves.
    if cfg!(unix) {
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| Error::io(folder, e))?;
    }
    Ok(())
}
