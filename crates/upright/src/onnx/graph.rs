//! [`Graph`]: an ONNX model as data, read with care: sizes are checked before
//! anything is allocated, and a graph that exists is topologically ordered,
//! names every tensor once and holds all its weights.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use prost::Message;

use crate::error::{Error, Result};
use crate::onnx::adapt::{self, Was};
use crate::onnx::constant::{Constant, check_length};
use crate::onnx::external;
use crate::onnx::limits;
use crate::onnx::proto::{
    DimensionValue, GraphProto, ModelProto, NodeProto, TensorProto, TypeValue, ValueInfoProto,
    data_type,
};
use crate::onnx::{quantised, scaler};

/// Largest model that is read, external weights included: 2 GiB.
pub(crate) const LIMIT: u64 = 2 << 30;

/// One dimension of a tensor as the file declares it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number.
    Fixed(usize),
    /// A name for a size that is known only at run time; may be empty.
    Symbol(String),
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(n) => write!(f, "{n}"),
            Dim::Symbol(s) if s.is_empty() => write!(f, "?"),
            Dim::Symbol(s) => write!(f, "{s}"),
        }
    }
}

/// An input or output of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The tensor's name.
    pub name: String,
    /// Its dimensions, if the file declares them.
    pub dims: Option<Vec<Dim>>,
    /// Its element type: `float`, `float16`, `int64`, ...
    pub element: &'static str,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.element)?;
        match &self.dims {
            Some(dims) => {
                let dims: Vec<_> = dims.iter().map(ToString::to_string).collect();
                write!(f, " [{}]", dims.join(","))
            }
            None => write!(f, " [..]"),
        }
    }
}

/// An operator and how often a graph uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// The operator's domain; empty for standard ONNX.
    pub domain: String,
    /// Its name, such as `Conv`.
    pub name: String,
    /// How many nodes use it, nodes of nested graphs included.
    pub count: usize,
}

/// An ONNX model as data.
#[derive(Debug, Clone)]
pub struct Graph {
    name: String,
    model: ModelProto,
    fingerprint: String,
    was: Was,
    operators: Vec<Operator>,
    producers: HashMap<String, usize>,
    initializers: HashMap<String, usize>,
}

impl Graph {
    /// Reads a model file. Weights in other files are read only if those are plain files
    /// inside the model's folder: no `..`, no absolute path, no link of any kind.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = std::fs::File::open(path).map_err(|e| Error::io(path, e))?;
        let meta = file.metadata().map_err(|e| Error::io(path, e))?;
        if !meta.is_file() {
            return Err(Error::Model { path: name, why: "it is not a file".into() });
        }
        check_size(&name, meta.len())?;
        let mut bytes = Vec::with_capacity(meta.len() as usize);
        file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
        Self::read(&name, bytes.into(), Some(path.parent().unwrap_or(Path::new("."))))
    }

    /// Reads a model from memory; `name` stands for it in messages. Weights in other
    /// files are refused.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<Self> {
        Self::read(&name.into(), Bytes::copy_from_slice(bytes), None)
    }

    /// Weights share the bytes of the file.
    fn read(name: &str, bytes: Bytes, folder: Option<&Path>) -> Result<Self> {
        let bad = |why: String| Error::Model { path: name.into(), why };
        check_size(name, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Err(bad("it is empty".into()));
        }
        let mut hash = blake3::Hasher::new();
        hash.update(&bytes);
        let size = bytes.len() as u64;
        let mut model = ModelProto::decode(bytes)
            .map_err(|e| bad(format!("it is damaged or not ONNX ({e})")))?;
        let Some(graph) = model.graph.as_mut() else {
            return Err(bad("it has no graph".into()));
        };
        external::inline(graph, folder, name, size, &mut hash)?;
        adapt::sort(graph);
        adapt::singles(graph);
        let operators = counted(graph);
        scaler::standard(graph);
        quantised::real(graph);
        let fingerprint = hash.finalize().to_hex().to_string();
        if model.opset_import.is_empty() {
            return Err(bad("it names no operator set".into()));
        }
        let mut read = Graph {
            name: name.into(),
            model,
            fingerprint,
            was: Was::default(),
            operators,
            producers: HashMap::new(),
            initializers: HashMap::new(),
        };
        read.index().and_then(|()| limits::check_inputs(read.graph())).map_err(bad)?;
        Ok(read)
    }

    /// Another graph made of this one, of the same name. It shares the weights they have in
    /// common.
    pub(super) fn derived(&self, model: ModelProto) -> Result<Self> {
        let mut graph = Graph {
            name: self.name.clone(),
            operators: model.graph.as_ref().map(counted).unwrap_or_default(),
            model,
            fingerprint: self.fingerprint.clone(),
            was: Was::default(),
            producers: HashMap::new(),
            initializers: HashMap::new(),
        };
        graph.index().map_err(|why| Error::Model { path: self.name.clone(), why })?;
        Ok(graph)
    }

    /// Fills the lookup tables and checks what everything else relies on.
    fn index(&mut self) -> std::result::Result<(), String> {
        let mut producers = HashMap::new();
        let mut initializers = HashMap::new();
        let graph = self.graph();
        let mut known: HashSet<&str> = HashSet::new();
        for (i, t) in graph.initializer.iter().enumerate() {
            let name = t.name.as_deref().unwrap_or_default();
            check_length(t).map_err(|why| format!("weight `{name}`: {why}"))?;
            if !known.insert(name) {
                return Err(format!("weight `{name}` appears twice"));
            }
            initializers.insert(name.to_string(), i);
        }
        for t in &graph.sparse_initializer {
            known.extend(t.values.as_ref().and_then(|v| v.name.as_deref()));
        }
        known.extend(graph.input.iter().filter_map(|v| v.name.as_deref()));
        for (i, node) in graph.node.iter().enumerate() {
            let called = node.name.as_deref().filter(|n| !n.is_empty()).unwrap_or(node.out());
            if node.op().is_empty() {
                return Err(format!("node `{called}` has no operator"));
            }
            for input in node.input.iter().filter(|n| !n.is_empty()) {
                if !known.contains(input.as_str()) {
                    return Err(format!(
                        "node `{called}` ({}) reads `{input}`, which nothing before it makes",
                        node.op()
                    ));
                }
            }
            for output in node.output.iter().filter(|n| !n.is_empty()) {
                if !known.insert(output) {
                    return Err(format!("tensor `{output}` is made twice"));
                }
                producers.insert(output.clone(), i);
            }
            for t in node.attribute.iter().filter_map(|a| a.t.as_ref()) {
                check_length(t).map_err(|why| format!("node `{called}`: {why}"))?;
            }
        }
        limits::check(&self.model)?;
        if graph.output.is_empty() {
            return Err("it has no outputs".into());
        }
        for output in &graph.output {
            let name = output.name.as_deref().unwrap_or_default();
            if !known.contains(name) {
                return Err(format!("output `{name}` is made by nothing"));
            }
        }
        self.producers = producers;
        self.initializers = initializers;
        Ok(())
    }

    /// The file the model came from, or the name given with its bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// BLAKE3 of the file's bytes, and of the files that hold its weights, in hexadecimal.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The same with an input of pictures that has channels first and real numbers.
    pub(crate) fn adapted(mut self) -> Result<Self> {
        if let Some(graph) = self.model.graph.as_mut() {
            self.was = adapt::input(graph);
        }
        let name = self.name.clone();
        self.index().map_err(|why| Error::Model { path: name, why })?;
        Ok(self)
    }

    /// What its input was in the file.
    pub(crate) fn was(&self) -> Was {
        self.was
    }

    /// What must be fed, in order; weights that the file also lists as inputs are left out.
    pub fn inputs(&self) -> Vec<Port> {
        let fed = |v: &&ValueInfoProto| {
            !self.initializers.contains_key(v.name.as_deref().unwrap_or_default())
        };
        self.graph().input.iter().filter(fed).map(port).collect()
    }

    /// What the model declares as its results, in order.
    pub fn outputs(&self) -> Vec<Port> {
        self.graph().output.iter().map(port).collect()
    }

    /// The operators that the file uses, by name.
    pub fn operators(&self) -> Vec<Operator> {
        self.operators.clone()
    }

    /// Version of the standard operator set; 0 if only others are named.
    pub fn opset(&self) -> i64 {
        let standard = |d: Option<&str>| matches!(d, None | Some("" | "ai.onnx"));
        let set = self.model.opset_import.iter().find(|o| standard(o.domain.as_deref()));
        set.and_then(|o| o.version).unwrap_or(0)
    }

    /// The program that wrote the model, with its version; may be empty.
    pub fn producer(&self) -> String {
        let part = |s: &Option<String>| s.clone().unwrap_or_default();
        let text = [part(&self.model.producer_name), part(&self.model.producer_version)].join(" ");
        text.trim().to_string()
    }

    /// The model's own remarks (`metadata_props`).
    pub fn metadata(&self) -> BTreeMap<String, String> {
        let pair = |e: &crate::onnx::proto::StringStringEntryProto| {
            Some((e.key.clone()?, e.value.clone().unwrap_or_default()))
        };
        self.model.metadata_props.iter().filter_map(pair).collect()
    }

    /// A weight by name, as single-precision numbers; `None` if there is no such weight
    /// or it does not hold real numbers.
    pub fn initializer(&self, name: &str) -> Option<Constant> {
        self.raw_initializer(name).and_then(Constant::read)
    }

    /// Names of the weights, in file order.
    pub fn initializers(&self) -> Vec<&str> {
        self.graph().initializer.iter().filter_map(|t| t.name.as_deref()).collect()
    }

    /// Every tensor that a node makes, in graph order.
    pub fn tensors(&self) -> Vec<&str> {
        let outputs = self.graph().node.iter().flat_map(|n| &n.output);
        outputs.map(String::as_str).filter(|n| !n.is_empty()).collect()
    }

    /// The declared dimensions of any tensor, where the file has them.
    pub fn dims(&self, tensor: &str) -> Option<Vec<Dim>> {
        let graph = self.graph();
        let all = graph.value_info.iter().chain(&graph.output).chain(&graph.input);
        all.filter(|v| v.name.as_deref() == Some(tensor)).find_map(|v| port(v).dims)
    }

    pub(crate) fn raw_initializer(&self, name: &str) -> Option<&TensorProto> {
        self.initializers.get(name).and_then(|&i| self.graph().initializer.get(i))
    }

    /// The node that makes a tensor.
    pub(crate) fn node(&self, tensor: &str) -> Option<&NodeProto> {
        self.producers.get(tensor).and_then(|&i| self.graph().node.get(i))
    }

    /// The position of the node that makes a tensor.
    pub(crate) fn position(&self, tensor: &str) -> Option<usize> {
        self.producers.get(tensor).copied()
    }

    pub(crate) fn graph(&self) -> &GraphProto {
        static NONE: std::sync::LazyLock<GraphProto> =
            std::sync::LazyLock::new(GraphProto::default);
        self.model.graph.as_ref().unwrap_or(&NONE)
    }

    pub(crate) fn model(&self) -> &ModelProto {
        &self.model
    }
}

/// Every tensor that a node reads, nested graphs included.
pub(crate) fn reads(node: &NodeProto) -> Vec<&str> {
    let mut all: Vec<&str> = node.input.iter().map(String::as_str).collect();
    for a in &node.attribute {
        a.g.iter().chain(&a.graphs).for_each(|g| captured(g, &mut all));
    }
    all
}

/// Every tensor that a nested graph reads.
pub(super) fn captured<'a>(graph: &'a GraphProto, reads: &mut Vec<&'a str>) {
    reads.extend(graph.output.iter().filter_map(|v| v.name.as_deref()));
    for node in &graph.node {
        reads.extend(node.input.iter().map(String::as_str));
        for a in &node.attribute {
            a.g.iter().chain(&a.graphs).for_each(|g| captured(g, reads));
        }
    }
}

fn check_size(name: &str, size: u64) -> Result<()> {
    if size > LIMIT {
        return Err(Error::TooLarge { what: name.into(), size, limit: LIMIT });
    }
    Ok(())
}

fn counted(graph: &GraphProto) -> Vec<Operator> {
    let mut counts = BTreeMap::new();
    count(graph, &mut counts);
    counts.into_iter().map(|((name, domain), count)| Operator { domain, name, count }).collect()
}

fn count(graph: &GraphProto, counts: &mut BTreeMap<(String, String), usize>) {
    for node in &graph.node {
        let domain = node.domain.as_deref().filter(|d| *d != "ai.onnx").unwrap_or_default();
        *counts.entry((node.op().into(), domain.into())).or_default() += 1;
        for a in &node.attribute {
            a.g.iter().chain(&a.graphs).for_each(|g| count(g, counts));
        }
    }
}

fn port(value: &ValueInfoProto) -> Port {
    let name = value.name.clone().unwrap_or_default();
    let Some(TypeValue::Tensor(t)) = value.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
        return Port { name, dims: None, element: "unknown" };
    };
    let dim = |d: &crate::onnx::proto::DimensionProto| match &d.value {
        Some(DimensionValue::Fixed(n)) => {
            usize::try_from(*n).map_or_else(|_| Dim::Symbol(String::new()), Dim::Fixed)
        }
        Some(DimensionValue::Symbol(s)) => Dim::Symbol(s.clone()),
        None => Dim::Symbol(String::new()),
    };
    let dims = t.shape.as_ref().map(|s| s.dim.iter().map(dim).collect());
    Port { name, dims, element: element(t.elem_type.unwrap_or(0)) }
}

fn element(code: i32) -> &'static str {
    match code {
        data_type::FLOAT => "float",
        data_type::UINT8 => "uint8",
        data_type::INT8 => "int8",
        data_type::UINT16 => "uint16",
        data_type::INT16 => "int16",
        data_type::INT32 => "int32",
        data_type::INT64 => "int64",
        data_type::STRING => "string",
        data_type::BOOL => "bool",
        data_type::FLOAT16 => "float16",
        data_type::DOUBLE => "double",
        data_type::UINT32 => "uint32",
        data_type::UINT64 => "uint64",
        data_type::BFLOAT16 => "bfloat16",
        _ => "unknown",
    }
}
