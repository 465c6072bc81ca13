//! Reading off a graph what a classifier takes and gives.

use crate::engine::{self, Input, Value};
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::model::{AUTO, Options};
use crate::onnx::depth::{Depth, nearest};
use crate::onnx::{Dim, Ending, Graph, Port};
use crate::preprocess::{Channels, Overrides, Preprocess, Resize, Size};
use crate::tensor::{Batch, Signal, SignalKind};

pub(super) fn unusable(model: &str, why: String) -> Error {
    Error::Model { path: model.into(), why }
}

/// The one input of real numbers.
pub(super) fn input(graph: &Graph) -> Result<Port> {
    let inputs = graph.inputs();
    let list = || inputs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    match inputs.as_slice() {
        [one] if matches!(one.element, "float" | "float16" | "double") => Ok(one.clone()),
        [_] => Err(unusable(graph.name(), format!("its input must be of type float: {}", list()))),
        _ => Err(unusable(graph.name(), format!("it must have one input, it has: [{}]", list()))),
    }
}

/// What one item is, and how pictures become one.
pub(super) fn signal(
    graph: &Graph,
    input: &Port,
    said: Overrides,
    options: &Options,
) -> Result<(Signal, Preprocess)> {
    let bad = |why: &str| unusable(graph.name(), format!("input {input}: {why}"));
    let open = |why: &str, hint: Hint| Error::OpenInput {
        path: graph.name().into(),
        why: format!("input {input}: {why}"),
        hint: Some(hint),
    };
    let dims = input.dims.as_deref().unwrap_or(&[]);
    let fits = |shape: &[usize]| {
        dims.is_empty()
            || dims.len() == shape.len() + 1
                && dims[1..].iter().zip(shape).all(|(d, s)| match d {
                    Dim::Fixed(n) => n == s,
                    Dim::Symbol(_) => true,
                })
    };
    if let Some(signal) = options.signal {
        if !fits(&signal.shape()) {
            return Err(bad(&format!("it cannot take items of {:?}", signal.shape())));
        }
        return Ok((signal, preprocess(signal, said)?));
    }
    let kind = match options.kind {
        Some(kind) => Some(kind),
        None => graph.metadata().get("signal").and_then(|word| SignalKind::parse(word).ok()),
    };
    let fourth = matches!(kind, None | Some(SignalKind::Image));
    match dims {
        [_, Dim::Fixed(channels), height, width] if fourth => {
            let guess = || graph.side(&input.name, *channels);
            let unsaid = || open("its size is open", Hint::SaySize);
            image(&bad, &unsaid, *channels, (height, width), said, &guess)
        }
        [_, rows, Dim::Fixed(3)] if kind != Some(SignalKind::Image) => {
            let rows = match (rows, &options.rows) {
                (Dim::Fixed(n), _) | (_, Some(n)) => *n,
                _ => {
                    return Err(open("its number of points is open", Hint::SayPoints));
                }
            };
            let signal = match kind.or_else(|| named(&input.name)) {
                Some(SignalKind::Strokes) => Signal::Strokes { length: rows },
                Some(_) => Signal::Cloud { points: rows },
                None => {
                    return Err(open("it may take strokes or a point cloud", Hint::SaySignal));
                }
            };
            if signal.shape().contains(&0) {
                return Err(bad("it is empty"));
            }
            Ok((signal, plain()))
        }
        [_, Dim::Fixed(3), _] => Err(bad("coordinates come first; export it with [N,points,3]")),
        _ => {
            let kind = kind.map_or(String::new(), |k| format!("; it is said to take {k}"));
            Err(bad(&format!(
                "it must be [N,C,H,W] for images, [N,L,3] for strokes or points{kind}"
            )))
        }
    }
}

/// Most numbers that are fed at once: 256 MiB.
const LARGEST: usize = 1 << 26;

/// Items of a signal that can be fed at once, if one can.
pub(super) fn fits(graph: &Graph, input: &Port, signal: Signal, fixed: usize) -> Result<usize> {
    let of = |items: usize| signal.shape().iter().fold(items, |a, d| a.saturating_mul(*d));
    if of(fixed) > LARGEST {
        let why = format!("input {input}: {} numbers at once are more than {LARGEST}", of(fixed));
        return Err(unusable(graph.name(), why));
    }
    Ok(LARGEST / of(1).max(1))
}

/// What an input of three columns holds, by its name.
fn named(name: &str) -> Option<SignalKind> {
    let name = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| name.contains(w));
    if has(&["stroke", "sketch", "draw"]) {
        Some(SignalKind::Strokes)
    } else if has(&["point", "cloud", "xyz", "pcd", "vert"]) {
        Some(SignalKind::Cloud)
    } else {
        None
    }
}

/// How items of this size are prepared, as far as they are images.
pub(super) fn preprocess(signal: Signal, said: Overrides) -> Result<Preprocess> {
    match signal {
        Signal::Image { channels, .. } => said.resolve(channels),
        _ => Ok(plain()),
    }
}

/// What items are, where images keep what a crop to what the network is fed with cuts off.
pub(super) fn kept(fed: Signal, preprocess: &Preprocess) -> Signal {
    let Signal::Image { channels, height, width } = fed else { return fed };
    let cropped = preprocess.crop == Some(Size { height, width });
    let whole = preprocess.kept().filter(|_| cropped);
    whole.map_or(fed, |s| Signal::image(channels, s.height, s.width))
}

/// No preprocessing.
fn plain() -> Preprocess {
    Preprocess { channels: Channels::AsGiven, ..Preprocess::default() }
}

fn image(
    bad: &dyn Fn(&str) -> Error,
    unsaid: &dyn Fn() -> Error,
    channels: usize,
    (height, width): (&Dim, &Dim),
    said: Overrides,
    guess: &dyn Fn() -> Option<usize>,
) -> Result<(Signal, Preprocess)> {
    let mut preprocess = said.resolve(channels)?;
    let shorter = match preprocess.resize {
        Some(Resize::Shorter(n)) => Some(Size { height: n, width: n }),
        _ => None,
    };
    let both_open = matches!((height, width), (Dim::Symbol(_), Dim::Symbol(_)));
    let guessed = || both_open.then(guess).flatten().map(|n| Size { height: n, width: n });
    let open = preprocess.size().or(shorter).or_else(guessed);
    let side = |dim: &Dim, open: Option<usize>| match dim {
        Dim::Fixed(n) => Ok(*n),
        Dim::Symbol(_) => open.ok_or_else(unsaid),
    };
    let size = Size {
        height: side(height, open.map(|s| s.height))?,
        width: side(width, open.map(|s| s.width))?,
    };
    let signal = Signal::image(channels, size.height, size.width);
    if signal.shape().contains(&0) {
        return Err(bad("it is empty"));
    }
    if shorter.is_some() && preprocess.crop.is_none() && preprocess.pad.is_none() {
        preprocess.crop = Some(size);
    }
    Ok((signal, preprocess))
}

/// The output that holds the classes.
pub(super) fn output(graph: &Graph, asked: Option<&str>) -> Result<String> {
    let outputs = graph.outputs();
    if let Some(name) = asked {
        if outputs.iter().any(|o| o.name == name) || graph.position(name).is_some() {
            return Ok(name.into());
        }
        let known: Vec<_> = outputs.into_iter().map(|o| o.name).collect();
        return Err(Error::UnknownName {
            kind: "output",
            name: name.into(),
            known: known.join(", "),
        });
    }
    let real = |o: &&Port| matches!(o.element, "float" | "float16" | "double" | "unknown");
    let named = |name: &str| outputs.iter().filter(real).find(|o| o.name == name);
    let flat =
        || outputs.iter().filter(real).find(|o| o.dims.as_ref().is_some_and(|d| d.len() == 2));
    let found = named("logits").or_else(|| named("output")).or_else(flat);
    match found.or_else(|| outputs.iter().find(|o| real(o))) {
        Some(port) => Ok(port.name.clone()),
        None => Err(unusable(graph.name(), "it has no output of type float".into())),
    }
}

/// The share that a tap such as `60%` names.
fn percent(name: &str) -> Option<f64> {
    let share = name.strip_suffix('%')?.parse::<f64>().ok()? / 100.0;
    (0.0..=1.0).contains(&share).then_some(share)
}

/// The tensors a tap reads: by name, what the last linear layer reads, or the end of the block
/// nearest to a share of the multiplications, as in `60%`.
pub(super) fn tensors(
    graph: &Graph,
    output: &str,
    ending: &Ending,
    name: &str,
    depths: impl FnOnce() -> Vec<Depth>,
) -> Result<Vec<String>> {
    let found = if name == AUTO {
        ending.features.clone()
    } else if let Some(share) = percent(name) {
        return Ok(nearest(&depths(), share).map(|d| d.name.clone()).into_iter().collect());
    } else if graph.position(name).is_some() {
        vec![name.to_string()]
    } else {
        vec![]
    };
    if found.is_empty() {
        let names: Vec<_> = graph.candidates(output).into_iter().map(|c| c.name).collect();
        return Err(Error::NoTap { name: name.into(), candidates: names.join(", ") });
    }
    Ok(found)
}

/// Runs a graph once, on a batch of zeros.
pub(super) fn once(
    engine: &str,
    input: &str,
    shape: &[usize],
) -> impl Fn(&Graph, &[String]) -> Result<Vec<Vec<f32>>> {
    let zeros = vec![0.0; shape.iter().product()];
    move |graph, names| {
        let input = Input { name: input, shape, data: &zeros };
        let all: Vec<usize> = (0..names.len()).collect();
        let values = engine::load(engine, graph, names, Some(1))?.run(&[input], &all)?;
        Ok(values.into_iter().map(|v| v.data.into()).collect())
    }
}

/// The number of classes, from logits of some items; 1 if each gives a single number.
pub(super) fn classes(logits: &Value, items: usize) -> Option<usize> {
    let shape = logits.shape.as_slice();
    let rest = match shape {
        [n, rest @ ..] if *n == items => rest,
        all if items == 1 => all,
        _ => return None,
    };
    let wide: Vec<usize> = rest.iter().copied().filter(|d| *d != 1).collect();
    match wide.as_slice() {
        [] => Some(1),
        [classes] if *classes > 1 => Some(*classes),
        _ => None,
    }
}

/// Class names from metadata called `names`, `classes`, `class_names` or `labels`: a JSON list
/// or object, a Python dictionary, or words separated by commas or lines.
pub(super) fn class_names(graph: &Graph, classes: usize) -> Option<Vec<String>> {
    let metadata = graph.metadata();
    let text =
        ["names", "classes", "class_names", "labels"].iter().find_map(|k| metadata.get(*k))?;
    let names = names(text)?;
    (names.len() == classes).then_some(names)
}

fn names(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if let Ok(list) = serde_json::from_str::<Vec<String>>(text) {
        return Some(list);
    }
    if let Ok(map) = serde_json::from_str::<std::collections::BTreeMap<String, String>>(text) {
        return ordered(
            map.into_iter().map(|(k, v)| Some((k.parse().ok()?, v))).collect::<Option<_>>()?,
        );
    }
    if let Some(body) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        let pair = |part: &str| {
            let (key, name) = part.split_once(':')?;
            let name = name.trim().trim_matches(['\'', '"']);
            Some((key.trim().parse().ok()?, name.to_string()))
        };
        return ordered(body.split(", ").map(pair).collect::<Option<_>>()?);
    }
    let mark = if text.contains('\n') { '\n' } else { ',' };
    Some(text.split(mark).map(|s| s.trim().to_string()).collect())
}

fn ordered(mut pairs: Vec<(usize, String)>) -> Option<Vec<String>> {
    pairs.sort();
    let numbered = pairs.iter().enumerate().all(|(i, (k, _))| i == *k);
    numbered.then(|| pairs.into_iter().map(|(_, name)| name).collect())
}

/// Items that differ from each other, to try a model with.
pub(super) fn specimen(signal: Signal, items: usize) -> Result<Batch<'static>> {
    let size = items * signal.size();
    let data = (0..size).map(|i| {
        let wave = (i as f64 * 0.618_033_988_749_895).fract() as f32;
        match signal {
            Signal::Strokes { .. } if i % 3 == 2 => f32::from(u8::from(i % signal.size() == 2)),
            Signal::Strokes { .. } => 100.0 * wave,
            _ => wave,
        }
    });
    Batch::new(signal, data.collect())
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn class_names_are_read_from_lists_dictionaries_and_lines() {
        for text in
            ["[\"a\",\"b\"]", "{\"0\":\"a\",\"1\":\"b\"}", "{0: 'a', 1: 'b'}", "a, b", "a\nb"]
        {
            assert_eq!(names(text).unwrap(), ["a", "b"], "{text}");
        }
        assert_eq!(names("{0: 'a', 5: 'b'}"), None);
    }
}
