//! Folders: one folder a class, several splits, files of many items, or just files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::chain;
use super::files::Files;
use super::labels::Labels;
use super::media::Media;
use super::options::{Options, Split, Want};
use super::source::Opened;
use super::stack;
use crate::report::{Failure, Result};

/// Folders deeper than this are not entered.
const DEPTH_CAP: usize = 32;

/// Opens a folder: files of many items, splits, class folders, or any items below it.
pub(super) fn open(root: &Path, options: &Options) -> Result<Opened> {
    let root = &descend(root, options)?;
    let here = entries(root)?;
    let media = options.media();
    let stacks: Vec<&PathBuf> = here.files.iter().filter(|p| stack::is_one(p, media)).collect();
    if !stacks.is_empty() {
        if options.split.is_none() && stacks.iter().all(|p| stack::is_lines(p)) {
            let sets: Result<Vec<_>> = stacks.iter().map(|p| stack::open(p, options)).collect();
            return Ok(chain::join(sets?));
        }
        return stack::open(choose(root, &stacks, options)?, options);
    }
    match options.want {
        Want::Inputs => inputs(std::slice::from_ref(root), options),
        Want::Labelled => classes(root, &here, options),
    }
}

/// Opens files, and folders with all that lies below them, without labels.
pub(super) fn inputs(paths: &[PathBuf], options: &Options) -> Result<Opened> {
    let media = options.media();
    let mut walk = Walk::new(media);
    let mut stacks = Vec::new();
    for path in paths {
        let kind = std::fs::metadata(path).map_err(|e| Failure::io(path, e))?;
        if kind.is_dir() {
            walk.folder(path, 0)?;
        } else if stack::is_one(path, media) {
            stacks.push(stack::open(path, options)?);
        } else if media.is_one(path) {
            walk.items.push(path.clone());
        } else {
            walk.others.push(path.clone());
        }
    }
    if walk.items.is_empty() && stacks.is_empty() {
        return Err(empty(&paths[0], &walk.others, media));
    }
    let opened = files(walk.items, Labels::None, options);
    Ok(if stacks.is_empty() {
        opened
    } else {
        stacks.insert(0, opened);
        Opened { labels: Labels::None, ..chain::join(stacks) }
    })
}

fn classes(root: &Path, here: &Entries, options: &Options) -> Result<Opened> {
    let mut paths = Vec::new();
    let mut names = Vec::new();
    let mut others = here.files.clone();
    for class in &here.folders {
        let mut walk = Walk::new(options.media());
        walk.folder(class, 0)?;
        let name = class.file_name().unwrap_or_default().to_string_lossy().into_owned();
        names.extend(std::iter::repeat_n(name, walk.items.len()));
        paths.append(&mut walk.items);
        others.append(&mut walk.others);
    }
    if paths.is_empty() {
        let media = options.media();
        let count = here.files.iter().filter(|p| media.is_one(p)).count();
        return Err(if count > 0 {
            Failure::NoClasses { folder: root.into(), count, media }
        } else {
            empty(root, &others, media)
        });
    }
    Ok(files(paths, Labels::Names(names), options))
}

fn files(paths: Vec<PathBuf>, labels: Labels, options: &Options) -> Opened {
    let files = Files { paths, media: options.media(), ignore_exif: options.ignore_exif };
    Opened { items: Box::new(files), labels, notes: Vec::new() }
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
        Some(wanted) => {
            found.into_iter().find(|(s, _)| *s == wanted).map(|(_, p)| p).ok_or_else(|| {
                Failure::data(
                    root,
                    format!("no folder `{}` in it", wanted.words()[0]),
                    "choose another `--split`, or give the folder itself",
                )
            })
        }
        None if options.want == Want::Inputs => Ok(root.into()),
        None => match &found[..] {
            [(_, only)] => Ok(only.clone()),
            _ => Err(several(root, found.iter().map(|(_, p)| p))),
        },
    }
}

/// The one of several files that the split asks for.
fn choose<'a>(root: &Path, stacks: &[&'a PathBuf], options: &Options) -> Result<&'a Path> {
    let name = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let fits = |p: &Path| {
        options
            .split
            .is_none_or(|s| name(p).split(['-', '_', '.']).any(|word| s.words().contains(&word)))
    };
    let mut fitting = stacks.iter().filter(|p| fits(p));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Failure::data(
            root,
            "no file of that split in it",
            "choose another `--split`, or give the file itself",
        )),
        _ => Err(several(root, stacks.iter().copied())),
    }
}

fn several<'a>(root: &Path, paths: impl Iterator<Item = &'a PathBuf>) -> Failure {
    let names: Vec<_> =
        paths.map(|p| p.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect();
    Failure::Splits { folder: root.into(), found: names.join(", ") }
}

fn empty(path: &Path, others: &[PathBuf], media: Media) -> Failure {
    let mut endings: BTreeMap<String, usize> = BTreeMap::new();
    for other in others {
        let ending = other.extension().map_or_else(
            || "without ending".into(),
            |e| format!(".{}", e.to_string_lossy().to_ascii_lowercase()),
        );
        *endings.entry(ending).or_default() += 1;
    }
    let mut counts: Vec<(usize, String)> = endings.into_iter().map(|(e, n)| (n, e)).collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let list: Vec<String> = counts.iter().take(5).map(|(n, e)| format!("{n} {e}")).collect();
    let found = match (others.len(), list.join(", ")) {
        (0, _) => "no files".into(),
        (1, list) => format!("1 file: {list}"),
        (n, list) => format!("{n} files: {list}"),
    };
    Failure::Empty { path: path.into(), found, media }
}

/// What lies directly in a folder, sorted; hidden entries are left out.
#[derive(Default)]
struct Entries {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

fn entries(folder: &Path) -> Result<Entries> {
    let mut out = Entries::default();
    for entry in std::fs::read_dir(folder).map_err(|e| Failure::io(folder, e))? {
        let entry = entry.map_err(|e| Failure::io(folder, e))?;
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
    media: Media,
    items: Vec<PathBuf>,
    others: Vec<PathBuf>,
    entered: BTreeSet<PathBuf>,
}

impl Walk {
    fn new(media: Media) -> Self {
        Walk { media, items: Vec::new(), others: Vec::new(), entered: BTreeSet::new() }
    }

    fn folder(&mut self, folder: &Path, depth: usize) -> Result<()> {
        let real = folder.canonicalize().map_err(|e| Failure::io(folder, e))?;
        if depth > DEPTH_CAP || !self.entered.insert(real) {
            return Ok(());
        }
        let here = entries(folder)?;
        for file in here.files {
            if self.media.is_one(&file) {
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
    use super::super::ledger::Seen;
    use super::super::media::Item;
    use super::super::{Prepare, Source, idx};
    use super::*;
    use upright::dataset::Dataset;
    use upright::tensor::Signal;

    fn grey(path: &Path, value: u8) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        image::GrayImage::from_pixel(1, 1, image::Luma([value])).save(path).unwrap();
    }

    fn source(path: &Path, options: &Options) -> Result<Source> {
        let apply = |item| match item {
            Item::Picture(p) => Ok((p.data, Seen::Plain)),
            other => panic!("{:?}", other.media()),
        };
        let prepare = Prepare { signal: Signal::image(1, 1, 1), apply: Box::new(apply) };
        super::super::open(&[path.into()], options, prepare)
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
        std::fs::write(root.path().join("readme.txt"), "hi").unwrap();
        let source = source(root.path(), &labelled()).unwrap();
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
    fn pictures_without_class_folders_are_explained() {
        let root = tempfile::tempdir().unwrap();
        grey(&root.path().join("a.png"), 0);
        grey(&root.path().join("b.png"), 0);
        let e = source(root.path(), &labelled()).err().unwrap();
        assert_eq!((e.code(), e.exit()), ("data::no_classes", 3));
        assert!(e.to_string().ends_with("(2 images lie directly in it)"), "{e}");
        assert_eq!(
            source(root.path(), &Options::new(Want::Inputs, Signal::image(1, 1, 1)))
                .unwrap()
                .label(0),
            None
        );
    }

    #[test]
    fn a_folder_without_pictures_says_what_it_holds() {
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
        assert_eq!((e.code(), e.exit()), ("data::empty", 3));
        assert!(e.help().contains("convert HEIC first"));
    }

    #[test]
    fn an_idx_folder_gives_the_split_asked_for() {
        use idx::tests::{gz, idx};
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
        assert!(matches!(source(root.path(), &labelled()), Err(Failure::Splits { .. })));
    }

    #[test]
    fn one_broken_picture_does_not_stop_a_run_but_strictness_does() {
        let root = tempfile::tempdir().unwrap();
        grey(&root.path().join("a.png"), 255);
        std::fs::write(root.path().join("b.png"), "nonsense").unwrap();
        let mut options = Options::new(Want::Inputs, Signal::image(1, 1, 1));
        let read = |options: &Options| source(root.path(), options).unwrap().read(&[0, 1]);
        assert_eq!(read(&options).unwrap().rows, [0]);
        options.allowance = super::super::options::Allowance::Count(0);
        assert_eq!(read(&options).unwrap_err().code(), "data::corrupt");
    }
}
