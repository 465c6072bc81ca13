//! The data sets that experiments know, as they are published: where their files
//! lie, and which rows are fitted on, calibrate and judge.
//!
//! Where a data set has a test split, its odd rows calibrate and its even rows
//! judge. Training data fill banks and teach.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use upright::{Dataset, Model};
use upright_data::{Options, Prepare, Source, Want};

use super::rows::{Labelled, Rows};
use super::tasks::{DIGITS, Folders, PHOTOGRAPHS, Task};

/// A data set that experiments know.
pub(super) struct Set {
    pub(super) name: &'static str,
    /// The file of its classifier.
    pub(super) model: &'static str,
    /// Preprocessing that the classifier's file does not tell.
    pub(super) preprocess: &'static [(&'static str, &'static str)],
    open: fn(&Opening) -> Result<Parts, String>,
}
/// What is fitted on, what calibrates and what judges.
pub(super) struct Parts {
    pub(super) train: Rows,
    pub(super) held: Rows,
    pub(super) judged: Rows,
}
const TABLE: &[Set] = &[
    Set { name: "mnist", model: "mnist.onnx", preprocess: &[], open: mnist },
    Set { name: "emnist", model: "emnist.onnx", preprocess: &[], open: emnist },
    Set { name: "tu-berlin", model: "tuberlin.onnx", preprocess: &[], open: tu_berlin },
    Set { name: "modelnet10", model: "modelnet10.onnx", preprocess: &[], open: modelnet10 },
    Set {
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
/// The data set of a name.
pub(super) fn of(name: &str) -> Result<&'static Set, String> {
    TABLE.iter().find(|set| set.name == name).ok_or_else(|| {
        let known: Vec<&str> = TABLE.iter().map(|set| set.name).collect();
        format!("there is no data set `{name}`; there are {}, {DIGITS}", known.join(", "))
    })
}

impl Set {
    /// Reads it for a classifier; also the files that were read.
    pub(super) fn read(
        &self,
        folder: &Path,
        model: &Model,
    ) -> Result<(Parts, Vec<PathBuf>), String> {
        let files = RefCell::default();
        let opening = Opening { folder: folder.to_path_buf(), model, files };
        Ok(((self.open)(&opening)?, opening.files.into_inner()))
    }
}

/// What the readers need, and what they have read.
struct Opening<'a> {
    folder: PathBuf,
    model: &'a Model,
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
        let prepare = Prepare::for_model(self.model, 0);
        let source: Source = upright_data::open(&[path.to_path_buf()], &options, prepare)
            .map_err(|e| e.to_string())?;
        Ok(Rows::all(source))
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

#[cfg(test)]
mod tests {
    use super::*;
    use upright::{ModelOptions, Overrides, samples};

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
        let (parts, files) = of("emnist").unwrap().read(folder.path(), &model).unwrap();
        assert_eq!(files.len(), 2);
        let (batch, labels) = parts.judged.load().unwrap();
        assert_eq!(labels, [5]);
        let lit: Vec<usize> = (0..1600).filter(|&i| batch.item(0)[i] > 0.5).collect();
        assert_eq!(lit, [7 * 40 + 6], "row 1, column 0 of the picture");
        assert_eq!((parts.train.len(), parts.held.len()), (2, 1));
    }
}
