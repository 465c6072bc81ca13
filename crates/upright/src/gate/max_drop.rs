//! The best accuracy on transformed inputs that costs at most `drop` points of
//! upright accuracy: threshold and acceptance margin are chosen together from
//! searches of the calibration inputs ([`super::risk`]).

use super::choose::choose;
use super::margin::load;
use super::risk::{CONFIDENCE, DROP, Limit};
use super::{Calibration, Gate, Make};
use crate::config::Settings;
use crate::error::Result;
use crate::registry::Kind;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "max-drop",
    about: "best transformed accuracy that costs at most `drop` points of upright accuracy",
    params: &[DROP, CONFIDENCE],
    make: Make { searched: true, fit, load },
};

fn fit(settings: &Settings, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    Ok(Box::new(choose(KIND.name, calibration, 1.0, Limit::of(settings))?))
}
