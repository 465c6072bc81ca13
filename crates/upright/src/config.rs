//! Settings as data: a [`Part`] names a component and what was set on it; a
//! [`Param`] table says what can be set; [`Part::resolve`] joins the two into
//! [`Settings`] in which every value exists and lies in its range.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// One setting's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Flag(bool),
    /// Any number; whole where the parameter asks for it.
    Number(f64),
    /// A word out of a list.
    Word(String),
}

impl Value {
    /// Reads what a user typed: a flag, a number, or else a word.
    #[doc(hidden)]
    pub fn parse(text: &str) -> Value {
        match text {
            "true" => Value::Flag(true),
            "false" => Value::Flag(false),
            _ => text.parse().map_or_else(|_| Value::Word(text.into()), Value::Number),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(v) => write!(f, "{v}"),
            Value::Number(v) => write!(f, "{v}"),
            Value::Word(v) => write!(f, "{v}"),
        }
    }
}

/// What a parameter may be, with its default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Domain {
    /// A flag.
    Flag(bool),
    /// A real number between two bounds, both included.
    Real {
        /// Used when nothing is set.
        default: f64,
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// A whole number between two bounds, both included.
    Whole {
        /// Used when nothing is set.
        default: u64,
        /// Smallest value.
        low: u64,
        /// Largest value.
        high: u64,
    },
    /// A real number between two bounds, or the word `auto`, which is the default.
    Auto {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// One of some words; the first is the default.
    Word(&'static [&'static str]),
}

impl Domain {
    /// The value used when nothing is set.
    #[doc(hidden)]
    pub fn default(&self) -> Value {
        match *self {
            Domain::Flag(v) => Value::Flag(v),
            Domain::Real { default, .. } => Value::Number(default),
            Domain::Whole { default, .. } => Value::Number(default as f64),
            Domain::Auto { .. } => Value::Word("auto".into()),
            Domain::Word(words) => Value::Word(words.first().copied().unwrap_or("").into()),
        }
    }

    fn admits(&self, value: &Value) -> bool {
        match (*self, value) {
            (Domain::Flag(_), Value::Flag(_)) => true,
            (Domain::Real { low, high, .. } | Domain::Auto { low, high }, Value::Number(v)) => {
                (low..=high).contains(v)
            }
            (Domain::Auto { .. }, Value::Word(v)) => v == "auto",
            (Domain::Whole { low, high, .. }, Value::Number(v)) => {
                v.fract() == 0.0 && (low as f64..=high as f64).contains(v)
            }
            (Domain::Word(words), Value::Word(v)) => words.contains(&v.as_str()),
            _ => false,
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Domain::Flag(_) => write!(f, "true|false"),
            Domain::Real { low, high, .. } => write_range(f, low, high),
            Domain::Auto { low, high } => {
                write!(f, "auto or ")?;
                write_range(f, low, high)
            }
            Domain::Whole { low, high: u64::MAX, .. } => {
                write!(f, "a whole number of at least {low}")
            }
            Domain::Whole { low, high, .. } => write!(f, "a whole number in {low}..{high}"),
            Domain::Word(words) => write!(f, "{}", words.join("|")),
        }
    }
}

/// Bounds that no use comes near are none to a reader.
fn write_range(f: &mut fmt::Formatter<'_>, low: f64, high: f64) -> fmt::Result {
    match (low > -1e30, high < 1e30) {
        (true, true) => write!(f, "a number in {low}..{high}"),
        (true, false) => write!(f, "a number of at least {low}"),
        (false, true) => write!(f, "a number of at most {high}"),
        (false, false) => write!(f, "any number"),
    }
}

/// Where tuning searches for a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tuning {
    /// In all of its domain, if that has two ends.
    All,
    /// Between two bounds inside its domain, both included.
    Within {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Even in the logarithm instead of in the number; then `low > 0`.
        log: bool,
    },
    /// Nowhere: it stays as it is set.
    Left,
}

/// One parameter of a component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Param {
    /// Its name, the same in configs, flags and bindings.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// What it may be.
    pub domain: Domain,
    /// Where tuning searches for it.
    #[doc(hidden)]
    pub tuning: Tuning,
}

impl Param {
    /// A real parameter.
    pub const fn real(
        name: &'static str,
        default: f64,
        low: f64,
        high: f64,
        about: &'static str,
    ) -> Self {
        Param::new(name, about, Domain::Real { default, low, high })
    }

    /// A whole-number parameter.
    pub const fn whole(
        name: &'static str,
        default: u64,
        low: u64,
        high: u64,
        about: &'static str,
    ) -> Self {
        Param::new(name, about, Domain::Whole { default, low, high })
    }

    /// A real parameter that is worked out when it is not set.
    pub const fn auto(name: &'static str, low: f64, high: f64, about: &'static str) -> Self {
        Param::new(name, about, Domain::Auto { low, high })
    }

    /// A flag.
    pub const fn flag(name: &'static str, default: bool, about: &'static str) -> Self {
        Param::new(name, about, Domain::Flag(default))
    }

    /// A word out of a list, the first being the default.
    pub const fn word(
        name: &'static str,
        words: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Param::new(name, about, Domain::Word(words))
    }

    const fn new(name: &'static str, about: &'static str, domain: Domain) -> Self {
        Param { name, about, domain, tuning: Tuning::All }
    }

    /// The same number, tuned between two bounds only; others stay open to who sets them.
    #[must_use]
    pub const fn tuned(self, low: f64, high: f64) -> Self {
        Param { tuning: Tuning::Within { low, high, log: false }, ..self }
    }

    /// As [`Param::tuned`], even in the logarithm; both bounds are positive.
    #[must_use]
    pub const fn tuned_log(self, low: f64, high: f64) -> Self {
        Param { tuning: Tuning::Within { low, high, log: true }, ..self }
    }

    /// The same parameter, left alone by tuning.
    #[must_use]
    pub(crate) const fn untuned(self) -> Self {
        Param { tuning: Tuning::Left, ..self }
    }
}

/// A component's name and what was set on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The component's name in its table.
    pub name: String,
    /// The settings that differ from the defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
    /// The taps it reads, by name and in its order; none stands for all of the model's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taps: Vec<String>,
}

impl Part {
    /// A component with its defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Part { name: name.into(), settings: BTreeMap::new(), taps: Vec::new() }
    }

    /// The same component with one setting changed.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: Value) -> Self {
        self.settings.insert(name.into(), value);
        self
    }

    /// The same component reading these taps.
    #[must_use]
    pub fn reading(mut self, taps: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.taps = taps.into_iter().map(Into::into).collect();
        self
    }

    /// The same component with one number changed.
    #[must_use]
    pub fn number(self, name: impl Into<String>, value: f64) -> Self {
        self.with(name, Value::Number(value))
    }

    /// The same component with one word changed.
    #[must_use]
    pub fn word(self, name: impl Into<String>, value: &str) -> Self {
        self.with(name, Value::Word(value.into()))
    }

    /// The same component with one flag changed.
    #[must_use]
    pub fn flag(self, name: impl Into<String>, value: bool) -> Self {
        self.with(name, Value::Flag(value))
    }

    /// Fills in the defaults and checks every setting against the table.
    #[doc(hidden)]
    pub fn resolve(&self, params: &'static [Param]) -> Result<Settings> {
        let mut values: BTreeMap<&'static str, Value> =
            params.iter().map(|p| (p.name, p.domain.default())).collect();
        for (name, value) in &self.settings {
            let Some(param) = params.iter().find(|p| p.name == name) else {
                let known: Vec<_> = params.iter().map(|p| p.name).collect();
                return Err(Error::UnknownSetting {
                    part: self.name.clone(),
                    name: name.clone(),
                    known: if known.is_empty() { "none".into() } else { known.join(", ") },
                });
            };
            if !param.domain.admits(value) {
                return Err(Error::BadSetting {
                    part: self.name.clone(),
                    name: name.clone(),
                    value: value.to_string(),
                    range: param.domain.to_string(),
                });
            }
            values.insert(param.name, value.clone());
        }
        Ok(Settings { values })
    }
}

/// Every parameter of a component with a value in its range.
///
/// The getters are for the component's own file, which also holds its table;
/// a name or type that the table does not have reads as zero, false or empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// A real parameter.
    pub fn real(&self, name: &str) -> f64 {
        if let Some(Value::Number(v)) = self.values.get(name) {
            return *v;
        }
        debug_assert!(false, "no number `{name}` in the table");
        0.0
    }

    /// A parameter that may be `auto`, which is `None`.
    pub fn auto(&self, name: &str) -> Option<f64> {
        match self.values.get(name) {
            Some(Value::Number(v)) => Some(*v),
            _ => None,
        }
    }

    /// A whole-number parameter.
    pub fn whole(&self, name: &str) -> usize {
        self.real(name) as usize
    }

    /// A flag.
    pub fn flag(&self, name: &str) -> bool {
        debug_assert!(matches!(self.values.get(name), Some(Value::Flag(_))), "no flag `{name}`");
        matches!(self.values.get(name), Some(Value::Flag(true)))
    }

    /// A word.
    pub fn word(&self, name: &str) -> &str {
        if let Some(Value::Word(v)) = self.values.get(name) {
            return v;
        }
        debug_assert!(false, "no word `{name}` in the table");
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Param] = &[
        Param::whole("k", 3, 1, 50, "neighbours"),
        Param::real("w", 0.5, 0.0, 1.0, "weight"),
        Param::flag("squared", false, "square it"),
        Param::word("metric", &["euclidean", "cosine"], "distance"),
    ];

    #[test]
    fn unset_parameters_take_their_defaults() {
        let s = Part::new("x").number("k", 7.0).resolve(TABLE).unwrap();
        assert_eq!((s.whole("k"), s.flag("squared"), s.word("metric")), (7, false, "euclidean"));
        assert!((s.real("w") - 0.5).abs() < 1e-12);
    }

    #[test]
    fn an_unknown_setting_lists_the_known_ones() {
        let e = Part::new("x").number("kk", 7.0).resolve(TABLE).unwrap_err();
        assert_eq!(e.to_string(), "x has no setting `kk`; it has: k, w, squared, metric");
    }

    #[test]
    fn values_outside_their_range_are_refused() {
        for part in [
            Part::new("x").number("k", 0.0),
            Part::new("x").number("k", 2.5),
            Part::new("x").number("w", f64::NAN),
            Part::new("x").word("metric", "manhattan"),
            Part::new("x").word("k", "three"),
        ] {
            assert!(part.resolve(TABLE).is_err(), "{part:?}");
        }
        let e = Part::new("x").number("k", 0.0).resolve(TABLE).unwrap_err();
        assert_eq!(e.to_string(), "x: `k` = 0 is not valid; it takes a whole number in 1..50");
    }
}
