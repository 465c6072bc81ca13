//! Folders: one folder per class, several splits, files of many items, or just files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use upright::SignalKind;

use crate::chain;
use crate::error::{Error, Found, Result};
use crate::files::Files;
use crate::formats::{self, Format, ReadMany};
use crate::item::Set;
use crate::labels::Labels;
use crate::note::Note;
use crate::options::{Options, Split, Want};

/// Folders deeper than this are not entered.
const DEPTH_CAP: usize = 32;

/// Opens a folder: files of many items, splits, class folders, or any items below it.
pub(crate) fn open(root: &Path, options: &Options) -> Result<Set> {
    let root = &descend(root, options)?;
    let here = entries(root)?;
    let kind = options.kind();
    let many: Vec<Many> = here
        .files
        .iter()
        .filter_map(|path| formats::many(path, kind).map(|(format, read)| (path, format, read)))
        .collect();
    if !many.is_empty() {
        let fitting = many.iter().filter(|(path, ..)| fits(path, options.split));
        let fitting: Vec<&Many> = fitting.collect();
        if !fitting.is_empty() && many.iter().all(|(_, format, _)| format.parts) {
            let sets: Result<Vec<_>> =
                fitting.iter().map(|(p, _, read)| formats::open(*read, p, options)).collect();
            return Ok(chain::join(sets?));
        }
        let (path, _, read) = choose(root, &many, options)?;
        return formats::open(*read, path, options);
    }
    match options.want {
        Want::Inputs => inputs(std::slice::from_ref(root), options),
        Want::Labelled => classes(root, &here, options),
    }
}

/// A file of many items, its format and reader.
type Many<'a> = (&'a PathBuf, &'static Format, ReadMany);

/// Opens files, and folders with all that lies below them, without labels.
pub(crate) fn inputs(paths: &[PathBuf], options: &Options) -> Result<Set> {
    let kind = options.kind();
    let mut walk = Walk::new(kind);
    let mut many = Vec::new();
    for path in paths {
        let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
        if meta.is_dir() {
            walk.folder(path, 0)?;
        } else if let Some((_, read)) = formats::many(path, kind) {
            many.push(formats::open(read, path, options)?);
        } else if formats::one(path, kind).is_some() {
            walk.items.push(path.clone());
        } else {
            walk.others.push(path.clone());
        }
    }
    if walk.items.is_empty() && many.is_empty() {
        return Err(empty(&paths[0], &walk.others, kind));
    }
    let mut set = Set::new(Files::new(walk.items, options), Labels::None);
    set.notes.extend(unknown(&walk.others));
    if many.is_empty() {
        return Ok(set);
    }
    many.insert(0, set);
    Ok(Set { labels: Labels::None, ..chain::join(many) })
}

fn classes(root: &Path, here: &Entries, options: &Options) -> Result<Set> {
    let kind = options.kind();
    let mut paths = Vec::new();
    let mut names = Vec::new();
    let mut others = here.files.clone();
    for class in &here.folders {
        let mut walk = Walk::new(kind);
        walk.folder(class, 0)?;
        let name = class.file_name().unwrap_or_default().to_string_lossy().into_owned();
        names.extend(std::iter::repeat_n(name, walk.items.len()));
        paths.append(&mut walk.items);
        others.append(&mut walk.others);
    }
    if paths.is_empty() {
        let count = here.files.iter().filter(|p| formats::one(p, kind).is_some()).count();
        return Err(if count > 0 {
            Error::NoClasses { folder: root.into(), count, kind }
        } else {
            empty(root, &others, kind)
        });
    }
    let mut set = Set::new(Files::new(paths, options), Labels::Names(names));
    set.notes.extend(unknown(&others));
    Ok(set)
}

/// The split's folder below the root, if the root consists of splits or one was asked for.
fn descend(root: &Path, options: &Options) -> Result<PathBuf> {
    let folders = entries(root)?.folders;
    let split = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        Split::ALL.into_iter().find(|s| s.words().contains(&name.as_str()))
    };
    let all = folders.len();
    let found: Vec<(Split, PathBuf)> =
        folders.into_iter().filter_map(|p| Some((split(&p)?, p))).collect();
    let only_splits = found.len() == all;
    if found.is_empty() || options.split.is_none() && !only_splits {
        return Ok(root.into());
    }
    match options.split {
        Some(split) => {
            let found = found.into_iter().find(|(s, _)| *s == split).map(|(_, p)| p);
            found.ok_or_else(|| Error::NoSplit { folder: root.into(), split, files: false })
        }
        None if options.want == Want::Inputs => Ok(root.into()),
        None => match &found[..] {
            [(_, only)] => Ok(only.clone()),
            _ => Err(several(root, found.iter().map(|(_, p)| p))),
        },
    }
}

/// Whether the name of a file has the word of a split among others.
fn fits(path: &Path, split: Option<Split>) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    split.is_none_or(|s| name.split(['-', '_', '.']).any(|word| s.words().contains(&word)))
}

/// The one of several files that the split asks for.
fn choose<'a>(root: &Path, many: &'a [Many<'a>], options: &Options) -> Result<&'a Many<'a>> {
    let mut fitting = many.iter().filter(|(path, ..)| fits(path, options.split));
    match (fitting.next(), fitting.next(), options.split) {
        (Some(only), None, _) => Ok(only),
        (None, _, Some(split)) => Err(Error::NoSplit { folder: root.into(), split, files: true }),
        _ => Err(several(root, many.iter().map(|(path, ..)| *path))),
    }
}

fn several<'a>(root: &Path, paths: impl Iterator<Item = &'a PathBuf>) -> Error {
    let found =
        paths.map(|p| p.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect();
    Error::Splits { path: root.into(), found }
}

fn empty(path: &Path, others: &[PathBuf], kind: SignalKind) -> Error {
    Error::Empty { path: path.into(), kind, found: counted(others) }
}

/// Files by ending, the most frequent first.
fn counted(files: &[PathBuf]) -> Found {
    let mut endings: BTreeMap<String, usize> = BTreeMap::new();
    for file in files {
        let ending = file.extension().map_or_else(
            || "without ending".into(),
            |e| format!(".{}", e.to_string_lossy().to_ascii_lowercase()),
        );
        *endings.entry(ending).or_default() += 1;
    }
    let mut counts: Vec<(usize, String)> = endings.into_iter().map(|(e, n)| (n, e)).collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    Found::Files(counts)
}

/// A note on files that are left out, unless there are none.
fn unknown(others: &[PathBuf]) -> Option<Note> {
    (!others.is_empty()).then(|| Note::Unknown { files: counted(others) })
}

/// What lies directly in a folder, sorted; hidden entries are left out.
#[derive(Default)]
struct Entries {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

fn entries(folder: &Path) -> Result<Entries> {
    let mut out = Entries::default();
    for entry in std::fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let entry = entry.map_err(|e| Error::io(folder, e))?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let path = entry.path();
        if path.is_dir() { out.folders.push(path) } else { out.files.push(path) }
    }
    out.folders.sort();
    out.files.sort();
    Ok(out)
}

/// Files below some folders. A folder reached twice over links is entered once.
struct Walk {
    kind: SignalKind,
    items: Vec<PathBuf>,
    others: Vec<PathBuf>,
    entered: BTreeSet<PathBuf>,
}

impl Walk {
    fn new(kind: SignalKind) -> Self {
        Walk { kind, items: Vec::new(), others: Vec::new(), entered: BTreeSet::new() }
    }

    fn folder(&mut self, folder: &Path, depth: usize) -> Result<()> {
        let real = folder.canonicalize().map_err(|e| Error::io(folder, e))?;
        if depth > DEPTH_CAP || !self.entered.insert(real) {
            return Ok(());
        }
        let here = entries(folder)?;
        for file in here.files {
            if formats::one(&file, self.kind).is_some() {
                self.items.push(file);
            } else {
                self.others.push(file);
            }
        }
        here.folders.iter().try_for_each(|f| self.folder(f, depth + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{Change, Item};
    use crate::options::Allowance;
    use crate::{Hint, Prepare, Source};
    use upright::{Dataset, Signal};

    fn grey(path: &Path, value: u8) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        image::GrayImage::from_pixel(1, 1, image::Luma([value])).save(path).unwrap();
    }

    fn source(path: &Path, options: &Options) -> Result<Source> {
        let apply = |item| match item {
            Item::Image(p) => Ok(Ok((p.data().to_vec(), Change::None))),
            other => panic!("{:?}", other.kind()),
        };
        let prepare = Prepare { signal: Signal::image(1, 1, 1), apply: Box::new(apply) };
        crate::open(&[path.into()], options, prepare)
    }

    fn labelled() -> Options {
        Options::new(Want::Labelled, Signal::image(1, 1, 1))
    }

    #[test]
    fn class_folders_are_numbered_in_sorted_order() {
        let root = tempfile::tempdir().unwrap();
        for (path, value) in [("dog/a.png", 255), ("cat/b.png", 0), ("cat/deep/c.PNG", 51)] {
            grey(&root.path().join(path), value);
        }
        for name in ["readme.txt", "dog/b.heic", "cat/c.HEIC", "cat/d.avif"] {
            std::fs::write(root.path().join(name), "hi").unwrap();
        }
        let source = source(root.path(), &labelled()).unwrap();
        let said: Vec<String> = source.notes().iter().map(ToString::to_string).collect();
        assert_eq!(said, ["left out, of unknown formats: 4 files: 2 .heic, 1 .avif, 1 .txt"]);
        assert_eq!(source.classes(), ["cat", "dog"]);
        let labels: Vec<_> = (0..source.len()).map(|r| source.label(r).unwrap()).collect();
        assert_eq!(labels, [0, 0, 1]);
        assert_eq!(source.read(&[0, 1, 2]).unwrap().batch.data(), [0.0, 0.2, 1.0]);
        assert!(source.name(2).ends_with("a.png"));
    }

    #[test]
    fn splits_must_be_chosen() {
        let root = tempfile::tempdir().unwrap();
        for path in ["train/x/a.png", "train/y/b.png", "test/x/c.png", "test/y/d.png"] {
            grey(&root.path().join(path), 0);
        }
        let e = source(root.path(), &labelled()).err().unwrap();
        assert!(e.to_string().ends_with("holds several sets: test, train"), "{e}");
        let options = Options { split: Some(Split::Test), ..labelled() };
        let test = source(root.path(), &options).unwrap();
        assert!(test.name(0).ends_with("c.png"));
        assert_eq!(test.classes(), ["x", "y"]);
        let options = Options { split: Some(Split::Val), ..labelled() };
        assert!(
            source(root.path(), &options).err().unwrap().to_string().contains("no folder `val`")
        );
        assert_eq!(
            source(root.path(), &Options::new(Want::Inputs, Signal::image(1, 1, 1))).unwrap().len(),
            4
        );
    }

    #[test]
    fn a_class_that_is_called_train_is_a_class() {
        let root = tempfile::tempdir().unwrap();
        grey(&root.path().join("train/a.png"), 0);
        grey(&root.path().join("bus/b.png"), 0);
        assert_eq!(source(root.path(), &labelled()).unwrap().classes(), ["bus", "train"]);
    }

    #[test]
    fn images_without_class_folders_are_explained() {
        let root = tempfile::tempdir().unwrap();
        grey(&root.path().join("a.png"), 0);
        grey(&root.path().join("b.png"), 0);
        let e = source(root.path(), &labelled()).err().unwrap();
        assert_eq!(e.code(), "data::no_classes");
        assert!(e.to_string().ends_with("(2 images lie directly in it)"), "{e}");
        assert_eq!(
            source(root.path(), &Options::new(Want::Inputs, Signal::image(1, 1, 1)))
                .unwrap()
                .label(0),
            None
        );
    }

    #[test]
    fn a_folder_without_images_says_what_it_holds() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a.HEIC", "b.heic", "c.txt"] {
            std::fs::write(root.path().join(name), "x").unwrap();
        }
        let e =
            source(root.path(), &Options::new(Want::Inputs, Signal::image(1, 1, 1))).err().unwrap();
        assert!(
            e.to_string().ends_with("holds 0 readable images (3 files: 2 .heic, 1 .txt)"),
            "{e}"
        );
        assert_eq!(e.code(), "data::empty");
        assert!(matches!(e.hint(), Some(Hint::GiveSupported { heic: true, .. })));
    }

    #[test]
    fn an_idx_folder_gives_the_split_asked_for() {
        use crate::examples::{gz, idx};
        let root = tempfile::tempdir().unwrap();
        for (split, value) in [("train", 0), ("t10k", 255)] {
            let at = |what: &str| root.path().join(format!("{split}-{what}-ubyte.gz"));
            std::fs::write(at("images-idx3"), gz(&idx(&[1, 1, 1], &[value]))).unwrap();
            std::fs::write(at("labels-idx1"), gz(&idx(&[1], &[value / 85]))).unwrap();
        }
        let options = Options { split: Some(Split::Test), ..labelled() };
        let test = source(root.path(), &options).unwrap();
        assert_eq!(test.label(0), Some(3));
        assert_eq!(test.read(&[0]).unwrap().batch.data(), [1.0]);
        assert!(matches!(source(root.path(), &labelled()), Err(Error::Splits { .. })));
    }

    #[test]
    fn one_broken_image_does_not_stop_a_run_but_strictness_does() {
        let root = tempfile::tempdir().unwrap();
        grey(&root.path().join("a.png"), 255);
        std::fs::write(root.path().join("b.png"), "nonsense").unwrap();
        let mut options = Options::new(Want::Inputs, Signal::image(1, 1, 1));
        let read = |options: &Options| source(root.path(), options).unwrap().read(&[0, 1]);
        assert_eq!(read(&options).unwrap().rows, [0]);
        options.allowance = Allowance::Count(0);
        assert_eq!(read(&options).unwrap_err().code(), "data::corrupt");
    }
}
