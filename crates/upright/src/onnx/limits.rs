//! Sizes and rounds that a few bytes of a file can ask for. Engines make room
//! before they notice that nothing fits, and go round until they are done, so
//! both are checked first.

use std::collections::HashMap;

use super::constant::{Constant, stored_value, whole};
use super::proto::{
    DimensionProto, DimensionValue, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto,
    TypeValue, ValueInfoProto,
};

/// Most numbers of a tensor that a constant gives the size of: 1 GiB of real numbers.
const TENSOR: f64 = (1u64 << 28) as f64;

/// Longest side of what a model takes, rows of numbers apart, and most numbers of one item.
const SIDE: i64 = 1 << 16;
const ITEM: f64 = (1u64 << 24) as f64;

/// Largest stride, dilation or kernel.
const WINDOW: u64 = 1 << 20;

/// Most rounds of a loop, counting those of the loops around it.
const ROUNDS: i64 = 1 << 14;

/// Largest padding on one side: of sequences, and of maps, whose sides multiply.
const PADS: [u64; 2] = [1 << 16, 512];

/// Checks every node, those of nested graphs and of functions included.
pub(super) fn check(model: &ModelProto) -> Result<(), String> {
    model.graph.iter().try_for_each(|graph| checked(graph, ROUNDS))?;
    let mut functions = model.functions.iter().map(|f| &f.node);
    functions.try_for_each(|nodes| checked_nodes(nodes, &HashMap::new(), ROUNDS))
}

/// Checks what a graph that was read takes beside the tensors that it stores.
pub(super) fn check_inputs(graph: &GraphProto) -> Result<(), String> {
    let stored = |i: &ValueInfoProto| graph.initializer.iter().any(|t| t.name == i.name);
    for input in graph.input.iter().filter(|i| !stored(i)) {
        let Some(TypeProto { value: Some(TypeValue::Tensor(t)), .. }) = &input.r#type else {
            continue;
        };
        let fixed = |d: &DimensionProto| match d.value {
            Some(DimensionValue::Fixed(n)) => n,
            _ => 1,
        };
        let item: Vec<i64> = t.shape.iter().flat_map(|s| &s.dim).skip(1).map(fixed).collect();
        let numbers = item.iter().map(|&n| n as f64).product::<f64>();
        let longest = item.iter().copied().max().unwrap_or(0);
        let called = input.name.as_deref().unwrap_or_default();
        if item.len() > 1 && longest > SIDE {
            return Err(format!(
                "input `{called}` has a side of {longest}, beyond any use: at most {SIDE}"
            ));
        }
        if numbers > ITEM {
            return Err(format!(
                "input `{called}` takes {numbers:.0} numbers at once, beyond any use: at most {ITEM}"
            ));
        }
    }
    Ok(())
}

/// Checks a graph whose loops may go round so often.
fn checked(graph: &GraphProto, rounds: i64) -> Result<(), String> {
    let mut known: HashMap<&str, &TensorProto> = HashMap::new();
    known.extend(graph.initializer.iter().filter_map(|t| Some((t.name.as_deref()?, t))));
    known.extend(graph.node.iter().filter_map(|n| Some((n.out(), stored_value(n)?))));
    checked_nodes(&graph.node, &known, rounds)
}

fn checked_nodes(
    nodes: &[NodeProto],
    known: &HashMap<&str, &TensorProto>,
    rounds: i64,
) -> Result<(), String> {
    let made = nodes.iter().flat_map(|n| n.output.iter().map(move |o| (o.as_str(), n))).collect();
    let known = &Known { stored: known, made };
    for node in nodes {
        let called = || node.name.as_deref().filter(|n| !n.is_empty()).unwrap_or(node.out());
        let within = if node.op() == "Loop" {
            let count = node.arg(0).and_then(|count| whole(known.stored.get(count)?));
            match count.as_deref() {
                Some(&[n]) if (0..=rounds).contains(&n) => rounds / n.max(1),
                _ => {
                    return Err(format!(
                        "node `{}` (Loop) may go round for ever: a loop needs a stored number of \
                         rounds, at most {ROUNDS} in all; classifiers can be exported without loops",
                        called()
                    ));
                }
            }
        } else {
            rounds
        };
        for a in &node.attribute {
            a.g.iter().chain(&a.graphs).try_for_each(|g| checked(g, within))?;
        }
        if let Some(what) = too_large(node, known) {
            return Err(format!("node `{}` ({}) asks for {what}", called(), node.op()));
        }
    }
    Ok(())
}

/// What is known of a graph's tensors before it runs.
struct Known<'a> {
    stored: &'a HashMap<&'a str, &'a TensorProto>,
    /// The node that makes a tensor.
    made: HashMap<&'a str, &'a NodeProto>,
}

impl Known<'_> {
    /// The whole numbers of a tensor that are stored, also where others, which are only known
    /// when the graph runs, stand between them. At most `left` tensors are looked at.
    fn parts(&self, name: &str, left: &mut usize) -> Vec<i64> {
        if let Some(stored) = self.stored.get(name) {
            return whole(stored).unwrap_or_default();
        }
        let Some(node) = self.made.get(name).filter(|_| *left > 0) else { return vec![] };
        *left -= 1;
        let count = match node.op() {
            "Concat" | "Mul" => node.input.len(),
            "Unsqueeze" | "Squeeze" | "Reshape" | "Identity" | "Cast" => 1,
            _ => 0,
        };
        node.input.iter().take(count).flat_map(|part| self.parts(part, left)).collect()
    }
}

/// How many tensors the numbers of a size are followed through.
const FOLLOWED: usize = 64;

/// What of a node is beyond any use.
fn too_large(node: &NodeProto, known: &Known<'_>) -> Option<String> {
    for a in &node.attribute {
        let most = match a.name.as_deref() {
            Some("kernel_shape" | "strides" | "dilations" | "output_padding") => WINDOW,
            Some("pads") => PADS[usize::from(a.ints.len() > 2)],
            _ => continue,
        };
        if let Some(far) = a.ints.iter().find(|v| v.unsigned_abs() > most) {
            return Some(format!("{} of {far}", a.name.as_deref().unwrap_or_default()));
        }
    }
    let stored = |i: usize| known.stored.get(node.arg(i)?).copied();
    let dims = |i: usize| Some(known.parts(node.arg(i)?, &mut { FOLLOWED }));
    let product = |v: Vec<i64>| v.iter().map(|d| (*d as f64).abs()).product::<f64>();
    let numbers = match node.op() {
        "ConstantOfShape" => product(dims(0)?),
        "Expand" | "Tile" | "OneHot" => product(dims(1)?),
        // Nothing that large can be reshaped, but other sizes are worked out from it.
        "Reshape" => dims(1)?.iter().map(|d| (*d as f64).abs().max(1.0)).product(),
        "Resize" => match dims(3) {
            Some(sizes) if !sizes.is_empty() => product(sizes),
            _ => Constant::read(stored(2)?)?.data.iter().map(|s| f64::from(*s)).product(),
        },
        "Upsample" => Constant::read(stored(1)?)?.data.iter().map(|s| f64::from(*s)).product(),
        "Range" => {
            let [from, to, step] = [0, 1, 2].map(|i| whole(stored(i)?)?.first().map(|v| *v as f64));
            ((to? - from?) / step?).abs()
        }
        "Pad" => {
            let far = dims(1)?.into_iter().find(|v| v.unsigned_abs() > PADS[0])?;
            return Some(format!("pads of {far}"));
        }
        _ => return None,
    };
    (numbers > TENSOR).then(|| format!("{numbers:.0} numbers"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::build::{self, node, shape};
    use crate::onnx::proto::AttributeProto;
    use crate::onnx::write::ints;

    #[test]
    fn sizes_beyond_any_use_are_refused_before_anything_is_made() {
        let of = |nodes: Vec<NodeProto>, dims: &[i64]| {
            check(&build::model(&[0, 2], nodes, vec![shape("s", dims)]))
        };
        let made = || vec![node("ConstantOfShape", &["s"], "y")];
        assert_eq!(of(made(), &[1000, 1000]), Ok(()));
        let why = of(made(), &[1 << 20, 1 << 20]).unwrap_err();
        assert_eq!(why, "node `/y` (ConstantOfShape) asks for 1099511627776 numbers");
        let mut pool = node("MaxPool", &["x"], "y");
        pool.attribute.push(ints("pads", [0, 1 << 40]));
        assert!(of(vec![pool], &[]).unwrap_err().contains("pads of 1099511627776"));
        let pad = node("Pad", &["x", "s"], "y");
        assert_eq!(of(vec![pad.clone()], &[0, 0, 1, 1]), Ok(()));
        assert!(of(vec![pad], &[0, i64::MIN]).unwrap_err().contains("pads of -9"));
    }

    /// A size of which one number is only known when the graph runs.
    #[test]
    fn sizes_are_followed_through_what_joins_them() {
        let of = |n: i64| {
            let nodes = vec![
                node("Shape", &["x"], "open"),
                node("Concat", &["stored", "open"], "joined"),
                node("Cast", &["joined"], "size"),
                node("Expand", &["x", "size"], "y"),
            ];
            check(&build::model(&[0, 2], nodes, vec![shape("stored", &[n])]))
        };
        assert_eq!(of(1 << 20), Ok(()));
        let reshaped = |dims: &[i64]| {
            let nodes = vec![node("Reshape", &["x", "dims"], "y")];
            check(&build::model(&[0, 2], nodes, vec![shape("dims", dims)]))
        };
        assert_eq!(reshaped(&[0, -1, 512]), Ok(()));
        assert!(reshaped(&[0, 1 << 40]).unwrap_err().contains("asks for 1099511627776 numbers"));
        assert_eq!(of(1 << 35).unwrap_err(), "node `/y` (Expand) asks for 34359738368 numbers");
        let mut nodes = vec![node("Expand", &["x", "c63"], "y")];
        let name = |i: usize| if i == 0 { "x".into() } else { format!("c{i}") };
        nodes.extend((1..64).map(|i| {
            let from = name(i - 1);
            node("Concat", &[from.as_str(); 4], &name(i))
        }));
        assert_eq!(check(&build::model(&[0, 2], nodes, vec![])), Ok(()));
    }

    #[test]
    fn inputs_beyond_any_use_are_refused() {
        let of = |dims: &[i64]| {
            check_inputs(&build::model(dims, vec![], vec![]).graph.unwrap_or_default())
        };
        for dims in [&[0, 3, 2048, 2048][..], &[0, 150_528], &[0, 1 << 16, 3], &[1 << 20, 1, 8, 8]]
        {
            assert_eq!(of(dims), Ok(()));
        }
        let why = of(&[0, 1, 12, 1 << 20]).unwrap_err();
        assert_eq!(why, "input `x` has a side of 1048576, beyond any use: at most 65536");
        let why = of(&[0, 3, 1 << 16, 1 << 16]).unwrap_err();
        assert!(why.starts_with("input `x` takes 12884901888 numbers at once"), "{why}");
        let stored = build::model(&[0, 1, 12, 1 << 20], vec![], vec![shape("x", &[])]);
        assert_eq!(check_inputs(&stored.graph.unwrap()), Ok(()));
    }

    /// Rounds of a loop within another multiply.
    #[test]
    fn a_loop_needs_a_stored_number_of_rounds() {
        let around = |rounds: &str, nodes: Vec<NodeProto>| {
            let mut node = node("Loop", &[rounds, "", "x"], "y");
            let g = Some(GraphProto { node: nodes, ..Default::default() });
            node.attribute.push(AttributeProto { g, ..Default::default() });
            node
        };
        let of = |node: NodeProto| {
            let rounds = [("few", 200), ("many", 70_000), ("less", -1)];
            let weights = rounds.map(|(name, n)| shape(name, &[n])).into();
            check(&build::model(&[0, 2], vec![node], weights))
        };
        assert_eq!(of(around("few", vec![])), Ok(()));
        for endless in ["many", "less", "x", ""] {
            let why = of(around(endless, vec![])).unwrap_err();
            assert!(why.starts_with("node `/y` (Loop) may go round for ever"), "{why}");
        }
        let mut twenty = node("Constant", &[], "20");
        twenty.attribute.push(AttributeProto {
            name: Some("value".into()),
            t: Some(shape("", &[20])),
            ..Default::default()
        });
        let nested = |inner: Vec<NodeProto>| {
            around("few", [vec![twenty.clone()], vec![around("20", inner)]].concat())
        };
        assert_eq!(of(nested(vec![])), Ok(()));
        let inner = vec![twenty.clone(), around("20", vec![])];
        assert!(of(nested(inner)).is_err());
        let chosen =
            NodeProto { op_type: Some("If".into()), ..around("x", vec![around("x", vec![])]) };
        assert!(of(chosen).is_err());
    }
}
