//! Random search: well-spread poses over the whole domain, all at once (RS).
//!
//! By default the points are those of [`super::sobol`], shifted for each input
//! by its content, so that they do not depend on the batch. The other designs
//! are those the paper compares: a Latin hypercube, a permuted lattice with a
//! random offset, and independent points.
//!
//! `n` poses cost `n`.

use super::design::Design;
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "random",
    about: "scrambled Sobol poses over the whole domain, shifted by the input's content",
    params: &[Param::word("design", Design::WORDS, "how the poses are spread").untuned()],
    make: Make { gradient: false, build },
};

#[derive(Debug)]
struct Random {
    design: Design,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Random { design: Design::parse(settings.word("design")) }))
}

struct Sampling {
    left: Vec<Ask>,
}

impl Search for Random {
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let points = self.design.points(0..brief.budget, brief.space.cube(), brief.seed);
        let left = points.iter().map(|p| Ask::plain(brief.space.draw(p))).collect();
        Box::new(Sampling { left })
    }
}

impl Run for Sampling {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        let rest = self.left.split_off(room.min(self.left.len()));
        std::mem::replace(&mut self.left, rest)
    }

    fn tell(&mut self, _: &[Seen]) {}
}
