//! The few ONNX messages that writing a model takes, and a builder over them.
//!
//! Field numbers are those of `onnx.proto3`.

use prost::Message;

/// Opset of the models written here: `ReduceMean` still takes its axes as an attribute.
const OPSET: i64 = 17;
const IR_VERSION: i64 = 8;
const FLOAT: i32 = 1;
const UINT8: i32 = 2;
const INT64: i32 = 7;

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(string, tag = "2")]
    producer_name: String,
    #[prost(string, tag = "3")]
    producer_version: String,
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    opset_import: Vec<OperatorSetIdProto>,
    #[prost(message, repeated, tag = "14")]
    metadata_props: Vec<StringStringEntryProto>,
}

#[derive(Clone, PartialEq, Message)]
struct OperatorSetIdProto {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
struct StringStringEntryProto {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    op_type: String,
    #[prost(message, repeated, tag = "5")]
    attribute: Vec<AttributeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct AttributeProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, tag = "3")]
    i: i64,
    #[prost(message, optional, tag = "6")]
    g: Option<GraphProto>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    kind: i32,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfoProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeProto {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorType {
    #[prost(int32, tag = "1")]
    elem_type: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<TensorShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<Dimension>,
}

#[derive(Clone, PartialEq, Message)]
struct Dimension {
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    param: Option<String>,
}

/// An attribute of a node.
pub(crate) enum Attribute<'a> {
    /// One integer.
    Int(i64),
    /// A list of integers.
    Ints(&'a [i64]),
    /// A nested graph.
    Graph(&'a Graph),
}

/// A graph under construction: nodes in execution order, and weights.
#[derive(Default)]
pub(crate) struct Graph(GraphProto);

impl Graph {
    /// An empty graph.
    pub(crate) fn new(name: &str) -> Self {
        Graph(GraphProto { name: name.into(), ..GraphProto::default() })
    }

    /// Declares the input: dimension 0 is the free batch size, `shape` is the rest.
    pub(crate) fn input(&mut self, name: &str, shape: &[usize]) {
        self.0.input.push(value_info(name, shape));
    }

    /// Declares an input of bytes, as [`input`](Self::input).
    pub(crate) fn input_of_bytes(&mut self, name: &str, shape: &[usize]) {
        let mut value = value_info(name, shape);
        if let Some(tensor) = value.kind.as_mut().and_then(|k| k.tensor.as_mut()) {
            tensor.elem_type = UINT8;
        }
        self.0.input.push(value);
    }

    /// Declares an output, as [`input`](Self::input).
    pub(crate) fn output(&mut self, name: &str, shape: &[usize]) {
        self.0.output.push(value_info(name, shape));
    }

    /// Declares inputs and outputs of a nested graph, of whatever type.
    pub(crate) fn ports(&mut self, inputs: &[&str], outputs: &[&str]) {
        let bare = |name: &&str| ValueInfoProto { name: (*name).into(), kind: None };
        self.0.input.extend(inputs.iter().map(bare));
        self.0.output.extend(outputs.iter().map(bare));
    }

    /// Adds weights.
    pub(crate) fn weights(&mut self, name: &str, shape: &[usize], data: &[f32]) {
        debug_assert_eq!(shape.iter().product::<usize>(), data.len());
        self.0.initializer.push(TensorProto {
            dims: shape.iter().map(|d| *d as i64).collect(),
            data_type: FLOAT,
            name: name.into(),
            raw_data: data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        });
    }

    /// Adds an integer.
    pub(crate) fn integer(&mut self, name: &str, value: i64) {
        self.0.initializer.push(TensorProto {
            dims: vec![],
            data_type: INT64,
            name: name.into(),
            raw_data: value.to_le_bytes().into(),
        });
    }

    /// Adds a list of integers.
    pub(crate) fn integers(&mut self, name: &str, data: &[i64]) {
        self.0.initializer.push(TensorProto {
            dims: vec![data.len() as i64],
            data_type: INT64,
            name: name.into(),
            raw_data: data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        });
    }

    /// Adds a node whose only output, and whose name, is `output`.
    pub(crate) fn node(
        &mut self,
        op: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Attribute)],
    ) {
        let attribute = |(name, value): &(&str, Attribute)| {
            let name = (*name).to_string();
            match value {
                Attribute::Int(i) => AttributeProto { name, i: *i, kind: 2, ..Default::default() },
                Attribute::Ints(v) => {
                    AttributeProto { name, ints: v.to_vec(), kind: 7, ..Default::default() }
                }
                Attribute::Graph(g) => {
                    AttributeProto { name, g: Some(g.0.clone()), kind: 5, ..Default::default() }
                }
            }
        };
        self.0.node.push(NodeProto {
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![output.into()],
            name: output.into(),
            op_type: op.into(),
            attribute: attributes.iter().map(attribute).collect(),
        });
    }

    /// The bytes of an ONNX file with this graph and these properties.
    pub(crate) fn file(self, properties: &[(&str, &str)]) -> Vec<u8> {
        ModelProto {
            ir_version: IR_VERSION,
            producer_name: "upright-lab".into(),
            producer_version: env!("CARGO_PKG_VERSION").into(),
            graph: Some(self.0),
            opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
            metadata_props: properties
                .iter()
                .map(|(k, v)| StringStringEntryProto { key: (*k).into(), value: (*v).into() })
                .collect(),
        }
        .encode_to_vec()
    }
}

fn value_info(name: &str, shape: &[usize]) -> ValueInfoProto {
    let batch = Dimension { value: None, param: Some("n".into()) };
    let rest = shape.iter().map(|d| Dimension { value: Some(*d as i64), param: None });
    let shape = TensorShapeProto { dim: std::iter::once(batch).chain(rest).collect() };
    let tensor = TensorType { elem_type: FLOAT, shape: Some(shape) };
    ValueInfoProto { name: name.into(), kind: Some(TypeProto { tensor: Some(tensor) }) }
}
