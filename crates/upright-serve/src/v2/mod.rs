//! `/v2`: the Open Inference Protocol, version 2, over HTTP, with its
//! binary-data extension.

mod data;
mod outputs;
mod request;
mod tensor;

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::app::{App, Id, Noted};
use crate::refusal::Refusal;
use crate::{body, deadline};
use outputs::OUTPUTS;

/// The only version that the model has.
const VERSION: &str = "1";

/// Bodies up to this many bytes are read where they arrive: that takes less than handing them
/// over does.
const SMALL: usize = 64 << 10;

#[derive(Serialize)]
struct Server {
    name: &'static str,
    version: &'static str,
    extensions: [&'static str; 1],
}

/// `GET /v2`
pub async fn server() -> Response {
    let extensions = ["binary_tensor_data"];
    Json(Server { name: "upright", version: env!("CARGO_PKG_VERSION"), extensions }).into_response()
}

/// What a path names.
#[derive(Debug, Deserialize)]
pub struct Named {
    model: String,
    version: Option<String>,
}

impl Named {
    /// Whether it is the model that is served.
    fn check(&self, app: &App) -> Result<(), Refusal> {
        let own = &app.options.name;
        if self.model != *own {
            let hint = format!("the model is called `{own}`");
            return Err(Refusal::missing("there is no model of this name", &hint));
        }
        if self.version.as_deref().is_some_and(|version| version != VERSION) {
            let hint = format!("the only version is {VERSION}");
            return Err(Refusal::missing("the model has no such version", &hint));
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Model<'a> {
    name: &'a str,
    versions: [&'static str; 1],
    platform: &'static str,
    inputs: Vec<Tensor<'a>>,
    outputs: Vec<Tensor<'a>>,
}

#[derive(Serialize)]
struct Tensor<'a> {
    name: &'a str,
    datatype: &'static str,
    shape: Vec<i64>,
}

/// A shape whose first dimension is open.
fn open(shape: &[usize]) -> Vec<i64> {
    std::iter::once(-1).chain(shape.iter().map(|&d| d as i64)).collect()
}

/// `GET /v2/models/{model}`
pub async fn model(
    State(app): State<Arc<App>>,
    Path(named): Path<Named>,
) -> Result<Response, Refusal> {
    named.check(&app)?;
    let model = app.canonicalizer.model();
    let outputs = OUTPUTS.iter().enumerate().map(|(i, o)| Tensor {
        name: if i == 0 { outputs::logits_name(&app) } else { o.name },
        datatype: o.datatype,
        shape: open(&(o.shape)(&app)),
    });
    let input = Tensor { name: model.input(), datatype: "FP32", shape: open(&model.fed().shape()) };
    Ok(Json(Model {
        name: &app.options.name,
        versions: [VERSION],
        platform: "onnx_upright",
        inputs: vec![input],
        outputs: outputs.collect(),
    })
    .into_response())
}

#[derive(Serialize)]
struct Ready<'a> {
    name: &'a str,
    ready: bool,
}

/// `GET /v2/models/{model}/ready`
pub async fn model_ready(
    State(app): State<Arc<App>>,
    Path(named): Path<Named>,
) -> Result<Response, Refusal> {
    named.check(&app)?;
    app.ready()?;
    Ok(Json(Ready { name: &app.options.name, ready: true }).into_response())
}

/// `POST /v2/models/{model}/infer`
pub async fn infer(
    State(app): State<Arc<App>>,
    Extension(id): Extension<Id>,
    Path(named): Path<Named>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    named.check(&app)?;
    let start = Instant::now();
    let held = body::read(&app, &headers, body).await?;
    let bytes = held.bytes.clone();
    let json = request::json_length(&headers, bytes.len())?;
    let asked = if bytes.len() <= SMALL && !holds_files(&bytes[..json]) {
        request::parse(&app, &bytes, json)?
    } else {
        app.aside(move |app| request::parse(app, &bytes, json)).await??
    };
    let longest = app.options.timeout.saturating_sub(start.elapsed());
    let deadline = deadline::of(&headers, asked.timeout, longest)?;
    let answers = app.answers(asked.items, &id, deadline).await?;
    let answers = answers.into_iter().collect::<Result<Vec<_>, _>>();
    let answers = answers.map_err(|_| Refusal::failed())?;
    let mut response = outputs::send(&app, asked.id.as_deref(), &asked.wanted, &answers)?;
    response.extensions_mut().insert(Noted::of(&answers));
    Ok(response)
}

/// Whether a request may hold files, which take long to decode for their size.
fn holds_files(json: &[u8]) -> bool {
    !std::str::from_utf8(json).is_ok_and(|text| !text.contains("BYTES"))
}
