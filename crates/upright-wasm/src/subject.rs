//! What the page has a tab for: a classifier and what it can be shown.

use upright::internal::samples::{NAMES, SOLID_NAMES};
use upright::{Artifact, Canonicalizer, Error, Model, Result, Samples, samples};

/// What is classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Digits as images.
    Digits,
    /// Digits as the path of a pen.
    Strokes,
    /// Furniture and goods as point clouds.
    Solids,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Subject; 3] = [Subject::Digits, Subject::Strokes, Subject::Solids];

    /// Its name, which is that of its artifact.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Digits => "digits",
            Subject::Strokes => "strokes",
            Subject::Solids => "solids",
        }
    }

    /// The subject of a name.
    pub fn parse(name: &str) -> Result<Self> {
        Subject::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| Error::UnknownName {
            kind: "subject",
            name: name.into(),
            known: Subject::ALL.map(Subject::name).join(", "),
        })
    }

    /// The embedded classifier, an ONNX file.
    pub fn model(self) -> &'static [u8] {
        match self {
            Subject::Digits => samples::glyph_model(),
            Subject::Strokes => samples::stroke_model(),
            Subject::Solids => samples::solid_model(),
        }
    }

    /// The classes, in the order of the logits.
    pub fn classes(self) -> &'static [&'static str] {
        match self {
            Subject::Digits | Subject::Strokes => NAMES.split_at(10).0,
            Subject::Solids => SOLID_NAMES,
        }
    }

    /// Upright samples of it.
    pub fn samples(self, count: usize, seed: u64) -> Result<Samples<'static>> {
        match self {
            Subject::Digits => samples::digits(count, seed),
            Subject::Strokes => samples::strokes(count, seed),
            Subject::Solids => samples::solids(count, seed),
        }
    }

    /// Its classifier joined with the bytes of an artifact.
    pub fn canonicalizer(self, artifact: &[u8]) -> Result<Canonicalizer> {
        let artifact = Artifact::from_bytes(self.name(), artifact)?;
        let model = Model::from_bytes(self.name(), self.model(), &artifact.manifest.options)?;
        artifact.join(model)
    }
}
