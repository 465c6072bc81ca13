//! The best accuracy on traffic of which a given share is transformed:
//! threshold and acceptance margin are chosen together from searches of the
//! calibration inputs, and may cost at most `drop` points of upright accuracy
//! ([`super::risk`]).

use super::choose::choose;
use super::margin::load;
use super::risk::{CONFIDENCE, DROP, Limit};
use super::{Calibration, Gate, Make};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "best-mix",
    about: "best accuracy when a share `transformed` of the inputs is transformed",
    params: &[
        Param::real("transformed", 0.5, 0.0, 1.0, "share of inputs that come transformed"),
        DROP,
        CONFIDENCE,
    ],
    make: Make { searched: true, fit, load },
};

fn fit(settings: &Settings, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    let (share, limit) = (settings.real("transformed"), Limit::of(settings));
    Ok(Box::new(choose(KIND.name, calibration, share, limit)?))
}
