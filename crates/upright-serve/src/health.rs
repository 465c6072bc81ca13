//! Whether the server lives and is ready, and what it counts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::app::App;
use crate::refusal::Refusal;

#[derive(Serialize)]
struct Live {
    live: bool,
}

#[derive(Serialize)]
struct Ready {
    ready: bool,
}

/// `GET /v2/health/live`
pub async fn live() -> Response {
    Json(Live { live: true }).into_response()
}

/// `GET /v2/health/ready`
pub async fn ready(State(app): State<Arc<App>>) -> Result<Response, Refusal> {
    app.ready()?;
    Ok(Json(Ready { ready: true }).into_response())
}

/// `GET /metrics`
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    app.metrics.queue.set(app.runner.cost() as f64);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.render()).into_response()
}
