//! A request to infer: JSON, with tensors inside it or as bytes behind it.

use std::time::Duration;

use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::data::Data;
use super::outputs::{self, Wanted};
use super::tensor;
use crate::app::App;
use crate::refusal::Refusal;

/// Says how many bytes of a body are JSON; tensors follow.
pub const JSON_LENGTH: &str = "inference-header-content-length";

/// What is asked for.
#[derive(Debug)]
pub struct Infer {
    /// What the client calls the request.
    pub id: Option<String>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Prepared inputs.
    pub items: Vec<Vec<f32>>,
    /// The outputs to send.
    pub wanted: Vec<Wanted>,
    /// The memory that the inputs take.
    #[expect(dead_code, reason = "it is given back when this is dropped")]
    memory: Vec<OwnedSemaphorePermit>,
}

type Parameters = Map<String, Value>;

#[derive(Deserialize)]
struct Body {
    id: Option<String>,
    #[serde(default)]
    parameters: Parameters,
    inputs: Vec<Input>,
    #[serde(default)]
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Input {
    name: String,
    shape: Vec<u64>,
    datatype: String,
    #[serde(default)]
    parameters: Parameters,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Output {
    name: String,
    #[serde(default)]
    parameters: Parameters,
}

/// How many bytes at the start of a body are JSON.
pub fn json_length(headers: &HeaderMap, body: usize) -> Result<usize, Refusal> {
    let Some(value) = headers.get(JSON_LENGTH) else { return Ok(body) };
    let length = value.to_str().ok().and_then(|v| v.parse().ok());
    length.filter(|&length| length <= body).ok_or_else(|| {
        let message = format!("`{JSON_LENGTH}` is not a number of bytes within the body");
        Refusal::bad("request::binary", message, "")
    })
}

/// Reads a body of which the first `json` bytes are JSON.
pub fn parse(app: &App, body: &[u8], json: usize) -> Result<Infer, Refusal> {
    let (json, mut bytes) = body.split_at(json);
    let body: Body = serde_json::from_slice(json).map_err(|e| {
        let hint = "/openapi.json describes a request; tensors that are not numbers cannot be JSON";
        Refusal::bad("request::json", format!("the request cannot be read: {e}"), hint)
    })?;
    let timeout = match body.parameters.get("timeout") {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_u64().map(Duration::from_micros).ok_or_else(|| {
            let message = "the parameter `timeout` is not a number of microseconds";
            Refusal::bad("request::timeout", message, "send a whole number, such as 200000")
        })?),
    };
    if body.inputs.is_empty() {
        let hint = format!("send the input `{}`", app.canonicalizer.model().input());
        return Err(Refusal::bad("input::missing", "the request has no input", &hint));
    }
    let (mut items, mut memory) = (Vec::new(), Vec::new());
    for mut input in body.inputs {
        let own = size(&input.parameters)?;
        let behind = match own {
            None => None,
            Some(size) if size <= bytes.len() => {
                let (own, rest) = bytes.split_at(size);
                bytes = rest;
                Some(own)
            }
            Some(size) => {
                let message = format!("`{}` should have {size} bytes", input.name);
                let hint = "binary_data_size must be the length of the tensor in bytes";
                return Err(Refusal::bad("request::binary", message, hint));
            }
        };
        let content = input.parameters.get("content_type").and_then(Value::as_str);
        let values = match (behind, input.data.take()) {
            (Some(bytes), None) => tensor::Values::Bytes(bytes),
            (None, Some(data)) => tensor::Values::Json(data, content),
            _ => {
                let message = format!("`{}` needs either data or binary_data_size", input.name);
                return Err(Refusal::bad("input::missing", message, ""));
            }
        };
        let Input { name, datatype, shape, .. } = &input;
        memory.push(tensor::reserve(app, shape)?);
        items.extend(tensor::items(app, name, datatype, shape, values)?);
    }
    if !bytes.is_empty() {
        let message = format!("{} bytes follow the last tensor", bytes.len());
        return Err(Refusal::bad("request::binary", message, ""));
    }
    let all_binary = flag(&body.parameters, "binary_data_output");
    let named = body.outputs.iter().map(|output| {
        let binary = output.parameters.get("binary_data").and_then(Value::as_bool);
        outputs::wanted(app, &output.name, binary.unwrap_or(all_binary))
    });
    let mut wanted = named.collect::<Result<Vec<_>, _>>()?;
    if wanted.is_empty() {
        wanted.push(outputs::usual(app, all_binary));
    }
    Ok(Infer { id: body.id, timeout, items, wanted, memory })
}

fn flag(parameters: &Parameters, name: &str) -> bool {
    parameters.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn size(parameters: &Parameters) -> Result<Option<usize>, Refusal> {
    let Some(value) = parameters.get("binary_data_size") else { return Ok(None) };
    let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
    let message = "binary_data_size is not a number of bytes";
    size.map(Some).ok_or_else(|| Refusal::bad("request::binary", message, ""))
}
