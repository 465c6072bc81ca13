//! Tuning: choosing settings by trying them on transformed validation data.
//!
//! - [`knobs`]: what may be turned, as ranges with conditions.
//! - [`trial`]: one point tried, and what came of it.
//! - [`tpe`]: proposes the next point from the trials so far.
//! - [`study`]: runs trials, prunes hopeless ones, and resumes from a log.
//! - [`stages`]: the two-stage protocol.
//!
//! Nothing here knows what a point means: values come from a
//! [`stages::Objective`], and are **maximised**.

pub mod knobs;
mod log;
mod parzen;
pub mod stages;
pub mod study;
pub mod tpe;
pub mod trial;

pub use knobs::{Knob, Knobs, Point, Range, When};
pub use stages::{Objective, Progress, Protocol, Subset, Tuned};
pub use study::{Pruner, Report, Setup, Study};
pub use tpe::Tpe;
pub use trial::{Outcome, Series, Trial};
