//! What `eval` and `report` share: a fitted model and the labelled data that judge it.

use std::path::PathBuf;

use upright::Canonicalizer;
use upright_data::{Source, Want};

use super::predict::OtherParts;
use super::setup::{SizeArgs, artifact_path, open};
use crate::Common;
use crate::data::DataArgs;
use crate::report::Result;
use crate::study::Inputs;

/// Flags that name them.
#[derive(Debug, clap::Args)]
pub struct JudgedArgs {
    /// The classifier, an ONNX file
    pub model: PathBuf,
    /// Labelled, upright data
    pub data: PathBuf,
    /// Labelled data that are really transformed [default: copies under random poses]
    #[arg(long, value_name = "DATA")]
    pub transformed: Option<PathBuf>,
    /// The artifact [default: the model's name with .upright]
    #[arg(long, short, value_name = "FILE")]
    artifact: Option<PathBuf>,
    #[command(flatten)]
    other: OtherParts,
    #[command(flatten)]
    sizes: SizeArgs,
    #[command(flatten)]
    reading: DataArgs,
}

/// A fitted model and the data that judge it.
pub struct Judged {
    /// The fitted model, with the parts that were asked for.
    pub c: Canonicalizer,
    /// Its artifact.
    pub artifact: PathBuf,
    /// What tells the artifact from others.
    pub digest: String,
    /// Upright data.
    pub upright: Source,
    /// Data that came transformed, if any.
    pub given: Option<Source>,
}

impl JudgedArgs {
    /// Loads and opens what the flags name.
    pub fn open(&self, common: &Common) -> Result<Judged> {
        let artifact = artifact_path(&self.model, self.artifact.as_ref());
        let (c, digest) = self.other.load(&self.model, &artifact, &self.sizes, common)?;
        let read = |path: &PathBuf| {
            open(std::slice::from_ref(path), &self.reading, Want::Labelled, c.model(), common)
        };
        let upright = read(&self.data)?;
        let given = self.transformed.as_ref().map(read).transpose()?;
        Ok(Judged { c, artifact, digest, upright, given })
    }
}

impl Judged {
    /// The data as they are studied: upright, and transformed, by random poses if none were given.
    pub fn inputs(&self, seed: u64) -> [Inputs<'_>; 2] {
        let other = self.given.as_ref().unwrap_or(&self.upright);
        [
            inputs("upright", &self.upright, false, seed),
            inputs("transformed", other, self.given.is_none(), seed),
        ]
    }
}

fn inputs<'a>(kind: &'static str, source: &'a Source, copies: bool, seed: u64) -> Inputs<'a> {
    Inputs { kind, data: source, source: Some(source), copies, seed }
}
