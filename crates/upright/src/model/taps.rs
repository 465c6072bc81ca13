//! [`Tapped`]: the tensors whose values are features, and their names.

use super::Tap;
use crate::engine::Value;
use crate::error::{Error, Result};
use crate::reduce::{Reduce, Reduction};

/// A tap of a loaded model.
#[derive(Debug, Clone)]
pub struct Tapped {
    /// The name by which parts refer to it: the one it was asked for by, with `@` and its
    /// reduction if several were asked for by that name.
    pub name: String,
    /// The tensors it reads; several are laid side by side.
    pub tensors: Vec<String>,
    /// The shape of one input's tensor, without the batch.
    pub shape: Vec<usize>,
    /// Length of one input's features.
    pub features: usize,
    asked: Tap,
    /// Where the engine gives each of the tensors.
    pub(super) places: Vec<usize>,
    /// Numbers one input has in each of the tensors.
    pub(super) widths: Vec<usize>,
    pub(super) reduction: Reduction,
}

impl Tapped {
    /// A vector of so many numbers that no tensor of the network holds.
    pub(super) fn plain(name: &str, tensor: &str, features: usize) -> Result<Self> {
        let asked = Tap::new(name);
        let reduction = asked.reduce.fit(&[features])?;
        Ok(Tapped {
            name: name.into(),
            tensors: vec![tensor.into()],
            shape: vec![features],
            features,
            asked,
            places: vec![],
            widths: vec![],
            reduction,
        })
    }

    /// The fitted reduction.
    #[doc(hidden)]
    pub fn reduction(&self) -> &Reduction {
        &self.reduction
    }
}

/// A tap that was asked for, with the tensors that it reads.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) tap: Tap,
    pub(super) tensors: Vec<String>,
}

/// Where each of `wanted` is among `tensors`, which it joins if it is not.
fn places(tensors: &mut Vec<String>, wanted: &[String]) -> Vec<usize> {
    let place = |name: &String| {
        tensors.iter().position(|t| t == name).unwrap_or_else(|| {
            tensors.push(name.clone());
            tensors.len() - 1
        })
    };
    wanted.iter().map(place).collect()
}

/// What an engine must compute: the logits, then what is tapped, each tensor once.
pub(super) fn tensors(logits: &str, taps: &[Asked]) -> Vec<String> {
    let mut all = vec![logits.to_string()];
    for asked in taps {
        places(&mut all, &asked.tensors);
    }
    all
}

/// Makes the taps ready for what an engine gave for so many items, tensor by tensor.
pub(super) fn fitted(
    taps: Vec<Asked>,
    tensors: &[String],
    values: &[Value],
    items: usize,
) -> Result<Vec<Tapped>> {
    let names = names(taps.iter().map(|asked| &asked.tap));
    let ready = |(Asked { tap, tensors: read }, name): (Asked, String)| {
        let places = places(&mut tensors.to_vec(), &read);
        let shapes = places.iter().map(|&at| {
            let shape = &values[at].shape;
            if shape.first() == Some(&items) && !values[at].data.is_empty() {
                return Ok(&shape[1..]);
            }
            Err(Error::shape(
                format!("tap `{name}`"),
                format!("{items} items in the first dimension"),
                shape,
            ))
        });
        let shapes: Vec<&[usize]> = shapes.collect::<Result<_>>()?;
        let widths: Vec<usize> = shapes.iter().map(|s| s.iter().product()).collect();
        let reduction = match shapes.as_slice() {
            [one] => tap.reduce.fit(one)?,
            _ => tap.reduce.fit(&[widths.iter().sum()])?,
        };
        let (shape, features) = (reduction.shape().to_vec(), reduction.len());
        Ok(Tapped { name, tensors: read, shape, features, asked: tap, places, widths, reduction })
    };
    taps.into_iter().zip(names).map(ready).collect()
}

/// A name for each tap that no other has.
fn names<'a>(taps: impl Iterator<Item = &'a Tap>) -> Vec<String> {
    let taps: Vec<&Tap> = taps.collect();
    let alone = |tap: &Tap| taps.iter().filter(|other| other.name == tap.name).count() == 1;
    let mut names: Vec<String> = Vec::new();
    for tap in &taps {
        let full = if alone(tap) { tap.name.clone() } else { with_reduction(tap) };
        let numbered = (2..).map(|n| format!("{full}#{n}"));
        let free = std::iter::once(full.clone()).chain(numbered).find(|n| !names.contains(n));
        names.extend(free);
    }
    names
}

fn with_reduction(tap: &Tap) -> String {
    let word = match tap.reduce {
        Reduce::None => "none",
        Reduce::Mean => "mean",
        Reduce::Pool { .. } => "pool",
        Reduce::Grid { .. } => "grid",
        Reduce::Project { .. } => "project",
    };
    format!("{}@{word}", tap.name)
}

/// The position of the tap of a name, or of a name with `@` and the tap's reduction.
pub(super) fn index(taps: &[Tapped], name: &str) -> Result<usize> {
    let named = || taps.iter().position(|tap| tap.name == name);
    let reduced = || taps.iter().position(|tap| with_reduction(&tap.asked) == name);
    named().or_else(reduced).ok_or_else(|| {
        let known: Vec<&str> = taps.iter().map(|tap| tap.name.as_str()).collect();
        Error::NoTap { name: name.into(), candidates: known.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_of_one_name_are_told_apart_by_their_reduction() {
        let pool = |dim| Reduce::Pool { dim, seed: 1 };
        let taps = [
            Tap::auto(),
            Tap::new("map").reduced(Reduce::Mean),
            Tap::new("map").reduced(pool(8)),
            Tap::new("map").reduced(pool(9)),
            Tap::new("map"),
            Tap::new("map@mean"),
        ];
        let want = ["auto", "map@mean", "map@pool", "map@pool#2", "map@none", "map@mean#2"];
        assert_eq!(names(taps.iter()), want);
    }

    #[test]
    fn a_tap_is_found_by_its_name() {
        let value = |shape: &[usize]| Value {
            shape: shape.to_vec(),
            data: vec![0.0; shape.iter().product()].into(),
        };
        let asked = |name: &str, reduce| Asked {
            tap: Tap::new(name).reduced(reduce),
            tensors: vec![name.into()],
        };
        let all =
            vec![asked("a", Reduce::None), asked("b", Reduce::Mean), asked("b", Reduce::None)];
        let tensors = tensors("y", &all);
        assert_eq!(tensors, ["y", "a", "b"]);
        let values = [value(&[2, 3]), value(&[2, 5]), value(&[2, 4, 1, 6])];
        let taps = fitted(all, &tensors, &values, 2).unwrap();
        let sizes: Vec<_> = taps.iter().map(|t| (t.places.clone(), t.features)).collect();
        assert_eq!(sizes, [(vec![1], 5), (vec![2], 4), (vec![2], 24)]);
        let at = |name: &str| index(&taps, name).map_err(|e| e.to_string());
        assert_eq!(
            (at("a"), at("a@none"), at("b@mean"), at("b@none")),
            (Ok(0), Ok(0), Ok(1), Ok(2))
        );
        let ambiguous = "no tap `b` in the model; candidates: a, b@mean, b@none";
        assert_eq!(at("b"), Err(ambiguous.into()));
    }
}
