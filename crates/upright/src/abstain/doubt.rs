//! A searched input goes unanswered when no view of it looks familiar, or when
//! a view of another class looks nearly as familiar as the answer.
//!
//! Both limits are quantiles over calibration searches that were answered
//! right: at most a share `withheld` of right answers is given up (with the
//! finite-sample correction of split-conformal prediction), half of it by each.

use super::{Abstain, Doubt, Make};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::registry::Kind;
use crate::state::{State, damaged};

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "doubt",
    about: "withhold answers that look unfamiliar or have a close rival",
    params: &[Param::real(
        "withheld",
        0.05,
        0.0,
        1.0,
        "largest share of right answers that is withheld from searched inputs",
    )],
    make: Make { searched: true, fit, load },
};

/// An energy above which, and a gap below which, an answer is withheld.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limits {
    familiar: f32,
    gap: f32,
}

/// With too few right answers nothing is withheld.
fn limits(withheld: f64, right: &[Doubt]) -> Limits {
    let limit = |mut values: Vec<f32>| {
        values.sort_by(f32::total_cmp);
        let rank = ((values.len() + 1) as f64 * (1.0 - withheld / 2.0) - 1e-9).ceil() as usize;
        values.get(rank.max(1) - 1).copied().unwrap_or(f32::INFINITY)
    };
    Limits {
        familiar: limit(right.iter().map(|d| d.energy).collect()),
        gap: -limit(right.iter().map(|d| -d.gap).collect()),
    }
}

fn fit(settings: &Settings, right: &[Doubt]) -> Box<dyn Abstain> {
    Box::new(limits(settings.real("withheld"), right))
}

fn load(_: &Settings, state: &State) -> Result<Box<dyn Abstain>> {
    match state.read_f32("limits")?[..] {
        [familiar, gap] => Ok(Box::new(Limits { familiar, gap })),
        _ => Err(damaged("tensor `limits` does not hold two numbers".into())),
    }
}

impl Abstain for Limits {
    fn holds(&self, doubt: &Doubt) -> bool {
        doubt.energy.is_nan() || doubt.energy > self.familiar || doubt.gap < self.gap
    }

    fn state(&self) -> State {
        State::new().f32("limits", &[self.familiar, self.gap])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubt(energy: u8, gap: u8) -> Doubt {
        Doubt { energy: energy.into(), gap: gap.into(), rival: None }
    }

    /// 19 right answers with energies 1..=19 and gaps 19..=1, 20 % withheld: the limits are
    /// the ceil(20 * 0.9) = 18th of each, energy 18 and gap 2.
    #[test]
    fn the_limits_withhold_the_asked_share_of_right_answers() {
        let right: Vec<Doubt> = (1..=19).map(|i| doubt(i, 20 - i)).collect();
        let abstain = limits(0.2, &right);
        assert!(!abstain.holds(&doubt(18, 2)));
        assert!(abstain.holds(&doubt(19, 9)) && abstain.holds(&doubt(1, 1)));
        assert!(!limits(0.01, &right).holds(&doubt(200, 0)));
    }
}
