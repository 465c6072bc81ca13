//! Data as Python has it: arrays read where they lie, pictures in memory, files.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use upright::internal::preprocess::Preprocess;
use upright::{Batch, Dataset, Loaded as Read, Model, Picture, Signal};
use upright_cli::Common;
use upright_cli::data::DataArgs;
use upright_cli::flags;
use upright_cli::internal::setup;
use upright_cli::report::{Note, Result};
use upright_data::{Source, Want, decode_bytes};

use crate::errors::{Told, failure, library, told};
use crate::lent::Lent;
use crate::model::Loaded;

/// Inputs, with or without labels.
#[pyclass(frozen)]
pub(crate) struct Data(pub(crate) Arc<Set>);

/// Where inputs lie.
pub(crate) enum Set {
    /// Prepared items in one array.
    Items { model: Model, numbers: Lent<f32>, labels: Option<Vec<u32>> },
    /// Pictures in memory, prepared when they are read.
    Pictures { signal: Signal, preprocess: Preprocess, all: Vec<Raster>, labels: Option<Vec<u32>> },
    /// Image files in memory, by their bytes; nothing where there is none.
    Encoded { signal: Signal, preprocess: Preprocess, all: Vec<Option<Vec<u8>>> },
    /// Files.
    Files(Box<Source>),
}

/// A picture in memory.
pub(crate) struct Raster {
    pixels: Arc<Pixels>,
    /// Where it begins.
    from: usize,
    height: usize,
    width: usize,
    channels: usize,
    /// Whether one channel comes after the other.
    planar: bool,
}

enum Pixels {
    Bytes(Lent<u8>),
    Floats(Lent<f32>),
}

/// Some rows.
pub(crate) struct Rows<'a> {
    pub(crate) batch: Batch<'a>,
    /// Their numbers.
    pub(crate) numbers: Vec<usize>,
    /// Those that could not be read, and why.
    pub(crate) skipped: Vec<(usize, String)>,
}

impl Raster {
    fn picture(&self) -> upright::Result<Picture> {
        let Raster { height, width, channels, .. } = *self;
        let size = height * width * channels;
        let data: Vec<f32> = match self.pixels.as_ref() {
            Pixels::Bytes(bytes) => {
                let bytes = &bytes.numbers()[self.from..self.from + size];
                self.interleaved(bytes).map(|v| f32::from(v) / 255.0).collect()
            }
            Pixels::Floats(floats) => {
                self.interleaved(&floats.numbers()[self.from..self.from + size]).collect()
            }
        };
        Picture::new(width, height, channels, data)
    }

    /// The values pixel by pixel.
    fn interleaved<'a, T: Copy>(&self, values: &'a [T]) -> impl Iterator<Item = T> + 'a {
        let (plane, channels, planar) = (self.height * self.width, self.channels, self.planar);
        let at = move |i: usize| if planar { (i % channels) * plane + i / channels } else { i };
        (0..values.len()).map(move |i| values[at(i)])
    }
}

impl Set {
    /// What is read of a range of rows; items of an array are not copied.
    pub(crate) fn load(&self, rows: Range<usize>) -> Result<Rows<'_>> {
        match self {
            Set::Items { model, numbers, .. } => {
                let size = model.fed().size();
                let here = &numbers.numbers()[rows.start * size..rows.end * size];
                let batch = model.whole(Batch::borrowed(model.fed(), here)?)?;
                Ok(Rows { batch, numbers: rows.collect(), skipped: vec![] })
            }
            Set::Pictures { .. } => {
                let Read { batch, rows } = self.read(&rows.collect::<Vec<_>>())?;
                Ok(Rows { batch, numbers: rows, skipped: vec![] })
            }
            Set::Encoded { signal, preprocess, all } => {
                let item = |row: usize| -> upright::Result<std::result::Result<_, String>> {
                    let Some(bytes) = &all[row] else { return Ok(Err("no image".into())) };
                    let picture = match decode_bytes(bytes, false) {
                        Ok(picture) => picture,
                        Err(why) => return Ok(Err(why.to_string())),
                    };
                    match preprocess.prepare(&picture, *signal) {
                        Err(e @ upright::Error::Picture { .. }) => Ok(Err(e.to_string())),
                        other => other.map(Ok),
                    }
                };
                let read: Vec<_> = rows.clone().into_par_iter().map(item).collect();
                let mut out =
                    Rows { batch: Batch::new(*signal, vec![])?, numbers: vec![], skipped: vec![] };
                for (row, item) in rows.zip(read) {
                    match item? {
                        Ok(item) => {
                            out.batch.push(&item)?;
                            out.numbers.push(row);
                        }
                        Err(why) => out.skipped.push((row, why)),
                    }
                }
                Ok(out)
            }
            Set::Files(source) => {
                let read = source.load(&rows.collect::<Vec<_>>())?;
                let skipped = read.skipped.into_iter().map(|s| (s.row, s.why.to_string()));
                Ok(Rows { batch: read.batch, numbers: read.rows, skipped: skipped.collect() })
            }
        }
    }

    /// The same as files, if they are.
    pub(crate) fn source(&self) -> Option<&Source> {
        match self {
            Set::Files(source) => Some(source),
            _ => None,
        }
    }

    /// What is worth saying about what was read.
    pub(crate) fn notes(&self) -> Vec<Told> {
        let notes = self.source().map(Source::notes).unwrap_or_default();
        notes.iter().map(|note| told(Note::from(note))).collect()
    }

    /// Names of the classes that the data know; none if they know none.
    pub(crate) fn classes(&self) -> &[String] {
        self.source().map(Source::classes).unwrap_or_default()
    }
}

impl Dataset for Set {
    fn signal(&self) -> Signal {
        match self {
            Set::Items { model, .. } => model.signal(),
            Set::Pictures { signal, .. } | Set::Encoded { signal, .. } => *signal,
            Set::Files(source) => source.signal(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Set::Items { model, numbers, .. } => numbers.numbers().len() / model.fed().size(),
            Set::Pictures { all, .. } => all.len(),
            Set::Encoded { all, .. } => all.len(),
            Set::Files(source) => source.len(),
        }
    }

    fn label(&self, row: usize) -> Option<u32> {
        match self {
            Set::Items { labels, .. } | Set::Pictures { labels, .. } => {
                labels.as_ref()?.get(row).copied()
            }
            Set::Encoded { .. } => None,
            Set::Files(source) => source.label(row),
        }
    }

    fn read(&self, rows: &[usize]) -> upright::Result<Read> {
        if let Set::Files(source) = self {
            return source.read(rows);
        }
        let rows: Vec<usize> = rows.iter().copied().filter(|&r| r < self.len()).collect();
        let batch = match self {
            Set::Items { model, numbers, .. } => {
                model.whole(Batch::borrowed(model.fed(), numbers.numbers())?.select(&rows))?
            }
            Set::Pictures { signal, preprocess, all, .. } => {
                let item = |&row: &usize| preprocess.prepare(&all[row].picture()?, *signal);
                let items: Vec<Vec<f32>> =
                    rows.par_iter().map(item).collect::<upright::Result<_>>()?;
                Batch::new(*signal, items.concat())?
            }
            Set::Encoded { .. } | Set::Files(_) => Batch::new(self.signal(), vec![])?,
        };
        Ok(Read { batch, rows })
    }
}

#[pymethods]
impl Data {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The name of a row of files.
    fn name(&self, row: usize) -> Option<String> {
        self.0.source().filter(|s| row < s.len()).map(|s| s.name(row))
    }

    /// What is worth saying about what was read: code, message, help.
    fn notes(&self) -> Vec<Told> {
        self.0.notes()
    }
}

/// Prepared items in a float32 array `(N, *shape)`, contiguous, which is not copied.
#[pyfunction]
#[pyo3(signature = (model, array, labels=None))]
pub(crate) fn items(
    model: &Loaded,
    array: PyReadonlyArrayDyn<'_, f32>,
    labels: Option<Vec<u32>>,
) -> PyResult<Data> {
    let model = model.model.clone();
    let shape = model.fed().shape();
    if array.shape().get(1..) != Some(shape.as_slice()) {
        let error = upright::Error::shape("inputs", shape, array.shape());
        return Err(library(error));
    }
    Ok(Data(Set::Items { model, numbers: Lent::of(&array)?, labels }.into()))
}

/// Pictures in contiguous arrays of bytes 0..255 or floats 0..1: each array holds `N` of a
/// size, given as `(array, N, height, width, channels, planar)`.
#[pyfunction]
#[pyo3(signature = (model, stacks, labels=None))]
pub(crate) fn pictures(
    model: &Loaded,
    stacks: Vec<(Bound<'_, PyAny>, usize, usize, usize, usize, bool)>,
    labels: Option<Vec<u32>>,
) -> PyResult<Data> {
    let mut all = Vec::new();
    for (array, count, height, width, channels, planar) in stacks {
        let (pixels, length) = if let Ok(bytes) = array.extract::<PyReadonlyArrayDyn<'_, u8>>() {
            (Pixels::Bytes(Lent::of(&bytes)?), bytes.len())
        } else if let Ok(floats) = array.extract::<PyReadonlyArrayDyn<'_, f32>>() {
            (Pixels::Floats(Lent::of(&floats)?), floats.len())
        } else {
            return Err(PyTypeError::new_err("pictures are arrays of uint8 or float32"));
        };
        let size = height * width * channels;
        if size.checked_mul(count) != Some(length) {
            let error = upright::Error::shape("pictures", (count, height, width, channels), length);
            return Err(library(error));
        }
        let pixels = Arc::new(pixels);
        all.extend((0..count).map(|i| Raster {
            pixels: pixels.clone(),
            from: i * size,
            height,
            width,
            channels,
            planar,
        }));
    }
    let model = &model.model;
    let (signal, preprocess) = (model.signal(), model.preprocess().clone());
    Ok(Data(Set::Pictures { signal, preprocess, all, labels }.into()))
}

/// Image files in memory, by their bytes, which answers need no labels for; `None` is a row
/// without an image.
#[pyfunction]
pub(crate) fn encoded(model: &Loaded, images: Vec<Option<Vec<u8>>>) -> Data {
    let model = &model.model;
    let (signal, preprocess) = (model.signal(), model.preprocess().clone());
    Data(Set::Encoded { signal, preprocess, all: images }.into())
}

/// Files and folders, read as the command line reads them.
#[pyfunction]
pub(crate) fn files(
    py: Python<'_>,
    model: &Loaded,
    paths: Vec<PathBuf>,
    words: Vec<String>,
    labelled: bool,
) -> PyResult<Data> {
    let (args, common) = flags::parse::<DataArgs>(&words).map_err(failure)?;
    let model = &model.model;
    py.detach(|| opened(model, &paths, &args, &common, labelled)).map_err(failure)
}

/// Opens files and folders.
pub(crate) fn opened(
    model: &Model,
    paths: &[PathBuf],
    args: &DataArgs,
    common: &Common,
    labelled: bool,
) -> Result<Data> {
    let want = if labelled { Want::Labelled } else { Want::Inputs };
    let source = setup::open(paths, args, want, model, common)?;
    Ok(Data(Set::Files(source.into()).into()))
}
