//! Sizes that a few bytes of a file can ask for. Engines make room for them
//! before they notice that nothing fits, so they are checked first.

use std::collections::HashMap;

use super::constant::{Constant, whole};
use super::proto::{GraphProto, NodeProto, TensorProto};

/// Most numbers of a tensor that a constant gives the size of: 1 GiB of real numbers.
const TENSOR: f64 = (1u64 << 28) as f64;

/// Largest stride, dilation or kernel.
const WINDOW: u64 = 1 << 20;

/// Largest padding on one side: of sequences, and of maps, whose sides multiply.
const PADS: [u64; 2] = [1 << 16, 512];

/// Checks every node, nested graphs included.
pub(super) fn check(graph: &GraphProto) -> Result<(), String> {
    let mut known: HashMap<&str, &TensorProto> = HashMap::new();
    known.extend(graph.initializer.iter().filter_map(|t| Some((t.name.as_deref()?, t))));
    for node in graph.node.iter().filter(|n| n.op() == "Constant") {
        known.extend(node.attr("value").and_then(|a| a.t.as_ref()).map(|t| (node.out(), t)));
    }
    for node in &graph.node {
        for a in &node.attribute {
            a.g.iter().chain(&a.graphs).try_for_each(check)?;
        }
        let Some(what) = too_large(node, &known) else { continue };
        let called = node.name.as_deref().filter(|n| !n.is_empty()).unwrap_or(node.out());
        return Err(format!("node `{called}` ({}) asks for {what}", node.op()));
    }
    Ok(())
}

/// What of a node is beyond any use.
fn too_large(node: &NodeProto, known: &HashMap<&str, &TensorProto>) -> Option<String> {
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
    let stored = |i: usize| known.get(node.arg(i)?).copied();
    let dims = |i: usize| whole(stored(i)?);
    let product = |v: Vec<i64>| v.iter().map(|d| (*d as f64).abs()).product::<f64>();
    let numbers = match node.op() {
        "ConstantOfShape" => product(dims(0)?),
        "Expand" | "Tile" | "OneHot" => product(dims(1)?),
        "Resize" => match dims(3) {
            Some(sizes) => product(sizes),
            None => Constant::read(stored(2)?)?.data.iter().map(|s| f64::from(*s)).product(),
        },
        "Upsample" => Constant::read(stored(1)?)?.data.iter().map(|s| f64::from(*s)).product(),
        "Range" => {
            let [from, to, step] = [0, 1, 2].map(|i| dims(i)?.first().map(|v| *v as f64));
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
    use crate::onnx::build::{node, shape};
    use crate::onnx::write::ints;

    #[test]
    fn sizes_beyond_any_use_are_refused_before_anything_is_made() {
        let of = |nodes: Vec<NodeProto>, dims: &[i64]| {
            let initializer = vec![shape("s", dims)];
            check(&GraphProto { node: nodes, initializer, ..Default::default() })
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
}
