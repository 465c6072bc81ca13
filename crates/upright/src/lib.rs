//! upright makes a pretrained classifier robust to rotation, scale and shear
//! at test time, without retraining it.
//!
//! A frozen classifier knows its inputs as they were in training. Turn one, and
//! it looks unfamiliar inside the network. upright measures that with an
//! *energy* (lower = more familiar). An input with a low energy passes through
//! untouched, at the cost of one forward pass. For any other, upright searches
//! for the *view* (the input under some rotation, scale and shear) that looks
//! most familiar, and lets the classifier answer for that view.
//!
//! # Fit and predict
//!
//! A fit needs the model, an ONNX file, and labelled upright samples: the
//! *bank* of what is familiar. Some of them are held out, to calibrate the
//! *gate*, which decides what is searched and which views are believed, and to
//! prove the result.
//!
//! Samples are plain `f32` arrays, one item after the other: an image channel by
//! channel and row by row, with values in 0..1; strokes as rows (x, y, pen); a
//! point cloud as rows (x, y, z). Means and deviations are left to the model:
//! they come from its file, from `MODEL.toml` beside it or from
//! [`ModelOptions::preprocess`]. A label is a `u32`, the position of its class
//! among the logits. The default gate calibrates on a tenth of the samples
//! and needs at least 19 there: bring 200 or more.
//!
//! ```
//! use upright::{Batch, Config, FitData, Model, ModelOptions, Samples, Signal, Silent, samples};
//!
//! # fn main() -> upright::Result<()> {
//! // Any arrays will do; these hold digits of 40 x 40 pixels with values in 0..1.
//! let digits = samples::digits(200, 1)?;
//! let (pixels, labels) = (digits.batch().data(), digits.labels().unwrap().to_vec());
//!
//! let batch = Batch::borrowed(Signal::image(1, 40, 40), pixels)?;
//! let data = Samples::labelled(batch, labels)?;
//! let model = Model::from_bytes("digits", samples::glyph_model(), &ModelOptions::default())?;
//! let config = Config { budget: 10, calibration: 40, ..Config::default() };
//! let canonicalizer = config.fit(model, &FitData::new(&data), &mut Silent)?;
//!
//! // Whether it is worth using, and why, on samples that were held out.
//! println!("{}", canonicalizer.report().advice().1);
//! for answer in canonicalizer.predict(samples::digits(3, 7)?.batch())? {
//!     let class = canonicalizer.model().class_name(answer.label);
//!     println!("{class} {:?} after {} views", answer.verdict, answer.evaluations);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Model::load`] reads a file. The default [`Config`] undoes rotations, shears
//! and scalings of images and strokes; [`Config::of_signal`] suits clouds, too.
//! [`Silent`] stands where a [`Watch`] could show progress. A [`Canonicalizer`] is
//! a cheap handle: clone it into as many threads as you like. [`Prediction::map`] tells where each point
//! of the view lies in the input. Data that do not fit into memory implement
//! [`Dataset`]; the crate `upright-data` does so for folders and files.
//!
//! # Save and load
//!
//! An artifact holds everything but the model. It refuses any other model than
//! its own, and notices damage.
//!
//! ```
//! use upright::{Artifact, Config, FitData, Model, Silent, samples};
//!
//! # fn main() -> upright::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("digits.upright");
//! # let model = Model::from_bytes("digits", samples::glyph_model(), &Default::default())?;
//! # let config = Config { budget: 10, calibration: 40, ..Config::default() };
//! # let fitted = config.fit(model, &FitData::new(&samples::digits(200, 1)?), &mut Silent)?;
//! fitted.save(&path)?;
//!
//! let artifact = Artifact::read(&path)?;
//! let options = artifact.manifest.options.clone();
//! let model = Model::from_bytes("digits", samples::glyph_model(), &options)?;
//! let loaded = artifact.join(model)?;
//!
//! let digits = samples::digits(3, 7)?;
//! assert_eq!(loaded.predict(digits.batch())?, fitted.predict(digits.batch())?);
//! # Ok(())
//! # }
//! ```
//!
//! # Choose the parts
//!
//! What happens is up to seven parts, one per [`Role`]: the *score* computes
//! energies, the *proposer* names poses worth a look, the *search* chooses the
//! views, the *readout* makes one answer of them, the *gate* decides which
//! inputs to search and which views to believe, *abstain* withholds doubtful answers, and the
//! *router* may send unfamiliar inputs to a second model. Each has a module
//! with a table of rows, and a [`Part`] is the name of a row with its settings.
//!
//! ```
//! use upright::{Config, Part, Role, SpaceConfig};
//!
//! # fn main() -> upright::Result<()> {
//! for row in Role::Score.rows() {
//!     println!("{}: {}", row.name, row.about);
//! }
//! let config = Config { space: SpaceConfig::parse("rotate")?, ..Config::default() }
//!     .with(Role::Score, Part::new("knn").number("k", 3.0))
//!     .with(Role::Gate, Part::new("always"));
//! config.check()?;
//! # Ok(())
//! # }
//! ```
//!
//! # A score of your own
//!
//! A row is a name, its settings and how to make the part; once added it is
//! known like the others, in configs and in artifacts. [`search::add`],
//! [`proposer::add`], [`gate::add`], [`readout::add`] and [`axes::add`] do the
//! same. This score learns from the bank where each class lies in the space of
//! features: what the model computes at its *taps*, by default what the last layer
//! reads.
//!
//! ```
//! use upright::score::{self, Make, Needs, Score};
//! use upright::{Config, Cotangents, Kind, Matrix, Outputs, Part, Role, State};
//! # use upright::{FitData, Model, Silent, samples};
//!
//! /// The squared distance to the nearest mean, of which there is one per class.
//! #[derive(Debug)]
//! struct NearestMean(Matrix);
//!
//! impl NearestMean {
//!     /// The distance, and the class of the mean.
//!     fn nearest(&self, x: &[f32]) -> (f32, usize) {
//!         let far = |m: &[f32]| x.iter().zip(m).map(|(x, m)| (x - m).powi(2)).sum::<f32>();
//!         let all = self.0.iter().map(far).zip(0..);
//!         all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f32::NAN, 0))
//!     }
//! }
//!
//! impl Score for NearestMean {
//!     fn energy(&self, outputs: &Outputs) -> Vec<f32> {
//!         outputs.features[0].iter().map(|x| self.nearest(x).0).collect()
//!     }
//!
//!     // The derivative of each energy. Only searches that follow gradients ask for it.
//!     fn pullback(&self, outputs: &Outputs) -> Cotangents {
//!         let mut d = outputs.features[0].clone();
//!         for (i, x) in outputs.features[0].iter().enumerate() {
//!             let mean = self.0.row(self.nearest(x).1);
//!             d.row_mut(i).iter_mut().zip(mean).for_each(|(d, m)| *d = 2.0 * (*d - m));
//!         }
//!         Cotangents { logits: None, features: vec![Some(d)] }
//!     }
//!
//!     // What an artifact stores of it.
//!     fn state(&self) -> State {
//!         State::new().matrix("means", &self.0)
//!     }
//! }
//!
//! static NEAREST_MEAN: Kind<Make> = Kind {
//!     name: "nearest-mean",
//!     about: "squared distance to the nearest class mean",
//!     params: &[],
//!     make: Make {
//!         needs: |_| Needs { features: true, labels: true, ..Needs::default() },
//!         fit: |_, bank| {
//!             let features = &bank.outputs.features[0];
//!             let mut means = Matrix::zeros(bank.outputs.logits.cols(), features.cols());
//!             for (x, &class) in features.iter().zip(bank.labels) {
//!                 let count = bank.labels.iter().filter(|&&l| l == class).count() as f32;
//!                 let mean = means.row_mut(class as usize).iter_mut();
//!                 mean.zip(x).for_each(|(m, x)| *m += x / count);
//!             }
//!             Ok(Box::new(NearestMean(means)))
//!         },
//!         load: |_, state| Ok(Box::new(NearestMean(state.read_matrix("means")?))),
//!     },
//! };
//!
//! # fn main() -> upright::Result<()> {
//! score::add(&NEAREST_MEAN)?;
//! let config = Config::default().with(Role::Score, Part::new("nearest-mean"));
//! # let config = Config { budget: 10, calibration: 40, ..config };
//! # let model = Model::from_bytes("digits", samples::glyph_model(), &Default::default())?;
//! # let c = config.fit(model.clone(), &FitData::new(&samples::digits(200, 1)?), &mut Silent)?;
//! # let again = upright::Artifact::from_bytes("a", &c.to_bytes()?)?.join(model)?;
//! # let digits = samples::digits(3, 7)?;
//! # assert_eq!(again.predict(digits.batch())?, c.predict(digits.batch())?);
//! # Ok(())
//! # }
//! ```
//!
//! What can be set on a row are its `params`: `Param::real("scale", 1.0, 0.1, 10.0,
//! "what it does")`, with its default and its range, is set by
//! `Part::new("nearest-mean").number("scale", 2.0)` and read from the first argument
//! of `fit` by `settings.real("scale")`.
//!
//! # A model of your own
//!
//! A classifier need not be an ONNX file: whatever implements
//! [`engine::Engine`] can be one. This one compares pixels with class means.
//!
//! ```
//! use std::sync::Arc;
//! use upright::engine::{Engine, Input, Lane, Value};
//! use upright::{Config, FitData, Model, ModelInfo, Part, Result, Role, Signal, Silent, samples};
//!
//! #[derive(Debug)]
//! struct Means(Vec<Vec<f32>>);
//!
//! impl Engine for Means {
//!     fn name(&self) -> &'static str {
//!         "means"
//!     }
//!
//!     fn lanes(&self) -> usize {
//!         1
//!     }
//!
//!     // The one input is `[N, 1, 40, 40]`; the first and here only output is the logits.
//!     fn run_on(&self, _: Lane, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>> {
//!         let near = |x: &[f32], mean: &[f32]| -> f32 {
//!             -0.1 * x.iter().zip(mean).map(|(a, b)| (a - b).powi(2)).sum::<f32>()
//!         };
//!         let items = inputs[0].data.chunks(1600);
//!         let logits = items.flat_map(|x| self.0.iter().map(move |mean| near(x, mean)));
//!         let shape = vec![inputs[0].shape[0], self.0.len()];
//!         let logits = Value { shape, data: logits.collect::<Vec<_>>().into() };
//!         Ok(vec![logits; wanted.len()])
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let digits = samples::digits(200, 1)?;
//! let mut means = vec![vec![0.0; 1600]; 10];
//! for (i, &class) in digits.labels().unwrap().iter().enumerate() {
//!     let pixels = digits.batch().item(i);
//!     means[class as usize].iter_mut().zip(pixels).for_each(|(m, p)| *m += p / 20.0);
//! }
//! let info = ModelInfo::new("means", Signal::image(1, 40, 40));
//! let model = Model::from_engine(Arc::new(Means(means)), info)?;
//! let config = Config::default().with(Role::Score, Part::new("energy"));
//! # let config = Config { budget: 10, calibration: 40, ..config };
//! let canonicalizer = config.fit(model, &FitData::new(&digits), &mut Silent)?;
//! # canonicalizer.predict(samples::digits(3, 7)?.batch())?;
//! # Ok(())
//! # }
//! ```
//!
//! More programs are in the repository's `examples` folders.
#![forbid(unsafe_code)]

mod abstain;
mod artifact;
pub mod axes;
mod canonicalizer;
mod config;
mod copies;
mod dataset;
pub mod engine;
mod error;
pub mod gate;
mod hint;
mod linalg;
mod map;
mod model;
mod onnx;
mod outputs;
mod pack;
mod parallel;
mod preprocess;
pub mod proposer;
pub mod readout;
mod reduce;
mod registry;
mod ridge;
mod role;
mod rotation;
mod router;
pub mod samples;
pub mod score;
pub mod search;
mod seed;
mod space;
mod state;
mod stats;
mod tensor;
mod trace;
mod tune;
mod warp;

pub use artifact::{Artifact, Manifest};
pub use canonicalizer::{
    Accuracy, Advice, Canonicalizer, Ceiling, Config, FitData, FitReport, Orbit, PRESETS,
    Prediction, Preset, Silent, Transforms, TuneConfig, TuneReport, TuneWatch, Verdict, Watch,
};
pub use config::{Domain, Param, Part, Settings, Value};
pub use dataset::{Dataset, Loaded, Samples};
pub use error::{Error, Result};
pub use hint::Hint;
pub use map::Map;
pub use model::{Model, ModelInfo, Options as ModelOptions, Tap, Tapped};
pub use outputs::{Cotangents, Head, Outputs};
pub use preprocess::{Overrides, Picture};
pub use reduce::Reduce;
pub use registry::{Kind, Row};
pub use role::{Parts, Role};
pub use router::Models;
pub use space::{AxisConfig, Space, SpaceConfig};
pub use state::State;
pub use stats::{Paired, Share};
pub use tensor::{Batch, Matrix, Signal, SignalKind};
pub use trace::{Proposed, Trace};
pub use warp::{Kernel, Padding, Resample, View, warp};

/// What the other crates of the workspace and the tests use beside the public face. It may
/// change with any version.
#[doc(hidden)]
pub mod internal {
    macro_rules! open {
        ($($module:ident)*) => { $(pub mod $module { pub use crate::$module::*; })* };
    }
    open! {
        abstain artifact canonicalizer config dataset model onnx preprocess reduce registry router
        seed space state stats tensor tune warp
    }
    pub mod engine {
        pub use crate::engine::guard::inside;
    }
    pub mod gate {
        pub use crate::gate::tradeoff::{Point, curve};
    }
    pub mod samples {
        pub use crate::samples::glyphs::{Glyph, NAMES, SIZE, draw, render};
        pub use crate::samples::solids::{CLOUD_POINTS, SOLID_NAMES, solid};
        pub use crate::samples::strokes::{STROKE_LENGTH, sequence};
    }
}

/// The README's Rust example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
