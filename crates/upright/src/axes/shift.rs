//! Translation along x or y, in units of half the image's longer side.
//! Values reflect at the ends of the domain.

use super::entry::Entry;
use super::{Interval, Make, NONE};
use crate::registry::Kind;

/// The row of the shift along x.
pub(super) const KIND_X: Kind<Make> = Kind {
    name: "shift-x",
    about: "translation along x",
    params: NONE,
    make: Make {
        unit: "(half sides)",
        domain: (-0.25, 0.25),
        limits: (-2.0, 2.0),
        build: |low, high| Box::new(Entry { domain: Interval::new(low, high), entry: 2 }),
    },
};

/// The row of the shift along y.
pub(super) const KIND_Y: Kind<Make> = Kind {
    name: "shift-y",
    about: "translation along y",
    params: NONE,
    make: Make {
        unit: "(half sides)",
        domain: (-0.25, 0.25),
        limits: (-2.0, 2.0),
        build: |low, high| Box::new(Entry { domain: Interval::new(low, high), entry: 5 }),
    },
};
