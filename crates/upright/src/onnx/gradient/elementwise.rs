//! Operators that act on each number by itself, with or without spreading.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use super::builder::{Builder, Step};
use crate::onnx::write::real;

/// `ln(pi) / 2`.
const HALF_LN_PI: f32 = 0.572_364_9;
/// `sqrt(2 / pi)`.
const TANH_GELU: f32 = 0.797_884_6;
/// The cubic coefficient of the approximate Gelu.
const CUBE: f32 = 0.044_715;

/// Whether an operator of one input has a rule here.
pub(super) fn has(op: &str) -> bool {
    matches!(
        op,
        "Relu"
            | "LeakyRelu"
            | "Elu"
            | "Sigmoid"
            | "HardSigmoid"
            | "HardSwish"
            | "Swish"
            | "Tanh"
            | "Erf"
            | "Gelu"
            | "Softplus"
            | "Softsign"
            | "Exp"
            | "Log"
            | "Sqrt"
            | "Neg"
            | "Abs"
            | "Reciprocal"
            | "Sin"
            | "Cos"
    )
}

pub(super) fn unary(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (x, d) = (step.input(0)?, step.d()?);
    let slope = slope(b, step, x, step.node.out());
    let g = match slope {
        Slope::Factor(s) => b.mul(d, &s),
        Slope::Divisor(s) => b.div(d, &s),
        Slope::Minus => b.op("Neg", &[d]),
        Slope::Where(condition) => {
            let zero = b.scalar(0.0);
            b.op("Where", &[&condition, d, &zero])
        }
    };
    b.give(x, g);
    Ok(())
}

/// The derivative of one number with respect to the other.
enum Slope {
    Factor(String),
    Divisor(String),
    Minus,
    /// 1 where the condition holds, else 0.
    Where(String),
}

/// The slope at `x`, where the operator gives `y`.
fn slope(b: &mut Builder<'_>, step: &Step<'_>, x: &str, y: &str) -> Slope {
    let node = step.node;
    Slope::Factor(match node.op() {
        "Neg" => return Slope::Minus,
        "Log" => return Slope::Divisor(x.into()),
        "Sqrt" => return Slope::Divisor(b.add(y, y)),
        "Exp" => y.into(),
        "Relu" => {
            let zero = b.scalar(0.0);
            return Slope::Where(b.op("Greater", &[y, &zero]));
        }
        "Abs" => {
            let below = b.scalar(-1.0);
            above_zero(b, x, &below)
        }
        "LeakyRelu" => {
            let below = b.scalar(node.real("alpha", 0.01));
            above_zero(b, x, &below)
        }
        "Elu" => {
            let alpha = b.scalar(node.real("alpha", 1.0));
            let below = b.add(y, &alpha);
            above_zero(b, x, &below)
        }
        "Sigmoid" => falling(b, y),
        "HardSigmoid" => {
            let alpha = b.scalar(node.real("alpha", 0.2));
            inside(b, y, &alpha)
        }
        "HardSwish" => {
            let gate = vec![real("alpha", 1.0 / 6.0), real("beta", 0.5)];
            let gate = b.op_with("HardSigmoid", &[x], gate);
            let rise = b.scaled(x, 1.0 / 6.0);
            let rise = inside(b, &gate, &rise);
            b.add(&gate, &rise)
        }
        "Swish" => {
            let alpha = node.real("alpha", 1.0);
            let steep = b.scaled(x, alpha);
            let gate = b.op("Sigmoid", &[&steep]);
            let rise = falling(b, &gate);
            let rise = b.mul(&steep, &rise);
            b.add(&gate, &rise)
        }
        "Tanh" => {
            let square = b.mul(y, y);
            let one = b.scalar(1.0);
            b.sub(&one, &square)
        }
        "Erf" => {
            let bell = bell(b, x, -1.0);
            b.scaled(&bell, FRAC_2_SQRT_PI)
        }
        "Gelu" if node.attr("approximate").is_some_and(|a| a.s.as_deref() == Some(b"tanh")) => {
            tanh_gelu(b, x)
        }
        "Gelu" => gelu(b, x),
        "Softplus" => b.op("Sigmoid", &[x]),
        "Softsign" => {
            let one = b.scalar(1.0);
            let size = b.op("Abs", &[x]);
            let size = b.add(&size, &one);
            return Slope::Divisor(b.mul(&size, &size));
        }
        "Reciprocal" => {
            let square = b.mul(y, y);
            b.op("Neg", &[&square])
        }
        "Sin" => b.op("Cos", &[x]),
        _ => {
            let sine = b.op("Sin", &[x]);
            b.op("Neg", &[&sine])
        }
    })
}

/// 1 where `x` is positive, else `below`.
fn above_zero(b: &mut Builder<'_>, x: &str, below: &str) -> String {
    let (zero, one) = (b.scalar(0.0), b.scalar(1.0));
    let positive = b.op("Greater", &[x, &zero]);
    b.op("Where", &[&positive, &one, below])
}

/// `y (1 - y)`.
fn falling(b: &mut Builder<'_>, y: &str) -> String {
    let one = b.scalar(1.0);
    let rest = b.sub(&one, y);
    b.mul(y, &rest)
}

/// `slope` where `y` lies strictly between 0 and 1, else 0.
fn inside(b: &mut Builder<'_>, y: &str, slope: &str) -> String {
    let both = falling(b, y);
    let zero = b.scalar(0.0);
    let inside = b.op("Greater", &[&both, &zero]);
    b.op("Where", &[&inside, slope, &zero])
}

/// `exp(factor x^2)`.
fn bell(b: &mut Builder<'_>, x: &str, factor: f32) -> String {
    let square = b.mul(x, x);
    let square = b.scaled(&square, factor);
    b.op("Exp", &[&square])
}

/// With `u = x / sqrt 2`: `(1 + erf u) / 2 + u exp(-u^2) / sqrt pi`, written in few passes:
/// `HardSigmoid` is the first term, as it never leaves 0..1, and the factor goes into the
/// exponent.
fn gelu(b: &mut Builder<'_>, x: &str) -> String {
    let u = b.scaled(x, FRAC_1_SQRT_2);
    let erf = b.op("Erf", &[&u]);
    let below = b.op_with("HardSigmoid", &[&erf], vec![real("alpha", 0.5), real("beta", 0.5)]);
    let factor = b.scalar(-HALF_LN_PI);
    let square = b.mul(&u, &u);
    let exponent = b.sub(&factor, &square);
    let bell = b.op("Exp", &[&exponent]);
    let rise = b.mul(&bell, &u);
    b.add(&below, &rise)
}

/// With `u = sqrt(2 / pi) (x + c x^3)` and `t = tanh u`:
/// `(1 + t) / 2 + x (1 - t^2) u' / 2`.
fn tanh_gelu(b: &mut Builder<'_>, x: &str) -> String {
    let (one, half) = (b.scalar(1.0), b.scalar(0.5));
    let square = b.mul(x, x);
    let bend = b.scaled(&square, CUBE);
    let bend = b.add(&bend, &one);
    let u = b.mul(x, &bend);
    let u = b.scaled(&u, TANH_GELU);
    let t = b.op("Tanh", &[&u]);
    let below = b.mul(&t, &half);
    let below = b.add(&below, &half);
    let steep = b.scaled(&square, 3.0 * CUBE * TANH_GELU);
    let level = b.scalar(TANH_GELU);
    let steep = b.add(&steep, &level);
    let t2 = b.mul(&t, &t);
    let flat = b.sub(&one, &t2);
    let rise = b.mul(&flat, &steep);
    let rise = b.mul(&rise, x);
    let rise = b.mul(&rise, &half);
    b.add(&below, &rise)
}

pub(super) fn clip(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let x = step.input(0)?;
    if step.node.input.iter().skip(1).any(|bound| b.wants(bound)) {
        return Err("with bounds that depend on the input".into());
    }
    let g = b.where_equal(x, step.node.out(), step.d()?);
    b.give(x, g);
    Ok(())
}

/// Rounding is passed straight through: what a quantisation undoes later has slope 1 on the
/// whole.
pub(super) fn quantise(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let scale = scale(b, step)?;
    let g = b.div(step.d()?, &scale);
    b.give(step.input(0)?, g);
    Ok(())
}

pub(super) fn dequantise(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let scale = scale(b, step)?;
    let g = b.mul(step.d()?, &scale);
    b.give(step.input(0)?, g);
    Ok(())
}

/// The one scale of a quantisation.
fn scale(b: &mut Builder<'_>, step: &Step<'_>) -> Result<String, String> {
    match b.constant(step.input(1)?).as_ref().map(|c| c.data.as_slice()) {
        Some(&[scale]) => Ok(b.scalar(scale)),
        _ => Err("without one fixed scale".into()),
    }
}

/// Operators of several inputs, which are spread to one shape.
pub(super) fn joined(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let node = step.node;
    let from = b.shape(node.out())?;
    for (i, x) in node.input.iter().enumerate() {
        if !b.wants(x) {
            continue;
        }
        let d = share(b, step, i)?;
        let to = b.shape(x)?;
        let d = b.unspread(d, &from, &to);
        b.give(x, d);
    }
    Ok(())
}

/// The derivative with respect to input `i`, still in the shape of the output.
fn share(b: &mut Builder<'_>, step: &Step<'_>, i: usize) -> Result<String, String> {
    let (node, d, y) = (step.node, step.d()?, step.node.out());
    let x = step.input(i)?;
    let other = |b: &Builder<'_>| -> Result<(&str, bool), String> {
        let name = step.input(1 - i)?;
        Ok((name, b.wants(name)))
    };
    Ok(match (node.op(), i) {
        ("Add" | "Sum", _) | ("Sub", 0) => d.into(),
        ("Sub", _) => b.op("Neg", &[d]),
        ("Mean", _) => b.scaled(d, 1.0 / node.input.len() as f32),
        ("Mul", _) => {
            let (factor, _) = other(b)?;
            b.mul(d, factor)
        }
        ("Div", 0) => b.div(d, step.input(1)?),
        ("Div", _) => {
            let quotient = b.div(y, x);
            let g = b.mul(d, &quotient);
            b.op("Neg", &[&g])
        }
        ("Pow", 0) => power(b, step)?,
        ("Pow", _) => {
            let log = b.op("Log", &[step.input(0)?]);
            let slope = b.mul(y, &log);
            b.mul(d, &slope)
        }
        ("Max" | "Min", _) => b.where_equal(x, y, d),
        ("PRelu", 0) => {
            let slope = step.input(1)?;
            let slope = above_zero(b, x, slope);
            b.mul(d, &slope)
        }
        (op, _) => return Err(format!("with respect to input {i} of {op}")),
    })
}

/// `d p x^(p - 1)`.
fn power(b: &mut Builder<'_>, step: &Step<'_>) -> Result<String, String> {
    let (x, exponent, d) = (step.input(0)?, step.input(1)?, step.d()?);
    let fixed = b.constant(exponent).filter(|c| c.data.len() == 1);
    let slope = match fixed.map(|c| c.data[0]) {
        Some(2.0) => b.add(x, x),
        Some(p) => {
            let less = b.scalar(p - 1.0);
            let slope = b.op("Pow", &[x, &less]);
            b.scaled(&slope, p)
        }
        None => {
            let one = b.scalar(1.0);
            let less = b.sub(exponent, &one);
            let slope = b.op("Pow", &[x, &less]);
            b.mul(&slope, exponent)
        }
    };
    Ok(b.mul(d, &slope))
}
