//! Operators that move numbers without changing them.

use super::builder::{Builder, Step, axis};
use crate::onnx::write::{int, text};

pub(super) fn reshape(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (x, d) = (step.input(0)?, step.d()?);
    let to = b.shape(x)?;
    let same = b.shape(step.node.out())? == to;
    let g = if same { d.into() } else { b.reshape(d, &to) };
    b.give(x, g);
    Ok(())
}

pub(super) fn cast(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (x, d) = (step.input(0)?, step.d()?);
    let g = if b.opset() >= 15 { b.op("CastLike", &[d, x]) } else { d.into() };
    b.give(x, g);
    Ok(())
}

pub(super) fn transpose(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let x = step.input(0)?;
    let rank = b.shape(x)?.len();
    let perm: Vec<usize> = match step.node.attr("perm") {
        Some(a) => a.ints.iter().map(|p| axis(*p, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut back = vec![0; rank];
    for (i, &p) in perm.iter().enumerate() {
        back[p] = i;
    }
    let g = b.transpose(step.d()?, &back);
    b.give(x, g);
    Ok(())
}

pub(super) fn expand(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let x = step.input(0)?;
    let (from, to) = (b.shape(step.node.out())?, b.shape(x)?);
    let g = b.unspread(step.d()?.into(), &from, &to);
    b.give(x, g);
    Ok(())
}

pub(super) fn tile(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let x = step.input(0)?;
    let (from, to) = (b.shape(step.node.out())?, b.shape(x)?);
    let mut split = Vec::new();
    for (f, t) in from.iter().zip(&to) {
        split.extend([f / (*t).max(1), *t]);
    }
    let d = b.reshape(step.d()?, &split);
    let d = b.sum(&d, &(0..to.len()).map(|i| 2 * i).collect::<Vec<_>>());
    let g = b.reshape(&d, &to);
    b.give(x, g);
    Ok(())
}

pub(super) fn concat(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let rank = b.shape(step.node.out())?.len();
    let at = axis(step.node.int("axis", 1), rank)?;
    let mut from = 0;
    for x in &step.node.input {
        let size = b.shape(x)?[at];
        if b.wants(x) {
            let g = b.cut(step.d()?, at, from as i64, (from + size) as i64, 1);
            b.give(x, g);
        }
        from += size;
    }
    Ok(())
}

pub(super) fn split(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let x = step.input(0)?;
    let at = axis(step.node.int("axis", 0), b.shape(x)?.len())?;
    let mut parts = Vec::new();
    for (name, d) in step.node.output.iter().zip(step.outputs()) {
        parts.push(if let Some(d) = d {
            d.clone()
        } else {
            let shape = b.shape(name)?;
            b.zeros(&shape)
        });
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let g = b.op_with("Concat", &parts, vec![int("axis", at as i64)]);
    b.give(x, g);
    Ok(())
}

pub(super) fn slice(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, x) = (step.node, step.input(0)?);
    let shape = b.shape(x)?;
    let list = |i: usize, name: &str| match (node.arg(i), node.attr(name)) {
        (Some(input), _) => b.integers(input).map(Some),
        (None, Some(a)) => Ok(Some(a.ints.clone())),
        (None, None) => Ok(None),
    };
    let starts = list(1, "starts")?.ok_or("without starts")?;
    let count = starts.len();
    let axes = list(3, "axes")?.unwrap_or_else(|| (0..count as i64).collect());
    let steps = list(4, "steps")?.unwrap_or_else(|| vec![1; count]);
    if axes.len() != count || steps.len() != count {
        return Err("with lists of unlike lengths".into());
    }
    let mut now = b.shape(node.out())?;
    let mut d = step.d()?.to_string();
    for ((at, start), by) in axes.iter().zip(&starts).zip(&steps) {
        let at = axis(*at, shape.len())?;
        let size = shape[at] as i64;
        let start = if *start < 0 { start + size } else { *start };
        let start = start.clamp(0, if *by < 0 { size - 1 } else { size });
        let place = |i: usize| usize::try_from(start + i as i64 * by).unwrap_or(usize::MAX);
        let places: Vec<usize> = (0..now[at]).map(place).collect();
        if places.iter().any(|p| *p >= shape[at]) {
            return Err("outside its input".into());
        }
        d = b.place(&d, &now, at, &places, shape[at]);
        now[at] = shape[at];
    }
    b.give(x, d);
    Ok(())
}

pub(super) fn gather(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, x) = (step.node, step.input(0)?);
    let (shape, out) = (b.shape(x)?, b.shape(node.out())?);
    let at = axis(node.int("axis", 0), shape.len())?;
    let size = shape[at] as i64;
    let place = |i: &i64| {
        let i = if *i < 0 { i + size } else { *i };
        usize::try_from(i).ok().filter(|i| *i < shape[at]).ok_or("outside its input")
    };
    let places = b.integers(step.input(1)?)?;
    let places: Vec<usize> = places.iter().map(place).collect::<Result<_, _>>()?;
    let mut flat = shape.clone();
    flat[at] = places.len();
    let d = step.d()?;
    let d = if out == flat { d.to_string() } else { b.reshape(d, &flat) };
    let g = b.place(&d, &flat, at, &places, shape[at]);
    b.give(x, g);
    Ok(())
}

pub(super) fn gather_elements(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    scatter(b, step, step.input(1)?, step.node.int("axis", 0))
}

pub(super) fn top_k(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    match step.node.output.get(1).filter(|o| !o.is_empty()) {
        Some(indices) => scatter(b, step, indices, step.node.int("axis", -1)),
        None => Err("without indices".into()),
    }
}

/// Adds every derivative where its number came from.
fn scatter(b: &mut Builder<'_>, step: &Step<'_>, indices: &str, at: i64) -> Result<(), String> {
    if b.opset() < 16 {
        return Err("before opset 16".into());
    }
    let x = step.input(0)?;
    let shape = b.shape(x)?;
    let at = axis(at, shape.len())?;
    let zeros = b.zeros(&shape);
    let attributes = vec![int("axis", at as i64), text("reduction", "add")];
    let g = b.op_with("ScatterElements", &[&zeros, indices, step.d()?], attributes);
    b.give(x, g);
    Ok(())
}

pub(super) fn pad(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, x) = (step.node, step.input(0)?);
    let (shape, out) = (b.shape(x)?, b.shape(node.out())?);
    let rank = shape.len();
    let pads = match (node.arg(1), node.attr("pads")) {
        (Some(name), _) => b.integers(name)?,
        (None, Some(a)) => a.ints.clone(),
        (None, None) => return Err("without pads".into()),
    };
    let axes: Vec<usize> = match node.arg(3) {
        Some(name) => b.integers(name)?.iter().map(|a| axis(*a, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err("with too few pads".into());
    }
    let mode = node.attr("mode").and_then(|a| a.s.clone()).unwrap_or_else(|| b"constant".to_vec());
    let mut now = out;
    let mut d = step.d()?.to_string();
    for (i, &at) in axes.iter().enumerate() {
        let (before, after) = (pads[i], pads[i + axes.len()]);
        if before == 0 && after == 0 {
            continue;
        }
        let size = shape[at] as i64;
        if mode == b"constant" {
            let (mut first, mut last) = (vec![0; rank], vec![0; rank]);
            (first[at], last[at]) = (-before, -after);
            d = b.padded(&d, &first, &last, 0.0);
        } else {
            let from = |i: usize| {
                let i = i as i64 - before;
                let i = match mode.as_slice() {
                    b"edge" => i.clamp(0, size - 1),
                    b"reflect" if i < 0 => -i,
                    b"reflect" if i >= size => 2 * (size - 1) - i,
                    b"wrap" => i.rem_euclid(size),
                    _ => i,
                };
                usize::try_from(i).ok().filter(|i| *i < shape[at]).ok_or("beyond its input")
            };
            let places: Vec<usize> = (0..now[at]).map(from).collect::<Result<_, _>>()?;
            d = b.place(&d, &now, at, &places, shape[at]);
        }
        now[at] = shape[at];
    }
    b.give(x, d);
    Ok(())
}

pub(super) fn choose(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (condition, yes, no) = (step.input(0)?, step.input(1)?, step.input(2)?);
    let from = b.shape(step.node.out())?;
    let zero = b.scalar(0.0);
    for (x, chosen) in [(yes, true), (no, false)] {
        if b.wants(x) {
            let d = step.d()?;
            let picks = if chosen { [condition, d, &zero] } else { [condition, &zero, d] };
            let g = b.op("Where", &picks);
            let to = b.shape(x)?;
            let g = b.unspread(g, &from, &to);
            b.give(x, g);
        }
    }
    Ok(())
}
