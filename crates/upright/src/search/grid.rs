//! Grid search: equally spaced poses with a random offset.
//!
//! Each axis gets the same number of steps, as many as the budget allows for
//! the full product; what is left refines the first axis. Discrete axes take
//! all their values. The offset, one per axis, comes from the input's content.
//! On one axis this is the paper's lattice for SI-Score.

use super::design::unit;
use super::{Ask, Brief, Make, Run, Search, Seen};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::space::Space;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "grid",
    about: "equally spaced poses with a random offset; best for one or two axes",
    params: &[Param::flag("offset", true, "shift the grid by a random part of a step")],
    make: Make { gradient: false, build },
};

#[derive(Debug)]
struct Grid {
    offset: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn build(settings: &Settings) -> Result<Box<dyn Search>> {
    Ok(Box::new(Grid { offset: settings.flag("offset") }))
}

struct Sweep {
    values: Vec<Vec<Vec<f32>>>,
    next: usize,
    end: usize,
}

impl Search for Grid {
    fn start<'a>(&'a self, brief: &Brief<'a, '_>) -> Box<dyn Run + 'a> {
        let offset = |axis| if self.offset { unit(brief.seed, axis) } else { 0.0 };
        let values: Vec<_> = steps(brief.space, brief.budget)
            .into_iter()
            .zip(brief.space.axes())
            .enumerate()
            .map(|(i, (count, axis))| axis.lattice(count, offset(i as u64)))
            .collect();
        let end = values.iter().map(Vec::len).product::<usize>().min(brief.budget);
        Box::new(Sweep { values, next: 0, end })
    }
}

/// How many steps each axis gets.
fn steps(space: &Space, budget: usize) -> Vec<usize> {
    let fixed: Vec<Option<usize>> =
        space.axes().iter().map(|a| (a.extent() <= 0.0).then(|| a.lattice(1, 0.0).len())).collect();
    let discrete: usize = fixed.iter().flatten().product();
    let free = fixed.iter().filter(|f| f.is_none()).count() as u32;
    let room = budget / discrete.max(1);
    let mut each = 1usize;
    while free > 0 && (each + 1).checked_pow(free).is_some_and(|n| n <= room) {
        each += 1;
    }
    let mut first = each;
    while free > 0 && (first + 1) * each.pow(free - 1) <= room {
        first += 1;
    }
    let mut spare = Some(first);
    fixed.iter().map(|f| f.unwrap_or_else(|| spare.take().unwrap_or(each))).collect()
}

impl Run for Sweep {
    fn ask(&mut self, room: usize) -> Vec<Ask> {
        let end = self.end.min(self.next + room);
        let points = self.next..end;
        self.next = end;
        points
            .map(|mut i| {
                let mut pose = Vec::new();
                for values in &self.values {
                    pose.extend_from_slice(&values[i % values.len()]);
                    i /= values.len();
                }
                Ask::plain(pose)
            })
            .collect()
    }

    fn tell(&mut self, _: &[Seen]) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    #[test]
    fn steps_fill_the_budget_first_axis_first() {
        let space = |t: &str| SpaceConfig::parse(t).unwrap().build().unwrap();
        assert_eq!(steps(&space("rotate"), 17), [17]);
        assert_eq!(steps(&space("rotate,scale"), 60), [8, 7]);
        assert_eq!(steps(&space("affine"), 60), [3, 2, 2, 2, 2]);
        assert_eq!(steps(&space("rotate,flip"), 60), [30, 2]);
        assert_eq!(steps(&space("affine"), 1), [1; 5]);
    }
}
