//! Quantised operators as operators on real numbers between quantisations,
//! so that engines, taps, heads and gradients need to know only those.
//!
//! `QLinearConv` and its kin (standard or of the domain `com.microsoft`, as
//! onnxruntime's quantiser writes them) become `DequantizeLinear`, the operator
//! on real numbers, `QuantizeLinear`: the same numbers but for a step of the
//! quantisation where a sum lies between two. Weights are dequantised once.
//! Where only weights are stored in whole numbers and inputs are quantised on
//! the way (`DynamicQuantizeLinear`), inputs stay as they are: what is left out
//! is the rounding, whose steps would depend on what shares a batch.

use std::collections::{HashMap, HashSet};

use super::constant::{Constant, dequantised, lowest, stored_value};
use super::graph::reads;
use super::proto::{GraphProto, NodeProto, TensorProto, TypeProto, TypeValue, data_type};
use super::write::{self, bytes, int, node, stored};

/// What a quantised operator reads, by position: operands are a tensor, its scale and its zero
/// point each.
struct Form {
    op: &'static str,
    operands: Vec<usize>,
    bias: Option<usize>,
    /// The result's scale and zero point.
    result: usize,
}

fn form(node: &NodeProto) -> Option<Form> {
    if !matches!(node.domain.as_deref(), None | Some("" | "ai.onnx" | "com.microsoft")) {
        return None;
    }
    let one = |op| Some(Form { op, operands: vec![0], bias: None, result: 3 });
    let two = |op| Some(Form { op, operands: vec![0, 3], bias: None, result: 6 });
    match node.op() {
        "QLinearConv" => Some(Form { bias: Some(8), ..two("Conv")? }),
        "QGemm" => Some(Form { bias: Some(6), result: 7, ..two("Gemm")? }),
        "QLinearMatMul" => two("MatMul"),
        "QLinearAdd" => two("Add"),
        "QLinearMul" => two("Mul"),
        "QLinearSigmoid" => one("Sigmoid"),
        "QLinearLeakyRelu" => one("LeakyRelu"),
        "QLinearSoftmax" => one("Softmax"),
        "QLinearAveragePool" => one("AveragePool"),
        "QLinearGlobalAveragePool" => one("GlobalAveragePool"),
        "QLinearConcat" => {
            let operands = (2..node.input.len()).step_by(3).collect();
            Some(Form { op: "Concat", operands, bias: None, result: 0 })
        }
        _ => None,
    }
}

/// Operators that hand on numbers of their first input unchanged.
fn moves(op: &str) -> bool {
    matches!(
        op,
        "MaxPool"
            | "Reshape"
            | "Flatten"
            | "Transpose"
            | "Squeeze"
            | "Unsqueeze"
            | "Identity"
            | "Slice"
            | "Split"
            | "Gather"
            | "Pad"
            | "Resize"
    )
}

/// Rewrites every quantised operator of an ordered graph. One that is written in another way
/// than described stays as it is.
pub(super) fn real(graph: &mut GraphProto) {
    let whole = |n: &NodeProto| form(n).is_some() || n.op().contains("uantize");
    if !graph.node.iter().any(|n| whole(n) || n.op().ends_with("Integer")) {
        return;
    }
    let mut rewrite = Rewrite::of(graph);
    for node in std::mem::take(&mut graph.node) {
        rewrite.node(node);
    }
    rewrite.outputs(graph);
    graph.node = rewrite.nodes;
    graph.initializer.extend(rewrite.added);
}

/// How a tensor of whole numbers is read.
#[derive(Clone)]
struct Scale {
    scale: String,
    zero: String,
}

struct Rewrite {
    /// Stored tensors that an operator may read as constants.
    known: HashMap<String, TensorProto>,
    names: HashSet<String>,
    quantised: HashMap<String, Scale>,
    /// Tensors of whole numbers that are there as real ones, by name, scale and zero point.
    reals: HashMap<String, String>,
    /// Tensors that are quantised on the way and sums of their products, as they are unrounded.
    unrounded: HashMap<String, String>,
    /// Whether whatever is quantised on the way can stay unrounded.
    rounds_nothing: bool,
    /// Operators that make tensors.
    makers: HashMap<String, String>,
    nodes: Vec<NodeProto>,
    added: Vec<TensorProto>,
}

impl Rewrite {
    fn of(graph: &GraphProto) -> Self {
        let mut known: HashMap<String, TensorProto> = HashMap::new();
        known.extend(graph.initializer.iter().filter_map(|t| Some((t.name.clone()?, t.clone()))));
        for node in &graph.node {
            known.extend(stored_value(node).map(|t| (node.out().to_string(), t.clone())));
        }
        let values = graph.input.iter().chain(&graph.output).filter_map(|v| v.name.clone());
        let made = graph.node.iter().flat_map(|n| n.output.iter().chain(&n.input).cloned());
        let names = values.chain(made).chain(known.keys().cloned()).collect();
        Rewrite {
            known,
            names,
            quantised: HashMap::new(),
            reals: HashMap::new(),
            unrounded: HashMap::new(),
            rounds_nothing: only_summed(graph),
            makers: HashMap::new(),
            nodes: Vec::new(),
            added: Vec::new(),
        }
    }

    /// A name that is not in use.
    fn fresh(&mut self, of: &str, word: &str) -> String {
        let mut name = format!("{of}:{word}");
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    fn push(&mut self, node: NodeProto) {
        self.makers.extend(node.output.iter().map(|o| (o.clone(), node.op().to_string())));
        self.nodes.push(node);
    }

    fn store(&mut self, name: String, code: i32, shape: &[usize], raw: Vec<u8>) -> String {
        let tensor = stored(&name, code, shape, raw);
        self.known.insert(name.clone(), tensor.clone());
        self.added.push(tensor);
        name
    }

    fn store_real(&mut self, name: String, value: &Constant) -> String {
        let raw = bytes(&value.data, f32::to_le_bytes);
        self.store(name, data_type::FLOAT, &value.shape, raw)
    }

    fn constant(&self, name: &str) -> Option<Constant> {
        Constant::read(self.known.get(name)?)
    }

    fn node(&mut self, node: NodeProto) {
        let done = match node.op() {
            "QuantizeLinear" => self.quantise(&node),
            "DequantizeLinear" => self.dequantise(&node),
            "DynamicQuantizeLinear" => self.leave_real(&node),
            "ConvInteger" | "MatMulInteger" => self.whole_sums(&node),
            "Cast" => self.cast(&node),
            "Mul" => self.joined_scales(&node),
            op if moves(op) && self.quantised.contains_key(node.arg(0).unwrap_or_default()) => {
                self.moved(&node)
            }
            _ => form(&node).and_then(|form| self.computed(&node, &form)),
        };
        if done.is_none() {
            self.push(node);
        }
    }

    /// What cannot be below the lowest whole number, zero, is what a Relu makes: one is written
    /// out where a layer's own was left to the quantisation.
    fn quantise(&mut self, node: &NodeProto) -> Option<()> {
        let (x, scale) = (node.arg(0)?, node.arg(1)?);
        let zero = match node.arg(2) {
            Some(zero) => zero.to_string(),
            None if node.attr("output_dtype").is_some() => return None,
            None => {
                let name = self.fresh(node.out(), "zero");
                self.store(name, data_type::UINT8, &[], vec![0])
            }
        };
        let mut input = x.to_string();
        if self.known.get(&zero).is_some_and(lowest) && self.is_layer(x) {
            input = self.fresh(x, "relu");
            self.push(node_of("Relu", &[x], &input));
        }
        let input = vec![input, scale.into(), zero.clone()];
        self.quantised.insert(node.out().into(), Scale { scale: scale.into(), zero });
        self.push(NodeProto { input, domain: None, ..node.clone() });
        Some(())
    }

    fn is_layer(&self, tensor: &str) -> bool {
        let maker = self.makers.get(tensor).map(String::as_str);
        matches!(maker, Some("Conv" | "ConvTranspose" | "Gemm" | "MatMul" | "Add"))
    }

    /// A stored weight becomes a stored real one.
    fn dequantise(&mut self, node: &NodeProto) -> Option<()> {
        let [x, scale, zero] = [0, 1, 2].map(|i| node.arg(i));
        match self.weight(x?, scale?, zero, node.int("axis", 1)) {
            Some(value) => drop(self.store_real(node.out().into(), &value)),
            None => self.push(NodeProto { domain: None, ..node.clone() }),
        }
        Some(())
    }

    /// `(x - zero) scale` of stored numbers.
    fn weight(&self, x: &str, scale: &str, zero: Option<&str>, axis: i64) -> Option<Constant> {
        let zero = match zero {
            Some(name) => Some(self.known.get(name)?),
            None => None,
        };
        dequantised(self.known.get(x)?, &self.constant(scale)?.data, zero, axis)
    }

    /// The real numbers behind operand `at` of a node, whose scales lie along an axis if it has
    /// several.
    fn operand(&mut self, node: &NodeProto, at: usize, axis: i64) -> Option<String> {
        let (x, scale, zero) = (node.arg(at)?, node.arg(at + 1)?, node.arg(at + 2));
        let key = format!("{x} {scale} {}", zero.unwrap_or_default());
        if let Some(real) = self.reals.get(&key) {
            return Some(real.clone());
        }
        let real = if let Some(value) = self.weight(x, scale, zero, axis) {
            let name = self.fresh(x, "real");
            self.store_real(name, &value)
        } else {
            if self.constant(scale)?.data.len() != 1 {
                return None;
            }
            let real = self.fresh(x, "real");
            let inputs: Vec<&str> = [x, scale].into_iter().chain(zero).collect();
            self.push(write::node("DequantizeLinear", &inputs, &real, vec![]));
            real
        };
        self.reals.insert(key, real.clone());
        Some(real)
    }

    /// An operator with a form.
    fn computed(&mut self, node: &NodeProto, form: &Form) -> Option<()> {
        if node.int("channels_last", 0) != 0 {
            return None;
        }
        // Scales by channel: a kernel's lie along its first axis, a matrix's along its columns.
        let columns = if node.int("transB", 0) == 0 { -1 } else { 0 };
        let axis = if form.op == "Conv" { 0 } else { columns };
        let mut inputs = Vec::with_capacity(form.operands.len() + 1);
        for &at in &form.operands {
            inputs.push(self.operand(node, at, axis)?);
        }
        if let Some(bias) = form.bias.and_then(|at| node.arg(at)) {
            inputs.push(self.bias(node, bias)?);
        }
        let mut attribute = node.attribute.clone();
        attribute.retain(|a| !matches!(a.name.as_deref(), Some("channels_last" | "opset")));
        let real = NodeProto {
            op_type: Some(form.op.into()),
            domain: None,
            input: inputs,
            attribute,
            ..node.clone()
        };
        let Some(scale) = node.arg(form.result) else {
            self.push(real);
            return Some(());
        };
        let zero = self.zero(node, form)?;
        self.requantised(real, &Scale { scale: scale.into(), zero });
        Some(())
    }

    /// The result's zero point; where none is written, zero in the type of the first operand's.
    fn zero(&mut self, node: &NodeProto, form: &Form) -> Option<String> {
        if let Some(zero) = node.arg(form.result + 1) {
            return Some(zero.into());
        }
        let code = match node.arg(form.operands.first()? + 2) {
            Some(zero) => self.known.get(zero)?.data_type?,
            None => data_type::UINT8,
        };
        let name = self.fresh(node.out(), "zero");
        Some(self.store(name, code, &[], vec![0]))
    }

    /// A stored bias, in steps of the products of both scales.
    fn bias(&mut self, node: &NodeProto, bias: &str) -> Option<String> {
        let [first, second] = [1, 4].map(|i| node.arg(i).and_then(|s| self.constant(s)));
        let &[first] = first?.data.as_slice() else { return None };
        let first = first * node.real("alpha", 1.0);
        let scale: Vec<f32> = second?.data.iter().map(|s| s * first).collect();
        let value = dequantised(self.known.get(bias)?, &scale, None, 0)?;
        let name = self.fresh(bias, "real");
        Some(self.store_real(name, &value))
    }

    /// A node on real numbers whose results are quantised under the names that they had.
    fn requantised(&mut self, mut node: NodeProto, to: &Scale) {
        let whole = node.output.clone();
        for name in node.output.iter_mut().filter(|n| !n.is_empty()) {
            *name = self.fresh(name, "sum");
        }
        let real = node.output.clone();
        self.push(node);
        for (whole, real) in whole.into_iter().zip(real).filter(|(whole, _)| !whole.is_empty()) {
            let inputs = [real.as_str(), &to.scale, &to.zero];
            let _ = self.quantise(&node_of("QuantizeLinear", &inputs, &whole));
        }
    }

    /// An operator that moves whole numbers moves real ones instead.
    fn moved(&mut self, node: &NodeProto) -> Option<()> {
        let to = self.quantised.get(node.arg(0)?)?.clone();
        let mut node = node.clone();
        let filled = node.op() == "Pad" && node.arg(2).is_some();
        for at in std::iter::once(0).chain(filled.then_some(2)) {
            let inputs = [node.input[at].as_str(), &to.scale, &to.zero];
            let read = node_of("DequantizeLinear", &inputs, "");
            node.input[at] = self.operand(&read, 0, 0)?;
        }
        self.requantised(node, &to);
        Some(())
    }

    /// Inputs that would be quantised in steps of their own stay as they are, in steps of 1.
    fn leave_real(&mut self, node: &NodeProto) -> Option<()> {
        if !self.rounds_nothing {
            return None;
        }
        let x = node.arg(0)?.to_string();
        let [whole, scale, zero] = [0, 1, 2].map(|i| node.output.get(i).cloned());
        self.unrounded.insert(whole?, x);
        self.store(scale?, data_type::FLOAT, &[], 1.0f32.to_le_bytes().into());
        self.store(zero?, data_type::UINT8, &[], vec![0]);
        Some(())
    }

    /// Sums of products of whole numbers, in real ones.
    fn whole_sums(&mut self, node: &NodeProto) -> Option<()> {
        let (x, w) = (self.factor(node, 0, 2)?, self.factor(node, 1, 3)?);
        let sum = self.fresh(node.out(), "sum");
        self.unrounded.insert(node.out().into(), sum.clone());
        let op = node.op().trim_end_matches("Integer");
        self.push(NodeProto {
            op_type: Some(op.into()),
            input: vec![x, w],
            output: vec![sum.clone()],
            ..node.clone()
        });
        let to = vec![int("to", i64::from(data_type::INT32))];
        self.push(write::node("Cast", &[&sum], node.out(), to));
        Some(())
    }

    /// A factor of products of whole numbers: as it is unrounded, or a weight less its zero
    /// point.
    fn factor(&mut self, node: &NodeProto, at: usize, zero: usize) -> Option<String> {
        let x = node.arg(at)?;
        if let Some(real) = self.unrounded.get(x) {
            return Some(real.clone());
        }
        let zero = match node.arg(zero) {
            Some(name) => Some(self.known.get(name)?),
            None => None,
        };
        let axis = if node.op() == "ConvInteger" { 0 } else { -1 };
        let value = dequantised(self.known.get(x)?, &[1.0], zero, axis)?;
        let name = self.fresh(x, "real");
        Some(self.store_real(name, &value))
    }

    /// Whole sums that are made real were real.
    fn cast(&mut self, node: &NodeProto) -> Option<()> {
        if node.int("to", 0) != i64::from(data_type::FLOAT) {
            return None;
        }
        let real = self.unrounded.get(node.arg(0)?)?.clone();
        self.push(write::node("Identity", &[&real], node.out(), vec![]));
        Some(())
    }

    /// The product of two stored scales is stored.
    fn joined_scales(&mut self, node: &NodeProto) -> Option<()> {
        let (a, b) = (self.constant(node.arg(0)?)?, self.constant(node.arg(1)?)?);
        let (one, many) = if a.data.len() == 1 { (a, b) } else { (b, a) };
        let &[by] = one.data.as_slice() else { return None };
        let data = many.data.iter().map(|v| v * by).collect();
        self.store_real(node.out().into(), &Constant { shape: many.shape, data });
        Some(())
    }

    /// Outputs of whole numbers are given as real ones.
    fn outputs(&mut self, graph: &mut GraphProto) {
        for output in &mut graph.output {
            let name = output.name.clone().unwrap_or_default();
            let Some(Scale { scale, zero }) = self.quantised.get(&name).cloned() else { continue };
            let whole = self.fresh(&name, "whole");
            for node in &mut self.nodes {
                for tensor in node.output.iter_mut().chain(&mut node.input) {
                    if *tensor == name {
                        tensor.clone_from(&whole);
                    }
                }
            }
            self.push(node_of("DequantizeLinear", &[&whole, &scale, &zero], &name));
            if let Some(TypeProto { value: Some(TypeValue::Tensor(t)), .. }) = &mut output.r#type {
                t.elem_type = Some(data_type::FLOAT);
            }
        }
    }
}

fn node_of(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    node(op, inputs, output, vec![])
}

/// Whether all that is quantised on the way goes into sums of products, with weights or with each
/// other.
fn only_summed(graph: &GraphProto) -> bool {
    let dynamic: HashSet<&str> = graph
        .node
        .iter()
        .filter(|n| n.op() == "DynamicQuantizeLinear")
        .map(NodeProto::out)
        .collect();
    let stored = |name: &str| {
        graph.initializer.iter().any(|t| t.name.as_deref() == Some(name))
            || graph.node.iter().any(|n| n.out() == name && stored_value(n).is_some())
    };
    let sums = |n: &NodeProto| {
        matches!(n.op(), "ConvInteger" | "MatMulInteger")
            && [0, 1].iter().all(|&i| n.arg(i).is_some_and(|x| dynamic.contains(x) || stored(x)))
            && n.arg(3).is_none_or(|zero| stored(zero) || dynamic.contains(n.arg(1).unwrap_or("")))
    };
    let given = graph.output.iter().filter_map(|v| v.name.as_deref());
    given.into_iter().all(|name| !dynamic.contains(name))
        && graph.node.iter().all(|n| sums(n) || !reads(n).iter().any(|x| dynamic.contains(x)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{self, Input};
    use crate::onnx::Graph;
    use crate::onnx::build::{self, weight};

    fn whole(name: &str, code: i32, dims: &[i64], data: &[i32]) -> TensorProto {
        TensorProto {
            name: Some(name.into()),
            dims: dims.to_vec(),
            data_type: Some(code),
            int32_data: data.to_vec(),
            ..Default::default()
        }
    }

    /// Zero points 0 of both kinds, 128 of unsigned bytes, a step of 0.5 and one of 1.
    fn common() -> Vec<TensorProto> {
        vec![
            whole("u0", data_type::UINT8, &[], &[0]),
            whole("u128", data_type::UINT8, &[], &[128]),
            whole("i0", data_type::INT8, &[], &[0]),
            weight("half", &[], &[0.5]),
            weight("one", &[], &[1.0]),
        ]
    }

    fn of(input: &[i64], nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> Graph {
        build::graph(&build::model(input, nodes, [common(), weights].concat()))
    }

    fn microsoft(op: &str, inputs: &[&str], output: &str) -> NodeProto {
        NodeProto { domain: Some("com.microsoft".into()), ..build::node(op, inputs, output) }
    }

    /// What a graph gives for `x`, on every engine.
    fn given(graph: &Graph, shape: &[usize], x: &[f32], want: &[f32]) {
        for engine in engine::tests::ready() {
            let y = engine::load(engine, graph, &["y".into()], Some(1)).unwrap();
            let y = y.run(&[Input { name: "x", shape, data: x }], &[0]).unwrap();
            assert_eq!(&y[0].data[..], want, "{engine}");
        }
    }

    fn quantised_x() -> NodeProto {
        build::node("QuantizeLinear", &["x", "half", "u128"], "q")
    }

    fn read(scale: &str, zero: &str) -> NodeProto {
        build::node("DequantizeLinear", &["r", scale, zero], "y")
    }

    /// x = (1, -2): 1 * 1 - 2 * 0 + 3 = 4, 1 * -2 - 2 * 4 - 1 = -11, in steps of 1.
    #[test]
    fn a_product_has_weights_biases_and_a_head_in_real_numbers() {
        let nodes = vec![
            quantised_x(),
            microsoft("QGemm", &["q", "half", "u128", "w", "s", "z", "b", "one", "u128"], "r")
                .with_int("transB", 1),
            read("one", "u128"),
        ];
        // Scales by row: (w - z) s = (1, 0), (-2, 4); biases in steps of half of them.
        let weights = vec![
            whole("w", data_type::INT8, &[2, 2], &[5, 3, -2, 4]),
            weight("s", &[2], &[0.5, 1.0]),
            whole("z", data_type::INT8, &[2], &[3, 0]),
            whole("b", data_type::INT32, &[2], &[12, -2]),
        ];
        let graph = of(&[0, 2], nodes, weights);
        given(&graph, &[1, 2], &[1.0, -2.0], &[4.0, -11.0]);
        let ending = graph.ending("y");
        let head = ending.head.unwrap();
        assert_eq!(head.weight.data(), [1.0, 0.0, -2.0, 4.0]);
        assert_eq!((head.bias.as_slice(), ending.rounding), (&[3.0, -1.0][..], 0.5));
        assert_eq!(ending.features, ["q:real"]);
        let file: Vec<String> = graph.operators().into_iter().map(|o| o.name).collect();
        assert_eq!(file, ["DequantizeLinear", "QGemm", "QuantizeLinear"]);
    }

    /// Half steps there, whole steps back: 1.5 + 1 = 2.5 is rounded to even, 0.5 * 4 = 2.
    #[test]
    fn sums_products_and_pictures_are_rounded_where_they_were() {
        let both = ["q", "half", "u128", "q", "half", "u128", "one", "u128"];
        let one = ["q", "half", "u128", "one", "u128"];
        let chained = ["one", "u128", "q", "half", "u128", "q", "half", "u128"];
        let window = |node: NodeProto| node.with_ints("kernel_shape", &[1, 2]);
        let shape = [1, 1, 1, 2];
        let x = [1.5, -2.0];
        for (node, want) in [
            (microsoft("QLinearAdd", &both, "r"), vec![3.0, -4.0]),
            (microsoft("QLinearMul", &both, "r"), vec![2.0, 4.0]),
            (microsoft("QLinearLeakyRelu", &one, "r").with_real("alpha", 0.5), vec![2.0, -1.0]),
            (microsoft("QLinearSigmoid", &one, "r"), vec![1.0, 0.0]),
            (microsoft("QLinearGlobalAveragePool", &one, "r"), vec![-0.0]),
            (window(microsoft("QLinearAveragePool", &one, "r")), vec![-0.0]),
            (
                microsoft("QLinearConcat", &chained, "r").with_int("axis", 2),
                vec![2.0, -2.0, 2.0, -2.0],
            ),
        ] {
            let graph = of(&[1, 1, 1, 2], vec![quantised_x(), node, read("one", "u128")], vec![]);
            given(&graph, &shape, &x, &want);
        }
    }

    /// 2 * (1.5, -2) = (3, -4), of which nothing below zero is stored: what a Relu makes.
    #[test]
    fn an_activation_left_to_the_quantisation_is_written_out() {
        let conv = ["q", "half", "u128", "w", "one", "i0", "one", "u0"];
        let mut pool = build::node("MaxPool", &["c"], "p").with_ints("kernel_shape", &[1, 2]);
        pool.output = vec!["p".into()];
        let nodes = vec![
            quantised_x(),
            build::node("QLinearConv", &conv, "c"),
            pool,
            build::node("Flatten", &["p"], "r"),
            read("one", "u0"),
        ];
        let w = whole("w", data_type::INT8, &[2, 1, 1, 1], &[2, -1]);
        let graph = of(&[1, 1, 1, 2], nodes, vec![w]);
        given(&graph, &[1, 1, 1, 2], &[1.5, -2.0], &[3.0, 2.0]);
        let ends: Vec<String> = graph.candidates("y").into_iter().map(|c| c.op).collect();
        assert_eq!(ends, ["Relu", "MaxPool", "Flatten"]);
    }

    /// Weights less 1: 0.3 * 2 - 0.7 * 3 = -1.5, times 0.5, without rounding 0.3 and 0.7.
    #[test]
    fn what_would_be_quantised_on_the_way_is_not() {
        let mut on_the_way = build::node("DynamicQuantizeLinear", &["x"], "q");
        on_the_way.output = ["q", "qs", "qz"].map(String::from).into();
        let product = ["q", "w", "qz", "one8"];
        let nodes = vec![
            on_the_way,
            build::node("MatMulInteger", &product, "sum"),
            build::node("Cast", &["sum"], "real").with_int("to", 1),
            build::node("Mul", &["qs", "half"], "steps"),
            build::node("Mul", &["real", "steps"], "y"),
        ];
        let weights = vec![
            whole("w", data_type::INT8, &[2, 1], &[3, 4]),
            whole("one8", data_type::INT8, &[], &[1]),
        ];
        let graph = of(&[1, 2], nodes.clone(), weights.clone());
        given(&graph, &[1, 2], &[0.3, -0.7], &[-0.75]);
        assert_eq!(graph.ending("y").head.unwrap().weight.data(), [1.0, 1.5]);
        // Whatever else reads the whole numbers has them.
        let mut nodes = nodes;
        nodes.push(build::node("DequantizeLinear", &["q", "qs", "qz"], "other"));
        let graph = of(&[1, 2], nodes, weights);
        assert_eq!(graph.ending("y").head, None);
    }

    #[test]
    fn an_output_of_bytes_is_given_in_real_numbers() {
        let mut model = build::model(
            &[1, 2],
            vec![NodeProto { output: vec!["y".into()], ..quantised_x() }],
            common(),
        );
        let output = &mut model.graph.as_mut().unwrap().output[0];
        if let Some(TypeValue::Tensor(t)) = &mut output.r#type.as_mut().unwrap().value {
            t.elem_type = Some(data_type::UINT8);
        }
        let graph = build::graph(&model);
        assert_eq!(graph.outputs()[0].element, "float");
        given(&graph, &[1, 2], &[1.7, -100.0], &[1.5, -64.0]);
    }
}
