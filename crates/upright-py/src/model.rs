//! Models: ONNX files, and callables.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use upright::{
    Head, Matrix, Model, ModelInfo, ModelOptions, Overrides, Reduce, Signal, SignalKind, Tap,
};
use upright_cli::flags;
use upright_cli::internal::{fit, inspect as inspection};

use crate::engine::Callable;
use crate::errors::{failure, library};
use crate::work::attended;

/// A model that is ready to run.
#[pyclass(frozen)]
pub(crate) struct Loaded {
    pub(crate) model: Model,
    /// Its file and how it was loaded; none of a callable.
    pub(crate) origin: Option<(PathBuf, ModelOptions)>,
}

#[pymethods]
impl Loaded {
    /// The shape of one item.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.model.fed().shape()
    }

    /// `image`, `strokes` or `cloud`.
    #[getter]
    fn signal(&self) -> &'static str {
        match self.model.signal().kind() {
            SignalKind::Image => "image",
            SignalKind::Strokes => "strokes",
            SignalKind::Cloud => "cloud",
        }
    }

    /// How many classes it has.
    #[getter]
    fn classes(&self) -> usize {
        self.model.classes()
    }

    /// Their names, if it carries them.
    #[getter]
    fn class_names(&self) -> Option<Vec<String>> {
        self.model.class_names().map(<[String]>::to_vec)
    }

    /// What identifies it.
    #[getter]
    fn fingerprint(&self) -> &str {
        self.model.fingerprint()
    }

    /// Name, shape and length of every tap.
    #[getter]
    fn taps(&self) -> Vec<(String, Vec<usize>, usize)> {
        let tap = |t: &upright::Tapped| (t.name.clone(), t.shape.clone(), t.features);
        self.model.taps().iter().map(tap).collect()
    }

    /// How pictures are prepared and normalised, in words.
    #[getter]
    fn preprocessing(&self) -> String {
        self.model.preprocess().to_string()
    }

    /// The file, unless it is a callable.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.origin.as_ref().map(|(path, _)| path.clone())
    }

    /// Why there is no gradient; nothing if there is one.
    fn lacks_gradient(&self) -> Option<String> {
        self.model.differentiable().err().map(|e| e.to_string())
    }
}

/// Loads an ONNX file with the options of `fit`.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf, words: Vec<String>) -> PyResult<Loaded> {
    let (args, common) = flags::parse::<fit::Args>(&words).map_err(failure)?;
    let options = args.loading.options(&common).map_err(failure)?;
    loaded(py, path, options)
}

/// Loads an ONNX file.
pub(crate) fn loaded(py: Python<'_>, path: PathBuf, options: ModelOptions) -> PyResult<Loaded> {
    let origin = (path.clone(), options.clone());
    let model = attended(py, &None, None, move |_| Ok(Model::load(&path, &options)?))?;
    Ok(Loaded { model, origin: Some(origin) })
}

/// What is in an ONNX file, as JSON.
#[pyfunction]
pub(crate) fn inspect(py: Python<'_>, words: Vec<String>) -> PyResult<String> {
    let (args, common) = flags::parse(&words).map_err(failure)?;
    attended(py, &None, None, move |_| {
        let report = inspection::look(&args, &common)?;
        Ok(serde_json::to_string(&report).unwrap_or_default())
    })
}

/// What a callable is, besides itself.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct About {
    name: String,
    fingerprint: Option<String>,
    signal: String,
    shape: Vec<usize>,
    /// Names of what it gives besides logits, each with its reduction and length.
    taps: Vec<(String, String, usize)>,
    /// Rows of weights, one per class, and their biases.
    head: Option<(Vec<Vec<f32>>, Vec<f32>)>,
    class_names: Option<Vec<String>>,
    micro_batch: Option<usize>,
    /// Settings of the preprocessing, as text.
    preprocess: Vec<(String, String)>,
}

/// A callable as a model: arrays of items to logits and taps, and perhaps derivatives back.
#[pyfunction]
pub(crate) fn own(
    py: Python<'_>,
    run: Py<PyAny>,
    pullback: Option<Py<PyAny>>,
    about: About,
) -> PyResult<Loaded> {
    let info = about.info().map_err(library)?;
    let engine = Arc::new(Callable { run, pullback });
    let model = attended(py, &None, None, move |_| Ok(Model::from_engine(engine, info)?))?;
    Ok(Loaded { model, origin: None })
}

impl About {
    fn info(self) -> upright::Result<ModelInfo> {
        let signal = match (SignalKind::parse(&self.signal)?, self.shape.as_slice()) {
            (SignalKind::Image, &[channels, height, width]) => {
                Signal::image(channels, height, width)
            }
            (SignalKind::Strokes, &[length, 3]) => Signal::Strokes { length },
            (SignalKind::Cloud, &[points, 3]) => Signal::Cloud { points },
            (kind, shape) => {
                let wants = match kind {
                    SignalKind::Image => "(channels, height, width)",
                    _ => "(points, 3)",
                };
                return Err(upright::Error::Shape {
                    what: format!("shape of {}", kind.singular()),
                    expected: wants.into(),
                    got: format!("{shape:?}"),
                });
            }
        };
        let mut preprocess = Overrides::default();
        for (key, value) in &self.preprocess {
            preprocess.set(key, value)?;
        }
        let tap = |(name, reduce, dim): (String, String, usize)| {
            let reduce = match reduce.as_str() {
                "none" => Reduce::None,
                "mean" => Reduce::Mean,
                "pool" => Reduce::Pool { dim, seed: 0 },
                "grid" => Reduce::Grid { dim, seed: 0 },
                "project" => Reduce::Project { dim, seed: 0 },
                _ => {
                    return Err(upright::Error::UnknownName {
                        kind: "reduction",
                        name: reduce,
                        known: "none, mean, pool, grid, project".into(),
                    });
                }
            };
            Ok(Tap::new(name).reduced(reduce))
        };
        let head = self.head.map(|(weight, bias)| {
            let cols = weight.first().map_or(0, Vec::len);
            Head::new(Matrix::new(weight.len(), cols, weight.concat())?, bias)
        });
        let usual = ModelInfo::new(self.name, signal);
        Ok(ModelInfo {
            fingerprint: self.fingerprint.unwrap_or(usual.fingerprint),
            taps: self.taps.into_iter().map(tap).collect::<upright::Result<_>>()?,
            head: head.transpose()?,
            class_names: self.class_names,
            micro_batch: self.micro_batch,
            preprocess,
            ..ModelInfo::new(usual.name, signal)
        })
    }
}
