//! One error type. Every variant carries the values a caller needs to explain
//! what happened and why; [`Error::hint`] says what would help.

use std::path::PathBuf;
use std::sync::Arc;

use crate::hint::Hint;

/// `Result` with upright's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in the library.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Data and shape disagree.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// What was being built or passed.
        what: String,
        /// The shape or length that was needed.
        expected: String,
        /// The shape or length that was given.
        got: String,
    },
    /// A name that is not in a table.
    #[error("unknown {kind} `{name}`; there are: {known}")]
    UnknownName {
        /// The kind of component: `score`, `search`, `gate`, `axis`, ...
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names that exist, comma separated.
        known: String,
    },
    /// A row is added under a name that another one has.
    #[error("there is a {kind} `{name}` already")]
    NameTaken {
        /// The kind of part.
        kind: &'static str,
        /// The name.
        name: String,
    },

    /// A setting that its component does not have.
    #[error("{part} has no setting `{name}`; it has: {known}")]
    UnknownSetting {
        /// The component.
        part: String,
        /// The setting asked for.
        name: String,
        /// The settings that exist, comma separated.
        known: String,
    },
    /// A setting outside its range or of the wrong type.
    #[error("{part}: `{name}` = {value} is not valid; it takes {range}")]
    BadSetting {
        /// The component.
        part: String,
        /// The setting.
        name: String,
        /// The value given.
        value: String,
        /// What is allowed.
        range: String,
    },
    /// A space whose maps cannot be applied to the model's signal.
    #[error("space: {why}")]
    WrongSpace {
        /// What does not fit.
        why: String,
        /// What would help.
        hint: Option<Hint>,
    },
    /// The ONNX file cannot be read as a model.
    #[error("{path}: not a usable ONNX model: {why}")]
    Model {
        /// The file, or a name for bytes in memory.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The model's input leaves something open.
    #[error("{path}: {why}")]
    OpenInput {
        /// The file, or a name for bytes in memory.
        path: String,
        /// What is open.
        why: String,
        /// What would help.
        hint: Option<Hint>,
    },

    /// The engine lacks operators the model uses; all are listed.
    #[error(
        "{path}: node `{node}` uses operator {first}, which the {engine} engine does not have; all unsupported operators: {all}"
    )]
    Operators {
        /// The model file.
        path: String,
        /// The engine that refused.
        engine: &'static str,
        /// The first node concerned.
        node: String,
        /// Its operator.
        first: String,
        /// Every unsupported operator, comma separated.
        all: String,
    },
    /// Operators that lie between the input and the outputs cannot be differentiated; all
    /// are listed.
    #[error("{path}: no gradient rule for: {all}")]
    Gradient {
        /// The model file.
        path: String,
        /// Every such operator, comma separated.
        all: String,
    },
    /// The engine failed while running the model.
    #[error("the {engine} engine failed: {why}")]
    Engine {
        /// The engine.
        engine: &'static str,
        /// Its message.
        why: String,
        /// Its own error, where it has one.
        source: Option<Cause>,
    },
    /// An engine that cannot be used here.
    #[error("the {engine} engine is not available: {why}")]
    NoEngine {
        /// The engine.
        engine: &'static str,
        /// What is missing.
        why: String,
        /// What would help.
        hint: Option<Hint>,
    },
    /// A tensor to tap that the graph does not have, or no tap could be found.
    #[error("no tap `{name}` in the model; candidates: {candidates}")]
    NoTap {
        /// The tap asked for.
        name: String,
        /// Tensors that could be tapped, comma separated.
        candidates: String,
    },
    /// A score was asked for that needs something the fit did not have.
    #[error("score `{score}` needs {lacks}")]
    ScoreNeeds {
        /// The score.
        score: String,
        /// What is missing.
        lacks: String,
        /// What would help.
        hint: Option<Hint>,
    },
    /// A router was given a second model that it has no use for, or lacks the one it needs.
    #[error("router `{router}` {}", if *needed { "needs a second model, and none is given" } else { "takes no second model, but one is given" })]
    SecondModel {
        /// The router.
        router: &'static str,
        /// Whether it needs one.
        needed: bool,
    },

    /// A score was given an energy network that it has no use for, or lacks the one it needs.
    #[error("score `{score}` {}", if *needed { "needs an energy network, and none is given" } else { "takes no energy network, but one is given" })]
    ExternalModel {
        /// The score.
        score: String,
        /// Whether it needs one.
        needed: bool,
    },

    /// A part that only a fit can put in place.
    #[error("{role} `{name}` needs a fit: {why}")]
    NeedsFit {
        /// The part's role.
        role: &'static str,
        /// The part.
        name: String,
        /// What it would have to be fitted on.
        why: &'static str,
    },

    /// Too few samples to fit a component.
    #[error("{part}: {why}")]
    TooFew {
        /// The component being fitted.
        part: String,
        /// How many there are and how many are needed.
        why: String,
        /// What would help.
        hint: Option<Hint>,
    },
    /// Energies that are not numbers.
    #[error("score `{score}` is NaN for {count} of {total} inputs; cause: {cause}")]
    NanScore {
        /// The score.
        score: String,
        /// How many inputs.
        count: usize,
        /// Of how many.
        total: usize,
        /// The likely cause.
        cause: String,
    },
    /// Preprocessing that cannot be understood or applied.
    #[error("preprocessing: {why}")]
    Preprocess {
        /// What is wrong.
        why: String,
        /// What would help.
        hint: Option<Hint>,
    },
    /// A picture that does not fit the model's input.
    #[error("the model wants {wants} but the picture gives {gives}")]
    Picture {
        /// The shape the model takes.
        wants: String,
        /// The shape of the picture.
        gives: String,
        /// What would help.
        hint: Option<Hint>,
    },
    /// The artifact does not belong to this model.
    #[error("the artifact was fitted on model {fitted}.., this file is {given}..")]
    ArtifactModel {
        /// Start of the fingerprint stored in the artifact.
        fitted: String,
        /// Start of the fingerprint of the model given.
        given: String,
    },
    /// The artifact's format is newer than this library.
    #[error("artifact format {found}, this upright reads {reads}")]
    ArtifactVersion {
        /// The format version in the file.
        found: u64,
        /// The versions that can be read.
        reads: String,
    },
    /// The artifact is damaged or not an artifact at all.
    #[error("{path}: not a usable artifact: {why}")]
    Artifact {
        /// The file.
        path: String,
        /// The invariant that does not hold.
        why: String,
    },
    /// Something is larger than its cap.
    #[error("{what} is {size} bytes, the limit is {limit}")]
    TooLarge {
        /// What was to be read.
        what: String,
        /// Its size.
        size: u64,
        /// The cap.
        limit: u64,
    },
    /// A data source could not deliver.
    #[error("{what}: {why}")]
    Data {
        /// The file or source.
        what: String,
        /// The reason.
        why: String,
        /// What would help.
        hint: Option<Hint>,
    },
    /// More rows of a data source are unreadable than are tolerated.
    #[error("{count} of {total} {what} unreadable, first: `{first}` ({reason})")]
    Corrupt {
        /// What the rows are: `images`, `sketches`, `clouds`.
        what: &'static str,
        /// Unreadable rows found so far.
        count: usize,
        /// Rows in all.
        total: usize,
        /// The first of them.
        first: String,
        /// What is wrong with the first.
        reason: String,
    },
    /// A space, a study or an objective that cannot be tuned.
    #[error("tuning: {why}")]
    Tune {
        /// What is wrong.
        why: String,
        /// What would help.
        hint: Option<Hint>,
    },
    /// Input or output failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: Arc<std::io::Error>,
    },
}

/// An error of somebody else's, as it was.
#[derive(Debug, Clone)]
pub struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl std::ops::Deref for Cause {
    type Target = dyn std::error::Error + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Error {
    /// A shape error.
    pub fn shape(
        what: impl Into<String>,
        expected: impl std::fmt::Debug,
        got: impl std::fmt::Debug,
    ) -> Self {
        Error::Shape {
            what: what.into(),
            expected: format!("{expected:?}"),
            got: format!("{got:?}"),
        }
    }

    /// An input/output error on a path.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Error::Io { path: path.into(), source: source.into() }
    }

    /// What an engine of one's own failed with; [`std::error::Error::source`] gives it back.
    pub fn engine(
        engine: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        Error::Engine { engine, why: source.to_string(), source: Some(Cause(source.into())) }
    }

    /// A stable code, `area::problem`, for scripts and documentation.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Shape { .. } | Error::Picture { .. } => "input::shape",
            Error::UnknownName { .. } | Error::NameTaken { .. } => "config::name",
            Error::UnknownSetting { .. } | Error::BadSetting { .. } => "config::setting",
            Error::WrongSpace { .. } => "config::space",
            Error::Model { .. } | Error::OpenInput { .. } => "onnx::model",
            Error::Operators { .. } => "onnx::op",
            Error::Gradient { .. } => "onnx::gradient",
            Error::Engine { .. } => "onnx::run",
            Error::NoEngine { .. } => "engine::missing",
            Error::NoTap { .. } => "onnx::tap",
            Error::ScoreNeeds { .. } => "onnx::no_features",
            Error::SecondModel { .. } => "router::model",
            Error::ExternalModel { .. } => "score::model",
            Error::NeedsFit { .. } => "config::fit",
            Error::TooFew { .. } => "bank::small",
            Error::NanScore { .. } => "score::nan",
            Error::Preprocess { .. } => "preprocess::invalid",
            Error::ArtifactModel { .. } => "artifact::model",
            Error::ArtifactVersion { .. } => "artifact::version",
            Error::Artifact { .. } => "artifact::damaged",
            Error::TooLarge { .. } => "input::too_large",
            Error::Data { .. } => "data::unreadable",
            Error::Corrupt { .. } => "data::corrupt",
            Error::Tune { .. } => "tune::study",
            Error::Io { .. } => "io",
        }
    }

    /// What would help; `None` if the message says it all.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Error::UnknownName { kind, .. } => Hint::ListParts { kind },
            Error::Operators { engine: "ort", .. } => {
                "export with opset 17, or simplify the model so \
                 that these operators disappear"
                    .into()
            }
            Error::Operators { .. } => Hint::SimplerExport,
            Error::Gradient { .. } => Hint::SearchWithoutGradient,
            Error::NoTap { .. } => Hint::ChooseTap,
            Error::NanScore { .. } => Hint::OtherTap,
            Error::ArtifactModel { .. } => Hint::MatchArtifact,
            Error::ArtifactVersion { .. } => Hint::Upgrade,
            Error::Artifact { .. } => Hint::FitAgain,
            Error::SecondModel { needed: true, .. } => Hint::GiveSecond,
            Error::SecondModel { .. } => Hint::LeaveOutSecond,
            Error::ExternalModel { needed: true, .. } => Hint::GiveExternal,
            Error::ExternalModel { .. } => Hint::LeaveOutExternal,
            Error::Corrupt { .. } => Hint::Tolerate,
            Error::NoEngine { hint, .. }
            | Error::ScoreNeeds { hint, .. }
            | Error::TooFew { hint, .. }
            | Error::WrongSpace { hint, .. }
            | Error::OpenInput { hint, .. }
            | Error::Preprocess { hint, .. }
            | Error::Picture { hint, .. }
            | Error::Tune { hint, .. }
            | Error::Data { hint, .. } => return hint.clone(),
            _ => return None,
        })
    }
}
