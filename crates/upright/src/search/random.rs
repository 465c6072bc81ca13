//! Random search: well-spread poses over the whole domain, all at once.
//!
//! The points are those of [`super::sobol`], shifted for each input by its
//! content (the paper's RS, with a reproducible design).

use super::design::sobol;
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;

const NONE: &[Param] = &[];

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "random",
    about: "scrambled Sobol poses over the whole domain, shifted by the input's content",
    params: NONE,
    make: Make { gradient: false, build },
};

#[derive(Debug)]
struct Random;

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(_: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Random))
}

struct Sampling<'a> {
    space: &'a Space,
    seed: u64,
    next: usize,
    end: usize,
}

impl Search for Random {
    fn start<'a>(&'a self, brief: &Brief<'a>) -> Box<dyn Run + 'a> {
        Box::new(Sampling {
            space: brief.space,
            seed: brief.seed,
            next: 0,
            end: brief.budget.min(1 << 16),
        })
    }
}

impl Run for Sampling<'_> {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        let end = self.end.min(self.next + room);
        let points = self.next..end;
        self.next = end;
        points
            .map(|i| self.space.draw(&sobol(i as u32, self.space.cube(), self.seed)))
            .map(Ask::plain)
            .collect()
    }

    fn tell(&mut self, _: &[Seen]) {}
}
