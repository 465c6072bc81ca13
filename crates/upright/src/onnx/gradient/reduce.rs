//! Reductions over axes.

use super::builder::{Builder, Step, axis};

pub(super) fn reduce(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let node = step.node;
    let rank = b.shape(step.input(0)?)?.len();
    let given = match (node.arg(1), node.attr("axes")) {
        (Some(name), _) => b.integers(name)?,
        (None, Some(a)) => a.ints.clone(),
        (None, None) => vec![],
    };
    if given.is_empty() && node.int("noop_with_empty_axes", 0) != 0 {
        b.give(step.input(0)?, step.d()?.into());
        return Ok(());
    }
    let mut axes = given.iter().map(|a| axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
    if axes.is_empty() {
        axes = (0..rank).collect();
    }
    let op = node.op().trim_start_matches("Reduce").to_string();
    through(b, step, &op, &axes)
}

pub(super) fn global(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let rank = b.shape(step.input(0)?)?.len();
    let op = if step.node.op() == "GlobalMaxPool" { "Max" } else { "Mean" };
    through(b, step, op, &(2..rank).collect::<Vec<_>>())
}

fn through(b: &mut Builder<'_>, step: &Step<'_>, op: &str, axes: &[usize]) -> Result<(), String> {
    let x = step.input(0)?;
    let shape = b.shape(x)?;
    let mut kept = shape.clone();
    for &a in axes {
        kept[a] = 1;
    }
    let count: usize = axes.iter().map(|&a| shape[a]).product();
    let out = b.shape(step.node.out())?;
    let seen = |b: &mut Builder<'_>, t: &str| {
        if out == kept { t.to_string() } else { b.reshape(t, &kept) }
    };
    let d = seen(b, step.d()?);
    let g = match op {
        "Sum" => b.expand(&d, &shape),
        "Mean" => {
            let share = b.scaled(&d, 1.0 / count as f32);
            b.expand(&share, &shape)
        }
        "SumSquare" => {
            let twice = b.add(&d, &d);
            b.mul(x, &twice)
        }
        "L2" => {
            let y = seen(b, step.node.out());
            let each = b.div(&d, &y);
            b.mul(x, &each)
        }
        "LogSumExp" => {
            let y = seen(b, step.node.out());
            let below = b.sub(x, &y);
            let p = b.op("Exp", &[&below]);
            b.mul(&p, &d)
        }
        // Equals share, as in torch's amax.
        _ => {
            let y = seen(b, step.node.out());
            let same = b.op("Equal", &[x, &y]);
            let (one, zero) = (b.scalar(1.0), b.scalar(0.0));
            let same = b.op("Where", &[&same, &one, &zero]);
            let ties = b.sum(&same, axes);
            let each = b.div(&d, &ties);
            b.mul(&same, &each)
        }
    };
    b.give(x, g);
    Ok(())
}
