//! `/v1`: files in, labels out.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, FromRequest, Multipart, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use upright::SignalKind;
use upright_job::word;

use crate::app::{App, Id, Noted};
use crate::refusal::{Refusal, Shown};
use crate::runner::Answer;
use crate::{body, deadline, view};

/// What an answer tells about the model and its parts.
#[derive(Debug, Serialize)]
struct Info<'a> {
    name: &'a str,
    version: &'static str,
    signal: SignalKind,
    shape: Vec<usize>,
    classes: usize,
    class_names: Option<&'a [String]>,
    gate: Gate<'a>,
    budget: usize,
    shadow: bool,
}

#[derive(Debug, Serialize)]
struct Gate<'a> {
    name: &'a str,
    /// Absent where everything or nothing is searched.
    tau: Option<f32>,
}

/// `GET /v1/info`
pub async fn info(State(app): State<Arc<App>>) -> Response {
    let (c, model) = (&app.canonicalizer, app.canonicalizer.model());
    let gate = &c.config().part(upright::Role::Gate).name;
    Json(Info {
        name: &app.options.name,
        version: env!("CARGO_PKG_VERSION"),
        signal: model.signal().kind(),
        shape: model.fed().shape(),
        classes: model.classes(),
        class_names: model.class_names(),
        gate: Gate { name: gate, tau: Some(c.gate().tau()).filter(|tau| tau.is_finite()) },
        budget: c.config().budget,
        shadow: app.options.shadow,
    })
    .into_response()
}

/// What may be asked for besides.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Whether to send the view that answered.
    view: Option<View>,
    /// How long the request may take.
    timeout_ms: Option<u64>,
    /// What the file is called: its ending tells its format.
    name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum View {
    Png,
}

#[derive(Debug, Serialize)]
struct Predictions<'a> {
    predictions: Vec<One<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum One<'a> {
    Answered(&'a Answered<'a>),
    Refused { name: &'a str, error: Shown<'a> },
}

/// An answer; the numbers are those of a row of `upright predict`.
#[derive(Debug, Serialize)]
struct Answered<'a> {
    name: &'a str,
    label: u32,
    class: String,
    model_label: u32,
    model_class: String,
    rival: Option<u32>,
    verdict: &'static str,
    energy_before: f32,
    energy_after: f32,
    evaluations: usize,
    map: Vec<f32>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<String>,
}

/// A file of a request, on its way to an answer.
struct File {
    name: String,
    read: Result<Vec<f32>, Refusal>,
}

/// `POST /v1/predict`
pub async fn predict(
    State(app): State<Arc<App>>,
    Extension(id): Extension<Id>,
    asked: Result<Query<Asked>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let Query(asked) = asked.map_err(|e| {
        let hint = "the query may hold view=png, timeout_ms=N and name=FILE";
        Refusal::bad("request::query", e.body_text(), hint)
    })?;
    let longest = app.options.timeout;
    let parameter = asked.timeout_ms.map(Duration::from_millis);
    let deadline = deadline::of(&headers, parameter, longest)?;
    let mut held = body::read(&app, &headers, body).await?;
    let sent = files(&app, &headers, asked.name, held.bytes.clone()).await?;
    held.grow(&app, sent.len() * app.canonicalizer.model().signal().size())?;
    let files = app.aside(move |app| {
        let read = |(name, bytes): (String, Bytes)| {
            let read = app.files.read(&name, &bytes);
            File { name, read }
        };
        sent.into_iter().map(read).collect::<Vec<File>>()
    });
    let files = files.await?;
    let items: Vec<Vec<f32>> = files.iter().filter_map(|f| f.read.clone().ok()).collect();
    let answers = app.answers(items, &id, deadline).await?;
    let answers: Vec<Result<Answer, Refusal>> =
        answers.into_iter().map(|a| a.map_err(|_| Refusal::failed())).collect();
    let noted = Noted::of(answers.iter().flatten());
    let png = asked.view == Some(View::Png);
    let mut response = if png {
        app.aside(move |app| shown(app, &files, &answers, true)).await?
    } else {
        shown(&app, &files, &answers, false)
    };
    response.extensions_mut().insert(noted);
    Ok(response)
}

/// The files of a request, by name: its body, or the parts of a form.
async fn files(
    app: &App,
    headers: &HeaderMap,
    name: Option<String>,
    bytes: Bytes,
) -> Result<Vec<(String, Bytes)>, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    if !kind.starts_with("multipart/form-data") {
        return Ok(vec![(name.unwrap_or_else(|| "input".into()), bytes)]);
    }
    let bad = |why: String| Refusal::bad("request::form", why, "send multipart/form-data");
    let mut request = Request::new(Body::from(bytes));
    if let Some(kind) = headers.get(header::CONTENT_TYPE) {
        request.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    }
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|e| bad(e.body_text()))?;
    let mut files = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|e| bad(e.body_text()))? {
        let name = field.file_name().or(field.name()).unwrap_or("input").to_string();
        files.push((name, field.bytes().await.map_err(|e| bad(e.body_text()))?));
        if files.len() > app.runner.most() {
            let message = format!("more than {} files in one request", app.runner.most());
            return Err(Refusal::large(message, "send several requests"));
        }
    }
    if files.is_empty() {
        return Err(bad("the form holds no file".into()));
    }
    Ok(files)
}

/// The answer to a request: of what it refuses if it answers nothing, else of what it answers.
fn shown(app: &App, files: &[File], answers: &[Result<Answer, Refusal>], png: bool) -> Response {
    let mut answers = answers.iter();
    let mut all: Vec<Result<Answered, Refusal>> = Vec::with_capacity(files.len());
    for File { name, read } in files {
        all.push(match (read, read.as_ref().ok().and_then(|_| answers.next())) {
            (Ok(item), Some(Ok(answer))) => Ok(answered(app, name, item, answer, png)),
            (Err(refusal), _) | (_, Some(Err(refusal))) => Err(refusal.clone()),
            (Ok(_), None) => Err(Refusal::failed()),
        });
    }
    let refused = all.iter().filter_map(|one| one.as_ref().err());
    let statuses: Vec<StatusCode> = refused.map(|refusal| refusal.status).collect();
    let status = match statuses.first() {
        Some(first) if statuses.len() == all.len() => *first,
        _ => StatusCode::OK,
    };
    let shown = files.iter().zip(&all).map(|(file, one)| match one {
        Ok(answered) => One::Answered(answered),
        Err(refusal) => One::Refused { name: &file.name, error: refusal.shown() },
    });
    let predictions = shown.collect();
    (status, Json(Predictions { predictions })).into_response()
}

fn answered<'a>(
    app: &App,
    name: &'a str,
    item: &[f32],
    answer: &Answer,
    png: bool,
) -> Answered<'a> {
    let (c, p) = (&app.canonicalizer, &answer.prediction);
    let row = upright_job::Answer::of(c, p);
    Answered {
        name,
        label: row.label,
        class: row.class,
        model_label: row.model_label,
        model_class: c.model().class_name(row.model_label),
        rival: row.rival,
        verdict: word(row.verdict),
        energy_before: row.energy_before,
        energy_after: row.energy_after,
        evaluations: row.evaluations,
        map: row.map,
        truncated: answer.truncated,
        view: if png { view::url(c, item, p.map) } else { None },
    }
}
