//! The best accuracy on transformed inputs that costs at most `drop` points of
//! upright accuracy: threshold and acceptance margin are chosen together from
//! searches of the calibration inputs. The loss counts with one standard error on top.

use super::margin::load;
use super::tradeoff::choose;
use super::{Calibration, Gate, Make};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "max-drop",
    about: "best transformed accuracy that costs at most `drop` points of upright accuracy",
    params: &[DROP],
    make: Make { searched: true, fit, load },
};

/// What may be lost.
pub(super) const DROP: Param =
    Param::real("drop", 0.5, 0.0, 100.0, "points of upright accuracy that may be lost");

fn fit(settings: &Settings, calibration: &Calibration) -> Result<Box<dyn Gate>> {
    Ok(Box::new(choose(KIND.name, calibration, 1.0, settings.real("drop"))?))
}
