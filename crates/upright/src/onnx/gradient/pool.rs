//! Pooling over windows.

use super::builder::{Builder, Step};
use super::conv::spread;
use crate::onnx::window::Window;
use crate::onnx::write::int;

fn window(b: &Builder<'_>, step: &Step<'_>) -> Result<(Window, Vec<usize>, Vec<usize>), String> {
    let (shape, out) = (b.shape(step.input(0)?)?, b.shape(step.node.out())?);
    let Some(kernel) = step.node.attr("kernel_shape") else { return Err("without kernel".into()) };
    if shape.len() < 3 || out.len() != shape.len() {
        return Err(format!("of rank {}", shape.len()));
    }
    let kernel = kernel.ints.iter().map(|k| usize::try_from(*k).unwrap_or(0)).collect();
    let window = Window::read(step.node, kernel, &shape[2..], &out[2..])?;
    Ok((window, shape, out))
}

/// Every window hands its share to all it saw.
pub(super) fn average(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (window, shape, out) = window(b, step)?;
    let with_pads = step.node.int("count_include_pad", 0) != 0;
    let rank = window.kernel.len();
    let mut counts = vec![1.0f32];
    for i in 0..rank {
        let (size, before) = (shape[2 + i], window.before[i]);
        let inside = |at: usize| {
            let (low, high) = if with_pads {
                (0, before + size + window.after[i])
            } else {
                (before, before + size)
            };
            (low..high).contains(&at)
        };
        let seen = |o: usize| {
            let at = |k: usize| o * window.strides[i] + k * window.dilations[i];
            (0..window.kernel[i]).filter(|&k| inside(at(k))).count() as f32
        };
        let along: Vec<f32> = (0..out[2 + i]).map(seen).collect();
        counts = counts.iter().flat_map(|c| along.iter().map(move |a| c * a)).collect();
    }
    let shares: Vec<f32> = counts.iter().map(|c| 1.0 / c).collect();
    let shares = b.floats(&[&[1, 1], &out[2..]].concat(), &shares);
    let d = b.mul(step.d()?, &shares);
    let channels = shape[1];
    let size: usize = window.kernel.iter().product();
    let ones =
        b.floats(&[&[channels, 1], window.kernel.as_slice()].concat(), &vec![1.0; channels * size]);
    let g = spread(b, &d, &ones, channels, &window, &shape[2..], &out[2..])?;
    b.give(step.input(0)?, g);
    Ok(())
}

/// Every window hands all to the first largest number it saw.
pub(super) fn max(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (window, shape, out) = window(b, step)?;
    let (x, rank) = (step.input(0)?, window.kernel.len());
    let size: usize = window.kernel.iter().product();
    let (mut before, mut after) = (vec![0; rank + 2], vec![0; rank + 2]);
    for i in 0..rank {
        let covered = (out[2 + i] - 1) * window.strides[i] + window.reach(i) + 1;
        before[2 + i] = window.before[i] as i64;
        after[2 + i] = covered.saturating_sub(window.before[i] + shape[2 + i]) as i64;
    }
    let pads = before.iter().chain(&after).any(|p| *p > 0);
    let source = if pads { b.padded(x, &before, &after, f32::MIN) } else { x.into() };
    // All windows side by side: [N, C, kernel, positions].
    let (n, channels) = (shape[0], shape[1]);
    let places: usize = out[2..].iter().product();
    let mut views = Vec::with_capacity(size);
    for tap in 0..size {
        let mut rest = tap;
        let mut view = source.clone();
        for i in (0..rank).rev() {
            let start = rest % window.kernel[i] * window.dilations[i];
            rest /= window.kernel[i];
            let end = start + (out[2 + i] - 1) * window.strides[i] + 1;
            view = b.cut(&view, 2 + i, start as i64, end as i64, window.strides[i] as i64);
        }
        views.push(b.reshape(&view, &[n, channels, 1, places]));
    }
    let views: Vec<&str> = views.iter().map(String::as_str).collect();
    let views = b.op_with("Concat", &views, vec![int("axis", 2)]);
    let chosen = b.op_with("ArgMax", &[&views], vec![int("axis", 2), int("keepdims", 1)]);
    let chosen = b.op_with("Cast", &[&chosen], vec![int("to", 1)]);
    let taps: Vec<f32> = (0..size).map(|t| t as f32).collect();
    let taps = b.floats(&[1, 1, size, 1], &taps);
    let hit = b.op("Equal", &[&taps, &chosen]);
    let d = b.reshape(step.d()?, &[n, channels, 1, places]);
    let zero = b.scalar(0.0);
    let each = b.op("Where", &[&hit, &d, &zero]);
    let each = b.reshape(&each, &[&[n, channels * size], &out[2..]].concat());
    let mut single = vec![0.0; channels * size * size];
    for c in 0..channels {
        for tap in 0..size {
            single[(c * size + tap) * size + tap] = 1.0;
        }
    }
    let single = b.floats(&[&[channels * size, 1], window.kernel.as_slice()].concat(), &single);
    let g = spread(b, &each, &single, channels, &window, &shape[2..], &out[2..])?;
    b.give(x, g);
    Ok(())
}
