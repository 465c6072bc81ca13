//! Normalisations and softmax.

use super::builder::{Builder, Step, axis};

/// Scale and statistics are constants, so the gradient is a factor a channel.
pub(super) fn batch(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, x) = (step.node, step.input(0)?);
    if node.int("training_mode", 0) != 0 {
        return Err("in training".into());
    }
    let rank = b.shape(x)?.len();
    let fixed = |i: usize| b.constant(step.input(i).ok()?);
    let (Some(scale), Some(var)) = (fixed(1), fixed(4)) else {
        return Err("with computed statistics".into());
    };
    let epsilon = f64::from(node.real("epsilon", 1e-5));
    let gain = |(s, v): (&f32, &f32)| (f64::from(*s) / libm::sqrt(f64::from(*v) + epsilon)) as f32;
    let gains: Vec<f32> = scale.data.iter().zip(&var.data).map(gain).collect();
    let mut shape = vec![1; rank];
    if let Some(c) = shape.get_mut(1) {
        *c = gains.len();
    }
    let gains = b.floats(&shape, &gains);
    let g = b.mul(step.d()?, &gains);
    b.give(x, g);
    Ok(())
}

pub(super) fn layer(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, x, scale) = (step.node, step.input(0)?, step.input(1)?);
    if b.wants(scale) || node.arg(2).is_some_and(|bias| b.wants(bias)) {
        return Err("with weights that depend on the input".into());
    }
    let rank = b.shape(x)?.len();
    let first = axis(node.int("axis", -1), rank)?;
    let axes: Vec<usize> = (first..rank).collect();
    let d = b.mul(step.d()?, scale);
    let g = whitened(b, x, &d, &axes, node.real("epsilon", 1e-5));
    b.give(x, g);
    Ok(())
}

pub(super) fn instance(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, x, scale) = (step.node, step.input(0)?, step.input(1)?);
    if b.wants(scale) || node.arg(2).is_some_and(|bias| b.wants(bias)) {
        return Err("with weights that depend on the input".into());
    }
    let shape = b.shape(x)?;
    if shape.len() < 3 {
        return Err(format!("of rank {}", shape.len()));
    }
    let axes: Vec<usize> = (2..shape.len()).collect();
    let mut channels = vec![1; shape.len()];
    channels[1] = shape[1];
    let scale = b.reshape(scale, &channels);
    let d = b.mul(step.d()?, &scale);
    let g = whitened(b, x, &d, &axes, node.real("epsilon", 1e-5));
    b.give(x, g);
    Ok(())
}

/// Through `h = (x - mean) / s` with `s = sqrt(var + epsilon)`:
/// `(d - mean(d) - h mean(d h)) / s`.
fn whitened(b: &mut Builder<'_>, x: &str, d: &str, axes: &[usize], epsilon: f32) -> String {
    let mean = b.mean(x, axes);
    let centred = b.sub(x, &mean);
    let square = b.mul(&centred, &centred);
    let var = b.mean(&square, axes);
    let epsilon = b.scalar(epsilon);
    let var = b.add(&var, &epsilon);
    let s = b.op("Sqrt", &[&var]);
    let h = b.div(&centred, &s);
    let level = b.mean(d, axes);
    let along = b.mul(d, &h);
    let along = b.mean(&along, axes);
    let rest = b.sub(d, &level);
    let along = b.mul(&h, &along);
    let rest = b.sub(&rest, &along);
    b.div(&rest, &s)
}

pub(super) fn softmax(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (x, y, d) = (step.input(0)?, step.node.out(), step.d()?);
    let axis = softmax_axis(b, step)?;
    let weighted = b.mul(d, y);
    let mean = b.sum(&weighted, &[axis]);
    let rest = b.sub(d, &mean);
    let g = b.mul(y, &rest);
    b.give(x, g);
    Ok(())
}

pub(super) fn log_softmax(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (x, y, d) = (step.input(0)?, step.node.out(), step.d()?);
    let axis = softmax_axis(b, step)?;
    let total = b.sum(d, &[axis]);
    let p = b.op("Exp", &[y]);
    let shared = b.mul(&p, &total);
    let g = b.sub(d, &shared);
    b.give(x, g);
    Ok(())
}

/// Before version 13 the operator ran over the axis and all after it, by default from 1.
fn softmax_axis(b: &Builder<'_>, step: &Step<'_>) -> Result<usize, String> {
    let rank = b.shape(step.input(0)?)?.len();
    let old = b.opset() < 13;
    let at = axis(step.node.int("axis", if old { 1 } else { -1 }), rank)?;
    if old && at + 1 != rank {
        return Err("over several axes".into());
    }
    Ok(at)
}
