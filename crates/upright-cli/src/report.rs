//! What went wrong and what is worth saying, rendered on standard error:
//! [`Failure`] ends a command with an exit code, a [`Note`] does not.

use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::data::Media;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, Severity};

/// `Result` with the command line's [`Failure`].
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command ended without doing all it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library refused.
    #[error(transparent)]
    Library(#[from] upright::Error),
    /// Arguments that do not go together.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// How to fix it.
        help: String,
    },
    /// A folder that should hold one folder a class does not.
    #[error("no class folders in `{}` ({count} {} lie directly in it)", folder.display(), media.plural())]
    NoClasses {
        /// The folder.
        folder: PathBuf,
        /// Items found directly in it.
        count: usize,
        /// What they are.
        media: Media,
    },
    /// Class names and model outputs do not match.
    #[error("{message}")]
    Classes {
        /// Both counts, and the names concerned.
        message: String,
    },
    /// Nothing to read.
    #[error("`{}` holds 0 readable {} ({found})", path.display(), media.plural())]
    Empty {
        /// What was looked for.
        media: Media,
        /// The folder or file.
        path: PathBuf,
        /// What it holds instead, by extension.
        found: String,
    },
    /// Data of another kind than the model takes.
    #[error("the model wants {wants} but `{}` is {gives}", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
        /// What the model takes, with its shape.
        wants: String,
        /// What the file is.
        gives: &'static str,
        /// What the model takes.
        media: Media,
    },
    /// A folder with several splits of which none was chosen.
    #[error("`{}` holds several sets: {found}", folder.display())]
    Splits {
        /// The folder.
        folder: PathBuf,
        /// The sets, comma separated.
        found: String,
    },
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
    /// Whoever reads standard output has gone; nothing is left to do.
    #[error("standard output was closed")]
    Closed,
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
            Failure::Usage { .. } => "usage",
            Failure::NoClasses { .. } => "data::no_classes",
            Failure::Classes { .. } => "data::classes",
            Failure::Empty { .. } => "data::empty",
            Failure::Kind { .. } => "input::shape",
            Failure::Splits { .. } => "data::splits",
            Failure::Data { .. } => "data::unreadable",
            Failure::Partial { .. } => "run::partial",
            Failure::Closed => "io",
        }
    }

    /// How to fix it; empty when the message says it all.
    pub fn help(&self) -> String {
        match self {
            Failure::Library(e) => e.help(),
            Failure::Usage { help, .. }
            | Failure::Data { help, .. }
            | Failure::Partial { help, .. } => help.clone(),
            Failure::NoClasses { folder, media, .. } => format!(
                "expected `{}/<class>/*.{}`; for unlabelled data use `predict`; for a list give a \
                 CSV file with the columns path,label",
                folder.display(),
                media.usual()
            ),
            Failure::Classes { .. } => "give `--classes classes.txt` (order of model outputs) or \
                 `--allow-missing-classes`"
                .into(),
            Failure::Empty { found, media, .. } => {
                let heic = if found.contains(".heic") { "; convert HEIC first" } else { "" };
                format!("supported: {}{heic}", media.supported())
            }
            Failure::Kind { media, .. } => {
                format!("give {}, or pass a model of another kind", media.supported())
            }
            Failure::Splits { .. } => "choose one with `--split train|val|test`".into(),
            Failure::Closed => String::new(),
        }
    }

    /// The exit code: 2 usage, 3 data, 4 model, 5 artifact, 6 partial. 0 if the
    /// reader of standard output left early, as `head` does.
    pub fn exit(&self) -> u8 {
        use upright::Error as E;
        match self {
            Failure::Library(
                E::UnknownName { .. }
                | E::UnknownSetting { .. }
                | E::BadSetting { .. }
                | E::NoEngine { .. },
            )
            | Failure::Usage { .. } => 2,
            Failure::Library(
                E::Model { .. }
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
        let severity = if matches!(self, Failure::Partial { .. }) {
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

    #[test]
    fn every_family_of_errors_has_its_exit_code() {
        let name =
            upright::Error::UnknownName { kind: "score", name: "x".into(), known: String::new() };
        let model = upright::Error::Model { path: "m".into(), why: "x".into() };
        let artifact = upright::Error::Artifact { path: "a".into(), why: "x".into() };
        let io = Failure::io(Path::new("x"), std::io::Error::other("gone"));
        let partial =
            Failure::Partial { failed: 1, total: 2, what: String::new(), help: String::new() };
        let codes: Vec<u8> =
            [name.into(), model.into(), artifact.into(), io, partial, Failure::usage("", "")]
                .iter()
                .map(Failure::exit)
                .collect();
        assert_eq!(codes, [2, 4, 5, 3, 6, 2]);
    }

    #[test]
    fn heic_is_mentioned_only_where_there_is_heic() {
        let found = |found: &str| Failure::Empty {
            path: "p".into(),
            found: found.into(),
            media: Media::Pictures,
        };
        assert!(found("35 .heic, 2 .txt").help().contains("HEIC"));
        assert!(!found("2 .txt").help().contains("HEIC"));
    }
}
