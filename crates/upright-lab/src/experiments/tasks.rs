//! Tasks: a classifier with its data, split so that what is fitted, what
//! calibrates and what judges share no sample, and transformed test inputs made
//! from a fixed seed.

use std::cell::OnceCell;
use std::path::PathBuf;

use upright::internal::canonicalizer::transformed_copies;
use upright::internal::onnx::Graph;
use upright::{
    Batch, Dataset, Model, ModelOptions, Overrides, Resample, Samples, SpaceConfig, Tap, samples,
};

use super::rows::Rows;
use super::scale::Scale;
use super::sets::{self, Parts};

/// Seed of the poses of transformed test inputs; nothing else uses it.
const TEST: u64 = 44;

/// Inputs that judge at most where defaults are chosen in sight of results, of each data set.
const LOOKED: usize = 2000;

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
    trained: PathBuf,
    /// BLAKE3 of the classifier and of the data.
    pub(crate) hashes: [String; 2],
}

/// Where the files of tasks lie, and what runs classifiers.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub(crate) data: PathBuf,
    pub(crate) models: PathBuf,
    /// Of what `upright-lab train` made of real data.
    pub(crate) trained: PathBuf,
    /// The engine's name.
    pub(crate) engine: String,
}
/// The four data sets of the main comparison.
pub(crate) const FOUR: &[&str] = &["mnist", "emnist", "tu-berlin", "modelnet10"];
/// Photographs.
pub(crate) const PHOTOGRAPHS: &str = "photographs";
/// Digits that the library draws: needs no files.
pub(crate) const DIGITS: &str = "digits";

impl Task {
    /// Opens a task by name.
    pub(crate) fn open(name: &str, folders: &Folders, scale: &Scale) -> Result<Self, String> {
        if name == DIGITS {
            return digits(scale, folders);
        }
        let set = sets::of(name)?;
        let path = folders.models.join(set.model);
        let mut preprocess = Overrides::default();
        for (key, text) in set.preprocess {
            preprocess.set(key, text).map_err(|e| e.to_string())?;
        }
        let origin = Origin::File(path.clone(), preprocess);
        let model = origin.load(name, &[], &folders.engine).map_err(|e| e.to_string())?;
        let (parts, files) = set.read(&folders.data, &model)?;
        let hashes = [hash(&[path])?, hash(&files)?];
        Ok(Task::joined(set.name, origin, (&model, folders), parts, scale, hashes))
    }

    fn joined(
        name: &'static str,
        origin: Origin,
        (model, folders): (&Model, &Folders),
        parts: Parts,
        scale: &Scale,
        hashes: [String; 2],
    ) -> Self {
        let Parts { train, held, judged } = parts;
        let (space, inputs) = (SpaceConfig::of_signal(model.signal()), scale.inputs);
        let (engine, trained) = (folders.engine.clone(), folders.trained.clone());
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
            trained,
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

    /// Inputs that no other test has: rows that others leave, at most so many, or where they leave
    /// none the same rows; each `times` under poses of their own.
    pub(crate) fn fresh(&self, most: usize, times: u64, seed: u64) -> upright::Result<Test> {
        let left = self.judged.without(&self.judged(LOOKED));
        let rows = if left.is_empty() { self.judged(most) } else { left.some(most) };
        let (batch, labels) = rows.load()?;
        let mut upright = Batch::new(batch.signal(), Vec::new())?;
        let mut transformed = Batch::new(batch.signal(), Vec::new())?;
        for time in 0..times {
            let copies = self.copies(&batch, TEST + ((1 + time + times * seed) << 20))?;
            for item in 0..batch.len() {
                upright.push(batch.item(item))?;
                transformed.push(copies.item(item))?;
            }
        }
        Ok(Test::new(upright, transformed, labels.repeat(times as usize)))
    }

    /// The classifier with some taps.
    pub(crate) fn model(&self, taps: &[Tap]) -> upright::Result<Model> {
        self.origin.load(self.name, taps, &self.engine)
    }

    /// The classifier with the usual taps.
    pub(crate) fn usual(&self) -> upright::Result<Model> {
        self.model(&ModelOptions::default().taps)
    }

    /// A classifier of the same task that was trained in another way, where there is one:
    /// `mnist-augm.onnx` for `mnist.onnx`.
    pub(crate) fn retrained(&self, how: &str) -> upright::Result<Option<Model>> {
        self.trained(how, &ModelOptions::default())
    }

    /// An energy network of the same task, where there is one: `mnist-energy.onnx`.
    pub(crate) fn energy(&self, how: &str) -> upright::Result<Option<Model>> {
        self.trained(how, &ModelOptions { energy: true, ..ModelOptions::default() })
    }

    /// The same with a classifier that was trained in another way but knows nothing of
    /// transforms either, where there is one.
    pub(crate) fn instead(&self, how: &str) -> Result<Option<Self>, String> {
        let path = self.trained_at(how);
        let Origin::File(_, preprocess) = &self.origin else { return Ok(None) };
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(Task {
            name: self.name,
            hashes: [hash(std::slice::from_ref(&path))?, self.hashes[1].clone()],
            origin: Origin::File(path, preprocess.clone()),
            engine: self.engine.clone(),
            train: self.train.clone(),
            held: self.held.clone(),
            judged: self.judged.clone(),
            space: self.space.clone(),
            test: OnceCell::new(),
            inputs: self.inputs,
            trained: self.trained.clone(),
        }))
    }

    /// Where what was trained in another way lies.
    pub(crate) fn trained_at(&self, how: &str) -> PathBuf {
        let stem = match &self.origin {
            Origin::File(path, _) => path.file_stem().unwrap_or_default().to_string_lossy(),
            Origin::BuiltIn(_) => self.name.into(),
        };
        self.trained.join(format!("{stem}-{how}.onnx"))
    }

    /// The steps and minutes that what was trained in another way tells of its training.
    pub(crate) fn course(&self, how: &str) -> upright::Result<Option<(f64, f64)>> {
        let told = Graph::load(self.trained_at(how))?.metadata();
        Ok(told.get("made_by").and_then(|made_by| course(made_by)))
    }

    fn trained(&self, how: &str, options: &ModelOptions) -> upright::Result<Option<Model>> {
        let path = self.trained_at(how);
        if !path.exists() {
            return Ok(None);
        }
        let (engine, preprocess) = (
            self.engine.clone(),
            match &self.origin {
                Origin::File(_, preprocess) => preprocess.clone(),
                Origin::BuiltIn(_) => Overrides::default(),
            },
        );
        let options = ModelOptions { taps: vec![], engine, preprocess, ..options.clone() };
        Model::load(path, &options).map(Some)
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

/// Steps and minutes of `...: 2682 steps of 128 images in 45 min`, as `train` has it.
fn course(made_by: &str) -> Option<(f64, f64)> {
    let (_, told) = made_by.rsplit_once(": ")?;
    let (steps, rest) = told.split_once(" steps of ")?;
    let (_, minutes) = rest.strip_suffix(" min")?.rsplit_once(" in ")?;
    Some((steps.parse().ok()?, minutes.parse().ok()?))
}

fn digits(scale: &Scale, folders: &Folders) -> Result<Task, String> {
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
    let model = origin.load(DIGITS, &[], &folders.engine).map_err(|e| e.to_string())?;
    let hashes = [short(&blake3::hash(bytes)), "made".to_string()];
    Ok(Task::joined(DIGITS, origin, (&model, folders), parts, scale, hashes))
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

    #[test]
    fn a_file_tells_how_long_it_was_trained() {
        let told = "upright-lab train energy --small --data mnist --seed 1: 949 steps of 128 \
                    images in 8 min";
        assert_eq!(course(told), Some((949.0, 8.0)));
        assert_eq!(course("another program: many steps"), None);
    }
}
