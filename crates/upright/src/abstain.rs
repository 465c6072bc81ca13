//! Abstaining: a searched input goes unanswered when no view of it looks
//! familiar, or when a view of another class looks nearly as familiar as the
//! answer.
//!
//! Both limits are quantiles over calibration searches that were answered
//! right: at most a share `withheld` of right answers is given up (with the
//! finite-sample correction of split-conformal prediction), half of it by each.

use crate::error::Result;
use crate::state::{State, damaged};
use crate::trace::Trace;

/// How sure the answer of a search is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Doubt {
    /// Energy of the view that answers.
    pub energy: f32,
    /// How much higher the lowest view of another class is; infinite if there is none.
    pub gap: f32,
    /// The class of that view.
    pub rival: Option<u32>,
}

impl Doubt {
    /// The doubt about an answer of some class and energy, given all that was looked at.
    pub fn of(trace: &Trace, label: u32, energy: f32) -> Self {
        let rival = std::iter::once(&trace.raw)
            .chain(&trace.seen)
            .filter(|s| s.label != label && !s.energy.is_nan())
            .min_by(|a, b| a.energy.total_cmp(&b.energy));
        Doubt {
            energy,
            gap: rival.map_or(f32::INFINITY, |r| r.energy - energy),
            rival: rival.map(|r| r.label),
        }
    }
}

/// When to leave an input unanswered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Abstain {
    familiar: f32,
    gap: f32,
}

impl Abstain {
    /// Limits that withhold at most a share of right answers, from the doubts about right
    /// answers. With too few of them nothing is withheld.
    pub fn fit(withheld: f64, right: &[Doubt]) -> Self {
        let limit = |mut values: Vec<f32>| {
            values.sort_by(f32::total_cmp);
            let rank = ((values.len() + 1) as f64 * (1.0 - withheld / 2.0) - 1e-9).ceil() as usize;
            values.get(rank.max(1) - 1).copied().unwrap_or(f32::INFINITY)
        };
        Abstain {
            familiar: limit(right.iter().map(|d| d.energy).collect()),
            gap: -limit(right.iter().map(|d| -d.gap).collect()),
        }
    }

    /// Whether an answer is too doubtful.
    pub fn holds(&self, doubt: &Doubt) -> bool {
        doubt.energy.is_nan() || doubt.energy > self.familiar || doubt.gap < self.gap
    }

    /// What to store.
    pub fn state(&self) -> State {
        State::new().f32("limits", &[self.familiar, self.gap])
    }

    /// Restores what [`Abstain::state`] stored.
    pub fn load(state: &State) -> Result<Self> {
        match state.read_f32("limits")?[..] {
            [familiar, gap] => Ok(Abstain { familiar, gap }),
            _ => Err(damaged("tensor `limits` does not hold two numbers".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Seen;

    fn doubt(energy: u8, gap: u8) -> Doubt {
        Doubt { energy: energy.into(), gap: gap.into(), rival: None }
    }

    /// 19 right answers with energies 1..=19 and gaps 19..=1, 20 % withheld: the limits are
    /// the ceil(20 * 0.9) = 18th of each, energy 18 and gap 2.
    #[test]
    fn the_limits_withhold_the_asked_share_of_right_answers() {
        let right: Vec<Doubt> = (1..=19).map(|i| doubt(i, 20 - i)).collect();
        let abstain = Abstain::fit(0.2, &right);
        assert!(!abstain.holds(&doubt(18, 2)));
        assert!(abstain.holds(&doubt(19, 9)) && abstain.holds(&doubt(1, 1)));
        assert_eq!(Abstain::load(&abstain.state()).unwrap(), abstain);
        let few = Abstain::fit(0.01, &right);
        assert!(!few.holds(&doubt(200, 0)));
    }

    #[test]
    fn the_rival_is_the_lowest_view_of_another_class() {
        let seen = |energy, label| Seen { pose: vec![], energy, label, gradient: None };
        let mut trace = Trace::new(seen(4.0, 1), vec![]);
        trace.seen = vec![seen(1.0, 0), seen(2.0, 0), seen(3.0, 2), seen(f32::NAN, 3)];
        let doubt = Doubt::of(&trace, 0, 1.0);
        assert_eq!(doubt.rival, Some(2));
        assert!((doubt.gap - 2.0).abs() < 1e-6);
    }
}
