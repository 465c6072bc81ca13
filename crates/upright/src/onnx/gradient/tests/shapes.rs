use super::{check, ints, numbers, text, with};
use crate::onnx::build::{node, shape, weight};

#[test]
fn rearranged_numbers_find_their_way_back() {
    let square = || node("Mul", &["z", "x"], "y");
    let flat = vec![node("Flatten", &["x"], "y")];
    check("Flatten", &[2, 3, 4], flat, vec![]);
    let nodes = vec![node("Reshape", &["x", "s"], "y")];
    check("Reshape", &[2, 6], nodes, vec![shape("s", &[0, 3, -1])]);
    let nodes = vec![node("Unsqueeze", &["x", "s"], "u"), node("Squeeze", &["u", "s"], "z")];
    let nodes = [nodes, vec![square()]].concat();
    check("Squeeze", &[2, 6], nodes, vec![shape("s", &[1])]);
    let turn = with(node("Transpose", &["x"], "y"), vec![ints("perm", &[2, 0, 1])]);
    check("Transpose", &[2, 3, 4], vec![turn], vec![]);
    check("Transpose all", &[2, 3, 4], vec![node("Transpose", &["x"], "y")], vec![]);
    let nodes = vec![node("Expand", &["x", "s"], "y")];
    check("Expand", &[2, 1, 3], nodes, vec![shape("s", &[4, 2, 5, 3])]);
    let nodes = vec![node("Tile", &["x", "s"], "y")];
    check("Tile", &[2, 3], nodes, vec![shape("s", &[2, 3])]);
}

#[test]
fn joined_and_split_tensors_take_their_parts() {
    let concat = node("Concat", &["x", "w", "x"], "y").with_int("axis", 1);
    check("Concat", &[2, 3], vec![concat], vec![weight("w", &[2, 1], &[1.0, 2.0])]);
    let mut split = node("Split", &["x", "s"], "a").with_int("axis", 1);
    split.output = ["a", "b", "c"].map(String::from).to_vec();
    let product = node("Mul", &["a", "c"], "y");
    check("Split", &[2, 5], vec![split, product], vec![shape("s", &[2, 1, 2])]);
}

#[test]
fn cut_numbers_stay_still() {
    for (starts, ends, axes, steps) in [
        ([1, 0], [3, 2], [1, 0], [1, 1]),
        ([-3, 1], [i64::MAX, 3], [2, 1], [1, 1]),
        ([0, 1], [5, 4], [2, 1], [2, 2]),
        ([-1, 3], [i64::MIN, 0], [2, 1], [-1, -2]),
    ] {
        let nodes = vec![node("Slice", &["x", "s", "e", "a", "b"], "y")];
        let all =
            vec![shape("s", &starts), shape("e", &ends), shape("a", &axes), shape("b", &steps)];
        check(&format!("Slice {starts:?} {steps:?}"), &[2, 4, 5], nodes, all);
    }
    let nodes = vec![
        node("Shape", &["x"], "dims"),
        node("Slice", &["dims", "one", "two"], "end"),
        node("Sub", &["end", "one"], "start"),
        node("Slice", &["x", "start", "end", "one"], "y"),
    ];
    check("Slice computed", &[2, 4], nodes, vec![shape("one", &[1]), shape("two", &[2])]);
}

#[test]
fn gathered_numbers_collect_their_derivatives() {
    for (axis, at) in [(0, &[1][..]), (1, &[2, 0, 2]), (1, &[1, 2]), (2, &[-1, 0])] {
        let gather = node("Gather", &["x", "i"], "y").with_int("axis", axis);
        check(&format!("Gather {axis} {at:?}"), &[2, 3, 4], vec![gather], vec![shape("i", at)]);
    }
    let mut one = shape("i", &[1]);
    one.dims.clear();
    let gather = node("Gather", &["x", "i"], "y").with_int("axis", 1);
    check("Gather one", &[2, 3, 4], vec![gather], vec![one]);
}

#[test]
fn elements_chosen_at_run_time_collect_their_derivatives() {
    let mut top = node("TopK", &["x", "k"], "v").with_int("axis", 1);
    top.output.push("i".into());
    let pick = node("GatherElements", &["x", "i"], "p").with_int("axis", 1);
    let nodes = vec![top, pick, node("Mul", &["v", "p"], "y")];
    check("TopK", &[2, 5, 3], nodes, vec![shape("k", &[2])]);
    let pick = vec![node("GatherElements", &["x", "i"], "y").with_int("axis", 1)];
    let mut twice = shape("i", &[1, 1, 0, 2, 2, 2]);
    twice.dims = vec![2, 3];
    check("GatherElements", &[2, 3], pick, vec![twice]);
}

#[test]
fn padding_takes_nothing_and_repeated_edges_add_up() {
    for mode in ["constant", "edge", "reflect"] {
        let pad = with(node("Pad", &["x", "p"], "y"), vec![text("mode", mode)]);
        check(&format!("Pad {mode}"), &[2, 4, 5], vec![pad], vec![shape("p", &[0, 1, 2, 0, 2, 0])]);
    }
    let cut = vec![node("Pad", &["x", "p"], "y")];
    check("Pad negative", &[2, 4, 5], cut, vec![shape("p", &[0, -1, 2, 0, 1, -1])]);
}

#[test]
fn choices_pass_on_what_they_chose() {
    let nodes = vec![
        node("Greater", &["x", "w"], "c"),
        node("Exp", &["x"], "e"),
        node("ReduceMean", &["x"], "m"),
        node("Where", &["c", "e", "m"], "y"),
    ];
    check("Where", &[3, 4], nodes, vec![weight("w", &[], &[0.0])]);
}

#[test]
fn products_of_matrices_are_differentiated_on_both_sides() {
    let w = |dims: &[i64]| weight("w", dims, &numbers(dims.iter().product::<i64>() as usize, 2));
    for (x, dims) in [
        (&[2, 3][..], &[3, 4][..]),
        (&[2, 2, 3], &[3, 4]),
        (&[2, 1, 2, 3], &[4, 3, 2]),
        (&[2, 3], &[3]),
        (&[3], &[3, 2]),
        (&[2, 3], &[2, 3, 4]),
    ] {
        let right = vec![node("MatMul", &["x", "w"], "y")];
        check(&format!("MatMul {x:?} {dims:?}"), x, right, vec![w(dims)]);
    }
    for (dims, x) in [(&[4, 3][..], &[3, 2][..]), (&[4, 3], &[2, 3, 2]), (&[3], &[3, 2])] {
        let left = vec![node("MatMul", &["w", "x"], "y")];
        check(&format!("MatMul {dims:?} times {x:?}"), x, left, vec![w(dims)]);
    }
    let turn = with(node("Transpose", &["x"], "t"), vec![ints("perm", &[0, 2, 1])]);
    check("MatMul of both", &[2, 3, 4], vec![turn, node("MatMul", &["x", "t"], "y")], vec![]);
    for (ta, tb) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let flags = |n: crate::onnx::proto::NodeProto| {
            n.with_int("transA", ta).with_int("transB", tb).with_real("alpha", 0.7)
        };
        let x: &[usize] = if ta == 0 { &[2, 3] } else { &[3, 2] };
        let b = weight("b", &[4], &numbers(4, 1));
        let dims: &[i64] = if tb == 0 { &[3, 4] } else { &[4, 3] };
        let nodes = vec![flags(node("Gemm", &["x", "w", "b"], "y"))];
        check(&format!("Gemm {ta} {tb}"), x, nodes, vec![w(dims), b]);
        let x: &[usize] = if tb == 0 { &[3, 2] } else { &[2, 3] };
        let dims: &[i64] = if ta == 0 { &[4, 3] } else { &[3, 4] };
        let shift = with(node("ReduceMean", &["x"], "m"), vec![]).with_int("keepdims", 1);
        let gemm = flags(node("Gemm", &["w", "x", "m"], "y")).with_real("beta", 1.3);
        check(&format!("Gemm right {ta} {tb}"), x, vec![shift, gemm], vec![w(dims)]);
    }
}
