//! What every parameter of every component must be.

use upright::internal::config::{Domain, Tuning};
use upright::internal::tune::{Knob, Knobs, Range};
use upright::{Param, Part, Value, gate, readout, score, search};

fn rows() -> Vec<(&'static str, &'static [Param])> {
    let mut rows: Vec<_> = score::TABLE.iter().map(|row| (row.name, row.params)).collect();
    rows.extend(search::TABLE.iter().map(|row| (row.name, row.params)));
    rows.extend(gate::TABLE.iter().map(|row| (row.name, row.params)));
    rows.extend(readout::TABLE.iter().map(|row| (row.name, row.params)));
    rows
}

#[test]
fn every_default_lies_in_its_range() {
    for (name, params) in rows() {
        for param in params {
            let part = Part::new(name).with(param.name, param.domain.default());
            assert!(part.resolve(params).is_ok(), "{name} {}", param.name);
        }
    }
}

/// Tuning starts at the default and never leaves what may be set.
#[test]
fn every_tuned_range_holds_the_default_and_lies_in_the_domain() {
    for (name, params) in rows() {
        for param in params {
            let name = format!("{name} {}", param.name);
            if let Tuning::Within { low, high, .. } = param.tuning {
                let numbers = matches!(param.domain, Domain::Real { .. } | Domain::Whole { .. });
                assert!(numbers && low < high, "{name} has no such range");
            }
            let Some(knob) = Knob::of(param, "") else { continue };
            let ends = match knob.range {
                Range::Real { low, high, .. } => vec![low, high],
                Range::Whole { low, high, .. } => vec![low as f64, high as f64],
                Range::Choice(_) => vec![],
            };
            for end in ends {
                let part = Part::new("x").with(param.name, Value::Number(end));
                assert!(part.resolve(params).is_ok(), "{name} = {end}");
            }
            assert_eq!(knob.default, param.domain.default(), "{name}");
            Knobs::new(vec![knob]).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}
