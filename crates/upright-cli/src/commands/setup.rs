//! Flags that several commands share: how to load the model and which parts to use.

use std::path::{Path, PathBuf};

use upright::Models;
use upright::internal::onnx::Graph;
use upright::internal::router;
use upright::{
    Artifact, Canonicalizer, Config, Model, ModelOptions, Overrides, Padding, Preset, Reduce,
    Resample, Role, SignalKind, SpaceConfig, Tap, Value,
};
use upright_data::{Prepare, Source, Want};

use super::roles::RoleArgs;
use crate::Common;
use crate::data::DataArgs;
use crate::report::{Failure, Note, Result};

/// How pictures are brought to the size that a model takes.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct SizeArgs {
    /// Shorter side, or rows x columns as in 224x320, that images are resized to [default: as
    /// fitted]
    #[arg(long, value_name = "SIZE")]
    resize: Option<String>,
    /// Size of the centre that is kept after resizing [default: as fitted]
    #[arg(long, value_name = "SIZE")]
    crop: Option<String>,
    /// Size that images are padded to with zeros [default: as fitted]
    #[arg(long, value_name = "SIZE")]
    pad: Option<String>,
}

impl SizeArgs {
    fn overrides(&self) -> Result<Overrides> {
        let mut overrides = Overrides::default();
        for (key, text) in [("resize", &self.resize), ("crop", &self.crop), ("pad", &self.pad)] {
            if let Some(text) = text {
                overrides.set(key, text)?;
            }
        }
        Ok(overrides)
    }
}

/// How to load a model.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Tensor to tap for features: a name, `auto` (the last layer's input) or `none`; give it
    /// several times for several taps
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub tap: Vec<String>,
    /// How a tapped tensor becomes a vector
    #[arg(long, value_enum, default_value = "none")]
    pub reduce: ReduceArg,
    /// Length of projected vectors (with --reduce pool or project)
    #[arg(long, value_name = "N", default_value_t = Reduce::DIM)]
    pub dim: usize,
    /// Output or tensor that holds a number per class [default: the only output that does]
    #[arg(long, value_name = "NAME")]
    pub output: Option<String>,
    /// What the model takes: image, strokes or cloud [default: by its input's shape and name]
    #[arg(long, value_name = "KIND", value_parser = signal_kind)]
    pub signal: Option<SignalKind>,
    /// Points of strokes or a cloud, where the model leaves their number open
    #[arg(long, value_name = "N")]
    pub points: Option<usize>,
    /// Shorter side, or rows x columns as in 224x320, that images are resized to
    #[arg(long, value_name = "SIZE")]
    pub resize: Option<String>,
    /// Size of the centre that is kept after resizing
    #[arg(long, value_name = "SIZE")]
    pub crop: Option<String>,
    /// Size that images are padded to with zeros
    #[arg(long, value_name = "SIZE")]
    pub pad: Option<String>,
    /// Channels the model expects: gray, rgb or bgr
    #[arg(long, value_name = "ORDER")]
    pub channels: Option<String>,
    /// Factor on pixels of 0..255, e.g. 1/255
    #[arg(long, value_name = "X")]
    pub scale: Option<String>,
    /// What is subtracted after scaling: a number, one per channel, or imagenet
    #[arg(long, value_name = "X[,X,X]")]
    pub mean: Option<String>,
    /// What the difference is divided by: a number, one per channel, or imagenet
    #[arg(long, value_name = "X[,X,X]")]
    pub std: Option<String>,
}

/// Things with the same key together, in the order of the first of each; no group is empty.
pub fn alike<'a, T, K: PartialEq>(all: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<(K, Vec<&T>)> = Vec::new();
    for one in all {
        let its = key(one);
        match groups.iter_mut().find(|(key, _)| *key == its) {
            Some((_, group)) => group.push(one),
            None => groups.push((its, vec![one])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The reductions, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ReduceArg {
    /// All numbers as they are
    None,
    /// The mean over positions or tokens
    Mean,
    /// 3x3 regional means, then a random projection
    Pool,
    /// A random projection of all numbers
    Project,
}

impl ModelArgs {
    /// The library's form of the flags.
    pub fn options(&self, common: &Common) -> Result<ModelOptions> {
        let reduce = match self.reduce {
            ReduceArg::None => Reduce::None,
            ReduceArg::Mean => Reduce::Mean,
            ReduceArg::Pool => Reduce::Pool { dim: self.dim, seed: common.seed },
            ReduceArg::Project => Reduce::Project { dim: self.dim, seed: common.seed },
        };
        let mut overrides = Overrides::default();
        for (key, text) in [
            ("resize", &self.resize),
            ("crop", &self.crop),
            ("pad", &self.pad),
            ("channels", &self.channels),
            ("scale", &self.scale),
            ("mean", &self.mean),
            ("std", &self.std),
        ] {
            if let Some(text) = text {
                overrides.set(key, text)?;
            }
        }
        let named = self.tap.iter().filter(|name| *name != "none");
        let mut taps: Vec<Tap> = named.map(|name| Tap { name: name.clone(), reduce }).collect();
        if !taps.is_empty() {
            taps.extend([Tap::middle(), Tap::late()]);
        }
        Ok(ModelOptions {
            taps,
            preprocess: overrides,
            output: self.output.clone(),
            kind: self.signal,
            rows: self.points,
            threads: common.threads.map(std::num::NonZeroUsize::get),
            engine: common.engine(),
            ..ModelOptions::default()
        })
    }
}

/// Which parts to use.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Parts")]
pub struct PartArgs {
    /// Transforms to undo: `affine`, `rotate`, axes such as `rotate=-30..30,scale`, or for
    /// clouds `so3`, `vertical` and `quarters` [default: affine, for clouds so3]
    #[arg(long, short = 't', value_name = "SPACE")]
    pub transforms: Option<String>,
    /// Parts that go together: learned (a few views, learnt), search (60 views), paper (the
    /// paper's own) [default: learned, or search where another score, proposer or search is
    /// chosen]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would show it")]
    pub roles: RoleArgs,
    /// Views that a search may evaluate [default: 8 with the preset learned, 60 with others]
    #[arg(long, value_name = "N")]
    pub budget: Option<usize>,
    /// What lies outside an input: zeros, border, a grey value in 0..1, or a colour as #rrggbb;
    /// auto continues edges outward in views, unless they are black [default: auto; zeros with
    /// the preset paper]
    #[arg(long, value_name = "KIND")]
    pub padding: Option<String>,
}

impl PartArgs {
    /// Chooses the space that suits a model unless one was asked for.
    pub fn suit(&self, config: &mut Config, model: &Model) {
        if self.transforms.is_none() {
            config.space = SpaceConfig::of_signal(model.signal());
        }
    }

    /// The library's form of the flags; [`PartArgs::suit`] completes it.
    pub fn config(&self, common: &Common) -> Result<Config> {
        let preset = match &self.preset {
            Some(name) => Preset::of(name)?,
            None => self.roles.preset(),
        };
        Ok(Config {
            parts: self.roles.parts(preset)?,
            space: match &self.transforms {
                Some(text) => SpaceConfig::parse(text)?,
                None => SpaceConfig::default(),
            },
            budget: self.budget.unwrap_or(preset.budget),
            calibration: preset.calibration,
            resample: Resample {
                padding: match &self.padding {
                    Some(text) => padding(text)?,
                    None => preset.padding(),
                },
                ..Resample::default()
            },
            seed: common.seed,
            ..Config::default()
        })
    }
}

fn signal_kind(text: &str) -> std::result::Result<SignalKind, String> {
    SignalKind::parse(text).map_err(|e| e.to_string())
}

/// Reads a padding: auto, zeros, border, a grey value in 0..1, or a colour as #rrggbb.
pub fn padding(text: &str) -> Result<Padding> {
    let digits = text.strip_prefix('#').filter(|d| d.len() == 6);
    let channel = |i: usize| {
        let two = digits.and_then(|d| d.get(2 * i..2 * i + 2))?;
        u8::from_str_radix(two, 16).ok().map(|v| f32::from(v) / 255.0)
    };
    let colour = (0..3).map(channel).collect::<Option<Vec<f32>>>();
    let grey = text.parse::<f32>().ok().filter(|v| (0.0..=1.0).contains(v)).map(|v| vec![v]);
    match (text, colour.or(grey)) {
        ("auto", _) => Ok(Padding::Auto),
        ("zeros", _) => Ok(Padding::Zeros),
        ("border", _) => Ok(Padding::Border),
        (_, Some(colour)) => Ok(Padding::Fill(colour)),
        _ => Err(Failure::usage(
            format!("unknown padding `{text}`"),
            "give auto, zeros, border, a grey value in 0..1, or a colour as #rrggbb",
        )),
    }
}

/// Splits `NAME=VALUE`.
pub fn split_setting(text: &str) -> Result<(&str, Value)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.trim(), Value::parse(value.trim()))),
        _ => Err(Failure::usage(
            format!("`{text}` is not a setting"),
            "settings are given as `--set name=value`",
        )),
    }
}

/// The artifact that goes with a model unless another is named: beside it, `.upright` in
/// place of its own ending.
pub fn artifact_path(model: &Path, given: Option<&PathBuf>) -> PathBuf {
    given.cloned().unwrap_or_else(|| model.with_extension("upright"))
}

/// Refuses to write over the artifact of another model.
pub fn check_place(path: &Path, model: &Model) -> Result<()> {
    match Artifact::read(path) {
        Ok(old) if old.check_model(model.fingerprint()).is_err() => Err(Failure::usage(
            format!("`{}` belongs to another model", path.display()),
            "name another file with `--out`, or remove it first",
        )),
        _ => Ok(()),
    }
}

/// The files of networks beside a classifier.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Answers unfamiliar inputs.
    pub second: Option<PathBuf>,
    /// Says how unfamiliar a view looks.
    pub external: Option<PathBuf>,
}

/// Reads an artifact and joins it with its model and the networks beside it.
pub fn load(
    model: &Path,
    beside: &Beside,
    artifact: &Path,
    sizes: &SizeArgs,
    common: &Common,
) -> Result<(Canonicalizer, String)> {
    if !artifact.exists() {
        return Err(Failure::usage(
            format!("there is no artifact `{}`", artifact.display()),
            format!("make one with `upright fit {} TRAIN_FOLDER`", model.display()),
        ));
    }
    join(Artifact::read(artifact)?, model, beside, sizes, common)
}

/// Joins an artifact with the files of its models; also gives its digest.
pub fn join(
    artifact: Artifact,
    model: &Path,
    beside: &Beside,
    sizes: &SizeArgs,
    common: &Common,
) -> Result<(Canonicalizer, String)> {
    // The settings of another model may not even load this one.
    artifact.check_model(Graph::load(model)?.fingerprint())?;
    let router = &artifact.manifest.config.part(Role::Router).name;
    check_second(router::row(router)?.make.second, beside.second.is_some())?;
    let external = energy(&artifact, beside.external.as_ref(), common)?;
    let mut options = here(artifact.manifest.options.clone(), common)?;
    if let Some(own) = &mut options.exact {
        *own = sizes.overrides()?.over(own);
    }
    let digest = artifact.manifest.digest.clone();
    let first = Model::load(model, &options)?;
    let second = match &beside.second {
        Some(path) => Some(Model::load(path, &ModelOptions { taps: vec![], ..first.options() })?),
        None => None,
    };
    Ok((artifact.join(Models { first, second, external })?, digest))
}

/// How a model was loaded, with the threads and the engine of this run.
fn here(mut options: ModelOptions, common: &Common) -> Result<ModelOptions> {
    options.threads = common.threads.map(std::num::NonZeroUsize::get);
    if let Some(engine) = &common.engine {
        let row = upright::engine::row(engine)?;
        if row.name != options.engine {
            options.engine = row.name.into();
            options.micro_batch = None;
        }
    }
    Ok(options)
}

/// The energy network of an artifact, given where, and only where, it was fitted with one.
pub fn energy(
    artifact: &Artifact,
    given: Option<&PathBuf>,
    common: &Common,
) -> Result<Option<Model>> {
    match (&artifact.manifest.external, given) {
        (Some(fitted), Some(path)) => {
            Ok(Some(Model::load(path, &here(fitted.options.clone(), common)?)?))
        }
        (Some(_), None) => Err(Failure::usage(
            "this artifact takes its energies from a network beside the model",
            "name it with `--external ENERGY.onnx`",
        )),
        (None, Some(_)) => Err(Failure::usage(
            "this artifact was fitted without an energy network",
            "leave out `--external`, or fit with it",
        )),
        (None, None) => Ok(None),
    }
}

/// Whether a second model is given where, and only where, an artifact was fitted with one.
fn check_second(needed: bool, given: bool) -> Result<()> {
    match (needed, given) {
        (true, false) => Err(Failure::usage(
            "this artifact sends unfamiliar inputs to a second model",
            "name it with `--switch MODEL.onnx`",
        )),
        (false, true) => Err(Failure::usage(
            "this artifact was fitted without a second model",
            "leave out `--switch`, or fit with it",
        )),
        _ => Ok(()),
    }
}

/// Opens data for a model.
pub fn open(
    paths: &[PathBuf],
    args: &DataArgs,
    want: Want,
    model: &Model,
    common: &Common,
) -> Result<Source> {
    let options = args.options(want, model.signal(), Some(model.classes()), common.seed);
    let prepare = Prepare::for_model(model, common.seed);
    let prepare = if want == Want::Inputs { prepare.leniently() } else { prepare };
    Ok(upright_data::open(paths, &options, prepare)?)
}

/// Says so if a search that follows gradients has none to follow.
pub fn note_gradient(c: &Canonicalizer, common: &Common) -> Result<()> {
    let search = &c.config().part(Role::Search).name;
    if upright::search::row(search)?.make.gradient
        && let Err(e) = c.model().differentiable()
        && !common.quiet
    {
        Note {
            code: e.code(),
            warning: false,
            message: e.to_string(),
            help: format!("`{search}` refines its best views without gradients instead"),
        }
        .print(common.json);
    }
    Ok(())
}
