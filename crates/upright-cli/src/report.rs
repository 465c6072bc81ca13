//! What went wrong and what is worth saying, rendered on standard error:
//! [`Failure`] ends a command with an exit code, a [`Note`] does not.

use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::hints;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, Severity};

/// `Result` with the command line's [`Failure`].
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command ended without doing all it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library refused.
    #[error(transparent)]
    Library(#[from] upright::Error),
    /// A place where nothing can be written.
    #[error("{}: {source}", path.display())]
    Unwritable {
        /// The file that was to be.
        path: PathBuf,
        /// Why it cannot.
        source: std::io::Error,
    },
    /// Arguments that do not go together.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// How to fix it.
        help: String,
    },
    /// Data that cannot be opened or read.
    #[error(transparent)]
    Reading(Box<upright_data::Error>),
    /// A data file that is not what it should be.
    #[error("{}: {why}", path.display())]
    Data {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// How to fix it.
        help: String,
    },
    /// The work was done, but not for every row.
    #[error("{failed} of {total} {what}")]
    Partial {
        /// Rows without a result.
        failed: usize,
        /// Rows in all.
        total: usize,
        /// What is wrong with them.
        what: String,
        /// What became of them.
        help: String,
    },
    /// Model and data that do not go together.
    #[error("{message}")]
    Mismatch {
        /// What was found.
        message: String,
        /// What to do about it.
        help: String,
    },
    /// A fit that would make upright inputs worse; nothing was written.
    #[error("{sentence}")]
    Harm {
        /// The fit's own verdict.
        sentence: String,
        /// Points of upright accuracy that are allowed to be lost.
        allowed: f64,
        /// The gate that would.
        gate: String,
    },
    /// A job that cannot start or go on.
    #[error(transparent)]
    Job(Box<upright_job::Error>),
    /// A signal asked a job to stop, and it did.
    #[error("stopped after {parts} of {total} parts, all of which are kept")]
    Stopped {
        /// Parts that are there.
        parts: usize,
        /// Parts of the job.
        total: usize,
        /// The number of the signal.
        signal: u8,
    },
    /// A server that cannot start.
    #[error(transparent)]
    Serve(#[from] upright_serve::Error),
    /// Whoever reads standard output has gone; nothing is left to do.
    #[error("standard output was closed")]
    Closed,
}

impl From<upright_data::Error> for Failure {
    fn from(error: upright_data::Error) -> Self {
        use upright_data::Error as E;
        match error {
            E::Model(e) => Failure::Library(e),
            E::NoPath | E::ManyPaths { .. } => Failure::usage(
                error.to_string(),
                error.hint().as_ref().map(hints::words).unwrap_or_default(),
            ),
            other => Failure::Reading(Box::new(other)),
        }
    }
}

impl From<upright_job::Error> for Failure {
    fn from(error: upright_job::Error) -> Self {
        use upright_job::Error as E;
        match error {
            E::Data(e) => e.into(),
            E::Library(e) => Failure::Library(e),
            other => Failure::Job(Box::new(other)),
        }
    }
}

impl Failure {
    /// An unusable data file.
    pub fn data(path: &Path, why: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::Data { path: path.into(), why: why.into(), help: help.into() }
    }

    /// An input/output failure on a path.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Failure::Library(upright::Error::io(path, source))
    }

    /// Arguments that do not go together.
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: help.into() }
    }

    /// A stable code, `area::problem`.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::Library(e) => e.code(),
            Failure::Unwritable { .. } | Failure::Closed => "io",
            Failure::Usage { .. } => "usage",
            Failure::Reading(e) => e.code(),
            Failure::Data { .. } => "data::unreadable",
            Failure::Partial { .. } => "run::partial",
            Failure::Mismatch { .. } => "data::mismatch",
            Failure::Harm { .. } => "gate::harm",
            Failure::Job(e) => e.code(),
            Failure::Stopped { .. } => "run::stopped",
            Failure::Serve(_) => "serve::start",
        }
    }

    /// How to fix it; empty when the message says it all.
    pub fn help(&self) -> String {
        match self {
            Failure::Library(e) => e.hint().as_ref().map(hints::library).unwrap_or_default(),
            Failure::Usage { help, .. }
            | Failure::Mismatch { help, .. }
            | Failure::Data { help, .. }
            | Failure::Partial { help, .. } => help.clone(),
            Failure::Reading(e) => e.hint().as_ref().map(hints::words).unwrap_or_default(),
            Failure::Unwritable { path, source } => match path.parent() {
                Some(folder) if source.kind() == std::io::ErrorKind::NotFound => {
                    format!("make the folder `{}`, or name another file", folder.display())
                }
                _ => "name a file in a folder that you may write to".into(),
            },
            Failure::Harm { allowed, gate, .. } => {
                let other = match gate.as_str() {
                    "max-drop" | "best-mix" => {
                        "lower the gate's limit (`--set gate.drop=0.5`) or give more held-out data"
                    }
                    _ => "use the gate `best-mix`, which keeps a limit",
                };
                format!(
                    "no artifact was written, since more than {allowed:.1} points are lost; {other}, \
                     or allow it with `--accept-harm POINTS`"
                )
            }
            Failure::Job(e) => e.hint().map(hints::job).unwrap_or_default(),
            Failure::Stopped { .. } => "run the same command again to go on".into(),
            Failure::Serve(upright_serve::Error::Bind { .. }) => {
                "choose another `--port` (0 takes a free one) or `--host`".into()
            }
            Failure::Serve(_) | Failure::Closed => String::new(),
        }
    }

    /// The exit code: 2 usage, 3 data, 4 model, 5 artifact, 6 partial; of a stopped job 128 and
    /// the signal, as shells have it. 0 if the reader of standard output left early, as `head`
    /// does.
    pub fn exit(&self) -> u8 {
        use upright::Error as E;
        use upright_job::Error as J;
        match self {
            Failure::Stopped { signal, .. } => 128 + signal,
            Failure::Job(e)
                if matches!(
                    **e,
                    J::NotAJob { .. } | J::Differs { .. } | J::Busy { .. } | J::Setting(_)
                ) =>
            {
                2
            }
            Failure::Library(
                E::UnknownName { .. }
                | E::UnknownSetting { .. }
                | E::BadSetting { .. }
                | E::NoEngine { .. },
            )
            | Failure::Usage { .. }
            | Failure::Serve(_) => 2,
            Failure::Library(
                E::Model { .. }
                | E::OpenInput { .. }
                | E::Operators { .. }
                | E::Engine { .. }
                | E::NoTap { .. }
                | E::ScoreNeeds { .. }
                | E::NanScore { .. }
                | E::Preprocess { .. },
            ) => 4,
            Failure::Library(
                E::ArtifactModel { .. } | E::ArtifactVersion { .. } | E::Artifact { .. },
            ) => 5,
            Failure::Partial { .. } => 6,
            Failure::Closed => 0,
            _ => 3,
        }
    }

    /// Writes it to standard error, for people or as one line of JSON.
    pub fn print(&self, json: bool) {
        if matches!(self, Failure::Closed) {
            return;
        }
        let severity = if matches!(self, Failure::Partial { .. } | Failure::Stopped { .. }) {
            Severity::Warning
        } else {
            Severity::Error
        };
        print(self.code(), severity, self.to_string(), self.help(), json);
    }
}

/// Something worth saying that does not stop the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// A stable code, `area::problem`.
    pub code: &'static str,
    /// Whether results are concerned (a warning) or not (advice).
    pub warning: bool,
    /// What was found.
    pub message: String,
    /// What can be done about it.
    pub help: String,
}

impl From<&upright_data::Note> for Note {
    fn from(note: &upright_data::Note) -> Self {
        hints::note(note)
    }
}

impl Note {
    /// Writes it to standard error, for people or as one line of JSON.
    pub fn print(&self, json: bool) {
        let severity = if self.warning { Severity::Warning } else { Severity::Advice };
        print(self.code, severity, self.message.clone(), self.help.clone(), json);
    }
}

#[derive(Debug)]
struct Rendered {
    code: &'static str,
    severity: Severity,
    message: String,
    help: String,
}

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Rendered {}

impl Diagnostic for Rendered {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.help.is_empty()).then(|| Box::new(&self.help) as _)
    }
}

/// Wide enough that text read by programs is never broken into lines.
const UNBROKEN: usize = 100_000;

fn print(code: &'static str, severity: Severity, message: String, help: String, json: bool) {
    if json {
        let level = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "note",
        };
        eprintln!(
            "{}",
            serde_json::json!({ "level": level, "code": code, "message": message, "help": help })
        );
        return;
    }
    let person = std::io::stderr().is_terminal();
    let theme = if person && std::env::var_os("NO_COLOR").is_none() {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let width = if person { 100 } else { UNBROKEN };
    let rendered = Rendered { code, severity, message, help };
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(theme).with_width(width);
    if handler.render_report(&mut text, &rendered).is_err() {
        text = format!("{}: {}\n{}", rendered.code, rendered.message, rendered.help);
    }
    eprintln!("{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advice is about the gate in use, not to use it.
    #[test]
    fn a_refusal_advises_another_gate_only_where_that_helps() {
        let help = |gate: &str| {
            Failure::Harm { sentence: String::new(), allowed: 1.0, gate: gate.into() }.help()
        };
        assert!(help("best-mix").contains("lower the gate's limit (`--set gate.drop=0.5`)"));
        assert!(!help("best-mix").contains("use the gate"));
        assert!(help("always").contains("use the gate `best-mix`"));
        assert!(help("always").contains("more than 1.0 points are lost"));
    }

    #[test]
    fn every_family_of_errors_has_its_exit_code() {
        let name =
            upright::Error::UnknownName { kind: "score", name: "x".into(), known: String::new() };
        let model = upright::Error::Model { path: "m".into(), why: "x".into() };
        let artifact = upright::Error::Artifact { path: "a".into(), why: "x".into() };
        let io = Failure::io(Path::new("x"), std::io::Error::other("gone"));
        let partial =
            Failure::Partial { failed: 1, total: 2, what: String::new(), help: String::new() };
        let usage = Failure::usage("", "");
        let paths = upright_data::Error::ManyPaths { count: 2 };
        let labels = upright_data::Error::NoLabels { path: "x".into() };
        let failures: [Failure; 8] = [
            name.into(),
            model.into(),
            artifact.into(),
            io,
            partial,
            usage,
            paths.into(),
            labels.into(),
        ];
        assert_eq!(failures.map(|f| f.exit()), [2, 4, 5, 3, 6, 2, 2, 3]);
    }
}
