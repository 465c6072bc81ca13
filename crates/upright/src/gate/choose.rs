//! Choosing threshold and margin: the best accuracy that keeps a limit on what
//! upright inputs lose.

use super::margin::{Margin, Scale};
use super::risk::Limit;
use super::tradeoff::{Best, Point, best, sweep, thresholds};
use super::{Calibration, Case, Look, sorted};
use crate::error::{Error, Result};
use crate::stats::Share;

/// Upright inputs from which on every fourth chooses how improvements are measured.
const MANY: usize = 200;
/// Points of accuracy that may be lost for searching less.
const SAVING: f64 = 0.1;
/// Points of accuracy by which the quantile scale must do better: it is the best of many margins
/// and thresholds on few inputs, so that less may be chance.
const CLEAR: f64 = 1.0;

/// Threshold and margin with the best accuracy at a share of transformed inputs that keep a
/// limit on what upright inputs lose. The `never` end always qualifies.
///
/// Two ways are known: to believe what is lower by a plain difference, on which the limit is
/// tested; or to believe what clears a margin on the quantile scale, and test the limit on the
/// threshold of the search. Which is better, with which threshold or margin, is chosen by inputs
/// that the limit is not tested on; where there are few, all is searched and a plain difference
/// decides.
pub(super) fn choose(
    gate: &str,
    calibration: &Calibration,
    share: f64,
    limit: Limit,
) -> Result<Margin> {
    let usable = |cases: &[Case]| -> Vec<Case> {
        cases.iter().filter(|c| c.truth.is_some() && c.best.is_some()).copied().collect()
    };
    let (upright, transformed) = (usable(calibration.upright), usable(calibration.transformed));
    if upright.is_empty() || transformed.is_empty() {
        return Err(Error::TooFew {
            part: format!("gate `{gate}`"),
            why: format!(
                "{} upright and {} transformed labelled calibration inputs",
                upright.len(),
                transformed.len()
            ),
            hint: Some("give labelled held-out data, or use the gate `conformal`".into()),
        });
    }
    let many = upright.len() >= MANY;
    let part = |chooses: bool| -> Vec<Case> {
        let own = upright.iter().enumerate().filter(|(i, _)| (many && i % 4 == 3) == chooses);
        own.map(|(_, case)| *case).collect()
    };
    let (pilot, tested) = (part(true), part(false));
    let pilot = Calibration { upright: &pilot, transformed: &transformed };
    let tested = Calibration { upright: &tested, transformed: &transformed };
    let n = tested.upright.len();
    let changed = changed(&pilot, share);
    let limit = limit.suited(n, changed);
    let (floor, by_difference) = if many {
        searching(&pilot).map(|tau| (tau, by_difference(&pilot, tau, share, limit.drop))).fold(
            (f32::NEG_INFINITY, f64::NEG_INFINITY),
            |best, next| if next.1 > best.1 { next } else { best },
        )
    } else {
        (f32::NEG_INFINITY, f64::INFINITY)
    };
    let by_margin = many
        .then(|| best(&pilot, share, |p| p.cautious_drop() <= limit.drop))
        .filter(|by_margin| by_margin.value > by_difference + CLEAR);
    let kept = |p: &&Point| p.tau == f32::INFINITY || limit.kept(p.harmed, p.mended, n);
    let (scale, floor, points) = if let Some(Best { margin, .. }) = by_margin {
        let scale = Scale::new(margin, &pilot);
        let points = thresholds(&tested, &scale);
        (scale, f32::NEG_INFINITY, points)
    } else {
        let gains = transformed.iter().filter_map(|c| Some(c.raw.energy - c.best?.energy));
        let points = levels(differences(&tested, floor), gains.collect());
        let chosen = finest(points.iter().take_while(kept), share, 0.0).unwrap_or(&points[0]);
        // What equals the threshold is not above it.
        (Scale::plain(chosen.tau.next_up().max(0.0)), floor, points)
    };
    let energies = transformed.iter().map(|c| c.raw.energy).collect();
    let taus = levels(thresholds(&tested, &scale), energies);
    let above = taus.iter().take_while(kept).take_while(|p| p.tau >= floor);
    let chosen = finest(above, share, SAVING).unwrap_or(&taus[0]);
    let wanted = finest(points.iter(), share, 0.0).unwrap_or(chosen);
    let note = cost((chosen, wanted), limit, changed, n, upright.len());
    Ok(Margin::new(chosen.tau, scale).noting(note))
}

/// The share of upright inputs, 0..1, that may change their class where the accuracy at a share
/// of transformed inputs is best, with a standard error on top; 0 without inputs. Few inputs
/// would otherwise promise more than the gate they stand for can keep.
fn changed(cases: &Calibration, share: f64) -> f64 {
    let of = cases.upright.len();
    let points = differences(cases, f32::NEG_INFINITY);
    let hits = finest(points.iter(), share, 0.0).map_or(0, |p| p.harmed + p.mended);
    if of == 0 { 0.0 } else { Share { hits, of }.cautious() }
}

/// Levels that are tested.
const LEVELS: usize = 64;

/// The points at some levels, which must not depend on the inputs that the limit is tested on:
/// those that transformed inputs reach, spread evenly, and none.
fn levels(points: Vec<Point>, mut reached: Vec<f32>) -> Vec<Point> {
    reached.retain(|v| v.is_finite());
    reached.sort_by(|a, b| b.total_cmp(a));
    let count = reached.len().max(1);
    let at = |i: usize| reached.get((i * count / LEVELS).min(count - 1)).copied();
    let levels: Vec<f32> = (0..=LEVELS).filter_map(at).chain([f32::NEG_INFINITY]).collect();
    let mut all = points.into_iter();
    let mut chosen: Vec<Point> = all.next().into_iter().collect();
    let mut last = chosen.first().copied();
    for level in levels {
        // The first point beyond which what reaches the level is believed.
        while last.is_some_and(|p| p.tau >= level) {
            let Some(next) = all.next() else { break };
            last = Some(next);
        }
        chosen.extend(last.filter(|p| chosen.last() != Some(p)));
    }
    chosen
}

/// Thresholds of the search that are tried: none, and energies that transformed inputs have.
fn searching(cases: &Calibration) -> impl Iterator<Item = f32> {
    let energies = sorted(cases.transformed);
    let at = move |i: usize| energies.get(i * energies.len() / 16).copied();
    std::iter::once(f32::NEG_INFINITY).chain((0..16).filter_map(at))
}

/// What comes of believing views that are lower by more than a difference, from none to all,
/// where inputs above a threshold are searched.
fn differences(cases: &Calibration, tau: f32) -> Vec<Point> {
    let open = move |raw: Look| raw.energy > tau;
    sweep(
        cases,
        |raw, best| if open(raw) { raw.energy - best.energy } else { f32::NEG_INFINITY },
        |raw, best| open(raw) && best.energy < raw.energy,
    )
}

/// Accuracy in percent with the best difference that loses at most `drop` points.
fn by_difference(cases: &Calibration, tau: f32, share: f64, drop: f64) -> f64 {
    let points = differences(cases, tau);
    let kept = points.iter().filter(|p| p.tau == f32::INFINITY || p.cautious_drop() <= drop);
    finest(kept, share, 0.0).map_or(f64::NEG_INFINITY, |p| p.mixed(share))
}

/// Among points from `never` on, the first whose accuracy at a share of transformed inputs is
/// within `saving` points of the best: it searches least.
fn finest<'a>(
    points: impl Iterator<Item = &'a Point> + Clone,
    share: f64,
    saving: f64,
) -> Option<&'a Point> {
    let most = points.clone().map(|p| p.mixed(share)).fold(f64::NEG_INFINITY, f64::max);
    points.into_iter().find(|p| p.mixed(share) >= most - saving - 1e-9)
}

/// What a limit costs, and what would lift it.
fn cost(
    (chosen, wanted): (&Point, &Point),
    limit: Limit,
    changed: f64,
    n: usize,
    all: usize,
) -> Option<String> {
    // Of all upright calibration inputs, only some test the limit.
    let in_all = |tested: usize| (tested as f64 * all as f64 / n as f64).ceil() as usize;
    let lost = wanted.transformed.percent() - chosen.transformed.percent();
    if limit.gives && limit.drop > Limit::USUAL {
        let strict = Limit { drop: Limit::USUAL, gives: false, ..limit };
        let more = strict
            .samples(0.5 * changed, 0.5 * changed)
            .map(|n| format!("; about {} would promise {:.1}", in_all(n), Limit::USUAL))
            .unwrap_or_default();
        return Some(format!(
            "{all} calibration samples promise no less than a limit of {:.1} on the points of \
             upright accuracy that may be lost, with {:.0} % confidence{more}",
            limit.drop,
            100.0 * limit.confidence
        ));
    }
    if lost < 0.5 {
        return None;
    }
    let Limit { drop, confidence, .. } = limit;
    let limit_said = format!(
        "a limit of {drop:.1} on the points of upright accuracy that may be lost, with {:.0} % \
         confidence,",
        100.0 * confidence
    );
    if !limit.kept(0, 0, n) {
        let needed = limit.samples(0.0, 0.0).map_or_else(
            || "no number of samples would do".into(),
            |n| format!("{} would do", in_all(n)),
        );
        return Some(format!(
            "the gate stays closed: {limit_said} cannot be kept with {all} calibration \
             samples; {needed}, or a limit of {:.1}",
            limit.least(n)
        ));
    }
    let [spoilt, mended] = [wanted.harmed, wanted.mended].map(|c| c as f64 / n as f64);
    let lifted = limit.samples(spoilt, mended).map_or_else(
        || {
            format!(
                "more samples would not lift it: without it {:.1} % of upright inputs are spoilt \
                 and {:.1} % mended",
                100.0 * spoilt,
                100.0 * mended
            )
        },
        |n| format!("about {} calibration samples would lift it, there are {all}", in_all(n)),
    );
    Some(format!(
        "{limit_said} costs {lost:.1} points of transformed accuracy ({} instead of {}); {lifted}",
        chosen.transformed, wanted.transformed
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Gate;
    use crate::gate::tradeoff::tests::{case, cases};

    const NONE: Limit = Limit { drop: 100.0, confidence: 0.9, gives: false };

    #[test]
    fn the_choice_mends_what_it_can_without_harm() {
        let (upright, transformed) = cases();
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        let gate = choose("best-mix", &calibration, 0.5, NONE).unwrap();
        assert!((gate.tau() - 2.0).abs() < 1e-6, "{}", gate.tau());
        let none: Vec<Case> = [1.0, 2.0].map(Case::unsearched).into();
        let unlabelled = Calibration { upright: &none, transformed: &none };
        assert!(choose("best-mix", &unlabelled, 0.5, NONE).is_err());
    }

    /// Three of four upright inputs above every transformed one, all spoilt by the search:
    /// whatever is gained costs 75 points and more, so nothing is searched.
    #[test]
    fn where_every_gain_costs_too_much_the_gate_stays_closed() {
        let upright: Vec<Case> =
            (0..4u8).map(|i| case(f32::from(i) + 1.0, 0.0, (1, 2), 1)).collect();
        let transformed = [case(1.5, 0.0, (2, 1), 1)];
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        let limit = Limit { drop: 60.0, confidence: 0.9, gives: false };
        let gate = choose("max-drop", &calibration, 1.0, limit).unwrap();
        assert!(gate.tau().is_infinite() && gate.tau() > 0.0);
        let note = gate.note().unwrap();
        assert!(note.contains("more samples would not lift it"), "{note}");
    }

    /// Of 240 upright inputs, the 60 that choose change nothing; one of the 180 that test is
    /// spoilt. The 1.7 points that none of 180 would promise (0.983^180 = 0.046) have no room for
    /// it, and the gate would close.
    #[test]
    fn a_limit_from_few_inputs_leaves_room_for_chance() {
        let mut upright = vec![case(1.0, 0.5, (7, 7), 7); 240];
        upright[0] = case(3.0, 0.0, (7, 8), 7);
        let transformed: Vec<Case> =
            (0..100u8).map(|i| case(2.0 + f32::from(i) / 100.0, 0.5, (8, 7), 7)).collect();
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        let limit = Limit { drop: 1.0, confidence: 0.9, gives: true };
        assert!(!limit.suited(180, 0.0).kept(1, 0, 180));
        let gate = choose("best-mix", &calibration, 0.5, limit).unwrap();
        let opened = transformed.iter().filter(|c| gate.search(c.raw)).count();
        assert!(opened > 90, "{opened} of 100 at {}", gate.tau());
    }

    /// Spoilt inputs fall by 50 where hardly any energies lie, mended ones by 5 past half of the
    /// transformed ones: only the quantile scale tells them apart. Of the 60 upright inputs that
    /// choose, one is 0.8 points at equal shares, which may be chance; four are 3.3.
    #[test]
    fn the_quantile_scale_must_be_clearly_better() {
        let accepts = |spoilt: usize| {
            let mut upright = vec![case(0.0, -0.1, (7, 7), 7); 240];
            for i in 0..spoilt {
                upright[4 * i + 3] = case(100.0, 50.0, (7, 8), 7);
            }
            let transformed: Vec<Case> = (0..100)
                .map(|i| {
                    if i % 2 == 0 { case(10.0, 5.0, (8, 7), 7) } else { case(6.0, 5.9, (7, 7), 7) }
                })
                .collect();
            let calibration = Calibration { upright: &upright, transformed: &transformed };
            let gate = choose("best-mix", &calibration, 0.5, NONE).unwrap();
            let look = |energy| Look { energy, label: 7 };
            [(10.0, 5.0), (100.0, 50.0)].map(|(raw, best)| gate.accept(look(raw), look(best)))
        };
        assert_eq!(accepts(1), [true, true]);
        assert_eq!(accepts(4), [true, false]);
    }

    /// 100 upright inputs of which none is spoilt promise 3 points, not 1: 0.97^100 = 0.048.
    #[test]
    fn few_inputs_promise_little() {
        let upright = vec![case(1.0, 0.5, (7, 7), 7); 100];
        let transformed = [case(3.0, 0.5, (8, 7), 7)];
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        let gate = |drop| {
            choose("best-mix", &calibration, 0.5, Limit { drop, confidence: 0.9, gives: false })
                .unwrap()
        };
        assert!(gate(1.0).tau().is_infinite());
        let note = gate(1.0).note().unwrap();
        assert!(note.contains("299 would do, or a limit of 3.0"), "{note}");
        assert!(gate(3.0).tau().is_finite());
    }
}
