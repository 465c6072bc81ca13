//! Fitted canonicalizers.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use upright::internal::dataset::chunk;
use upright::{Artifact, Canonicalizer, Dataset, Map, ModelOptions, Models, View, Watch};
use upright_cli::Common;
use upright_cli::data::DataArgs;
use upright_cli::flags;
use upright_cli::internal::{Inputs, check, eval, explain, predict, report, setup};
use upright_cli::report::Failure;
use upright_data::Want;
use upright_job::{Format, Job, PART_ROWS, Shard};

use crate::columns::Columns;
use crate::data::{Data, Set};
use crate::errors::{self, failure, library, told};
use crate::model::Loaded;
use crate::work::{JobTold, OnSignal, Pool, attended, attended_with, pool};

/// A fitted canonicalizer.
#[pyclass(frozen)]
pub(crate) struct Fitted {
    c: Canonicalizer,
    /// The model's file and how it was loaded; none of a callable.
    origin: Option<(PathBuf, ModelOptions)>,
    pool: Pool,
    digest: Arc<Digest>,
}

/// What tells the artifact from others, worked out when it is asked for.
struct Digest {
    /// As it was fitted, before parts were changed.
    c: Canonicalizer,
    found: OnceLock<String>,
}

impl Digest {
    fn get(&self) -> upright::Result<String> {
        if let Some(found) = self.found.get() {
            return Ok(found.clone());
        }
        let artifact = Artifact::from_bytes("artifact", &self.c.to_bytes()?)?;
        Ok(self.found.get_or_init(|| artifact.manifest.digest).clone())
    }
}

impl Fitted {
    pub(crate) fn new(
        c: Canonicalizer,
        origin: Option<(PathBuf, ModelOptions)>,
        pool: Pool,
    ) -> Self {
        let digest = Digest { c: c.clone(), found: OnceLock::new() }.into();
        Fitted { c, origin, pool, digest }
    }

    /// The same, known to come from the artifact of a digest.
    fn with_digest(mut self, digest: String) -> Self {
        let found = OnceLock::from(digest);
        self.digest = Digest { c: self.c.clone(), found }.into();
        self
    }
}

#[pymethods]
impl Fitted {
    /// Answers for inputs, column by column.
    #[pyo3(signature = (data, progress=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (c, set) = (self.c.clone(), data.0.clone());
        let columns = attended(py, &self.pool, progress, move |desk| {
            let c = c.stopped_by(&desk.stop);
            let rows = set.len();
            let identity = c.space().identity();
            let entries = c.space().map(&identity).entries().len();
            let mut columns = Columns::new(rows, c.model().classes(), identity.len(), entries);
            desk.phase("predict", rows);
            let most = chunk(c.model().signal());
            for from in (0..rows).step_by(most) {
                let loaded = set.load(from..rows.min(from + most))?;
                for (p, &row) in c.predict(&loaded.batch)?.iter().zip(&loaded.numbers) {
                    columns.put(row, p);
                }
                for (row, why) in loaded.skipped {
                    columns.errors[row] = Some(why);
                }
                desk.advance(most.min(rows - from));
            }
            Ok(columns)
        })?;
        let dict = columns.into_dict(py)?;
        if let Some(source) = data.0.source() {
            let names: Vec<String> = (0..source.len()).map(|row| source.name(row)).collect();
            dict.set_item("names", names)?;
        }
        Ok(dict)
    }

    /// Seconds that the library itself takes to answer for inputs: what overhead is measured
    /// against.
    fn seconds_alone(&self, py: Python<'_>, data: &Data) -> PyResult<f64> {
        let (c, set) = (&self.c, &data.0);
        let (most, rows) = (chunk(c.model().signal()), set.len());
        py.detach(|| {
            let since = Instant::now();
            for from in (0..rows).step_by(most) {
                c.predict(&set.load(from..rows.min(from + most))?.batch)?;
            }
            Ok(since.elapsed().as_secs_f64())
        })
        .map_err(failure)
    }

    /// Answers for files, in parts that survive a crash; a summary as JSON.
    #[pyo3(signature = (paths, out, words, format, shard, part_rows, logits, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "what a job is made of")]
    fn predict_to(
        &self,
        py: Python<'_>,
        paths: Vec<PathBuf>,
        out: PathBuf,
        words: Vec<String>,
        format: &str,
        shard: Option<&str>,
        part_rows: Option<usize>,
        logits: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<(&'static str, usize)>> {
        let usage = |why: String| failure(Failure::usage(why, ""));
        let format: Format = format.parse().map_err(usage)?;
        let shard: Shard = shard.map_or(Ok(Shard::WHOLE), str::parse).map_err(usage)?;
        let (reading, common) = flags::parse::<DataArgs>(&words).map_err(failure)?;
        let (c, digest) = (self.c.clone(), self.digest.clone());
        attended_with(py, &self.pool, progress, OnSignal::Ask, move |desk| {
            let c = c.stopped_by(&desk.stop);
            let source = setup::open(&paths, &reading, Want::Inputs, c.model(), &common)?;
            let job = Job {
                artifact: Some(digest.get()?),
                seed: common.seed,
                format,
                shard,
                part_rows: part_rows.unwrap_or(PART_ROWS),
                logits,
                tolerated: reading.tolerated(),
                ..Job::new(&c, &source, &out)
            };
            let done = job.run(&mut JobTold::new(desk))?;
            Ok(vec![
                ("rows", done.rows),
                ("searched", done.searched),
                ("errors", done.errors),
                ("parts", done.parts),
                ("kept", done.kept),
                ("redone", done.redone),
                ("written", done.written),
            ])
        })
    }

    /// The view that answered of every input, as `(N, *shape)`; maps are those of `predict`.
    fn views<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        maps: numpy::PyReadonlyArrayDyn<'py, f32>,
    ) -> PyResult<Bound<'py, numpy::PyArrayDyn<f32>>> {
        let (c, set, maps) = (self.c.clone(), data.0.clone(), maps.as_slice()?.to_vec());
        let shape = c.model().fed().shape();
        let (rows, numbers) = attended(py, &self.pool, None, move |_| {
            let rows = set.len();
            let (size, width) = (c.model().fed().size(), maps.len() / rows.max(1));
            let mut out = vec![f32::NAN; rows * size];
            let most = chunk(c.model().signal());
            for from in (0..rows).step_by(most) {
                let loaded = set.load(from..rows.min(from + most))?;
                let views = loaded.numbers.iter().enumerate().map(|(item, &row)| {
                    let entries = &maps[row * width..(row + 1) * width];
                    Ok(View { item, map: map(entries)? })
                });
                let views: Vec<View> = views.collect::<upright::Result<_>>()?;
                let seen = c.shown(&loaded.batch, &views)?;
                for (i, row) in loaded.numbers.into_iter().enumerate() {
                    out[row * size..(row + 1) * size].copy_from_slice(seen.item(i));
                }
            }
            Ok((rows, out))
        })?;
        let shape: Vec<usize> = std::iter::once(rows).chain(shape).collect();
        numbers.into_pyarray(py).reshape(shape)
    }

    /// Accuracy on upright and transformed data, as JSON and as people read it.
    #[pyo3(signature = (upright, transformed, seed=0))]
    fn eval(
        &self,
        py: Python<'_>,
        upright: &Data,
        transformed: Option<&Data>,
        seed: u64,
    ) -> PyResult<(String, String, Vec<errors::Told>)> {
        let (c, sets) = (self.c.clone(), (upright.0.clone(), transformed.map(|d| d.0.clone())));
        attended(py, &self.pool, None, move |desk| {
            let c = c.stopped_by(&desk.stop);
            let doubt = check::doubt(c.model(), sets.0.as_ref(), true)?;
            let common = quiet(seed);
            let report = eval::judge(&c, &inputs(&sets.0, sets.1.as_ref(), seed), &common)?;
            let json = serde_json::to_string(&report).unwrap_or_default();
            Ok((json, eval::table(&report), doubt.map(told).into_iter().collect()))
        })
    }

    /// Everything worth knowing on labelled data, in one HTML file; its verdict.
    #[pyo3(signature = (path, csv, upright, transformed, names, seed=0))]
    #[expect(clippy::too_many_arguments, reason = "what a report is made of")]
    fn report(
        &self,
        py: Python<'_>,
        path: PathBuf,
        csv: Option<PathBuf>,
        upright: &Data,
        transformed: Option<&Data>,
        names: [String; 4],
        seed: u64,
    ) -> PyResult<String> {
        let (c, sets) = (self.c.clone(), (upright.0.clone(), transformed.map(|d| d.0.clone())));
        let [model, artifact, data, given] = names;
        let page = attended(py, &self.pool, None, move |desk| {
            let c = c.stopped_by(&desk.stop);
            let names = report::Names {
                model,
                artifact,
                data,
                transformed: sets.1.is_some().then_some(given),
            };
            report::make(&c, &inputs(&sets.0, sets.1.as_ref(), seed), None, &names, &quiet(seed))
        })?;
        report::write(&page, &path, csv.as_deref()).map_err(failure)?;
        Ok(page.verdict)
    }

    /// One input as a drawing, as a page, and in sentences.
    fn explain(
        &self,
        py: Python<'_>,
        data: &Data,
        row: usize,
        name: String,
    ) -> PyResult<(String, String, Vec<String>)> {
        let (c, set) = (self.c.clone(), data.0.clone());
        attended(py, &self.pool, None, move |desk| {
            let c = c.stopped_by(&desk.stop);
            let loaded = set.load(row..row + 1)?;
            let Some(drawn) = explain::draw(&c, &loaded.batch, &name)? else {
                let why = loaded.skipped.into_iter().next().map(|s| s.1).unwrap_or_default();
                return Err(Failure::data(name.as_ref(), why, "choose another input"));
            };
            Ok((drawn.svg, drawn.page, drawn.reasons))
        })
    }

    /// The artifact's bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.c.to_bytes()).map_err(library)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the artifact, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.c.save(path)).map_err(library)
    }

    /// The same with parts that need no fit, or another budget.
    fn changed(&self, words: Vec<String>) -> PyResult<Self> {
        let (args, _) = flags::parse::<predict::Loading>(&words).map_err(failure)?;
        let c = args.other.change(self.c.clone()).map_err(failure)?;
        let changed = Fitted::new(c, self.origin.clone(), self.pool.clone());
        Ok(Fitted { digest: self.digest.clone(), ..changed })
    }

    /// What the fit found out, as JSON.
    fn found(&self) -> String {
        serde_json::to_string(self.c.report()).unwrap_or_default()
    }

    /// Whether to use it, and why, in a sentence.
    fn advice(&self) -> (String, String) {
        let (advice, sentence) = self.c.report().advice();
        let advice = serde_json::to_value(advice).unwrap_or_default();
        (advice.as_str().unwrap_or_default().into(), sentence)
    }

    /// What was chosen before the fit, as JSON.
    fn config(&self) -> String {
        serde_json::to_string(self.c.config()).unwrap_or_default()
    }

    /// What tells the artifact from others.
    #[getter]
    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.digest.get()).map_err(library)
    }

    /// The model, with the names of its classes.
    #[getter]
    fn model(&self) -> Loaded {
        Loaded { model: self.c.model().clone(), origin: self.origin.clone() }
    }
}

/// Joins an artifact, a file or its bytes, with its models: files, or callables.
#[pyfunction]
pub(crate) fn join(
    py: Python<'_>,
    artifact: &Bound<'_, PyAny>,
    model: &Bound<'_, PyAny>,
    second: Option<&Bound<'_, PyAny>>,
    words: Vec<String>,
) -> PyResult<Fitted> {
    let (args, common) = flags::parse::<predict::Loading>(&words).map_err(failure)?;
    let pool = pool(&common)?;
    let artifact = if let Ok(bytes) = artifact.cast::<PyBytes>() {
        Artifact::from_bytes("artifact", bytes.as_bytes())
    } else {
        let path: PathBuf = artifact.extract()?;
        py.detach(|| Artifact::read(path))
    };
    let artifact = artifact.map_err(library)?;
    let digest = artifact.manifest.digest.clone();
    if let Ok(own) = model.cast::<Loaded>() {
        let own = own.get();
        let second = second.map(|m| m.cast::<Loaded>().map(|m| m.get().model.clone()));
        let second = second.transpose().map_err(|_| both())?;
        let external = setup::energy(&artifact, args.other.external.as_ref(), &common);
        let external = external.map_err(failure)?;
        let models = Models { first: own.model.clone(), second, external };
        let c = py.detach(|| artifact.join(models)).map_err(library)?;
        let c = args.other.change(c).map_err(failure)?;
        return Ok(Fitted::new(c, own.origin.clone(), pool).with_digest(digest));
    }
    let path: PathBuf = model.extract()?;
    let second: Option<PathBuf> =
        second.map(PyAnyMethods::extract).transpose().map_err(|_: PyErr| both())?;
    let beside = setup::Beside { second, ..args.other.beside() };
    let origin = path.clone();
    let c = attended(py, &pool, None, move |_| {
        let (c, _) = setup::join(artifact, &path, &beside, &args.sizes, &common)?;
        args.other.change(c)
    })?;
    let options = c.model().options();
    Ok(Fitted::new(c, Some((origin, options)), pool).with_digest(digest))
}

fn map(entries: &[f32]) -> upright::Result<Map> {
    let plane = entries.try_into().map(Map::Plane);
    let map = plane.or_else(|_| entries.try_into().map(Map::Space));
    map.map_err(|_| upright::Error::shape("map", "6 or 9 numbers", entries.len()))
}

fn both() -> PyErr {
    PyTypeError::new_err("give both models as files, or both as callables")
}

/// Flags of every command as the report's own code wants them.
fn quiet(seed: u64) -> Common {
    Common { seed, threads: None, engine: None, quiet: true, json: false, typed: vec![] }
}

fn inputs<'a>(upright: &'a Arc<Set>, given: Option<&'a Arc<Set>>, seed: u64) -> [Inputs<'a>; 2] {
    let of = |kind, set: &'a Arc<Set>, copies| Inputs {
        kind,
        data: set.as_ref(),
        source: set.source(),
        copies,
        seed,
    };
    let other = given.unwrap_or(upright);
    [of("upright", upright, false), of("transformed", other, given.is_none())]
}
