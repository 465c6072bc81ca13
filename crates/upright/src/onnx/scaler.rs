//! What pipelines of scikit-learn put around a network, in standard operators:
//! the scaling before it, the names of classes behind it.

use super::proto::{GraphProto, NodeProto, data_type};
use super::write::{bytes, int, node, port, stored};

/// The domain of these operators.
const DOMAIN: &str = "ai.onnx.ml";

/// Writes every Scaler, `(x - offset) scale`, as Cast, Sub and Mul, and gives the tensor of
/// probabilities that a `ZipMap` would make a list of dictionaries of.
pub(super) fn standard(graph: &mut GraphProto) {
    let mut nodes = Vec::with_capacity(graph.node.len());
    for old in std::mem::take(&mut graph.node) {
        if old.domain.as_deref() == Some(DOMAIN) && old.op() == "ZipMap" && old.input.len() == 1 {
            nodes.push(node("Identity", &[&old.input[0]], old.out(), vec![]));
            let named = graph.output.iter_mut().filter(|v| v.name.as_deref() == Some(old.out()));
            named.for_each(|v| *v = port(old.out(), None));
            continue;
        }
        let Some((offset, scale)) = settings(&old) else {
            nodes.push(old);
            continue;
        };
        let name = |word: &str| format!("{}:{word}", old.out());
        for (word, numbers) in [("offset", &offset), ("scale", &scale)] {
            let raw = bytes(numbers, f32::to_le_bytes);
            let weight = stored(&name(word), data_type::FLOAT, &[numbers.len()], raw);
            graph.initializer.push(weight);
        }
        let to = vec![int("to", i64::from(data_type::FLOAT))];
        nodes.push(node("Cast", &[&old.input[0]], &name("real"), to));
        nodes.push(node("Sub", &[&name("real"), &name("offset")], &name("centred"), vec![]));
        nodes.push(node("Mul", &[&name("centred"), &name("scale")], old.out(), vec![]));
    }
    graph.node = nodes;
}

/// Offsets and scales, one of each or one per column.
fn settings(node: &NodeProto) -> Option<(Vec<f32>, Vec<f32>)> {
    let classic = node.domain.as_deref() == Some(DOMAIN) && node.op() == "Scaler";
    let numbers = |name: &str| node.attr(name).map(|a| a.floats.clone()).filter(|v| !v.is_empty());
    (classic && node.input.len() == 1).then_some(())?;
    Some((numbers("offset")?, numbers("scale")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{self, Input};
    use crate::onnx::build;
    use crate::onnx::proto::AttributeProto;

    /// (3 - 1) * 2, (5 - 2) * 0.5, given as a tensor.
    #[test]
    fn a_scaler_is_a_difference_and_a_product_and_dictionaries_are_a_tensor() {
        let floats = |name: &str, all: &[f32]| AttributeProto {
            name: Some(name.into()),
            r#type: Some(6),
            floats: all.to_vec(),
            ..Default::default()
        };
        let classic = |op: &str, from: &str, to: &str| NodeProto {
            domain: Some(DOMAIN.into()),
            ..build::node(op, &[from], to)
        };
        let mut scaler = classic("Scaler", "x", "s");
        scaler.attribute = vec![floats("offset", &[1.0, 2.0]), floats("scale", &[2.0, 0.5])];
        let nodes = vec![scaler, classic("ZipMap", "s", "y")];
        let mut model = build::model(&[1, 2], nodes, vec![]);
        model.graph.as_mut().unwrap().output[0].r#type = None;
        let graph = build::graph(&model);
        assert_eq!(graph.outputs()[0].element, "float");
        let y = engine::load("rten", &graph, &["y".into()], Some(1)).unwrap();
        let y = y.run(&[Input { name: "x", shape: &[1, 2], data: &[3.0, 5.0] }], &[0]).unwrap();
        assert_eq!(&y[0].data[..], [4.0, 1.5]);
    }
}
