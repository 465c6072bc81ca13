//! Experiments: one file per question, each with how it is measured (`run`) and
//! how its lines are shown (`show`). What was measured is a line of the ledger and
//! is not measured again.

use std::path::{Path, PathBuf};
use std::time::Instant;

mod ablations;
mod answers;
mod below;
mod chart;
mod detectors;
mod fits;
mod fresh;
mod gating;
mod landscape;
mod ledger;
mod main;
mod material;
mod measure;
mod orbit;
mod page;
mod paper;
mod parts;
mod photographs;
mod report;
mod rows;
mod runtime;
mod scale;
mod searches;
mod sets;
mod settings;
mod speed;
mod summary;
mod tasks;
mod traffic;
mod trained;
mod turned;
mod views;

pub(crate) use answers::{Args as AnswersArgs, run as answers};
use ledger::{Found, Ledger, Line, What};
use page::Page;
pub(crate) use report::{Args as ReportArgs, run as report};
#[cfg(feature = "train")]
pub(crate) use rows::Rows;
pub(crate) use scale::Scale;
pub(crate) use tasks::{Folders, Task};

/// A question, how it is answered and how the answer is shown.
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Data sets that it is about unless others are asked for.
    sets: &'static [&'static str],
    /// Whether one run will do unless more are asked for: it takes long or leaves little to chance.
    once: bool,
    /// Whether it fits or searches so many times over, or inputs so large, that the quick scale
    /// takes less of everything.
    many: bool,
    /// Measures on a data set.
    run: fn(&mut Lab, &Task) -> Result<(), String>,
    /// Shows what was measured.
    show: fn(&[Line], &mut Page),
}

/// Every experiment, in the order of the results.
pub(crate) const TABLE: &[Experiment] = &[
    main::EXPERIMENT,
    photographs::EXPERIMENT,
    views::EXPERIMENT,
    parts::EXPERIMENT,
    orbit::EXPERIMENT,
    traffic::EXPERIMENT,
    fresh::EXPERIMENT,
    trained::EXPERIMENT,
    detectors::EXPERIMENT,
    searches::EXPERIMENT,
    gating::EXPERIMENT,
    ablations::EXPERIMENT,
    runtime::EXPERIMENT,
    speed::EXPERIMENT,
];

/// Arguments of `upright-lab run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Experiments by name, or `all`
    #[arg(required = true)]
    names: Vec<String>,
    /// Folder of data sets; what is looked for is in `sets.rs`
    #[arg(long, default_value = "data")]
    data: PathBuf,
    /// Folder of classifiers, ONNX files
    #[arg(long, default_value = "models")]
    models: PathBuf,
    /// Folder of what `train` made of real data [default: that of --models]
    #[arg(long)]
    trained: Option<PathBuf>,
    /// What runs classifiers: rten or ort
    #[arg(long, default_value = "rten")]
    engine: String,
    /// quick: minutes; full: what results are told by
    #[arg(long, default_value = "quick")]
    scale: String,
    /// Only these data sets [default: all that an experiment is about]; `digits` needs no files
    #[arg(long, value_delimiter = ',')]
    sets: Vec<String>,
    /// Seed of the first run; further runs count on
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Runs with other seeds [default: 1 of quick; 3 of full, but 1 of experiments that take long]
    #[arg(long)]
    runs: Option<u64>,
    /// Inputs that judge, of each kind [default: by the scale]
    #[arg(long)]
    inputs: Option<usize>,
    /// Where lines are appended; what was fitted is kept in its folder `cache`
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Measure again what is finished
    #[arg(long)]
    again: bool,
    /// Only measurements that one of these words names, such as a method, a budget or what is
    /// left out; `corners+ours` those that both name
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

/// What experiments measure with.
pub(crate) struct Lab {
    pub(crate) scale: Scale,
    pub(crate) seed: u64,
    /// The seed of the first run.
    begun: u64,
    folders: Folders,
    out: PathBuf,
    experiment: &'static str,
    ledger: Ledger,
    commit: String,
    again: bool,
    /// Words of what is measured; all if there are none.
    only: Vec<String>,
}

/// Runs experiments.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let chosen = chosen(&args.names)?;
    let folders = Folders {
        data: args.data.clone(),
        models: args.models.clone(),
        trained: args.trained.clone().unwrap_or_else(|| args.models.clone()),
        engine: args.engine.clone(),
    };
    for experiment in chosen {
        let mut scale = Scale::of(&args.scale, experiment.many)?.clone();
        scale.inputs = args.inputs.unwrap_or(scale.inputs);
        let usual = if experiment.once { 1 } else { scale.runs };
        let runs = args.runs.unwrap_or(usual);
        let mut lab = Lab::new(experiment.name, &scale, &folders, &args.out)?;
        (lab.seed, lab.begun, lab.again) = (args.seed, args.seed, args.again);
        lab.only.clone_from(&args.only);
        let usual: Vec<String> = experiment.sets.iter().map(|s| (*s).into()).collect();
        for name in if args.sets.is_empty() { &usual } else { &args.sets } {
            let task = Task::open(name, &lab.folders, &lab.scale)?;
            for seed in args.seed..args.seed + runs {
                lab.seed = seed;
                (experiment.run)(&mut lab, &task)?;
            }
        }
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, String> {
    if names.iter().any(|n| n == "all") {
        return Ok(TABLE.iter().collect());
    }
    let find = |name: &String| {
        TABLE.iter().find(|e| e.name == name).ok_or_else(|| {
            let known: Vec<String> =
                TABLE.iter().map(|e| format!("  {:<12} {}", e.name, e.about)).collect();
            format!("there is no experiment `{name}`; there are\n{}", known.join("\n"))
        })
    };
    names.iter().map(find).collect()
}

impl Lab {
    /// What an experiment measures with.
    pub(crate) fn new(
        experiment: &'static str,
        scale: &Scale,
        folders: &Folders,
        out: &Path,
    ) -> Result<Self, String> {
        Ok(Lab {
            scale: scale.clone(),
            seed: 0,
            begun: 0,
            folders: folders.clone(),
            out: out.to_path_buf(),
            experiment,
            ledger: Ledger::open(out, experiment)?,
            commit: commit(),
            again: false,
            only: Vec::new(),
        })
    }

    /// Measures something on a data set and appends its line, unless it is finished or was not
    /// asked for.
    pub(crate) fn measure(
        &mut self,
        task: &Task,
        words: &[(&str, &str)],
        work: impl FnOnce(&Lab) -> upright::Result<Found>,
    ) -> Result<(), String> {
        let has = |word: &str| words.iter().any(|(_, own)| *own == word);
        let named = |only: &String| only.split('+').all(has);
        if !self.only.is_empty() && !self.only.iter().any(named) {
            return Ok(());
        }
        let mut what: What = words.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        what.insert("data".into(), task.name.into());
        let said: Vec<&str> = words.iter().map(|(_, v)| *v).collect();
        let said =
            format!("{} {} {} seed {}", self.experiment, task.name, said.join(" "), self.seed);
        let mut line = Line {
            experiment: self.experiment.into(),
            what,
            scale: self.scale.name.into(),
            seed: self.seed,
            commit: self.commit.clone(),
            model: task.hashes[0].clone(),
            data: task.hashes[1].clone(),
            seconds: 0.0,
            found: Found::default(),
        };
        if !self.again && self.ledger.has(&line) {
            eprintln!("{said}: finished before");
            return Ok(());
        }
        let start = Instant::now();
        line.found = work(self).map_err(|e| format!("{said}: {e}"))?;
        line.seconds = (start.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        eprintln!("{said}: {}{:.0} s", summary(&line.found), line.seconds);
        self.ledger.add(line)
    }

    /// The same at another scale.
    pub(crate) fn scaled(&self, scale: Scale) -> Result<Lab, String> {
        Ok(Lab {
            scale,
            folders: self.folders.clone(),
            out: self.out.clone(),
            ledger: Ledger::open(&self.out, self.experiment)?,
            commit: self.commit.clone(),
            only: self.only.clone(),
            ..*self
        })
    }

    /// Whether this is the first run.
    pub(crate) fn first(&self) -> bool {
        self.seed == self.begun
    }

    pub(crate) fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Where what was fitted is kept.
    pub(crate) fn cache(&self) -> PathBuf {
        self.out.join("cache")
    }
}

fn summary(found: &Found) -> String {
    let share = |(name, share): (&String, &upright::Share)| format!("{name} {share}, ");
    let counts: String = found.counts.iter().take(4).map(share).collect();
    let number = |(name, value): (&String, &f64)| format!("{name} {value:.2}, ");
    let numbers: String = found.numbers.iter().take(4).map(number).collect();
    counts + &numbers
}

/// The commit that the sources lie at, with `+` where one of them has changed since.
fn commit() -> String {
    let git = |words: &[&str]| {
        let folder = env!("CARGO_MANIFEST_DIR");
        let done = std::process::Command::new("git").arg("-C").arg(folder).args(words).output();
        done.ok()
            .filter(|o| o.status.success())
            .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".into() };
    let sources = [":/crates", ":/Cargo.lock"];
    let status = ["status", "--porcelain", "--untracked-files=no", "--"];
    let changed = git(&[&status[..], &sources].concat());
    if changed.is_none_or(|c| c.is_empty()) { head } else { head + "+" }
}

/// Makes a folder.
fn folder(path: &Path) -> upright::Result<()> {
    std::fs::create_dir_all(path).map_err(|e| upright::Error::io(path, e))
}
