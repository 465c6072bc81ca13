//! Shear along x, `[[1, a], [0, 1]]`, and along y, `[[1, 0], [a, 1]]`.
//! A pose is `a`; values reflect at the ends of the domain.

use super::entry::Entry;
use super::{Interval, Make, NONE};
use crate::registry::Kind;

/// The row of the shear along x.
pub(super) const KIND_X: Kind<Make> = Kind {
    name: "shear-x",
    about: "shear along x: x + a y",
    params: NONE,
    make: Make {
        unit: "(slope)",
        domain: (-0.5, 0.5),
        limits: (-10.0, 10.0),
        build: |low, high| Box::new(Entry { domain: Interval::new(low, high), entry: 1 }),
    },
};

/// The row of the shear along y.
pub(super) const KIND_Y: Kind<Make> = Kind {
    name: "shear-y",
    about: "shear along y: y + a x",
    params: NONE,
    make: Make {
        unit: "(slope)",
        domain: (-0.5, 0.5),
        limits: (-10.0, 10.0),
        build: |low, high| Box::new(Entry { domain: Interval::new(low, high), entry: 3 }),
    },
};
