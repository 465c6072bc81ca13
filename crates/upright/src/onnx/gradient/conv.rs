//! Conv and `ConvTranspose`.
//!
//! With stride 1 the gradient of a convolution is a convolution with the kernel
//! flipped and its channels exchanged. With a larger stride each remainder of
//! positions by the stride sees a part of the kernel of its own, again a
//! convolution; these are interleaved. What does not fit either is a
//! `ConvTranspose` with the very same weights, which engines run more slowly.

use super::builder::{Builder, Step};
use crate::onnx::Constant;
use crate::onnx::products::Product;
use crate::onnx::proto::AttributeProto;
use crate::onnx::window::Window;
use crate::onnx::write::{int, ints};

/// Most convolutions that one strided convolution is taken apart into.
const PHASES: usize = 9;

pub(super) fn conv(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, x, w) = (step.node, step.input(0)?, step.input(1)?);
    if b.wants(w) || node.arg(2).is_some_and(|bias| b.wants(bias)) {
        return Err("with weights that depend on the input".into());
    }
    let (xs, ws, ys) = (b.shape(x)?, b.shape(w)?, b.shape(node.out())?);
    if xs.len() < 3 || ws.len() != xs.len() || ys.len() != xs.len() {
        return Err(format!("of rank {}", xs.len()));
    }
    let window = Window::read(node, ws[2..].to_vec(), &xs[2..], &ys[2..])?;
    let groups = usize::try_from(node.int("group", 1)).ok().filter(|g| *g > 0).unwrap_or(1);
    let d = step.d()?;
    let dense = (0..window.kernel.len()).all(|i| {
        let reach = window.reach(i);
        window.strides[i] == 1 && window.before[i] <= reach && window.after[i] <= reach
    });
    let weight = b.constant(w);
    if let Some(weight) = weight.as_ref().filter(|_| !dense)
        && let Some(g) = phased(b, d, weight, groups, &window, &xs, &ys)
    {
        b.give(x, g);
        return Ok(());
    }
    let g = match weight.filter(|_| dense).and_then(|w| flipped(&w, groups)) {
        Some(w) => {
            let rank = window.kernel.len();
            let before = (0..rank).map(|i| window.reach(i) - window.before[i]).collect();
            let after = (0..rank).map(|i| window.reach(i) - window.after[i]).collect();
            let window = Window { before, after, ..window };
            slid(b, d, &w, groups, &window, &ys[2..], &xs[2..])
        }
        None => spread(b, d, w, groups, &window, &xs[2..], &ys[2..])?,
    };
    b.give(x, g);
    Ok(())
}

/// Slides a kernel over `d`, of spatial sizes `from`; the result has sizes `to`.
fn slid(
    b: &mut Builder<'_>,
    d: &str,
    kernel: &Constant,
    groups: usize,
    window: &Window,
    from: &[usize],
    to: &[usize],
) -> String {
    if let Some(product) = Product::of(kernel, groups, window, from, to) {
        return b.product(&product, d);
    }
    let kernel = b.floats(&kernel.shape, &kernel.data);
    b.op_with("Conv", &[d, &kernel], attributes(groups, window, &window.after))
}

/// What a convolution says about its window, with the padding after the last position.
fn attributes(groups: usize, window: &Window, after: &[usize]) -> Vec<AttributeProto> {
    let list = |name: &str, v: &[usize]| ints(name, v.iter().map(|v| *v as i64));
    vec![
        int("group", groups as i64),
        list("kernel_shape", &window.kernel),
        list("strides", &window.strides),
        list("dilations", &window.dilations),
        list("pads", &[&window.before, after].concat()),
    ]
}

/// The kernel seen from its output: reversed in space, channels exchanged within each group.
fn flipped(w: &Constant, groups: usize) -> Option<Constant> {
    let (&[outer, inner], kernel) = w.shape.split_first_chunk::<2>()?;
    let size: usize = kernel.iter().product();
    let each = outer.checked_div(groups)?;
    if each * groups != outer || w.data.len() != outer * inner * size {
        return None;
    }
    let mut data = Vec::with_capacity(w.data.len());
    for group in 0..groups {
        for c in 0..inner {
            for m in 0..each {
                let from = ((group * each + m) * inner + c) * size;
                data.extend(w.data[from..from + size].iter().rev());
            }
        }
    }
    let shape = [&[groups * inner, each], kernel].concat();
    Some(Constant { shape, data })
}

/// The taps `phase + j * stride` of a kernel; `None` if there are none.
fn part(w: &Constant, phase: &[usize], strides: &[usize]) -> Option<Constant> {
    let (&[outer, inner], kernel) = w.shape.split_first_chunk::<2>()?;
    let along = |i: usize| (phase[i]..kernel[i]).step_by(strides[i]);
    let counts: Vec<usize> = (0..kernel.len()).map(|i| along(i).count()).collect();
    if counts.contains(&0) {
        return None;
    }
    let mut taps = vec![0];
    for (i, size) in kernel.iter().enumerate() {
        taps = taps.iter().flat_map(|t| along(i).map(move |k| t * size + k)).collect();
    }
    let size: usize = kernel.iter().product();
    let data = w.data.chunks(size).flat_map(|k| taps.iter().map(|t| k[*t])).collect();
    Some(Constant { shape: [&[outer, inner], counts.as_slice()].concat(), data })
}

/// The gradient for strides above 1: position `stride q + phase - pad` of the input collects
/// `sum over j of d[q - j] w[stride j + phase]`. `None` if another way is better.
fn phased(
    b: &mut Builder<'_>,
    d: &str,
    w: &Constant,
    groups: usize,
    window: &Window,
    xs: &[usize],
    ys: &[usize],
) -> Option<String> {
    let rank = window.kernel.len();
    let strides = &window.strides;
    let count: usize = strides.iter().product();
    if count > PHASES || window.dilations.iter().any(|d| *d != 1) {
        return None;
    }
    let lengths: Vec<usize> =
        (0..rank).map(|i| (xs[2 + i] + window.before[i]).div_ceil(strides[i])).collect();
    if (0..rank).any(|i| lengths[i] < ys[2 + i]) {
        return None;
    }
    let (n, channels) = (xs[0], xs[1]);
    let mut phases = Vec::with_capacity(count);
    for at in 0..count {
        let mut phase = vec![0; rank];
        let mut rest = at;
        for i in (0..rank).rev() {
            phase[i] = rest % strides[i];
            rest /= strides[i];
        }
        phases.push(match part(w, &phase, strides) {
            Some(kernel) => {
                let kernel = flipped(&kernel, groups)?;
                let size = kernel.shape[2..].to_vec();
                let window = Window {
                    before: size.iter().map(|k| k - 1).collect(),
                    after: (0..rank).map(|i| lengths[i] - ys[2 + i]).collect(),
                    strides: vec![1; rank],
                    dilations: vec![1; rank],
                    kernel: size,
                };
                slid(b, d, &kernel, groups, &window, &ys[2..], &lengths)
            }
            None => b.zeros(&[&[n, channels], lengths.as_slice()].concat()),
        });
    }
    let phases: Vec<&str> = phases.iter().map(String::as_str).collect();
    let all = b.op_with("Concat", &phases, vec![int("axis", 1)]);
    // [N, phases.., C, lengths..] to [N, C, length, phase, length, phase, ..], one at a time:
    // engines move a single dimension much faster than several.
    let full: Vec<usize> = (0..rank).map(|i| lengths[i] * strides[i]).collect();
    let mut g = all;
    for i in (0..rank).rev() {
        let (phases, lengths) = (&strides[..=i], &lengths[..=i]);
        g = b.reshape(&g, &[&[n], phases, &[channels], lengths, &full[i + 1..]].concat());
        let mut perm: Vec<usize> = (0..3 + i + rank).filter(|axis| *axis != 1 + i).collect();
        perm.insert(2 + 2 * i + 1, 1 + i);
        g = b.transpose(&g, &perm);
    }
    g = b.reshape(&g, &[&[n, channels], full.as_slice()].concat());
    for i in 0..rank {
        let (from, to) = (window.before[i], window.before[i] + xs[2 + i]);
        if from > 0 || to < full[i] {
            g = b.cut(&g, 2 + i, from as i64, to as i64, 1);
        }
    }
    Some(g)
}

/// Adds every number of `d`, whose spatial sizes are `from`, times the kernel, to the places
/// of sizes `to` that its window saw.
pub(super) fn spread(
    b: &mut Builder<'_>,
    d: &str,
    weight: &str,
    groups: usize,
    window: &Window,
    to: &[usize],
    from: &[usize],
) -> Result<String, String> {
    let rank = to.len();
    let (mut after, mut extra) = (vec![0; rank], vec![0; rank]);
    for i in 0..rank {
        if from[i] == 0 {
            return Err("without positions".into());
        }
        let covered = (from[i] - 1) * window.strides[i] + window.reach(i) + 1;
        let needed = window.before[i] + to[i];
        after[i] = covered.saturating_sub(needed);
        extra[i] = needed.saturating_sub(covered);
    }
    let mut attributes = attributes(groups, window, &after);
    attributes.push(ints("output_padding", extra.iter().map(|v| *v as i64)));
    Ok(b.op_with("ConvTranspose", &[d, weight], attributes))
}

pub(super) fn conv_transpose(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, x, w) = (step.node, step.input(0)?, step.input(1)?);
    if b.wants(w) || node.arg(2).is_some_and(|bias| b.wants(bias)) {
        return Err("with weights that depend on the input".into());
    }
    if node.attr("output_shape").is_some()
        || node.attr("auto_pad").is_some_and(|a| a.s.as_deref() != Some(b"NOTSET"))
    {
        return Err("with automatic padding".into());
    }
    let (xs, ws, ys) = (b.shape(x)?, b.shape(w)?, b.shape(node.out())?);
    if xs.len() < 3 || ws.len() != xs.len() || ys.len() != xs.len() {
        return Err(format!("of rank {}", xs.len()));
    }
    let window = Window::read(node, ws[2..].to_vec(), &ys[2..], &xs[2..])?;
    let groups = usize::try_from(node.int("group", 1)).map_err(|_| "with negative groups")?;
    let g = b.op_with("Conv", &[step.d()?, w], attributes(groups, &window, &window.after));
    b.give(x, g);
    Ok(())
}
