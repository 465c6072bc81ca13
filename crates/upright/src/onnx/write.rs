//! Writing parts of a graph.

use super::Graph;
use super::proto::{
    AttributeProto, DimensionProto, DimensionValue, NodeProto, TensorProto, TensorShapeProto,
    TensorTypeProto, TypeProto, TypeValue, ValueInfoProto, data_type,
};

/// A node that is called as its output.
pub(super) fn node(
    op: &str,
    inputs: &[&str],
    output: &str,
    attribute: Vec<AttributeProto>,
) -> NodeProto {
    NodeProto {
        op_type: Some(op.into()),
        name: Some(output.into()),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        attribute,
        ..Default::default()
    }
}

/// A prefix that no tensor of a graph has: `word`, as often as it takes.
pub(super) fn unused(graph: &Graph, word: &str) -> String {
    let mut prefix = word.to_string();
    let names = || graph.tensors().into_iter().chain(graph.initializers());
    while names().any(|n| n.starts_with(&prefix)) {
        prefix.push_str(word);
    }
    prefix
}

/// A constant of some data type, from its bytes.
pub(super) fn stored(name: &str, code: i32, shape: &[usize], raw: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: shape.iter().map(|d| *d as i64).collect(),
        data_type: Some(code),
        raw_data: Some(raw.into()),
        ..Default::default()
    }
}

/// Numbers as bytes, lowest first.
pub(super) fn bytes<T: Copy, const N: usize>(v: &[T], of: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    v.iter().flat_map(|v| of(*v)).collect()
}

/// A whole-number attribute.
pub(super) fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(2), i: Some(i), ..Default::default() }
}

/// A real attribute.
pub(super) fn real(name: &str, f: f32) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(1), f: Some(f), ..Default::default() }
}

/// A text attribute.
pub(super) fn text(name: &str, text: &str) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(3),
        s: Some(text.into()),
        ..Default::default()
    }
}

/// An attribute of several whole numbers.
pub(super) fn ints(name: &str, ints: impl IntoIterator<Item = i64>) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(7),
        ints: ints.into_iter().collect(),
        ..Default::default()
    }
}

/// A tensor of real numbers, with fixed dimensions where they are known.
pub(super) fn port(name: &str, shape: Option<&[usize]>) -> ValueInfoProto {
    let dim = |d: &usize| DimensionProto {
        value: Some(DimensionValue::Fixed(*d as i64)),
        denotation: None,
    };
    let shape = shape.map(|s| TensorShapeProto { dim: s.iter().map(dim).collect() });
    let tensor = TensorTypeProto { elem_type: Some(data_type::FLOAT), shape };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)), denotation: None }),
        ..Default::default()
    }
}
