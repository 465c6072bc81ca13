//! Spaces that tests draw from.

use proptest::prelude::*;
use upright::Value;
use upright::internal::tune::{Knob, Knobs, Point};

fn number() -> impl Strategy<Value = Knob> {
    (0u8..4, -100.0..100.0f64, 0.01..100.0f64, 1u64..50, 0u64..300).prop_map(
        |(kind, low, extent, least, more)| match kind {
            0 => Knob::real("", low, low, low + extent),
            1 => Knob::real("", extent, extent, extent * (1.5 + least as f64)).log(),
            2 => Knob::whole("", least, least - 1, least + more),
            _ => Knob::whole("", least, least, least + more).log(),
        },
    )
}

/// Two choices, the second under the first, and numbers under either or none.
pub(crate) fn any() -> impl Strategy<Value = Knobs> {
    let numbers = proptest::collection::vec((number(), 0u8..4), 1..6);
    numbers.prop_map(|numbers| {
        let word = |w: &str| Value::Word(w.into());
        let mut all = vec![
            Knob::words("kind", &["a", "b", "c"]),
            Knob::flag("deep", false).when("kind", vec![word("b"), word("c")]),
        ];
        for (at, (mut knob, under)) in numbers.into_iter().enumerate() {
            knob.name = format!("n{at}");
            all.push(match under {
                0 => knob,
                1 => knob.when("kind", vec![word("a")]),
                2 => knob.when("kind", vec![word("c"), word("a")]),
                _ => knob.when("deep", vec![Value::Flag(true)]),
            });
        }
        Knobs::new(all).unwrap()
    })
}

/// Some smooth function of a point: high for small numbers and the word `c`.
pub(crate) fn value(point: &Point) -> f64 {
    let term = |v: &Value| match v {
        Value::Number(v) => -(v / 50.0).powi(2),
        Value::Flag(v) => f64::from(u8::from(*v)),
        Value::Word(w) => f64::from(u8::from(w == "c")),
    };
    point.values().map(term).sum()
}
