//! [`Hint`]: what would help against an error, as data.

use std::fmt;

/// What would help against an [`Error`](crate::Error). Front ends put it into their own terms;
/// `Display` words it for a program that uses the library.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Look at the names of a kind of part.
    ListParts {
        /// The kind.
        kind: &'static str,
    },
    /// Export the model with simpler operators.
    SimplerExport,
    /// Choose a search that needs no gradient.
    SearchWithoutGradient,
    /// Choose a tensor to tap, or a score that reads only logits.
    ChooseTap,
    /// Choose another tap, or a score that reads only logits.
    OtherTap,
    /// Tap the model, or choose a score that reads only logits.
    TapModel,
    /// Choose a proposer that learns, or another score.
    NeedsProposer,
    /// Fit again with this model, or give the one the artifact was fitted on.
    MatchArtifact,
    /// Upgrade, or fit again.
    Upgrade,
    /// Fit again: artifacts are not repaired.
    FitAgain,
    /// Give the second model that the artifact was fitted with.
    GiveSecond,
    /// Leave out the second model.
    LeaveOutSecond,
    /// Give an energy network: the one that the artifact was fitted with, if it was.
    GiveExternal,
    /// Leave out the energy network.
    LeaveOutExternal,
    /// Repair or remove what cannot be read, or tolerate more of it.
    Tolerate,
    /// Give more data, or held-out data of its own.
    MoreHeldOut,
    /// Choose a space for this kind of signal, or say what the model takes.
    ChooseSpace {
        /// What the model is taken to take: images, strokes or clouds.
        signals: String,
        /// Spaces that fit.
        fits: &'static [&'static str; 2],
    },
    /// Build with an engine, or choose another.
    BuildEngine {
        /// The engine that is missing.
        engine: &'static str,
        /// One that is there.
        other: &'static str,
    },
    /// Say where the shared library of an engine is, or choose another engine.
    FindEngine {
        /// The environment variable that names the library.
        variable: &'static str,
        /// The library's name and the oldest version that will do.
        library: &'static (&'static str, &'static str),
        /// An engine that is there.
        other: &'static str,
    },
    /// Say how many points an item has.
    SayPoints,
    /// Say what the model takes: strokes or clouds.
    SaySignal,
    /// Say the size the model was trained with.
    SaySize,
    /// Say that images are gray.
    SayGray,
    /// Resize images.
    Resize {
        /// To this height.
        height: usize,
        /// And this width.
        width: usize,
        /// Also spread gray images over three channels.
        rgb: bool,
    },
    /// Resize to what the padding expects.
    ResizeForPad,
    /// Change the steps of the preprocessing, which do not give the size the model takes.
    ChangeSteps {
        /// The height and width that they give.
        gives: (usize, usize),
        /// The steps.
        steps: String,
    },
    /// What this sentence says, which names no option.
    Fix(String),
}

impl From<&str> for Hint {
    fn from(sentence: &str) -> Self {
        Hint::Fix(sentence.into())
    }
}

impl From<String> for Hint {
    fn from(sentence: String) -> Self {
        Hint::Fix(sentence)
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::ListParts { kind } => write!(f, "choose a {kind} of the table"),
            Hint::SimplerExport => write!(
                f,
                "export with opset 17, simplify the model so that these operators disappear, or run \
                 it on another engine: ONNX Runtime knows most"
            ),
            Hint::SearchWithoutGradient => write!(f, "choose a search that needs no gradient"),
            Hint::ChooseTap => {
                write!(f, "tap one of the candidates, or choose a score that reads only logits")
            }
            Hint::OtherTap => {
                write!(f, "choose another tap, or a score that reads only logits such as energy")
            }
            Hint::NeedsProposer => {
                write!(f, "choose the proposer `learned` and give more samples, or another score")
            }
            Hint::TapModel => {
                write!(f, "tap the model, or choose a score that reads only logits such as energy")
            }
            Hint::MatchArtifact => {
                write!(f, "fit again with this model, or give the model the artifact was fitted on")
            }
            Hint::Upgrade => write!(f, "upgrade upright, or fit again"),
            Hint::FitAgain => write!(f, "fit again; artifacts are not repaired"),
            Hint::GiveSecond => write!(f, "give the second model it was fitted with"),
            Hint::LeaveOutSecond => write!(f, "leave out the second model, or fit with it"),
            Hint::GiveExternal => write!(f, "give the energy network beside the model"),
            Hint::LeaveOutExternal => {
                write!(f, "leave out the energy network, or choose the score `external`")
            }
            Hint::Tolerate => write!(f, "repair or remove what cannot be read, or tolerate more"),
            Hint::MoreHeldOut => write!(f, "give more data, or held-out data of its own"),
            Hint::ChooseSpace { signals, fits: [a, b] } => write!(
                f,
                "choose a space for {signals}, such as `{a}` or `{b}`, or say what the model takes"
            ),
            Hint::BuildEngine { engine, other } => {
                write!(f, "build with the feature `{engine}`, or choose the engine `{other}`")
            }
            Hint::FindEngine { variable, library: (name, version), other } => write!(
                f,
                "set {variable} to the shared library of {name} {version} or later, or choose the \
                 engine `{other}`"
            ),
            Hint::SayPoints => write!(f, "say how many points an item has"),
            Hint::SaySignal => write!(f, "say whether it takes strokes or a cloud"),
            Hint::SaySize => write!(f, "say the size it was trained with"),
            Hint::SayGray => write!(f, "set the channels to gray"),
            Hint::Resize { height, width, rgb } => {
                let rgb = if *rgb { " and spread them over three channels" } else { "" };
                write!(f, "resize images to {height}x{width}{rgb}")
            }
            Hint::ResizeForPad => write!(f, "resize to what the padding expects"),
            Hint::ChangeSteps { gives: (height, width), steps } => {
                write!(f, "these steps give {height}x{width}: {steps}; change resize, crop or pad")
            }
            Hint::Fix(sentence) => write!(f, "{sentence}"),
        }
    }
}
