//! What a tuner may turn: real, whole and chosen values, some of which exist
//! only while another knob has a certain value.
//!
//! A whole number stands for the cell of half a unit to either side, so that
//! all whole numbers of a linear range are equally wide. A logarithmic range
//! is even in `ln v`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::config::{Domain, Param, Part, Tuning, Value};
use crate::error::{Error, Result};

/// Values by the names of their knobs; only knobs that are active appear.
pub type Point = BTreeMap<String, Value>;

/// Largest whole number of a range: all up to it are exact as `f64`.
const LARGEST_WHOLE: u64 = 1 << 53;

/// Ranges taken from a [`Param`] are logarithmic if their ends are positive and
/// at least this factor apart.
const WIDE: f64 = 100.0;

/// The values a knob can take.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Range {
    /// Any number between two bounds, both included.
    Real {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Even in the logarithm instead of in the number; then `low > 0`.
        log: bool,
    },
    /// Any whole number between two bounds, both included.
    Whole {
        /// Smallest value.
        low: u64,
        /// Largest value, at most 2^53.
        high: u64,
        /// Even in the logarithm instead of in the number; then `low > 0`.
        log: bool,
    },
    /// One of some values without an order.
    Choice(Vec<Value>),
}

impl Range {
    /// Whether a value lies in the range.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Range::Real { low, high, .. }, Value::Number(v)) => (*low..=*high).contains(v),
            (Range::Whole { low, high, .. }, Value::Number(v)) => {
                v.fract() == 0.0 && (*low as f64..=*high as f64).contains(v)
            }
            (Range::Choice(values), _) => values.contains(value),
            _ => false,
        }
    }

    /// The two ends between which numbers are even; `None` for a choice.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        let (low, high, log) = match *self {
            Range::Real { low, high, log } => (low, high, log),
            Range::Whole { low, high, log } => (low as f64 - 0.5, high as f64 + 0.5, log),
            Range::Choice(_) => return None,
        };
        Some(if log { (libm::log(low), libm::log(high)) } else { (low, high) })
    }

    /// Where a value lies between the ends; a choice's index.
    pub(super) fn place(&self, value: &Value) -> Option<f64> {
        match (self, value) {
            (Range::Real { log, .. } | Range::Whole { log, .. }, Value::Number(v)) => {
                Some(if *log { libm::log(*v) } else { *v })
            }
            (Range::Choice(values), _) => {
                values.iter().position(|v| v == value).map(|at| at as f64)
            }
            _ => None,
        }
    }

    /// The value at a place between the ends, or of an index; always in the range.
    pub(super) fn value(&self, place: f64) -> Value {
        let number = |log: bool| if log { libm::exp(place) } else { place };
        match self {
            Range::Real { low, high, log } => Value::Number(number(*log).clamp(*low, *high)),
            Range::Whole { low, high, log } => {
                Value::Number(number(*log).round().clamp(*low as f64, *high as f64))
            }
            Range::Choice(values) => values
                .get((place.max(0.0) as usize).min(values.len().saturating_sub(1)))
                .cloned()
                .unwrap_or(Value::Flag(false)),
        }
    }

    /// The cell between the ends that a whole number stands for.
    pub(super) fn cell(&self, place: f64) -> Option<(f64, f64)> {
        match (self, self.value(place)) {
            (Range::Whole { log: false, .. }, Value::Number(v)) => Some((v - 0.5, v + 0.5)),
            (Range::Whole { log: true, .. }, Value::Number(v)) => {
                Some((libm::log(v - 0.5), libm::log(v + 0.5)))
            }
            _ => None,
        }
    }

    /// Why no value could be drawn, if so.
    fn flaw(&self) -> Option<String> {
        match self {
            Range::Real { low, high, log } => {
                (!(low.is_finite() && high.is_finite() && low < high && (!log || *low > 0.0)))
                    .then(|| format!("{low}..{high} is not a finite range{}", positive(*log)))
            }
            Range::Whole { low, high, log } => {
                (low > high || *high > LARGEST_WHOLE || (*log && *low == 0))
                    .then(|| format!("{low}..{high} is not a range up to 2^53{}", positive(*log)))
            }
            Range::Choice(values) => {
                let twice = values.iter().enumerate().any(|(i, v)| values[..i].contains(v));
                (values.is_empty() || twice)
                    .then(|| "its values must be some, and different".into())
            }
        }
    }
}

fn positive(log: bool) -> &'static str {
    if log { " of positive numbers" } else { "" }
}

/// When a knob exists: while another one has one of some values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct When {
    /// The knob it depends on, a choice.
    pub knob: String,
    /// The values at which it exists.
    pub is: Vec<Value>,
}

/// One thing to turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knob {
    /// Its name in a [`Point`].
    pub name: String,
    /// What it can be.
    pub range: Range,
    /// Its value in the default point.
    pub default: Value,
    /// When it exists; `None`: always.
    pub when: Option<When>,
}

impl Knob {
    /// A real number, even between its bounds.
    pub fn real(name: impl Into<String>, default: f64, low: f64, high: f64) -> Self {
        let range = Range::Real { low, high, log: false };
        Knob { name: name.into(), range, default: Value::Number(default), when: None }
    }

    /// A whole number, even between its bounds.
    pub fn whole(name: impl Into<String>, default: u64, low: u64, high: u64) -> Self {
        let range = Range::Whole { low, high, log: false };
        Knob { name: name.into(), range, default: Value::Number(default as f64), when: None }
    }

    /// One of some values, the first being the default.
    pub fn choice(name: impl Into<String>, values: Vec<Value>) -> Self {
        let default = values.first().cloned().unwrap_or(Value::Flag(false));
        Knob { name: name.into(), range: Range::Choice(values), default, when: None }
    }

    /// One of some words, the first being the default.
    pub fn words(name: impl Into<String>, words: &[&str]) -> Self {
        Knob::choice(name, words.iter().map(|&w| Value::Word(w.into())).collect())
    }

    /// A flag.
    pub fn flag(name: impl Into<String>, default: bool) -> Self {
        Knob::choice(name, vec![Value::Flag(default), Value::Flag(!default)])
    }

    /// The same numbers, even in their logarithm; a choice stays as it is.
    #[must_use]
    pub fn log(mut self) -> Self {
        if let Range::Real { log, .. } | Range::Whole { log, .. } = &mut self.range {
            *log = true;
        }
        self
    }

    /// The same knob with another default.
    #[must_use]
    pub fn starting(mut self, default: Value) -> Self {
        self.default = default;
        self
    }

    /// The same knob, existing only while `knob` has one of these values.
    #[must_use]
    pub fn when(mut self, knob: impl Into<String>, is: Vec<Value>) -> Self {
        self.when = Some(When { knob: knob.into(), is });
        self
    }

    /// The knob of a component's parameter, named `prefix` + its name.
    ///
    /// A number whose tuning is not narrowed takes its whole domain, even in the logarithm
    /// if both ends are positive and a factor of 100 or more apart. `None` for what tuning
    /// leaves alone and for what cannot be drawn from: unbounded ranges, and parameters that
    /// are worked out unless set (`auto`).
    pub fn of(param: &Param, prefix: &str) -> Option<Self> {
        let name = format!("{prefix}{}", param.name);
        let wide = |low: f64, high: f64| low > 0.0 && high / low >= WIDE;
        let knob = match (param.domain, param.tuning) {
            (_, Tuning::Left) | (Domain::Auto { .. }, _) => return None,
            (Domain::Flag(default), _) => Knob::flag(name, default),
            (Domain::Word(words), _) => Knob::words(name, words),
            (Domain::Real { default, low, high }, Tuning::All) => {
                let knob = Knob::real(name, default, low, high);
                if wide(low, high) { knob.log() } else { knob }
            }
            (Domain::Whole { default, low, high }, Tuning::All) => {
                let knob = Knob::whole(name, default, low, high);
                if wide(low as f64, high as f64) { knob.log() } else { knob }
            }
            (Domain::Real { default, .. }, Tuning::Within { low, high, log }) => {
                let knob = Knob::real(name, default, low, high);
                if log { knob.log() } else { knob }
            }
            (Domain::Whole { default, .. }, Tuning::Within { low, high, log }) => {
                let knob = Knob::whole(name, default, low as u64, high as u64);
                if log { knob.log() } else { knob }
            }
        };
        knob.range.flaw().is_none().then_some(knob)
    }

    /// The knobs of a table's row, existing while the knob `chooser` has the
    /// row's name, and named `row.parameter`.
    pub fn of_row(chooser: &str, row: &str, params: &[Param]) -> Vec<Self> {
        let prefix = format!("{row}.");
        let chosen = vec![Value::Word(row.into())];
        let knobs = params.iter().filter_map(|param| Knob::of(param, &prefix));
        knobs.map(|knob| knob.when(chooser, chosen.clone())).collect()
    }
}

/// A checked, ordered set of knobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Knobs {
    all: Vec<Knob>,
    #[serde(skip)]
    groups: Vec<Vec<usize>>,
}

impl Knobs {
    /// Checks ranges and defaults, and that each condition names a choice that
    /// comes earlier, and values it has.
    pub fn new(all: Vec<Knob>) -> Result<Self> {
        for (at, knob) in all.iter().enumerate() {
            if let Some(why) = flaw(knob, &all[..at]) {
                return Err(Error::Tune {
                    why: format!("knob `{}`: {why}", knob.name),
                    hint: Some("correct the space that is tuned".into()),
                });
            }
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (at, knob) in all.iter().enumerate() {
            match groups.iter_mut().find(|group| all[group[0]].when == knob.when) {
                Some(group) => group.push(at),
                None => groups.push(vec![at]),
            }
        }
        Ok(Knobs { all, groups })
    }

    /// All knobs in order.
    pub fn all(&self) -> &[Knob] {
        &self.all
    }

    /// Knobs that always exist together, as indices; a group comes after the one
    /// with the knob it depends on.
    pub(super) fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// Whether a condition holds at a point that has all earlier knobs.
    pub(super) fn holds(when: Option<&When>, point: &Point) -> bool {
        when.is_none_or(|w| point.get(&w.knob).is_some_and(|v| w.is.contains(v)))
    }

    /// The point of all defaults.
    pub fn default_point(&self) -> Point {
        let mut point = Point::new();
        for knob in &self.all {
            if Knobs::holds(knob.when.as_ref(), &point) {
                point.insert(knob.name.clone(), knob.default.clone());
            }
        }
        point
    }

    /// The given values with defaults for active knobs that are not given.
    /// Values of knobs that do not exist at this point are dropped; unknown
    /// names and values out of range are refused.
    pub fn complete(&self, given: &Point) -> Result<Point> {
        if let Some(name) = given.keys().find(|&name| self.all.iter().all(|k| k.name != *name)) {
            return Err(Error::Tune {
                why: format!("there is no knob `{name}`"),
                hint: Some(format!("there are: {}", self.names()).into()),
            });
        }
        let mut point = Point::new();
        for knob in &self.all {
            if Knobs::holds(knob.when.as_ref(), &point) {
                let value = given.get(&knob.name).unwrap_or(&knob.default).clone();
                if !knob.range.admits(&value) {
                    return Err(Error::Tune {
                        why: format!("`{}` = {value} is out of range", knob.name),
                        hint: Some("choose a value in the range that is tuned".into()),
                    });
                }
                point.insert(knob.name.clone(), value);
            }
        }
        Ok(point)
    }

    /// Whether a point has exactly the knobs that exist at it, all in range.
    pub fn admits(&self, point: &Point) -> bool {
        self.complete(point).is_ok_and(|whole| whole == *point)
    }

    fn names(&self) -> String {
        self.all.iter().map(|k| k.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

fn flaw(knob: &Knob, earlier: &[Knob]) -> Option<String> {
    if earlier.iter().any(|k| k.name == knob.name) {
        return Some("there are two of that name".into());
    }
    if let Some(why) = knob.range.flaw() {
        return Some(why);
    }
    if !knob.range.admits(&knob.default) {
        return Some(format!("its default {} is out of range", knob.default));
    }
    let when = knob.when.as_ref()?;
    let parent = earlier.iter().find(|k| k.name == when.knob);
    match parent.map(|k| &k.range) {
        Some(Range::Choice(values)) if when.is.iter().all(|v| values.contains(v)) => None,
        Some(Range::Choice(_)) => Some(format!("`{}` never has that value", when.knob)),
        Some(_) => Some(format!("`{}` is not a choice", when.knob)),
        None => Some(format!("`{}` does not come before it", when.knob)),
    }
}

/// The component that a point chooses by the knob `chooser`, with the settings
/// of its row, as named by [`Knob::of_row`]; `None` without such a word.
pub fn part(point: &Point, chooser: &str) -> Option<Part> {
    let Value::Word(row) = point.get(chooser)? else { return None };
    let settings = point.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix(row.as_str())?.strip_prefix('.')?;
        Some((name.to_owned(), value.clone()))
    });
    Some(Part { settings: settings.collect(), ..Part::new(row) })
}

#[cfg(test)]
mod tests;
