//! Tasks: a classifier with its data, split so that what is fitted, what
//! calibrates and what judges share no sample, and transformed test inputs made
//! from a fixed seed.
//!
//! Where a data set has a test split, its odd rows calibrate and its even rows
//! judge. Training data fill banks and teach.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use upright::internal::canonicalizer::transformed_copies;
use upright::internal::preprocess::{Resize, Size};
use upright::{
    Batch, Dataset, Loaded, Model, ModelOptions, Overrides, Resample, Samples, Signal, SpaceConfig,
    Tap, samples,
};
use upright_data::{Change, Item, Options, Prepare, Source, Want};

use super::scale::Scale;

/// Seed of the poses of transformed test inputs; nothing else uses it.
const TEST: u64 = 44;

/// Some rows of a data set.
#[derive(Clone)]
pub(crate) struct Rows {
    data: Arc<dyn Dataset + Send>,
    rows: Vec<usize>,
}

impl Rows {
    fn all(data: impl Dataset + Send + 'static) -> Self {
        let rows = (0..data.len()).collect();
        Rows { data: Arc::new(data), rows }
    }

    /// Every second row, from the first or from the second on.
    fn half(&self, odd: usize) -> Self {
        Rows {
            data: self.data.clone(),
            rows: self.rows.iter().copied().skip(odd).step_by(2).collect(),
        }
    }

    /// The rows that a function of their number, counted within their class, chooses.
    fn within_class(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut seen: BTreeMap<Option<u32>, usize> = BTreeMap::new();
        let chosen = |&row: &usize| {
            let at = seen.entry(self.data.label(row)).or_default();
            *at += 1;
            keep(*at - 1)
        };
        Rows { data: self.data.clone(), rows: self.rows.iter().copied().filter(chosen).collect() }
    }

    /// At most so many, spread evenly.
    pub(crate) fn some(&self, most: usize) -> Self {
        let n = self.rows.len();
        let taken = most.min(n);
        let rows = (0..taken).map(|i| self.rows[i * n / taken]).collect();
        Rows { data: self.data.clone(), rows }
    }

    /// All of them, with their classes.
    pub(crate) fn load(&self) -> upright::Result<(Batch<'static>, Vec<u32>)> {
        let Loaded { batch, rows } = self.data.read(&self.rows)?;
        Ok((batch, rows.iter().filter_map(|&r| self.data.label(r)).collect()))
    }
}

impl Dataset for Rows {
    fn signal(&self) -> Signal {
        self.data.signal()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn label(&self, row: usize) -> Option<u32> {
        self.data.label(*self.rows.get(row)?)
    }

    fn read(&self, rows: &[usize]) -> upright::Result<Loaded> {
        let rows: Vec<usize> = rows.iter().copied().filter(|&r| r < self.rows.len()).collect();
        let inner: Vec<usize> = rows.iter().map(|&r| self.rows[r]).collect();
        let Loaded { batch, rows: read } = self.data.read(&inner)?;
        // What could not be read is left out; the rest keeps its order.
        let mut left = read.iter().peekable();
        let kept = rows
            .into_iter()
            .zip(inner)
            .filter(|(_, inner)| left.next_if(|r| *r == inner).is_some())
            .map(|(row, _)| row);
        Ok(Loaded { batch, rows: kept.collect() })
    }
}

/// Inputs to judge by.
pub(crate) struct Test {
    pub(crate) upright: Batch<'static>,
    pub(crate) transformed: Batch<'static>,
    pub(crate) labels: Vec<u32>,
    alone: OnceCell<[Vec<bool>; 2]>,
}

/// The names of both kinds of inputs.
pub(crate) const KINDS: [&str; 2] = ["upright", "transformed"];

impl Test {
    pub(crate) fn new(
        upright: Batch<'static>,
        transformed: Batch<'static>,
        labels: Vec<u32>,
    ) -> Self {
        Test { upright, transformed, labels, alone: OnceCell::new() }
    }

    /// Both kinds of inputs by name, with whether the bare model is right on them.
    pub(crate) fn kinds(
        &self,
        model: &Model,
    ) -> upright::Result<[(&'static str, &Batch<'static>, &[bool]); 2]> {
        if self.alone.get().is_none() {
            let right = |batch: &Batch| -> upright::Result<Vec<bool>> {
                let labels = model.run(batch)?.labels();
                Ok(labels.iter().zip(&self.labels).map(|(a, b)| a == b).collect())
            };
            let _ = self.alone.set([right(&self.upright)?, right(&self.transformed)?]);
        }
        let [up, tr] = self.alone.get().map_or([&[][..]; 2], |a| [&a[0][..], &a[1][..]]);
        Ok([(KINDS[0], &self.upright, up), (KINDS[1], &self.transformed, tr)])
    }
}

/// Where the classifier comes from.
enum Origin {
    /// A file, and preprocessing that it does not tell.
    File(PathBuf, Overrides),
    BuiltIn(&'static [u8]),
}

impl Origin {
    fn load(&self, name: &str, taps: &[Tap], engine: &str) -> upright::Result<Model> {
        let mut options =
            ModelOptions { taps: taps.to_vec(), engine: engine.into(), ..ModelOptions::default() };
        match self {
            Origin::File(path, preprocess) => {
                options.preprocess = preprocess.clone();
                Model::load(path, &options)
            }
            Origin::BuiltIn(bytes) => Model::from_bytes(name, bytes, &options),
        }
    }
}

/// A classifier with its data.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    origin: Origin,
    engine: String,
    /// Training data.
    pub(crate) train: Rows,
    /// What calibrates.
    pub(crate) held: Rows,
    judged: Rows,
    pub(crate) space: SpaceConfig,
    test: OnceCell<Test>,
    inputs: usize,
    /// BLAKE3 of the classifier and of the data.
    pub(crate) hashes: [String; 2],
}

/// Where the files of tasks lie, and what runs classifiers.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub(crate) data: PathBuf,
    pub(crate) models: PathBuf,
    /// The engine's name.
    pub(crate) engine: String,
}

/// A data set that experiments know.
struct Row {
    name: &'static str,
    model: &'static str,
    /// Preprocessing that the classifier's file does not tell.
    preprocess: &'static [(&'static str, &'static str)],
    open: fn(&Opening) -> Result<Parts, String>,
}

/// What is fitted on, what calibrates and what judges.
struct Parts {
    train: Rows,
    held: Rows,
    judged: Rows,
}

/// The four data sets of the main comparison.
pub(crate) const FOUR: &[&str] = &["mnist", "emnist", "tu-berlin", "modelnet10"];
/// Photographs.
pub(crate) const PHOTOGRAPHS: &str = "photographs";
/// Digits that the library draws: needs no files.
pub(crate) const DIGITS: &str = "digits";

const TABLE: &[Row] = &[
    Row { name: "mnist", model: "mnist.onnx", preprocess: &[], open: mnist },
    Row { name: "emnist", model: "emnist.onnx", preprocess: &[], open: emnist },
    Row { name: "tu-berlin", model: "tuberlin.onnx", preprocess: &[], open: tu_berlin },
    Row { name: "modelnet10", model: "modelnet10.onnx", preprocess: &[], open: modelnet10 },
    Row {
        name: PHOTOGRAPHS,
        model: "efficientnet-lite0.onnx",
        preprocess: &[
            ("resize", "256"),
            ("crop", "224"),
            ("channels", "rgb"),
            ("scale", "1"),
            ("mean", "127"),
            ("std", "128"),
        ],
        open: photographs,
    },
];

impl Task {
    /// Opens a task by name.
    pub(crate) fn open(name: &str, folders: &Folders, scale: &Scale) -> Result<Self, String> {
        if name == DIGITS {
            return digits(scale, &folders.engine);
        }
        let row = TABLE.iter().find(|row| row.name == name).ok_or_else(|| {
            let known: Vec<&str> = TABLE.iter().map(|r| r.name).collect();
            format!("there is no data set `{name}`; there are {}, {DIGITS}", known.join(", "))
        })?;
        let path = folders.models.join(row.model);
        let mut preprocess = Overrides::default();
        for (key, text) in row.preprocess {
            preprocess.set(key, text).map_err(|e| e.to_string())?;
        }
        let origin = Origin::File(path.clone(), preprocess);
        let model = origin.load(name, &[], &folders.engine).map_err(|e| e.to_string())?;
        let opening = Opening {
            folder: folders.data.clone(),
            model: &model,
            side: None,
            files: RefCell::default(),
        };
        let parts = (row.open)(&opening)?;
        let hashes = [hash(&[path])?, hash(&opening.files.into_inner())?];
        Ok(Task::joined(row.name, origin, (&model, &folders.engine), parts, scale, hashes))
    }

    /// Inputs that judge, at most so many, as squares of another side than the classifier takes.
    pub(crate) fn judged_at(
        &self,
        side: usize,
        folders: &Folders,
        most: usize,
    ) -> Result<Rows, String> {
        let model = self.model(&[]).map_err(|e| e.to_string())?;
        let row = TABLE.iter().find(|row| row.name == self.name);
        let row = row.ok_or_else(|| format!("`{}` has no files", self.name))?;
        let opening = Opening {
            folder: folders.data.clone(),
            model: &model,
            side: Some(side),
            files: RefCell::default(),
        };
        Ok((row.open)(&opening)?.judged.some(most))
    }

    fn joined(
        name: &'static str,
        origin: Origin,
        (model, engine): (&Model, &str),
        parts: Parts,
        scale: &Scale,
        hashes: [String; 2],
    ) -> Self {
        let Parts { train, held, judged } = parts;
        let (space, inputs) = (SpaceConfig::of_signal(model.signal()), scale.inputs);
        let engine = engine.into();
        Task {
            name,
            origin,
            engine,
            train,
            held,
            judged,
            space,
            test: OnceCell::new(),
            inputs,
            hashes,
        }
    }

    /// Inputs to judge by: made once, the same for every experiment of a scale.
    pub(crate) fn test(&self) -> upright::Result<&Test> {
        if self.test.get().is_none() {
            let (upright, labels) = self.judged(self.inputs).load()?;
            let transformed = self.copies(&upright, TEST)?;
            let _ = self.test.set(Test::new(upright, transformed, labels));
        }
        Ok(self.test.get_or_init(|| unreachable!("it was set above")))
    }

    /// The classifier with some taps.
    pub(crate) fn model(&self, taps: &[Tap]) -> upright::Result<Model> {
        self.origin.load(self.name, taps, &self.engine)
    }

    /// The classifier with the usual taps.
    pub(crate) fn usual(&self) -> upright::Result<Model> {
        self.model(&ModelOptions::default().taps)
    }

    /// Inputs that judge, at most so many.
    pub(crate) fn judged(&self, most: usize) -> Rows {
        self.judged.some(most)
    }

    /// Transformed copies of inputs as the test has them, from another seed.
    pub(crate) fn copies(&self, batch: &Batch, seed: u64) -> upright::Result<Batch<'static>> {
        transformed_copies(batch, &self.space.build()?, &Resample::default(), seed)
    }
}

/// What the readers need, and what they have read.
struct Opening<'a> {
    folder: PathBuf,
    model: &'a Model,
    /// The side of squares that pictures become, if it is not the classifier's.
    side: Option<usize>,
    files: RefCell<Vec<PathBuf>>,
}

impl Opening<'_> {
    /// The first of some files that is there, packed or not, with its number.
    fn first(&self, names: &[&str]) -> Result<(usize, PathBuf), String> {
        let there = |name: &str| {
            let plain = self.folder.join(name);
            let packed = self.folder.join(format!("{name}.gz"));
            [plain, packed].into_iter().find(|p| p.exists())
        };
        let found = names.iter().enumerate().find_map(|(i, name)| Some((i, there(name)?)));
        found.ok_or_else(|| {
            format!("{}: there is no {}", self.folder.display(), names.join(" and no "))
        })
    }

    fn read(&self, path: &Path, change: impl FnOnce(&mut Options)) -> Result<Rows, String> {
        let mut options = Options::new(Want::Labelled, self.model.signal());
        options.outputs = Some(self.model.classes());
        change(&mut options);
        self.files.borrow_mut().push(path.to_path_buf());
        let prepare =
            self.side.map_or_else(|| Prepare::for_model(self.model, 0), |s| self.squares(s));
        let source: Source = upright_data::open(&[path.to_path_buf()], &options, prepare)
            .map_err(|e| e.to_string())?;
        Ok(Rows::all(source))
    }

    /// Pictures as squares of a side.
    fn squares(&self, side: usize) -> Prepare {
        let signal = Signal::image(3, side, side);
        let mut preprocess = self.model.preprocess().clone();
        preprocess.resize = Some(Resize::Shorter(side));
        preprocess.crop = Some(Size { height: side, width: side });
        let apply = move |item| {
            let Item::Image(picture) = item else {
                return Err(upright::Error::shape("item", "a picture", "another signal"));
            };
            Ok(Ok((preprocess.prepare(&picture, signal)?, Change::None)))
        };
        Prepare { signal, apply: Box::new(apply) }
    }

    /// A training file and a test file, whose odd rows calibrate.
    fn idx(
        &self,
        train: &[&str],
        test: &[&str],
        turned: impl Fn(usize) -> bool,
    ) -> Result<Parts, String> {
        let read = |names: &[&str]| {
            let (at, path) = self.first(names)?;
            self.read(&path, |options| options.transpose = turned(at))
        };
        let (train, test) = (read(train)?, read(test)?);
        Ok(Parts { train, held: test.half(1), judged: test.half(0) })
    }
}

fn mnist(opening: &Opening) -> Result<Parts, String> {
    let files = [["mnist/train-images-idx3-ubyte"], ["mnist/t10k-images-idx3-ubyte"]];
    opening.idx(&files[0], &files[1], |_| false)
}

/// Our substitute is upright; the official files have rows and columns exchanged.
fn emnist(opening: &Opening) -> Result<Parts, String> {
    let names = |part: &str| {
        [
            format!("emnist/emnist47-{part}-images-idx3-ubyte"),
            format!("emnist/emnist-balanced-{part}-images-idx3-ubyte"),
        ]
    };
    let (train, test) = (names("train"), names("test"));
    let (train, test) = (train.each_ref(), test.each_ref());
    opening.idx(&train.map(String::as_str), &test.map(String::as_str), |at| at == 1)
}

/// Names end in the sketch's number within its class: 0 to 63 train, 64 to 71 calibrate, 72 to
/// 79 judge, as the classifier was trained.
fn tu_berlin(opening: &Opening) -> Result<Parts, String> {
    let (_, path) = opening.first(&["tu-berlin/tu-berlin-strokes.ndjson"])?;
    let classes = opening.folder.join("tu-berlin/classes.txt");
    let words = |patterns: &[&str]| patterns.iter().map(|p| (*p).to_string()).collect();
    let part = |include: &[&str], exclude: &[&str]| {
        opening.read(&path, |options| {
            options.include = words(include);
            options.exclude = words(exclude);
            options.classes = Some(classes.clone()).filter(|c| c.exists());
        })
    };
    Ok(Parts {
        train: part(&[], &["*-6[4-9]", "*-7[0-9]"])?,
        held: part(&["*-6[4-9]", "*-7[0-1]"], &[])?,
        judged: part(&["*-7[2-9]"], &[])?,
    })
}

fn modelnet10(opening: &Opening) -> Result<Parts, String> {
    let read = |part: &str| {
        let (_, path) =
            opening.first(&[&format!("modelnet10/modelnet10-{part}-points-i16.npy")])?;
        let labels = opening.folder.join(format!("modelnet10/modelnet10-{part}-labels.csv"));
        opening.read(&path, |options| options.labels = Some(labels))
    };
    let (train, test) = (read("train")?, read("test")?);
    Ok(Parts { train, held: test.half(1), judged: test.half(0) })
}

/// Of each class three photographs fill the bank, one calibrates and one judges.
fn photographs(opening: &Opening) -> Result<Parts, String> {
    let (_, path) = opening.first(&["imagenet-val5k/imagenet-val5k-s256.tar"])?;
    let labels = labels_of(&opening.folder.join("imagenet-val5k/index.csv"))?;
    let all = opening.read(&path, |options| options.want = Want::Inputs)?;
    if labels.len() != all.len() {
        return Err(format!("{} labels for {} photographs", labels.len(), all.len()));
    }
    let all = Rows::all(Labelled { rows: all, labels });
    Ok(Parts {
        train: all.within_class(|at| at < 3),
        held: all.within_class(|at| at == 3),
        judged: all.within_class(|at| at == 4),
    })
}

/// SI-Score's rotated objects as they are published, `si-score/rotation/NAME/*.jpg`, with the
/// classifier's number of each name in `si-score/labels.csv` (columns `name` and `label`);
/// `None` if there is no such folder.
pub(crate) fn si_score(
    task: &Task,
    folders: &Folders,
    most: usize,
) -> Result<Option<Rows>, String> {
    let folder = folders.data.join("si-score");
    let rotated = folder.join("rotation");
    if !rotated.is_dir() {
        return Ok(None);
    }
    let model = task.model(&[]).map_err(|e| e.to_string())?;
    let numbers = columns(&folder.join("labels.csv"), &["name", "label"])?;
    let options = Options::new(Want::Labelled, model.signal());
    let source = upright_data::open(&[rotated], &options, Prepare::for_model(&model, 0))
        .map_err(|e| e.to_string())?;
    let number = |class: &String| {
        let row = numbers.iter().find(|row| row[0] == *class);
        let label = row.and_then(|row| row[1].parse().ok());
        label.ok_or_else(|| format!("{}: no number for `{class}`", folder.display()))
    };
    let by_class = source.classes().iter().map(number).collect::<Result<Vec<u32>, String>>()?;
    let class = |row| source.label(row).and_then(|c| by_class.get(c as usize)).copied();
    let labels = (0..source.len()).filter_map(class).collect();
    Ok(Some(Rows::all(Labelled { rows: Rows::all(source), labels }).some(most)))
}

/// Rows whose classes are told apart from them.
struct Labelled {
    rows: Rows,
    labels: Vec<u32>,
}

impl Dataset for Labelled {
    fn signal(&self) -> Signal {
        self.rows.signal()
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn label(&self, row: usize) -> Option<u32> {
        self.labels.get(row).copied()
    }

    fn read(&self, rows: &[usize]) -> upright::Result<Loaded> {
        self.rows.read(rows)
    }
}

/// The column `label` of a list of files.
fn labels_of(path: &Path) -> Result<Vec<u32>, String> {
    let bad = |word: &str| format!("{}: `{word}` is no label", path.display());
    let rows = columns(path, &["label"])?;
    rows.iter().map(|row| row[0].parse().map_err(|_| bad(&row[0]))).collect()
}

/// Some columns of a list without quotes.
fn columns(path: &Path, names: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &&str| {
        let at = head.iter().position(|h| h == name);
        at.ok_or_else(|| format!("{}: no column `{name}`", path.display()))
    };
    let places = names.iter().map(place).collect::<Result<Vec<usize>, String>>()?;
    let row = |line: &str| {
        let words: Vec<&str> = line.split(',').collect();
        places.iter().map(|&at| words.get(at).copied().unwrap_or_default().to_string()).collect()
    };
    Ok(lines.map(row).collect())
}

fn digits(scale: &Scale, engine: &str) -> Result<Task, String> {
    let made = |count: usize, seed: u64| -> Result<Samples<'static>, String> {
        samples::digits(count, seed).map_err(|e| e.to_string())
    };
    let parts = Parts {
        train: Rows::all(made(4000.min(scale.bank.unwrap_or(4000)), 1)?),
        held: Rows::all(made(scale.calibration.min(1000), 2)?),
        judged: Rows::all(made(scale.inputs, 3)?),
    };
    let bytes = samples::glyph_model();
    let origin = Origin::BuiltIn(bytes);
    let model = origin.load(DIGITS, &[], engine).map_err(|e| e.to_string())?;
    let hashes = [short(&blake3::hash(bytes)), "made".to_string()];
    Ok(Task::joined(DIGITS, origin, (&model, engine), parts, scale, hashes))
}

/// The start of a hash.
pub(crate) fn short(hash: &blake3::Hash) -> String {
    hash.to_hex().chars().take(16).collect()
}

fn hash(files: &[PathBuf]) -> Result<String, String> {
    let mut hasher = blake3::Hasher::new();
    let mut files = files.to_vec();
    files.sort();
    files.dedup();
    for path in files {
        let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        hasher.update(&bytes);
    }
    Ok(short(&hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(labels: Vec<u32>) -> Rows {
        let signal = Signal::image(1, 1, 1);
        let data = (0..labels.len()).map(|i| i as f32).collect();
        Rows::all(Samples::labelled(Batch::new(signal, data).unwrap(), labels).unwrap())
    }

    fn read(rows: &Rows) -> Vec<f32> {
        rows.load().unwrap().0.data().to_vec()
    }

    #[test]
    fn odd_and_even_rows_share_nothing() {
        let all = numbered(vec![0; 7]);
        assert_eq!(read(&all.half(1)), [1.0, 3.0, 5.0]);
        assert_eq!(read(&all.half(0)), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(read(&all.half(0).some(2)), [0.0, 4.0]);
        assert_eq!(all.half(0).read(&[2, 9, 0]).unwrap().rows, [2, 0]);
    }

    #[test]
    fn rows_are_counted_within_their_class() {
        let all = numbered(vec![3, 3, 1, 3, 1]);
        assert_eq!(read(&all.within_class(|at| at < 1)), [0.0, 2.0]);
        assert_eq!(read(&all.within_class(|at| at == 2)), [3.0]);
    }

    /// The official files are transposed, ours are not; whichever is there is read upright.
    #[test]
    fn official_emnist_files_are_turned_back() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("emnist");
        std::fs::create_dir(&at).unwrap();
        let mut pixels = vec![0u8; 28 * 28];
        pixels[1] = 255;
        for part in ["train", "test"] {
            let mut images = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28];
            images.extend(pixels.iter().chain(&pixels));
            let name = |what: &str| at.join(format!("emnist-balanced-{part}-{what}-ubyte"));
            std::fs::write(name("images-idx3"), images).unwrap();
            std::fs::write(name("labels-idx1"), [0, 0, 8, 1, 0, 0, 0, 2, 5, 6]).unwrap();
        }
        let mut preprocess = Overrides::default();
        preprocess.set("pad", "40").unwrap();
        let options = ModelOptions { taps: vec![], preprocess, ..ModelOptions::default() };
        let model = Model::from_bytes(DIGITS, samples::glyph_model(), &options).unwrap();
        let opening = Opening {
            folder: folder.path().into(),
            model: &model,
            side: None,
            files: RefCell::default(),
        };
        let parts = emnist(&opening).unwrap();
        let (batch, labels) = parts.judged.load().unwrap();
        assert_eq!(labels, [5]);
        let lit: Vec<usize> = (0..1600).filter(|&i| batch.item(0)[i] > 0.5).collect();
        assert_eq!(lit, [7 * 40 + 6], "row 1, column 0 of the picture");
        assert_eq!((parts.train.len(), parts.held.len()), (2, 1));
    }
}
