//! Graphs as people have them, brought into the form that everything else
//! expects: nodes in order, single precision, channels first, real numbers at
//! the input. What the network computes stays the same.

use std::collections::{HashMap, HashSet};

use super::constant::Constant;
use super::graph::reads;
use super::proto::{
    DimensionProto, DimensionValue, GraphProto, NodeProto, TensorProto, TypeProto, TypeValue,
    ValueInfoProto, data_type,
};
use super::write;

/// What the input was before, as far as it says how pictures are fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Was {
    /// Whole numbers from 0 to 255, or the same less 128.
    pub(crate) bytes: bool,
    /// Channels came last.
    pub(crate) channels_last: bool,
    /// Square pictures came as rows of numbers; their channels and side.
    pub(crate) flat: Option<(i64, i64)>,
}

/// Puts every node after those it reads from, otherwise in the given order. A graph that cannot
/// be ordered stays as it is.
pub(super) fn sort(graph: &mut GraphProto) {
    let made: HashMap<&str, usize> = graph
        .node
        .iter()
        .enumerate()
        .flat_map(|(i, node)| node.output.iter().map(move |name| (name.as_str(), i)))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let needs: Vec<Vec<usize>> = graph
        .node
        .iter()
        .enumerate()
        .map(|(i, node)| {
            let from = reads(node).into_iter().filter_map(|name| made.get(name).copied());
            from.filter(|&j| j != i).collect()
        })
        .collect();
    if needs.iter().enumerate().all(|(i, from)| from.iter().all(|&j| j < i)) {
        return;
    }
    let mut order = Vec::with_capacity(needs.len());
    let mut state = vec![0u8; needs.len()];
    for first in 0..needs.len() {
        // Depth first without recursion: a node is placed after all that it needs.
        let mut stack = vec![(first, 0)];
        while let Some((node, next)) = stack.pop() {
            if next == 0 {
                match state[node] {
                    0 => state[node] = 1,
                    _ => continue,
                }
            }
            if let Some(&other) = needs[node].get(next) {
                if state[other] == 1 {
                    return;
                }
                stack.push((node, next + 1));
                if state[other] == 0 {
                    stack.push((other, 0));
                }
            } else {
                state[node] = 2;
                order.push(node);
            }
        }
    }
    let mut nodes: Vec<Option<NodeProto>> = graph.node.drain(..).map(Some).collect();
    graph.node = order.into_iter().filter_map(|i| nodes[i].take()).collect();
}

/// Makes single precision of half precision: engines compute in it, and some know no other.
pub(super) fn singles(graph: &mut GraphProto) {
    graph.initializer.iter_mut().for_each(single);
    let values = graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info);
    for value in values {
        if let Some(TypeProto { value: Some(TypeValue::Tensor(t)), .. }) = &mut value.r#type
            && t.elem_type == Some(data_type::FLOAT16)
        {
            t.elem_type = Some(data_type::FLOAT);
        }
    }
    for node in &mut graph.node {
        let casts = node.op() == "Cast";
        for a in &mut node.attribute {
            a.t.iter_mut().chain(&mut a.tensors).for_each(single);
            a.g.iter_mut().chain(&mut a.graphs).for_each(singles);
            let to = casts && a.name.as_deref() == Some("to");
            if to && a.i == Some(i64::from(data_type::FLOAT16)) {
                a.i = Some(i64::from(data_type::FLOAT));
            }
        }
    }
}

fn single(tensor: &mut TensorProto) {
    if tensor.data_type == Some(data_type::FLOAT16)
        && let Some(Constant { data, .. }) = Constant::read(tensor)
    {
        tensor.data_type = Some(data_type::FLOAT);
        tensor.raw_data = Some(write::bytes(&data, f32::to_le_bytes).into());
        tensor.int32_data.clear();
    }
}

/// Gives the one input of pictures channels first and real numbers.
pub(super) fn input(graph: &mut GraphProto) -> Was {
    let weights: HashSet<&str> =
        graph.initializer.iter().filter_map(|t| t.name.as_deref()).collect();
    let fed: Vec<usize> = (0..graph.input.len())
        .filter(|&i| !weights.contains(graph.input[i].name.as_deref().unwrap_or_default()))
        .collect();
    let &[only] = fed.as_slice() else { return Was::default() };
    let Some((element, dims)) = tensor(&graph.input[only]) else { return Was::default() };
    let signed = element == data_type::INT8;
    let was = Was {
        bytes: (signed || element == data_type::UINT8) && dims.len() == 4,
        channels_last: channels_last(&dims),
        flat: flat(&dims),
    };
    if was == Was::default() {
        return was;
    }
    let old = graph.input[only].name.clone().unwrap_or_default();
    let unused = |word: &str| -> String {
        let taken = |n: &str| {
            graph.node.iter().any(|node| node.output.iter().chain(&node.input).any(|o| o == n))
                || weights.contains(n)
        };
        let mut free = format!("{old}.{word}");
        while taken(&free) {
            free.push('_');
        }
        free
    };
    let fresh = unused("pictures");
    let [turned, rounded, one, least] = ["turned", "rounded", "one", "least"].map(unused);
    // Where the graph turns bytes into real numbers itself, whole ones of the latter will do.
    let readers = graph.node.iter().filter(|n| reads(n).contains(&old.as_str()));
    let needs_bytes = was.bytes && (signed || readers.clone().any(|n| n.op() != "Cast"));
    let mut nodes = Vec::new();
    let mut at = fresh.clone();
    if was.channels_last {
        let to = if was.bytes { turned } else { old.clone() };
        nodes.push(write::node("Transpose", &[&at], &to, vec![write::ints("perm", [0, 2, 3, 1])]));
        at = to;
    }
    if was.bytes {
        // Steps of 1; signed bytes are 128 less.
        let zero = if signed { i8::MIN.cast_unsigned() } else { 0 };
        graph.initializer.push(write::stored(
            &one,
            data_type::FLOAT,
            &[],
            1f32.to_le_bytes().into(),
        ));
        graph.initializer.push(write::stored(&least, element, &[], vec![zero]));
        let to = if needs_bytes { old.clone() } else { rounded };
        nodes.push(write::node("QuantizeLinear", &[&at, &one, &least], &to, vec![]));
        at = to;
    }
    if was.bytes && !needs_bytes {
        nodes.push(write::node("DequantizeLinear", &[&at, &one, &least], &old, vec![]));
    }
    if was.flat.is_some() {
        nodes.push(write::node("Flatten", &[&at], &old, vec![]));
    }
    graph.node.splice(0..0, nodes);
    let mut first: Vec<DimensionProto> = dims;
    if was.channels_last {
        let channels = first.remove(3);
        first.insert(1, channels);
    }
    if let Some((channels, side)) = was.flat {
        let fixed =
            |n: i64| DimensionProto { value: Some(DimensionValue::Fixed(n)), denotation: None };
        first.splice(1.., [channels, side, side].map(fixed));
    }
    let value = &mut graph.input[only];
    value.name = Some(fresh);
    if let Some(TypeProto { value: Some(TypeValue::Tensor(t)), .. }) = &mut value.r#type {
        t.elem_type = Some(data_type::FLOAT);
        if let Some(shape) = &mut t.shape {
            shape.dim = first;
        }
    }
    was
}

fn tensor(value: &ValueInfoProto) -> Option<(i32, Vec<DimensionProto>)> {
    match value.r#type.as_ref()?.value.as_ref()? {
        TypeValue::Tensor(t) => Some((t.elem_type?, t.shape.as_ref()?.dim.clone())),
        _ => None,
    }
}

/// Whether four dimensions are those of pictures with one, three or four channels at the end,
/// and cannot be those of pictures with channels first.
fn channels_last(dims: &[DimensionProto]) -> bool {
    let few = |d: &DimensionProto| matches!(d.value, Some(DimensionValue::Fixed(1 | 3 | 4)));
    matches!(dims, [_, second, _, last] if few(last) && !few(second))
}

/// Channels and side of square pictures that come as rows of so many numbers.
fn flat(dims: &[DimensionProto]) -> Option<(i64, i64)> {
    let [_, DimensionProto { value: Some(DimensionValue::Fixed(size)), .. }] = dims else {
        return None;
    };
    let side = |n: i64| {
        let root = (n as f64).sqrt().round() as i64;
        (root >= 4 && root.checked_mul(root) == Some(n)).then_some(root)
    };
    let colour = (size % 3 == 0).then(|| side(size / 3)).flatten();
    side(*size).map(|s| (1, s)).or(colour.map(|s| (3, s)))
}

#[cfg(test)]
mod tests {
    use half::f16;
    use prost::Message;

    use super::*;
    use crate::model::{Model, Options};
    use crate::onnx::proto::ModelProto;
    use crate::samples;
    use crate::tensor::Matrix;

    fn proto() -> ModelProto {
        ModelProto::decode(samples::glyph_model()).unwrap()
    }

    fn logits(model: &ModelProto) -> (Matrix, Model) {
        let options = Options::default();
        let model = Model::from_bytes("m", &model.encode_to_vec(), &options).unwrap();
        let digits = samples::digits(12, 3).unwrap();
        (model.run(digits.batch()).unwrap().logits, model)
    }

    fn close(a: &Matrix, b: &Matrix, by: f32) {
        for (a, b) in a.data().iter().zip(b.data()) {
            assert!((a - b).abs() <= by, "{a} {b}");
        }
    }

    /// A node before the network, which reads `x` instead of its own input.
    fn before(model: &mut ModelProto, nodes: &[(&str, i64)], element: i32, dims: [i64; 4]) {
        let graph = model.graph.as_mut().unwrap();
        let own = graph.input[0].name.clone().unwrap();
        let mut at = "x".to_string();
        let mut made = Vec::new();
        for (i, (op, to)) in nodes.iter().enumerate() {
            let out = if i + 1 == nodes.len() { own.clone() } else { format!("x{i}") };
            let mut node = super::super::build::node(op, &[&at], &out);
            node.attribute.push(match *op {
                "Cast" => write::int("to", *to),
                _ => write::ints("perm", [0, 3, 1, 2]),
            });
            made.push(node);
            at = out;
        }
        graph.node.splice(0..0, made);
        graph.input[0] = super::super::build::value("x", &dims);
        if let Some(TypeValue::Tensor(t)) = &mut graph.input[0].r#type.as_mut().unwrap().value {
            t.elem_type = Some(element);
        }
    }

    #[test]
    fn channels_last_and_bytes_give_the_same_answers() {
        let (want, _) = logits(&proto());
        let mut last = proto();
        before(&mut last, &[("Transpose", 0)], data_type::FLOAT, [0, 40, 40, 1]);
        let (got, model) = logits(&last);
        assert_eq!(model.signal().shape(), [1, 40, 40]);
        close(&got, &want, 1e-4);
        // The network takes 0..1, so bytes are 255 times too large for it; what counts is that
        // it gets whole numbers, whatever the order of channels.
        for (nodes, dims) in [
            (&[("Cast", 1), ("Transpose", 0)][..], [0, 40, 40, 1]),
            (&[("Transpose", 0), ("Cast", 1)][..], [0, 40, 40, 1]),
            (&[("Cast", 1)][..], [0, 1, 40, 40]),
        ] {
            let mut bytes = proto();
            before(&mut bytes, nodes, data_type::UINT8, dims);
            bytes.metadata_props.clear();
            let (got, model) = logits(&bytes);
            assert!((model.preprocess().scale - 1.0).abs() < 1e-12, "bytes are fed as 0..255");
            let mut loud = Options::default();
            loud.preprocess.set("scale", "1").unwrap();
            let plain = Model::from_bytes("m", samples::glyph_model(), &loud).unwrap();
            let digits = samples::digits(12, 3).unwrap();
            let mut rounded = digits.batch().clone().into_owned();
            for v in rounded.data_mut() {
                *v = (*v * 255.0).round() / 255.0;
            }
            let want = plain.run(&rounded).unwrap().logits;
            let size = want.data().iter().fold(0.0f32, |m, v| m.max(v.abs()));
            close(&got, &want, 1e-3 * size);
        }
    }

    #[test]
    fn rows_of_numbers_are_square_pictures() {
        let fixed = |n| DimensionProto { value: Some(DimensionValue::Fixed(n)), denotation: None };
        let of = |n: i64| flat(&[fixed(1), fixed(n)]);
        assert_eq!((of(64), of(784), of(3072)), (Some((1, 8)), Some((1, 28)), Some((3, 32))));
        assert_eq!((of(9), of(100_001), of(65)), (None, None, None));
        let (want, _) = logits(&proto());
        let mut rows = proto();
        let graph = rows.graph.as_mut().unwrap();
        let own = graph.input[0].name.clone().unwrap();
        let shape = super::super::build::shape("to", &[-1, 1, 40, 40]);
        graph.initializer.push(shape);
        graph.node.insert(0, super::super::build::node("Reshape", &["x", "to"], &own));
        graph.input[0] = super::super::build::value("x", &[0, 1600]);
        let (got, model) = logits(&rows);
        assert_eq!(model.signal().shape(), [1, 40, 40]);
        close(&got, &want, 1e-4);
    }

    /// As onnxruntime's converter writes it: weights and inner types in half precision, casts
    /// at both ends, and those at the end of the list of nodes.
    #[test]
    fn half_precision_is_computed_in_single() {
        let (want, plain) = logits(&proto());
        let mut halved = proto();
        let graph = halved.graph.as_mut().unwrap();
        for t in &mut graph.initializer {
            if t.data_type == Some(data_type::FLOAT) {
                let data = Constant::read(t).unwrap().data;
                t.data_type = Some(data_type::FLOAT16);
                t.float_data.clear();
                t.raw_data =
                    Some(data.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect());
            }
        }
        let own = graph.input[0].name.clone().unwrap();
        for node in &mut graph.node {
            for input in node.input.iter_mut().filter(|i| **i == own) {
                *input = "inner".into();
            }
        }
        let to = |op: &str, a: &str, b: &str, to: i32| {
            super::super::build::node(op, &[a], b).with_int("to", i64::from(to))
        };
        graph.node.push(to("Cast", &own, "inner", data_type::FLOAT16));
        let (got, model) = logits(&halved);
        close(&got, &want, 0.05);
        assert_eq!(model.taps().len(), plain.taps().len());
        assert!(model.head().is_some());
    }

    #[test]
    fn a_circle_stays_an_error() {
        let mut circle = proto();
        let graph = circle.graph.as_mut().unwrap();
        let last = graph.node.last().unwrap().output[0].clone();
        graph.node[0].input[0] = last;
        assert!(Model::from_bytes("m", &circle.encode_to_vec(), &Options::default()).is_err());
    }
}
