//! The tuner: as good as Optuna on small functions, within its space, and
//! resumable to the same end.

#![expect(clippy::unwrap_used, reason = "a broken fixture has to fail the test")]

mod functions;
mod resume;
mod sampler;
mod spaces;
