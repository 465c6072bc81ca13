//! Conv and `ConvTranspose`.
//!
//! With stride 1 the gradient of a convolution is a convolution with the kernel
//! flipped and its channels exchanged. With a larger stride it is a
//! `ConvTranspose` with the very same weights.

use super::builder::{Builder, Step, int, ints};
use crate::onnx::Constant;
use crate::onnx::proto::NodeProto;

/// A sliding window along each spatial dimension.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub(super) kernel: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    /// Padding before the first position.
    pub(super) before: Vec<usize>,
    /// Padding after the last one, as the file says it.
    pub(super) after: Vec<usize>,
}

impl Window {
    /// Reads the attributes of a node that turns spatial sizes `from` into `to` by sliding a
    /// window.
    pub(super) fn read(
        node: &NodeProto,
        kernel: Vec<usize>,
        from: &[usize],
        to: &[usize],
    ) -> Result<Self, String> {
        let rank = kernel.len();
        if from.len() != rank || to.len() != rank {
            return Err("with a kernel of another rank".into());
        }
        let list = |name: &str, default: usize, len: usize| -> Result<Vec<usize>, String> {
            match node.attr(name) {
                Some(a) if a.ints.len() == len => a
                    .ints
                    .iter()
                    .map(|v| usize::try_from(*v).map_err(|_| format!("with negative {name}")))
                    .collect(),
                Some(a) if !a.ints.is_empty() => Err(format!("with {} {name}", a.ints.len())),
                _ => Ok(vec![default; len]),
            }
        };
        let strides = list("strides", 1, rank)?;
        let dilations = list("dilations", 1, rank)?;
        let pads = list("pads", 0, 2 * rank)?;
        if kernel.iter().chain(&strides).chain(&dilations).any(|v| *v == 0) {
            return Err("with a window of size 0".into());
        }
        let (mut before, mut after) = (pads[..rank].to_vec(), pads[rank..].to_vec());
        let auto = node.attr("auto_pad").and_then(|a| a.s.as_deref()).unwrap_or(b"NOTSET");
        if auto.starts_with(b"SAME") {
            for i in 0..rank {
                let covered = (to[i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1;
                let total = covered.saturating_sub(from[i]);
                let (small, large) = (total / 2, total - total / 2);
                (before[i], after[i]) =
                    if auto == b"SAME_UPPER" { (small, large) } else { (large, small) };
            }
        }
        Ok(Window { kernel, strides, dilations, before, after })
    }

    /// Cells between the first and the last the window sees.
    pub(super) fn reach(&self, i: usize) -> usize {
        self.dilations[i] * (self.kernel[i] - 1)
    }
}

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
    let weight = b.constant(w).filter(|_| dense);
    let g = match weight.and_then(|w| flipped(&w, groups)) {
        Some(w) => {
            let rank = window.kernel.len();
            let w = b.floats(&w.shape, w.data);
            let before = (0..rank).map(|i| window.reach(i) - window.before[i]);
            let after = (0..rank).map(|i| window.reach(i) - window.after[i]);
            let pads: Vec<usize> = before.chain(after).collect();
            let attributes = vec![
                int("group", groups as i64),
                list("kernel_shape", &window.kernel),
                list("strides", &window.strides),
                list("dilations", &window.dilations),
                list("pads", &pads),
            ];
            b.op_with("Conv", &[d, &w], attributes)
        }
        None => spread(b, d, w, groups, &window, &xs[2..], &ys[2..])?,
    };
    b.give(x, g);
    Ok(())
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
    let pads = [window.before.as_slice(), &after].concat();
    let attributes = vec![
        int("group", groups as i64),
        list("kernel_shape", &window.kernel),
        list("strides", &window.strides),
        list("dilations", &window.dilations),
        list("pads", &pads),
        list("output_padding", &extra),
    ];
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
    let pads = [window.before.as_slice(), &window.after].concat();
    let attributes = vec![
        int("group", node.int("group", 1)),
        list("kernel_shape", &window.kernel),
        list("strides", &window.strides),
        list("dilations", &window.dilations),
        list("pads", &pads),
    ];
    let g = b.op_with("Conv", &[step.d()?, w], attributes);
    b.give(x, g);
    Ok(())
}

fn list(name: &str, values: &[usize]) -> crate::onnx::proto::AttributeProto {
    ints(name, values.iter().map(|v| *v as i64))
}
