//! Fitting, with the options of the command line.

use std::path::PathBuf;

use pyo3::prelude::*;
use upright::internal::tune::Progress;
use upright::{Config, Dataset, FitData, Model, ModelOptions, Models, Role, Tap, TuneWatch, Watch};
use upright_cli::Common;
use upright_cli::flags;
use upright_cli::internal::{check, fit, setup, tune};
use upright_cli::report::Result;
use upright_cli::rows::Sink;

use crate::canonicalizer::Fitted;
use crate::data::{Data, opened};
use crate::errors::{Told, failure, library, told};
use crate::model::{Loaded, loaded};
use crate::work::{Desk, Pool, attended, pool};

/// A fit whose options are read and checked.
#[pyclass(frozen)]
pub(crate) struct Fit {
    args: fit::Args,
    common: Common,
    config: Config,
    pool: Pool,
}

#[pymethods]
impl Fit {
    #[new]
    fn new(words: Vec<String>) -> PyResult<Self> {
        let (args, common) = flags::parse::<fit::Args>(&words).map_err(failure)?;
        let config = args.config(&common).map_err(failure)?;
        let pool = pool(&common)?;
        Ok(Fit { args, common, config, pool })
    }

    /// Loads the model from its file.
    fn load(&self, py: Python<'_>, path: PathBuf) -> PyResult<Loaded> {
        let options = self.args.loading.options(&self.common).map_err(failure)?;
        loaded(py, path, options)
    }

    /// Loads the second model, which is fed as the first is.
    fn load_second(&self, py: Python<'_>, path: PathBuf) -> PyResult<Loaded> {
        let options = self.args.loading.options(&self.common).map_err(failure)?;
        loaded(py, path, ModelOptions { taps: vec![], ..options })
    }

    /// Opens labelled files; `others` reads them as held-out data are read.
    fn open(&self, py: Python<'_>, model: &Loaded, path: PathBuf, others: bool) -> PyResult<Data> {
        let reading = if others { self.args.reading_others() } else { self.args.reading.clone() };
        let (model, common) = (&model.model, &self.common);
        py.detach(|| opened(model, &[path], &reading, common, true)).map_err(failure)
    }

    /// Fits, and says what is worth saying.
    #[pyo3(signature = (model, data, held_out, transformed, second, classes, progress))]
    #[expect(clippy::too_many_arguments, reason = "what a fit is given")]
    fn run(
        &self,
        py: Python<'_>,
        model: &Loaded,
        data: &Data,
        held_out: Option<&Data>,
        transformed: Option<&Data>,
        second: Option<&Loaded>,
        classes: Option<Vec<String>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Fitted, Vec<Told>)> {
        let mut config = self.config.clone();
        self.args.parts.suit(&mut config, &model.model);
        config.space.build().and_then(|s| s.check(model.model.signal())).map_err(library)?;
        let mut first = model.model.clone();
        let names = classes.unwrap_or_else(|| data.0.classes().to_vec());
        if !names.is_empty() {
            first = first.with_class_names(names);
        }
        if let Some(path) = &self.args.out {
            drop(Sink::open(Some(path)).map_err(failure)?);
            setup::check_place(path, &first).map_err(failure)?;
        }
        let job = Job {
            config,
            first,
            origin: model.origin.clone(),
            second: second.map(|m| m.model.clone()),
            external: self.args.energy(&self.common).map_err(failure)?,
            tune: self.args.tune.clone(),
            log: self.args.out.as_deref().map(tune::log_path),
        };
        let sets =
            (data.0.clone(), held_out.map(|d| d.0.clone()), transformed.map(|d| d.0.clone()));
        let (c, mut notes) = attended(py, &self.pool, progress, move |desk| {
            let (bank, held_out, transformed) = &sets;
            let data = FitData {
                bank: bank.as_ref(),
                held_out: held_out.as_ref().map(|d| d.as_ref() as &dyn Dataset),
                transformed: transformed.as_ref().map(|d| d.as_ref() as &dyn Dataset),
            };
            job.run(&data, desk)
        })?;
        self.args.refuse_harm(&c).map_err(failure)?;
        for data in [Some(data), held_out, transformed].into_iter().flatten() {
            notes.extend(data.0.notes());
        }
        let search = &c.config().part(Role::Search).name;
        let follows = upright::search::row(search).map_err(library)?.make.gradient;
        if let Some(e) = c.model().differentiable().err().filter(|_| follows) {
            let help = format!("`{search}` refines its best views without gradients instead");
            notes.push((e.code(), e.to_string(), help));
        }
        let fitted = Fitted::new(c, model.origin.clone(), self.pool.clone());
        Ok((fitted, notes))
    }
}

/// What a fit works on.
struct Job {
    config: Config,
    first: Model,
    origin: Option<(PathBuf, ModelOptions)>,
    second: Option<Model>,
    external: Option<Model>,
    tune: Option<String>,
    log: Option<PathBuf>,
}

impl Job {
    fn run(self, data: &FitData, desk: &mut Desk) -> Result<(upright::Canonicalizer, Vec<Told>)> {
        let first = self.first.clone().stopped_by(&desk.stop);
        let doubt = check::doubt(&first, data.held_out.unwrap_or(data.bank), true)?;
        let (config, first) = match &self.tune {
            Some(budget) => self.tuned(budget, data, desk)?,
            None => (self.config, first),
        };
        let second = self.second.map(|m| m.stopped_by(&desk.stop));
        let external = self.external.map(|m| m.stopped_by(&desk.stop));
        let c = config.fit(Models { first, second, external }, data, desk)?;
        Ok((c, doubt.map(told).into_iter().collect()))
    }

    /// Chooses taps, score and search first.
    fn tuned(&self, budget: &str, data: &FitData, desk: &mut Desk) -> Result<(Config, Model)> {
        let tune = tune::for_gate(tune::budget(budget)?, &self.config);
        let stop = desk.stop.clone();
        let load = |taps: &[Tap]| -> upright::Result<Model> {
            let model = match &self.origin {
                Some((path, options)) => {
                    Model::load(path, &ModelOptions { taps: taps.to_vec(), ..options.clone() })?
                }
                // A callable has the taps that it has.
                None => self.first.clone(),
            };
            Ok(model.stopped_by(&stop))
        };
        let mut trials = desk.second();
        trials.phase("tune", 2 * (3 * tune.first + tune.second));
        let mut say = |_: &Progress<'_>| trials.advance(1);
        let stop = desk.stop.clone();
        let mut watch = TuneWatch {
            watch: desk,
            trial: &mut say,
            stop: &mut || stop.load(std::sync::atomic::Ordering::Relaxed),
        };
        let report = self.config.tune(&tune, &load, data, self.log.as_deref(), &mut watch)?;
        let mut model = load(&report.taps)?;
        if let Some(names) = self.first.class_names() {
            model = model.with_class_names(names.to_vec());
        }
        Ok((report.config, model))
    }
}
