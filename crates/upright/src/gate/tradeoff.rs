//! What each threshold would have done to the calibration inputs, worked out
//! from one search of each: no further model evaluation is needed.

use serde::{Deserialize, Serialize};

use super::margin::Scale;
use super::{Calibration, Case, Gate, Look};
use crate::stats::Share;

/// One threshold and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Inputs with a higher energy are searched; infinite at the `never` end, which JSON
    /// writes as null.
    pub tau: f32,
    /// Right answers on upright inputs.
    pub upright: Share,
    /// Right answers on transformed inputs.
    pub transformed: Share,
    /// Upright inputs searched.
    pub upright_searched: Share,
    /// Transformed inputs searched.
    pub transformed_searched: Share,
    /// Upright inputs that the search turned from right to wrong.
    pub harmed: usize,
    /// Upright inputs that the search turned from wrong to right.
    pub mended: usize,
}

impl Point {
    /// What of the upright accuracy is lost, in points.
    fn drop(&self) -> f64 {
        let net = self.harmed as f64 - self.mended as f64;
        100.0 * net / self.upright.of.max(1) as f64
    }

    /// The same with one standard error on top: the flips are counts, so the net loss has
    /// the variance of their sum.
    pub(super) fn cautious_drop(&self) -> f64 {
        let flips = (self.harmed + self.mended) as f64;
        self.drop() + 100.0 * flips.sqrt() / self.upright.of.max(1) as f64
    }

    /// Accuracy in percent on traffic of which `share` is transformed.
    pub(super) fn mixed(&self, share: f64) -> f64 {
        share * self.transformed.percent() + (1.0 - share) * self.upright.percent()
    }
}

/// One calibration input and what the gate would make of it.
struct Flip {
    energy: f32,
    upright: bool,
    kept: bool,
    searched: bool,
}

/// Every threshold of interest, from `never` to `always`, with views believed where a fitted
/// gate believes them: only its threshold moves. Inputs without a label or without a search are
/// left out.
pub fn curve(gate: &dyn Gate, cases: &Calibration) -> Vec<Point> {
    sweep(cases, |raw, _| raw.energy, |raw, best| gate.accept(raw, best))
}

/// Every threshold of a number of raw and best: above it, views are believed where `accept`
/// says so.
pub(super) fn sweep(
    calibration: &Calibration,
    number: impl Fn(Look, Look) -> f32,
    accept: impl Fn(Look, Look) -> bool,
) -> Vec<Point> {
    let flip = |upright: bool, case: &Case| {
        let (truth, best) = (case.truth?, case.best?);
        let raw = case.raw;
        let after = if accept(raw, best) { best.label } else { raw.label } == truth;
        let energy = number(raw, best);
        Some(Flip { energy, upright, kept: raw.label == truth, searched: after })
    };
    let mut flips: Vec<Flip> = calibration.upright.iter().filter_map(|c| flip(true, c)).collect();
    flips.extend(calibration.transformed.iter().filter_map(|c| flip(false, c)));
    let start =
        |upright: bool| Share::count(flips.iter().filter(|f| f.upright == upright).map(|f| f.kept));
    let mut point = Point {
        tau: f32::INFINITY,
        upright: start(true),
        transformed: start(false),
        upright_searched: Share { hits: 0, of: start(true).of },
        transformed_searched: Share { hits: 0, of: start(false).of },
        harmed: 0,
        mended: 0,
    };
    flips.retain(|f| !f.energy.is_nan());
    flips.sort_by(|a, b| b.energy.total_cmp(&a.energy));
    let mut points = vec![point];
    for (i, f) in flips.iter().enumerate() {
        let (right, searched) = if f.upright {
            (&mut point.upright, &mut point.upright_searched)
        } else {
            (&mut point.transformed, &mut point.transformed_searched)
        };
        right.hits = right.hits + usize::from(f.searched) - usize::from(f.kept);
        searched.hits += 1;
        if f.upright {
            point.harmed += usize::from(f.kept && !f.searched);
            point.mended += usize::from(!f.kept && f.searched);
        }
        let next = flips.get(i + 1).map_or(f32::NEG_INFINITY, |g| g.energy);
        if next < f.energy {
            point.tau = next;
            points.push(point);
        }
    }
    points
}

/// What comes of thresholds of the search where views are believed that clear a scale.
pub(super) fn thresholds(cases: &Calibration, scale: &Scale) -> Vec<Point> {
    sweep(cases, |raw, _| raw.energy, |raw, best| scale.clear(raw.energy, best.energy))
}

/// The margins that are tried.
const MARGINS: [f32; 12] = [0.0, 0.02, 0.05, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6];
/// Accuracy in percent, at a share of transformed inputs, behind the best threshold and
/// margin that cost at most `drop` points of upright accuracy, on the calibration inputs
/// themselves and without caution: what a part could reach, to compare parts.
pub(crate) fn potential(calibration: &Calibration, share: f64, drop: f64) -> f64 {
    best(calibration, share, |p| p.drop() <= drop).value
}

/// What the best threshold and margin reach.
pub(super) struct Best {
    pub(super) value: f64,
    searched: usize,
    pub(super) margin: f32,
}

/// The threshold and margin with the best accuracy at a share of transformed inputs among those
/// that are allowed. Of equals, the largest margin, which holds best on new inputs, then the one
/// that searches least.
pub(super) fn best(
    calibration: &Calibration,
    share: f64,
    allowed: impl Fn(&Point) -> bool,
) -> Best {
    let scale = Scale::new(0.0, calibration);
    let mut best = Best { value: f64::NEG_INFINITY, searched: 0, margin: 0.0 };
    for &margin in MARGINS.iter().rev() {
        let trial = scale.with(margin);
        for p in thresholds(calibration, &trial) {
            if p.tau < f32::INFINITY && !allowed(&p) {
                continue;
            }
            let searched = p.upright_searched.hits + p.transformed_searched.hits;
            let value = p.mixed(share);
            let equal = (value - best.value).abs() <= 1e-9 && margin >= best.margin;
            if value > best.value + 1e-9 || equal && searched < best.searched {
                best = Best { value, searched, margin };
            }
        }
    }
    best
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::gate::Look;

    pub(in crate::gate) fn case(raw: f32, best: f32, labels: (u32, u32), truth: u32) -> Case {
        let look = |energy, label| Look { energy, label };
        Case { raw: look(raw, labels.0), best: Some(look(best, labels.1)), truth: Some(truth) }
    }

    /// Upright: energies 1 and 2, both right; the search would spoil the second. Transformed:
    /// 3 (wrong, mended) and 1.5 (right, kept right).
    pub(in crate::gate) fn cases() -> (Vec<Case>, Vec<Case>) {
        (
            vec![case(1.0, 0.5, (7, 7), 7), case(2.0, 0.5, (7, 8), 7)],
            vec![case(3.0, 0.5, (8, 7), 7), case(1.5, 0.5, (7, 7), 7)],
        )
    }

    #[test]
    fn the_curve_walks_from_never_to_always() {
        let (upright, transformed) = cases();
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        let always = crate::gate::fit(&crate::config::Part::new("always"), &calibration).unwrap();
        let points = curve(always.as_ref(), &calibration);
        let seen: Vec<(f32, usize, usize, usize)> =
            points.iter().map(|p| (p.tau, p.upright.hits, p.transformed.hits, p.harmed)).collect();
        let low = f32::NEG_INFINITY;
        assert_eq!(
            seen,
            [
                (f32::INFINITY, 2, 1, 0),
                (2.0, 2, 2, 0),
                (1.5, 1, 2, 1),
                (1.0, 1, 2, 1),
                (low, 1, 2, 1)
            ]
        );
    }

    #[test]
    fn the_curve_follows_what_the_gate_believes() {
        let (upright, transformed) = cases();
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        let strict = crate::gate::margin::Margin::new(0.0, Scale::new(1.0, &calibration));
        assert!(curve(&strict, &calibration).iter().all(|p| p.harmed == 0));
    }

    /// The mended input clears every margin that is tried, and no margin changes another.
    #[test]
    fn of_equal_choices_the_widest_margin_is_taken() {
        let upright = [case(1.0, 0.5, (7, 7), 7), case(2.0, 0.5, (7, 7), 7)];
        let transformed = [case(3.0, 0.5, (8, 7), 7)];
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        let chosen = best(&calibration, 0.5, |_| true);
        assert!((chosen.margin - 0.6).abs() < 1e-6, "{}", chosen.margin);
    }
}
