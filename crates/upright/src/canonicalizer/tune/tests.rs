//! What is tuned unless something else is asked for.

use super::*;
use crate::tune::Range;

/// A knob in a line: name, range, default, and how many rows have it.
fn line(knob: &Knob) -> String {
    let scale = |log: bool| if log { " log" } else { "" };
    let range = match &knob.range {
        Range::Real { low, high, log } => format!("{low}..{high}{}", scale(*log)),
        Range::Whole { low, high, log } => format!("whole {low}..{high}{}", scale(*log)),
        Range::Choice(values) => {
            values.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
        }
    };
    let when = knob.when.as_ref().map_or(0, |w| w.is.len());
    format!("{} {range} = {} ({when})", knob.name, knob.default)
}

#[test]
fn the_default_tuning_turns_these_knobs() {
    let tune = TuneConfig::default();
    let config = Config::default().searching().unwrap();
    let taps = [Tap::auto(), Tap::auto()];
    let scores = config.score_knobs(&tune, &taps).unwrap();
    let searches = config.other_knobs(&tune).unwrap();
    let lines: Vec<String> = scores.all().iter().chain(searches.all()).map(line).collect();
    assert_eq!(
        lines,
        [
            "score knn|pc-knn|pc-knn-mix|pc-proto|relative-mahalanobis|fisher|pc-knn-fisher|energy = knn (0)",
            "knn.k whole 1..40 log = 3 (1)",
            "knn.metric euclidean|cosine|mix = euclidean (1)",
            "knn.w_cos 0..1 = 0.5 (1)",
            "knn.squared false|true = false (1)",
            "knn.correct_only false|true = false (1)",
            "pc-knn.k whole 1..40 log = 3 (1)",
            "pc-knn.metric euclidean|cosine|mix = euclidean (1)",
            "pc-knn.w_cos 0..1 = 0.5 (1)",
            "pc-knn.squared false|true = false (1)",
            "pc-knn.correct_only false|true = false (1)",
            "pc-knn-mix.k whole 1..40 log = 3 (1)",
            "pc-knn-mix.w_cos 0..1 = 0.5 (1)",
            "pc-knn-mix.squared false|true = false (1)",
            "pc-knn-mix.correct_only false|true = false (1)",
            "pc-proto.metric euclidean|cosine|mix = euclidean (1)",
            "pc-proto.w_cos 0..1 = 0.5 (1)",
            "pc-proto.squared false|true = false (1)",
            "pc-proto.correct_only false|true = false (1)",
            "relative-mahalanobis.correct_only false|true = false (1)",
            "pc-knn-fisher.k whole 1..40 log = 3 (1)",
            "pc-knn-fisher.w_cos 0..1 = 0.5 (1)",
            "pc-knn-fisher.squared false|true = false (1)",
            "pc-knn-fisher.correct_only false|true = false (1)",
            "pc-knn-fisher.weight 0.01..100 log = 1 (1)",
            "energy.temperature 0.1..10 log = 1 (1)",
            "tap 0|1 = 0 (7)",
            "search rivals|random|random-refine = rivals (0)",
            "rivals.rivals whole 1..6 = 3 (1)",
            "rivals.first 0.3..0.95 = 0.7 (1)",
            "rivals.proposals true|false = true (1)",
            "rivals.radius 0.02..0.25 log = 0.08 (1)",
            "random-refine.runs whole 1..4 = 2 (1)",
            "random-refine.steps whole 1..8 = 3 (1)",
            "random-refine.rate 0.02..0.3 log = 0.1 (1)",
            "random-refine.selection topk|knn = topk (1)",
        ]
    );
}
