//! Small graphs for tests.

use prost::Message;

use super::Graph;
use super::proto::{
    DimensionProto, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, TypeValue,
    ValueInfoProto, data_type,
};

/// A float tensor of a name and shape; 0 stands for an open dimension.
pub(crate) fn value(name: &str, dims: &[i64]) -> ValueInfoProto {
    let dim = |d: &i64| DimensionProto {
        value: Some(match d {
            0 => DimensionValue::Symbol("n".into()),
            d => DimensionValue::Fixed(*d),
        }),
        denotation: None,
    };
    let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor = TensorTypeProto { elem_type: Some(data_type::FLOAT), shape: Some(shape) };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)), denotation: None }),
        ..Default::default()
    }
}

pub(crate) fn weight(name: &str, dims: &[i64], data: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(data_type::FLOAT),
        float_data: data.to_vec(),
        ..Default::default()
    }
}

pub(crate) fn shape(name: &str, dims: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: vec![dims.len() as i64],
        data_type: Some(data_type::INT64),
        int64_data: dims.to_vec(),
        ..Default::default()
    }
}

pub(crate) fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(op.into()),
        name: Some(format!("/{output}")),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        ..Default::default()
    }
}

impl NodeProto {
    pub(crate) fn with_int(mut self, name: &str, i: i64) -> Self {
        self.attribute.push(super::write::int(name, i));
        self
    }

    pub(crate) fn with_ints(mut self, name: &str, all: &[i64]) -> Self {
        self.attribute.push(super::write::ints(name, all.iter().copied()));
        self
    }

    pub(crate) fn with_real(mut self, name: &str, f: f32) -> Self {
        self.attribute.push(super::write::real(name, f));
        self
    }
}

/// A model from `x` [n, ..] to `y` [n, 2].
pub(crate) fn model(input: &[i64], nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        graph: Some(GraphProto {
            name: Some("test".into()),
            node: nodes,
            initializer: weights,
            input: vec![value("x", input)],
            output: vec![value("y", &[0, 2])],
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub(crate) fn remark(model: &mut ModelProto, key: &str, text: &str) {
    model
        .metadata_props
        .push(StringStringEntryProto { key: Some(key.into()), value: Some(text.into()) });
}

pub(crate) fn graph(model: &ModelProto) -> Graph {
    Graph::from_bytes("test.onnx", &model.encode_to_vec()).unwrap()
}
