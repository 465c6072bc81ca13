//! ONNX Runtime, from a shared library that is found at run time: the
//! file or folder that `ORT_DYLIB_PATH` names, else wherever the system keeps
//! its libraries.
//!
//! The tensors asked for are made outputs of the graph, which every fusion
//! respects.

use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use ::ort::LoadDynamicError;
use ::ort::environment::Environment;
use ::ort::logging::LogLevel;
use ::ort::session::builder::{BuilderResult, GraphOptimizationLevel, SessionBuilder};
use ::ort::session::{OutputSelector, RunOptions, Session, SessionInputValue};
use ::ort::value::{DynValue, TensorRef};
use prost::Message;

use crate::engine::{Engine, Input, Lane, Numbers, Value, lanes, with_outputs};
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::onnx::Graph;
use crate::onnx::proto::{GraphProto, ModelProto, NodeProto};

/// Its name in the table.
pub(super) const NAME: &str = "ort";

/// A tenth faster than one by one; more gain nothing.
pub(super) const MICRO_BATCH: usize = 8;

/// Names the shared library, or the folder it lies in.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// Most bytes of a graph that every lane has a copy of, and of all copies: a session must not run
/// twice at a time, and holds its weights twice, as they are and packed. Larger graphs have
/// enough to do in a layer for all threads.
const COPIED: usize = 1 << 26;
const COPIES: usize = 1 << 29;

struct Ort {
    /// On all threads.
    whole: Mutex<Session>,
    /// On one thread each; none where copies would take too much memory.
    lanes: Vec<Mutex<Session>>,
    inputs: Vec<String>,
    tensors: Vec<String>,
}

impl fmt::Debug for Ort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ort").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

/// Whether the shared library is there and new enough.
pub(super) fn ready() -> Result<()> {
    environment().map(|_| ())
}

/// The one environment of this process, made on first use.
fn environment() -> Result<&'static Environment> {
    static MADE: OnceLock<Environment> = OnceLock::new();
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = MADE.get() {
        return Ok(made);
    }
    let path = library(env::var_os(VARIABLE).map(PathBuf::from))?;
    let builder = ::ort::init_from(&path).map_err(|e| refused(&path, &e))?;
    let environment = builder
        .with_name("upright")
        .with_telemetry(false)
        .build()
        .map_err(|e| Error::engine(NAME, e))?;
    Ok(MADE.get_or_init(|| environment))
}

fn missing(why: String) -> Error {
    Error::NoEngine {
        engine: NAME,
        why,
        hint: Some(Hint::FindEngine {
            variable: VARIABLE,
            library: &("ONNX Runtime", "1.17"),
            other: "rten",
        }),
    }
}

fn refused(path: &Path, e: &LoadDynamicError) -> Error {
    let path = path.display();
    missing(match e {
        LoadDynamicError::Dlopen { error, .. } => format!("`{path}` cannot be loaded: {error}"),
        LoadDynamicError::MissingApi { .. } => format!("`{path}` is not ONNX Runtime"),
        LoadDynamicError::BadVersion { version_str, .. } => {
            format!("`{path}` is ONNX Runtime {version_str}, older than 1.{}", ::ort::MINOR_VERSION)
        }
        LoadDynamicError::InvalidVersionString => format!("`{path}` does not say its version"),
    })
}

/// The library to load: what was named, or a name that the system looks up.
fn library(named: Option<PathBuf>) -> Result<PathBuf> {
    let file = format!("{}onnxruntime{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let Some(named) = named.filter(|p| !p.as_os_str().is_empty()) else {
        return Ok(file.into());
    };
    let gone = |e: std::io::Error| missing(format!("`{}`: {e}", named.display()));
    let path = std::path::absolute(&named).map_err(gone)?;
    if !path.metadata().map_err(gone)?.is_dir() {
        return Ok(path);
    }
    let stem = format!("{}onnxruntime.", env::consts::DLL_PREFIX);
    let names = path.read_dir().map_err(gone)?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let end = env::consts::DLL_SUFFIX;
        (name.starts_with(&stem) && name.contains(end)).then_some(name)
    });
    match names.min() {
        Some(name) => Ok(path.join(name)),
        None => Err(missing(format!("`{}` holds no `{file}`", named.display()))),
    }
}

/// Prepares a graph; see [`crate::engine::Load`].
pub(super) fn load(
    graph: &Graph,
    tensors: &[String],
    threads: Option<usize>,
) -> Result<Box<dyn Engine>> {
    let environment = environment()?;
    for name in tensors {
        if graph.position(name).is_none() && !is_given(graph, name) {
            let candidates = graph.tensors().join(", ");
            return Err(Error::NoTap { name: name.clone(), candidates });
        }
    }
    let proto = with_outputs(graph, tensors);
    let threads = lanes::threads(threads);
    let bytes = proto.encode_to_vec();
    let refused = |why: String| Error::Model { path: graph.name().into(), why };
    let whole = open(environment, &bytes, threads)
        .map_err(|why| operators(graph, proto, environment, &why).unwrap_or(refused(why)))?;
    let inputs = whole.inputs().iter().map(|i| i.name().to_string()).collect();
    let few = bytes.len() <= COPIED && bytes.len().saturating_mul(threads) <= COPIES;
    let worth = threads > 1 && few;
    let lanes = (0..threads).filter(|_| worth);
    let lanes = lanes.map(|_| open(environment, &bytes, 1).map(Mutex::new).map_err(refused));
    let lanes = lanes.collect::<Result<_>>()?;
    Ok(Box::new(Ort { whole: Mutex::new(whole), lanes, inputs, tensors: tensors.to_vec() }))
}

/// Whether a tensor is an input or a weight.
fn is_given(graph: &Graph, name: &str) -> bool {
    graph.inputs().iter().any(|p| p.name == name) || graph.initializers().contains(&name)
}

#[expect(clippy::result_large_err, reason = "the builder's errors hand the builder back")]
fn open(
    environment: &Environment,
    model: &[u8],
    threads: usize,
) -> std::result::Result<Session, String> {
    let configured = |builder: SessionBuilder| -> BuilderResult {
        builder
            .with_log_level(LogLevel::Fatal)?
            .with_optimization_level(GraphOptimizationLevel::All)?
            .with_deterministic_compute(true)?
            .with_intra_threads(threads)?
            .with_intra_op_spinning(false)
    };
    let builder = Session::builder(environment).map_err(|e| e.to_string())?;
    let mut builder = configured(builder).map_err(|e| e.to_string())?;
    builder.commit_from_memory(model).map_err(|e| e.to_string())
}

/// Every operator that ONNX Runtime does not know, if that is what it refused: each that it
/// names is taken out until it names no other.
fn operators(
    graph: &Graph,
    mut proto: ModelProto,
    environment: &Environment,
    why: &str,
) -> Option<Error> {
    let mut all: BTreeSet<String> = BTreeSet::new();
    let mut why = why.to_string();
    while let Some(name) = unknown(&why).filter(|name| !all.contains(name)) {
        proto.graph.iter_mut().for_each(|g| take_out(g, &name));
        all.insert(name);
        why = open(environment, &proto.encode_to_vec(), 1).err().unwrap_or_default();
    }
    let node = graph.graph().node.iter().find(|n| all.contains(&called(n)))?;
    let named = node.name.as_deref().filter(|n| !n.is_empty()).unwrap_or(node.out());
    Some(Error::Operators {
        path: graph.name().into(),
        engine: NAME,
        node: named.into(),
        first: format!("{} (opset {})", called(node), graph.opset()),
        all: all.into_iter().collect::<Vec<_>>().join(", "),
    })
}

/// The operator that a message of ONNX Runtime says it does not know.
fn unknown(why: &str) -> Option<String> {
    if let Some((_, rest)) = why.split_once("No Op registered for ") {
        return rest.split_whitespace().next().map(Into::into);
    }
    let (before, _) = why.split_once("(-1) is not a registered function/op")?;
    let name = before.split_whitespace().next_back()?;
    Some(name.replace(':', "."))
}

/// The operator, with its domain if that is not the standard one.
fn called(node: &NodeProto) -> String {
    match node.domain.as_deref() {
        None | Some("" | "ai.onnx") => node.op().to_string(),
        Some(domain) => format!("{domain}.{}", node.op()),
    }
}

/// Lets every node of an operator hand on its first input.
fn take_out(graph: &mut GraphProto, name: &str) {
    for node in &mut graph.node {
        if called(node) == name {
            node.op_type = Some("Identity".into());
            node.domain = None;
            node.input.truncate(1);
            node.output.truncate(1);
            node.attribute.clear();
        }
        for a in &mut node.attribute {
            a.g.iter_mut().chain(&mut a.graphs).for_each(|g| take_out(g, name));
        }
    }
}

impl Ort {
    /// A lane's session; its state outlives a panic, as every run starts anew.
    fn session(&self, lane: Lane) -> MutexGuard<'_, Session> {
        let session = match lane {
            Lane::One(lane) if !self.lanes.is_empty() => &self.lanes[lane % self.lanes.len()],
            _ => &self.whole,
        };
        session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Ort {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lanes(&self) -> usize {
        self.lanes.len().max(1)
    }

    fn run_on(&self, lane: Lane, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>> {
        let failed = |why: String| Error::Engine { engine: NAME, why, source: None };
        let raised = |e: ::ort::Error| Error::engine(NAME, e);
        let mut fed: Vec<(&str, SessionInputValue<'_>)> = Vec::with_capacity(inputs.len());
        for input in inputs {
            if !self.inputs.iter().any(|name| name == input.name) {
                return Err(failed(format!("the graph has no input `{}`", input.name)));
            }
            let tensor = TensorRef::from_array_view((input.shape, input.data))
                .map_err(|e| failed(format!("input `{}`: {e}", input.name)))?;
            fed.push((input.name, tensor.into()));
        }
        let names: Option<Vec<&String>> = wanted.iter().map(|&i| self.tensors.get(i)).collect();
        let names = names
            .ok_or_else(|| failed("a tensor was asked for that was not named at loading".into()))?;
        if names.is_empty() {
            return Ok(vec![]);
        }
        let selected = names.iter().fold(OutputSelector::no_default(), |s, name| s.with(*name));
        let options = RunOptions::new().map_err(raised)?.with_outputs(selected);
        let mut session = self.session(lane);
        let mut outputs = session.run_with_options(fed, &options).map_err(raised)?;
        let mut values: Vec<Value> = Vec::with_capacity(names.len());
        for (n, name) in names.iter().enumerate() {
            if let Some(same) = names[..n].iter().position(|other| other == name) {
                values.push(values[same].clone());
                continue;
            }
            let value = outputs.remove(name.as_str());
            let value = value.ok_or_else(|| failed(format!("it gave no tensor `{name}`")))?;
            values.push(read(value).map_err(failed)?);
        }
        Ok(values)
    }
}

/// A tensor of numbers in ONNX Runtime's memory.
struct Tensor(DynValue);

impl AsRef<[f32]> for Tensor {
    fn as_ref(&self) -> &[f32] {
        self.0.try_extract_tensor::<f32>().map_or(&[], |(_, data)| data)
    }
}

fn read(value: DynValue) -> std::result::Result<Value, String> {
    let shape = match value.try_extract_tensor::<f32>() {
        Ok((shape, _)) => shape.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect(),
        Err(_) => return Err(format!("a tensor of type {} was asked for", value.dtype())),
    };
    Ok(Value { shape, data: Numbers::held(Tensor(value)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onnx::build::{graph, model, node};

    #[test]
    fn a_library_is_looked_for_where_it_was_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &Path| library(Some(path.into()));
        let file = format!("{}onnxruntime{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
        assert_eq!(library(None).unwrap(), Path::new(&file));
        assert_eq!(at(Path::new("")).unwrap(), Path::new(&file));
        let e = at(&folder.path().join("ghost")).unwrap_err();
        assert!(e.to_string().contains("ghost"), "{e}");
        assert!(
            e.hint().unwrap().to_string().starts_with("set ORT_DYLIB_PATH to the shared library"),
            "{e:?}"
        );
        let e = at(folder.path()).unwrap_err();
        assert!(e.to_string().ends_with(&format!("holds no `{file}`")), "{e}");
        for name in ["zlib", &format!("{file}.1.99"), &file] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(at(folder.path()).unwrap(), folder.path().join(&file));
        let inside = folder.path().join("zlib");
        assert_eq!(at(&inside).unwrap(), inside);
    }

    #[test]
    fn every_reason_to_refuse_a_library_says_what_and_why() {
        let path = PathBuf::from("lib.so");
        let old = LoadDynamicError::BadVersion { version_str: "1.9.0".into(), path: path.clone() };
        let e = refused(&path, &old);
        assert_eq!(
            e.to_string(),
            "the ort engine is not available: `lib.so` is ONNX Runtime 1.9.0, older than 1.17"
        );
        let e = refused(&path, &LoadDynamicError::MissingApi { path: path.clone() });
        assert!(e.to_string().ends_with("`lib.so` is not ONNX Runtime"), "{e}");
        assert!(e.hint().unwrap().to_string().contains("ONNX Runtime 1.17 or later"), "{e:?}");
    }

    #[test]
    fn an_unknown_operator_is_read_off_either_message() {
        let read = |why: &str| unknown(why).unwrap_or_default();
        let standard = "In Node, (\"n\", Quux, \"\", -1), Error No Op registered for Quux with \
                        domain_version of 17";
        assert_eq!(read(standard), "Quux");
        assert_eq!(read("Fatal error: my:Warp(-1) is not a registered function/op"), "my.Warp");
        assert_eq!(read("Type Error: Type 'tensor(double)' is invalid."), "");
    }

    #[test]
    fn every_unknown_operator_is_named_at_once() {
        if ready().is_err() {
            eprintln!("SKIPPED: engine ort");
            return;
        }
        let from = |op: &str, input: &str, output: &str| {
            let mut node = node(op, &[input], output);
            node.domain = Some("my".into());
            node
        };
        let nodes = vec![
            from("Warp", "x", "a"),
            node("Relu", &["a"], "b"),
            from("Bend", "b", "c"),
            node("Quux", &["c"], "y"),
        ];
        let mut m = model(&[0, 2], nodes, vec![]);
        let mut mine = m.opset_import[0].clone();
        mine.domain = Some("my".into());
        m.opset_import.push(mine);
        let e = load(&graph(&m), &["y".into()], None).unwrap_err();
        assert_eq!(
            e.to_string(),
            "test.onnx: node `/a` uses operator my.Warp (opset 17), which the ort engine does \
             not have; all unsupported operators: Quux, my.Bend, my.Warp"
        );
    }
}
