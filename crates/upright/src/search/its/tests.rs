//! Hand-worked numbers for the tree search.

use super::*;
use crate::config::Part;
use crate::space::SpaceConfig;

fn space(text: &str) -> Space {
    SpaceConfig::parse(text).unwrap().build().unwrap()
}

fn seen(energies: &[f32]) -> Vec<Seen> {
    energies
        .iter()
        .map(|&energy| Seen { pose: vec![0.0], energy, label: 0, gradient: None, follows: None })
        .collect()
}

fn its(scoring: Scoring) -> Its {
    Its { hypotheses: 2, scoring, unique: false, mind: true, offset: true }
}

/// The scoring that the settings of a part choose.
fn scoring(score: &str, smoothing: &str) -> Scoring {
    let part = Part::new("its").word("score", score).word("smoothing", smoothing);
    Scoring::read(&part.resolve(KIND.params).unwrap())
}

/// m (1 + H (d - 1)) <= 60: 12 * 5, 6 * 9, 4 * 13; four hypotheses would leave
/// 60 / 17 = 3 poses an orbit and fall back to three.
#[test]
fn the_budget_decides_the_orbits_and_the_hypotheses() {
    let affine = space("affine");
    assert_eq!(plan(&affine, 60, 1), (1, vec![12; 5]));
    assert_eq!(plan(&affine, 60, 2), (2, vec![6; 5]));
    assert_eq!(plan(&affine, 60, 3), (3, vec![4; 5]));
    assert_eq!(plan(&affine, 60, 4), (3, vec![4; 5]));
    assert_eq!(plan(&affine, 9, 1), (1, vec![3; 3]));
    assert_eq!(plan(&affine, 2, 3).1, [2]);
    assert_eq!(plan(&affine, 0, 1).1, [0]);
    assert_eq!(plan(&space("rotate,flip"), 60, 2), (2, vec![56, 2]));
}

/// Smoothing and second difference of 5 4 1 3 6 6 2 5 by numpy: the kernel
/// `exp(-k^2 / 8)` over its sum on the edge-padded curve, then `gradient` twice.
#[test]
fn the_curvature_is_that_of_the_smoothed_energies() {
    let curve = seen(&[5.0, 4.0, 1.0, 3.0, 6.0, 6.0, 2.0, 5.0]);
    let got = scores(scoring("curvature", "own"), &[&curve]);
    let want = [
        0.125_618_16,
        0.146_838_17,
        0.163_258_68,
        0.137_650_56,
        0.055_600_98,
        -0.042_379_76,
        -0.075_888_14,
        -0.072_656_74,
    ];
    assert!(got[0].iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-7), "{got:?}");
}

/// Two valleys at different places: each hypothesis has its own best, but the mixed
/// curve gives both the same scores and hence the same pose.
#[test]
fn mixed_smoothing_makes_hypotheses_choose_alike_and_own_smoothing_does_not() {
    let valley = |at: usize, depth: f32| {
        let energies: Vec<f32> = (0..16).map(|i| if i == at { -depth } else { 0.0 }).collect();
        seen(&energies)
    };
    let (a, b) = (valley(4, 3.0), valley(11, 1.0));
    let best = |scores: &[f64]| {
        (0..scores.len()).max_by(|&i, &j| scores[i].total_cmp(&scores[j])).unwrap()
    };
    let own = scores(scoring("curvature", "own"), &[&a, &b]);
    let mixed = scores(scoring("curvature", "mixed"), &[&a, &b]);
    assert_eq!((best(&own[0]), best(&own[1])), (4, 11));
    assert_eq!((best(&mixed[0]), best(&mixed[1])), (4, 4));
    assert_eq!(mixed[0], mixed[1]);
}

#[test]
fn orbits_include_their_ends_once() {
    let space = space("rotate,shear-x,scale-x,flip");
    let line = |i: usize, n: usize, offset: f32| -> Vec<f32> {
        let axis = space.axes()[i].as_ref();
        let mut pose = [0.0];
        let mut at = |place: f32| {
            axis.along(0, place, &mut pose);
            pose[0]
        };
        orbit(axis, 0, n, offset).into_iter().map(&mut at).collect()
    };
    let turn = line(0, 4, 0.5);
    assert!((turn[1] - turn[0] - std::f32::consts::FRAC_PI_2).abs() < 1e-5);
    assert!((turn[0] + 0.75 * std::f32::consts::PI).abs() < 1e-5, "{turn:?}");
    assert_eq!(line(1, 3, 0.7), [-0.5, 0.0, 0.5]);
    let scale = line(2, 3, 0.7);
    assert!((scale[1] - 1.0).abs() < 1e-6 && (scale[0] * scale[2] - 1.0).abs() < 1e-6);
    assert_eq!(line(3, 9, 0.7), [0.0, 1.0]);
}

/// Energies 1, 2, 3, 4 with classes 5, 5, 6, 6: the best two are of one class; unique
/// classes take the first and the third.
#[test]
fn unique_hypotheses_are_of_different_classes() {
    let space = space("rotate,shear-x");
    let raw = Seen { pose: space.identity(), energy: 0.0, label: 0, gradient: None, follows: None };
    for (unique, second) in [(false, 1), (true, 2)] {
        let settings = Its { unique, offset: false, ..its(scoring("plain", "own")) };
        let mut run = settings.start(&Brief {
            space: &space,
            seed: 1,
            budget: 12,
            raw: &raw,
            proposals: &[],
            sure: None,
        });
        let first = run.ask(12);
        assert_eq!(first.len(), 4);
        let told: Vec<Seen> = first
            .iter()
            .zip([(1.0, 5), (2.0, 5), (3.0, 6), (4.0, 6)])
            .map(|(a, (energy, label))| Seen {
                pose: a.pose.clone(),
                energy,
                label,
                gradient: None,
                follows: None,
            })
            .collect();
        run.tell(&told);
        let next = run.ask(8);
        assert_eq!(next.len(), 8);
        assert_eq!(next[0].pose[0].to_bits(), told[0].pose[0].to_bits());
        assert_eq!(next[4].pose[0].to_bits(), told[second].pose[0].to_bits(), "{unique}");
    }
}

/// Two hypotheses on two axes, four poses an orbit. The curve of the second is far more
/// curved on the second level (evaluations 8 to 11): with a change of mind it answers,
/// without the first does (4 to 7).
#[test]
fn a_change_of_mind_lets_a_later_hypothesis_answer() {
    let space = space("rotate,shear-x");
    let raw = Seen { pose: space.identity(), energy: 0.0, label: 0, gradient: None, follows: None };
    for (mind, leaves) in [(false, 4..8), (true, 8..12)] {
        let settings = Its { mind, ..its(scoring("curvature", "own")) };
        let mut run = settings.start(&Brief {
            space: &space,
            seed: 1,
            budget: 12,
            raw: &raw,
            proposals: &[],
            sure: None,
        });
        for energies in [&[4.0, 1.0, 3.0, 4.0][..], &[9.0, 8.0, 9.0, 9.0, 9.0, -90.0, 9.0, 9.0]] {
            let asks = run.ask(12);
            assert_eq!(asks.len(), energies.len());
            let told: Vec<Seen> = asks
                .iter()
                .zip(energies)
                .map(|(a, &energy)| Seen {
                    pose: a.pose.clone(),
                    energy,
                    label: 0,
                    gradient: None,
                    follows: None,
                })
                .collect();
            run.tell(&told);
        }
        assert!(leaves.contains(&run.pick().unwrap()), "{mind} {:?}", run.pick());
    }
}
