//! The description of every path.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::app::App;

/// With `{model}` and `{version}` to be filled in.
const TEXT: &str = include_str!("openapi.json");

/// `GET /openapi.json`
pub async fn description(State(app): State<Arc<App>>) -> Response {
    let name = serde_json::to_string(&app.options.name).unwrap_or_default();
    let text =
        TEXT.replace("\"MODEL_NAME\"", &name).replace("MODEL_VERSION", env!("CARGO_PKG_VERSION"));
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
