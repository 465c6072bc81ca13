//! Planning a fit: how many views it will look at, how long that takes, and
//! what to cut where it takes too long.

use std::time::Instant;

use super::held::Held;
use super::{Config, space_for};
use crate::copies::{self, transformed_copies};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::gate;
use crate::model::Model;
use crate::proposer;
use crate::role::Role;
use crate::score::{self, Lessons};

/// Views that a lesson takes, and one of large inputs, whose quarter turns are looked at too; with
/// the upright ones that go with it.
const PER_LESSON: usize = 8;
const PER_LARGE: usize = 11;
/// Inputs that are timed.
const TIMED: usize = 8;
/// How often the numbers may be halved, and what they are not cut below.
const HALVINGS: u32 = 4;
const COPIES: usize = 3000;
const LESSONS: usize = 500;
const HELD: usize = 600;
/// Copies of a sample from which on there are many of each.
const SCARCE: usize = 4;

/// What a fit will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// Transformed copies that the proposer learns from.
    pub(super) copies: usize,
    /// Inputs whose views the score learns from.
    pub(super) lessons: usize,
    per_lesson: usize,
    /// Copies that the proposer learns from once more, with the samples that taught the score.
    pub(super) again: usize,
    /// Whether no setting says how many copies and lessons.
    free: [bool; 2],
    /// Bank samples that the score looks at, and all of them.
    bank: usize,
    samples: usize,
    /// Held-out inputs, and the views that each takes.
    pub(super) held: usize,
    per_held: usize,
}

impl Plan {
    /// What a config would do if time did not matter.
    pub(super) fn of(config: &Config, model: &Model, bank: usize, held: &Held) -> Result<Self> {
        let signal = model.signal();
        let asked = score::needs(config.part(Role::Score))?.lessons;
        let lessons = if asked == Lessons::AUTO { Lessons::usual(signal) } else { asked };
        let part = config.part(Role::Proposer);
        let row = proposer::row(&part.name)?;
        let told = match part.resolve(row.params)? {
            settings if row.make.copies => settings.auto("copies").map(|c| c as usize),
            _ => Some(0),
        };
        let copies = told.unwrap_or_else(|| copies::usual(signal));
        let searched = gate::row(&config.part(Role::Gate).name)?.make.searched;
        Ok(Plan {
            copies,
            lessons,
            per_lesson: if signal.large() { PER_LARGE } else { PER_LESSON },
            again: if lessons > 0 { again(copies, bank) } else { 0 },
            free: [told.is_none(), asked == Lessons::AUTO],
            bank: if lessons > 0 { 0 } else { bank },
            samples: bank,
            held: held.upright.len(),
            // All calibrate, and are searched where the gate asks for it; what proves is searched
            // once more as the gate lets it. Early stops save about half of the views.
            per_held: if searched { 3 + 2 * config.budget / 3 } else { 2 + config.budget / 3 },
        })
    }

    /// Network runs.
    fn views(&self) -> usize {
        let held = 2 * self.held * self.per_held;
        self.copies + self.again + self.per_lesson * self.lessons + self.bank + held
    }

    /// Half of what it may choose.
    fn halved(&self, first: &Plan) -> Plan {
        let half = |free: bool, now: usize, first: usize, least: usize| {
            if free { (now / 2).max(least.min(first)) } else { now }
        };
        let copies = half(self.free[0], self.copies, first.copies, COPIES);
        Plan {
            copies,
            again: self.again.min(again(copies, self.samples)),
            lessons: half(self.free[1], self.lessons, first.lessons, LESSONS),
            held: half(true, self.held, first.held, HELD),
            ..*self
        }
    }

    /// The plan that takes at most about so many seconds, by halves.
    fn within(&self, seconds: f64, per_view: f64) -> Plan {
        let mut plan = *self;
        for _ in 0..HALVINGS {
            if plan.views() as f64 * per_view <= seconds {
                break;
            }
            plan = plan.halved(self);
        }
        plan
    }

    fn words(&self) -> String {
        let mut words = Vec::new();
        let views = |n: usize, of: &str| format!("{n} views of {of}");
        if self.copies > 0 {
            words.push(views(self.copies + self.again, "copies"));
        }
        if self.lessons > 0 {
            words.push(views(self.per_lesson * self.lessons, "lessons"));
        }
        if self.bank > 0 {
            words.push(views(self.bank, "the bank"));
        }
        words.push(format!("{} to calibrate and prove", 2 * self.held * self.per_held));
        words.join(", ")
    }
}

/// Copies to learn from once more, of so many samples: where there are many of each, samples
/// are what lacks, and a third of them taught the score instead.
fn again(copies: usize, samples: usize) -> usize {
    if samples > 0 && copies >= SCARCE * samples { copies + copies / 2 } else { 0 }
}

/// Seconds that a view takes, by a few inputs that are read, transformed and run.
pub(super) fn seconds_per_view(
    config: &Config,
    model: &Model,
    data: &dyn Dataset,
    rows: &[usize],
) -> Result<Option<f64>> {
    let space = space_for(config, model)?;
    let mut best = None;
    for _ in 0..2 {
        let start = Instant::now();
        let loaded = data.read(&rows[..TIMED.min(rows.len())])?;
        if loaded.batch.is_empty() {
            return Ok(None);
        }
        let copies = transformed_copies(&loaded.batch, &space, &config.resample, config.seed)?;
        model.run(&copies)?;
        let took = start.elapsed().as_secs_f64() / loaded.batch.len() as f64;
        best = Some(best.map_or(took, |best: f64| best.min(took)));
    }
    Ok(best)
}

/// The plan of a fit that may take so many minutes, what to say of it, and what was cut.
pub(super) fn planned(
    first: Plan,
    minutes: Option<f64>,
    per_view: f64,
) -> (Plan, String, Option<String>) {
    let plan = minutes.map_or(first, |minutes| first.within(60.0 * minutes, per_view));
    let time = |plan: &Plan| match plan.views() as f64 * per_view {
        s if s < 90.0 => format!("{:.0} s", s.max(1.0)),
        s => format!("{:.0} minutes", s / 60.0),
    };
    let over = minutes.filter(|minutes| plan.views() as f64 * per_view > 90.0 * minutes);
    let over = over.map_or(String::new(), |minutes| {
        format!(", more than the {minutes} asked for: less would teach and prove too little")
    });
    let said = format!("{}: about {}{over}", plan.words(), time(&plan));
    let cut = (plan != first).then(|| {
        format!(
            "cut to keep within the time: {} instead of {} (about {})",
            plan.words(),
            first.words(),
            time(&first)
        )
    });
    (plan, said, cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12,000 + 6 * 3,000 + 2 * 1,000 * 7 = 44,000 views; at 20 ms 15 minutes. Halved once:
    /// 6,000 + 9,000 + 2 * 600 * 7 = 23,400, 7.8 minutes.
    #[test]
    fn what_takes_too_long_is_halved_and_said() {
        let first = Plan {
            copies: 12_000,
            lessons: 3000,
            per_lesson: 6,
            again: 0,
            free: [true; 2],
            bank: 0,
            samples: 60_000,
            held: 1000,
            per_held: 7,
        };
        assert_eq!(first.views(), 44_000);
        let (plan, said, cut) = planned(first, Some(10.0), 0.02);
        assert_eq!((plan.copies, plan.lessons, plan.held), (6000, 1500, 600));
        assert!(said.ends_with("8400 to calibrate and prove: about 8 minutes"), "{said}");
        assert!(cut.unwrap().contains("12000 views of copies"));
        let (plan, _, cut) = planned(first, Some(20.0), 0.02);
        assert_eq!((plan, cut), (first, None));
        let (plan, said, _) = planned(first, Some(0.1), 1.0);
        assert!(said.contains(" minutes, more than the 0.1 asked for: "), "{said}");
        assert_eq!((plan.copies, plan.lessons, plan.held), (COPIES, LESSONS, HELD));
        let told = Plan { free: [false, true], ..first };
        assert_eq!((told.halved(&told).copies, told.halved(&told).lessons), (12_000, 1500));
        let few = Plan { copies: 500, lessons: 100, held: 50, ..first };
        assert_eq!(few.halved(&few), few);
        // 12,000 copies of 3,000 samples are four of each, 6,000 are not.
        let scarce = Plan { again: again(12_000, 3000), samples: 3000, ..first };
        assert_eq!((scarce.again, scarce.views()), (18_000, 62_000));
        assert_eq!(scarce.halved(&scarce).again, 0);
    }
}
