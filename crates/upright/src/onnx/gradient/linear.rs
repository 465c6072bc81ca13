//! Gemm and `MatMul`.

use super::builder::{Builder, Step};
use crate::onnx::write::{int, real};

pub(super) fn gemm(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (node, d) = (step.node, step.d()?);
    let (a, w) = (step.input(0)?, step.input(1)?);
    let (ta, tw) = (node.int("transA", 0) != 0, node.int("transB", 0) != 0);
    let alpha = node.real("alpha", 1.0);
    let product = |b: &mut Builder<'_>, x: &str, tx: bool, y: &str, ty: bool| {
        let flags =
            vec![real("alpha", alpha), int("transA", i64::from(tx)), int("transB", i64::from(ty))];
        b.op_with("Gemm", &[x, y], flags)
    };
    // For y = A B: dA = d B', dB = A' d; for a transposed factor, the transposes of those.
    if b.wants(a) {
        let da = if ta { product(b, w, tw, d, true) } else { product(b, d, false, w, !tw) };
        b.give(a, da);
    }
    if b.wants(w) {
        let dw = if tw { product(b, d, true, a, ta) } else { product(b, a, !ta, d, false) };
        b.give(w, dw);
    }
    if let Some(c) = node.arg(2)
        && b.wants(c)
    {
        let (from, to) = (b.shape(node.out())?, b.shape(c)?);
        let d = b.unspread(d.into(), &from, &to);
        let d = b.scaled(&d, node.real("beta", 1.0));
        b.give(c, d);
    }
    Ok(())
}

pub(super) fn matmul(b: &mut Builder<'_>, step: &Step<'_>) -> Result<(), String> {
    let (left, right) = (step.input(0)?, step.input(1)?);
    let (ls, rs) = (b.shape(left)?, b.shape(right)?);
    // A vector counts as a row on the left and as a column on the right.
    let (mut l, mut r) = (ls.clone(), rs.clone());
    if l.len() == 1 {
        l.insert(0, 1);
    }
    if r.len() == 1 {
        r.push(1);
    }
    let out = b.shape(step.node.out())?;
    let batch = l.len().max(r.len()) - 2;
    let dim = |s: &[usize], i: usize| {
        let skip = batch - (s.len() - 2);
        if i < skip { 1 } else { s[i - skip] }
    };
    let outer: Vec<usize> = (0..batch).map(|i| dim(&l, i).max(dim(&r, i))).collect();
    let full = |rows: usize, cols: usize| [outer.as_slice(), &[rows, cols]].concat();
    let (m, k, n) = (l[l.len() - 2], l[l.len() - 1], r[r.len() - 1]);
    let mut d = step.d()?.to_string();
    if out != full(m, n) {
        d = b.reshape(&d, &full(m, n));
    }
    if b.wants(left) {
        let other = turned(b, right, &rs, &r);
        let g = b.op("MatMul", &[&d, &other]);
        let g = b.unspread(g, &full(m, k), &l);
        let g = if l == ls { g } else { b.reshape(&g, &ls) };
        b.give(left, g);
    }
    if b.wants(right) {
        let other = turned(b, left, &ls, &l);
        let g = b.op("MatMul", &[&other, &d]);
        let g = b.unspread(g, &full(k, n), &r);
        let g = if r == rs { g } else { b.reshape(&g, &rs) };
        b.give(right, g);
    }
    Ok(())
}

/// A factor, seen as `shape`, with its last two dimensions exchanged; weights are exchanged
/// here and now.
fn turned(b: &mut Builder<'_>, tensor: &str, stored: &[usize], shape: &[usize]) -> String {
    let rank = shape.len();
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(rank - 2, rank - 1);
    if stored == shape
        && let Some(weight) = b.constant(tensor).and_then(|w| w.transposed(&perm))
    {
        return b.floats(&weight.shape, &weight.data);
    }
    let seen = if stored == shape { tensor.to_string() } else { b.reshape(tensor, shape) };
    b.transpose(&seen, &perm)
}
