//! The scaling that pipelines of scikit-learn put before a network, in standard
//! operators.

use super::proto::{GraphProto, NodeProto, data_type};
use super::write::{bytes, int, node, stored};

/// Writes every `ai.onnx.ml` Scaler, `(x - offset) scale`, as Cast, Sub and Mul.
pub(super) fn standard(graph: &mut GraphProto) {
    let mut nodes = Vec::with_capacity(graph.node.len());
    for old in std::mem::take(&mut graph.node) {
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
    let classic = node.domain.as_deref() == Some("ai.onnx.ml") && node.op() == "Scaler";
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

    /// (3 - 1) * 2, (5 - 2) * 0.5.
    #[test]
    fn a_scaler_is_a_difference_and_a_product() {
        let floats = |name: &str, all: &[f32]| AttributeProto {
            name: Some(name.into()),
            r#type: Some(6),
            floats: all.to_vec(),
            ..Default::default()
        };
        let scaler = NodeProto {
            domain: Some("ai.onnx.ml".into()),
            attribute: vec![floats("offset", &[1.0, 2.0]), floats("scale", &[2.0, 0.5])],
            ..build::node("Scaler", &["x"], "y")
        };
        let graph = build::graph(&build::model(&[1, 2], vec![scaler], vec![]));
        let y = engine::load("rten", &graph, &["y".into()], Some(1)).unwrap();
        let y = y.run(&[Input { name: "x", shape: &[1, 2], data: &[3.0, 5.0] }], &[0]).unwrap();
        assert_eq!(&y[0].data[..], [4.0, 1.5]);
    }
}
